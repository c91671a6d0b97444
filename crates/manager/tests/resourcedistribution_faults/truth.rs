//! Whatever goes wrong: nothing foreign is written, and in the end copies are where they should be and the status is true.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kruise_sim::Sim;
use serde_json::{Value, json};

use crate::{
    classes::{Class, each_seed},
    process::Kept,
    world::{
        api, counts, create, delete, distribution, distributions, get, install, list, merge, namespace,
        namespaces, objects,
    },
};

const KINDS: [(&str, &str); 2] = [("ConfigMap", "settings"), ("Secret", "token")];

/// The objects of somebody else, by uid, as they were made.
#[derive(Default)]
struct Foreign(BTreeMap<String, Value>);

impl Foreign {
    async fn look(&self, sim: &Sim) -> Result<(), String> {
        for (kind, name) in KINDS {
            for (namespace, object) in objects(sim, kind, name).await {
                let uid = object["metadata"]["uid"].as_str().unwrap();
                let Some(made) = self.0.get(uid) else { continue };
                if object["data"] != made["data"]
                    || object["metadata"]["labels"] != made["metadata"]["labels"]
                {
                    return Err(format!("{kind} {name} of somebody else was written in {namespace}"));
                }
                if !object["metadata"]["deletionTimestamp"].is_null() {
                    return Err(format!("{kind} {name} of somebody else was deleted in {namespace}"));
                }
            }
        }
        Ok(())
    }
}

fn space(number: u64) -> String {
    format!("n{number}")
}

/// Half a second of somebody's life.
async fn live(sim: &mut Sim, foreign: &mut Foreign) {
    let place = space(sim.pick(0..8));
    let (kind, name) = *sim.pick_one(&KINDS).unwrap();
    let all = api(sim, "v1", kind, &place);
    match sim.pick(0..14) {
        0 | 1 => {
            namespace(sim, &place, json!({"team": "shop"})).await;
        }
        2 | 3 => {
            let team = if sim.pick(0..2) == 0 { json!("shop") } else { Value::Null };
            merge(&namespaces(sim), &place, json!({"metadata": {"labels": {"team": team}}})).await;
        }
        4 => {
            delete(&namespaces(sim), &place).await;
        }
        5 | 6 => {
            // Somebody edits a copy, but nothing that is somebody else's.
            let found = objects(sim, kind, name).await.remove(&place);
            let uid = found.and_then(|found| Some(found["metadata"]["uid"].as_str()?.to_owned()));
            if uid.is_some_and(|uid| !foreign.0.contains_key(&uid)) {
                let data = if kind == "Secret" { json!({"edited": "eA=="}) } else { json!({"edited": "x"}) };
                merge(&all, name, json!({"data": data})).await;
            }
        }
        7 => {
            if let Some(found) = objects(sim, kind, name).await.remove(&place) {
                foreign.0.remove(found["metadata"]["uid"].as_str().unwrap());
                delete(&all, name).await;
            }
        }
        8 => {
            let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": {"mine": "yes"}}});
            if create(sim, &place, object).await
                && let Some(made) = objects(sim, kind, name).await.remove(&place)
            {
                foreign.0.insert(made["metadata"]["uid"].as_str().unwrap().to_owned(), made);
            }
        }
        9 | 10 => {
            let member = if kind == "Secret" { "stringData" } else { "data" };
            let word = format!("v{}", sim.pick(0..1000));
            merge(&distributions(sim), name, json!({"spec": {"resource": {member: {"a": word}}}})).await;
        }
        11 => {
            let some = [space(sim.pick(0..8)), space(sim.pick(0..8))].map(|name| json!({"name": name}));
            let list = if sim.pick(0..3) == 0 { Value::Null } else { json!({"list": some}) };
            let field = *sim.pick_one(&["includedNamespaces", "excludedNamespaces"]).unwrap();
            merge(&distributions(sim), name, json!({"spec": {"targets": {field: list}}})).await;
        }
        _ => {}
    }
}

/// Whether everything is as it should be.
async fn settled(sim: &Sim, foreign: &Foreign) -> Result<(), String> {
    let all = list(&namespaces(sim)).await;
    for (kind, name) in KINDS {
        let object = get(sim, name).await;
        let targets = &object["spec"]["targets"];
        let listed = |field: &str, name: &str| {
            let list = targets[field]["list"].as_array().into_iter().flatten();
            list.into_iter().any(|one| one["name"] == name)
        };
        let found = objects(sim, kind, name).await;
        let is_foreign = |object: &Value| foreign.0.contains_key(object["metadata"]["uid"].as_str().unwrap());
        let (mut desired, mut succeeded) = (0, 0);
        let word = |object: &Value| {
            let spec = &object["spec"]["resource"];
            match kind {
                "Secret" => spec["stringData"]["a"].clone(),
                _ => spec["data"]["a"].clone(),
            }
        };
        let mut known = Vec::new();
        for namespace in &all {
            let place = namespace["metadata"]["name"].as_str().unwrap();
            known.push(place);
            let is_chosen = (listed("includedNamespaces", place)
                || namespace["metadata"]["labels"]["team"] == "shop")
                && !listed("excludedNamespaces", place);
            let copy = found.get(place);
            match copy {
                Some(copy) if is_foreign(copy) => desired += i32::from(is_chosen),
                Some(copy) if is_chosen => {
                    (desired, succeeded) = (desired + 1, succeeded + 1);
                    let value = copy["data"]["a"].as_str().unwrap_or_default();
                    let expected = word(&object);
                    let expected = expected.as_str().unwrap();
                    let is_equal = match kind {
                        "Secret" => value == encoded(expected),
                        _ => value == expected,
                    };
                    if !is_equal || !copy["data"]["edited"].is_null() {
                        return Err(format!("{kind} in {place} is {}", copy["data"]));
                    }
                }
                Some(copy) => return Err(format!("{kind} is in {place}, which is no target: {copy}")),
                None if is_chosen => return Err(format!("{kind} is not in {place}: {}", object["status"])),
                None => {}
            }
        }
        let list = targets["includedNamespaces"]["list"].as_array().cloned().unwrap_or_default();
        let mut missing: Vec<&str> = list.iter().filter_map(|one| one["name"].as_str()).collect();
        missing.sort_unstable();
        missing.dedup();
        missing.retain(|place| !known.contains(place) && !listed("excludedNamespaces", place));
        desired += i32::try_from(missing.len()).unwrap();
        let expected = format!("{desired}/{succeeded}/{}", desired - succeeded);
        if counts(&object) != expected
            || object["status"]["observedGeneration"] != object["metadata"]["generation"]
        {
            return Err(format!("{name} counts {}, not {expected}: {}", counts(&object), object["status"]));
        }
    }
    Ok(())
}

fn encoded(word: &str) -> String {
    STANDARD.encode(word)
}

async fn story(seed: u64, class: Class) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(0).without_events().start();
    install(&sim).await;
    for number in 0..5 {
        namespace(&sim, &space(number), json!({"team": if number < 3 { "shop" } else { "" }})).await;
    }
    let resync = class.loses_events().then_some(Duration::from_secs(60));
    class.begin(&mut sim);
    let mut process = Kept::start(&sim, seed, resync);
    let targets = json!({"namespaceSelector": {"matchLabels": {"team": "shop"}}});
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "v"}});
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"a": "v"}});
    create(&sim, "", distribution("settings", settings, targets.clone())).await;
    create(&sim, "", distribution("token", token, targets)).await;
    let mut foreign = Foreign::default();
    for _ in 0..160 {
        sim.advance(Duration::from_millis(500)).await;
        process.look(&mut sim);
        foreign.look(&sim).await?;
        live(&mut sim, &mut foreign).await;
    }
    sim.faults().heal();
    sim.faults().revive();
    process.restart(&sim);
    // The longest pause of a namespace whose writes were refused.
    let mut last = Ok(());
    for _ in 0..70 {
        sim.advance(Duration::from_secs(10)).await;
        foreign.look(&sim).await?;
        last = settled(&sim, &foreign).await;
        if last.is_ok() {
            break;
        }
    }
    last?;
    sim.advance(Duration::from_secs(120)).await;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(900)).await;
    if sim.faults().writes() != writes {
        return Err(format!("{} writes although nothing changes", sim.faults().writes() - writes));
    }
    settled(&sim, &foreign).await
}

/// How many seeds each class has.
fn seeds() -> u64 {
    std::env::var("KRUISE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(4)
}

macro_rules! under_faults {
    ($($name:ident: $class:ident, $first:expr;)*) => {$(
        #[test]
        fn $name() {
            each_seed($first..$first + seeds(), |seed| story(seed, Class::$class));
        }
    )*};
}

under_faults! {
    copies_are_true_when_the_process_dies: Crash, 0;
    copies_are_true_when_reads_come_late: LateReads, 1_000;
    copies_are_true_when_reads_show_an_older_state: OldReads, 2_000;
    copies_are_true_when_watch_events_are_lost: LostEvents, 3_000;
    copies_are_true_when_watch_events_are_merged: MergedEvents, 4_000;
    copies_are_true_when_calls_are_refused: Refusals, 5_000;
    copies_are_true_when_answers_are_lost: LostAnswers, 6_000;
    copies_are_true_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 7_000;
    copies_are_true_when_everything_goes_wrong: Storm, 8_000;
    copies_are_true_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 9_000;
}
