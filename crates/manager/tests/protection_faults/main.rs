//! A PodUnavailableBudget under every class of faults. People delete, evict and force pods of one CloneSet in random order,
//! while the process dies, reads lag, events get lost and calls fail. At every moment no more pods are down than the budget
//! has, and after the faults all of the budget is there again and nothing is written any more.
//!
//! One class is left out: a server that answers a read of one object with an older state (`OldReads`). Kubernetes promises
//! that it does not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../runtime/tests/faults/classes.rs"]
#[allow(dead_code, reason = "shared with other kinds")]
mod classes;

#[path = "../sidecarset_faults/process.rs"]
mod process;

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::{cloneset, names, podunavailablebudget};
use kruise_core::features::webhooks;
use kruise_runtime::random::Random;
use kruise_sim::Sim;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, EvictParams, ListParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use classes::{Class, crash_soon, each_seed};
use process::Process;

const REPLICAS: usize = 6;
const MOST: usize = 2;
const DEEDS: u64 = 25;
const WITHIN: u32 = 1800;

fn api(sim: &Sim, group: &str, version: &str, kind: &str, namespaced: bool) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if namespaced {
        Api::namespaced_with(sim.client(), "default", &resource)
    } else {
        Api::all_with(sim.client(), &resource)
    }
}

async fn create(api: Api<DynamicObject>, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn install(sim: &Sim) {
    for definition in [cloneset::CRD.object(), podunavailablebudget::CRD.object()] {
        create(api(sim, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", false), definition).await;
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::NAMESPACE, "labels": {"control-plane": "openkruise"}}});
    create(api(sim, "", "v1", "Namespace", false), namespace).await;
    let gates = kruise_api::gates::Gates::default();
    for configuration in webhooks::configurations(&gates, &webhooks::Options::default()) {
        let kind = configuration["kind"].as_str().unwrap().to_owned();
        create(api(sim, "admissionregistration.k8s.io", "v1", &kind, false), configuration).await;
    }
    sim.advance(Duration::from_secs(2)).await;
}

fn budgets(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "policy.kruise.io", "v1beta1", "PodUnavailableBudget", true)
}

fn pods(sim: &Sim) -> Api<Pod> {
    Api::namespaced(sim.client(), "default")
}

fn serves(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    pod.metadata.deletion_timestamp.is_none()
        && conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

async fn serving(sim: &Sim) -> Vec<String> {
    let all = pods(sim).list(&ListParams::default()).await.unwrap().items;
    all.iter().filter(|pod| serves(pod)).filter_map(|pod| pod.metadata.name.clone()).collect()
}

/// The budget has all that it should have, and no records.
async fn is_whole(sim: &Sim) -> Result<(), String> {
    let status = budgets(sim).get("web").await.unwrap().data["status"].clone();
    let is_whole = status["unavailableAllowed"] == MOST
        && status["currentAvailable"] == REPLICAS
        && status.get("disruptedPods").is_none()
        && status.get("unavailablePods").is_none();
    if is_whole { Ok(()) } else { Err(status.to_string()) }
}

async fn until_whole(sim: &Sim, within: u32) -> Result<(), String> {
    let mut left = within;
    while let Err(status) = is_whole(sim).await {
        if left == 0 {
            return Err(format!("the budget is not whole: {status}, {:?} serve", serving(sim).await));
        }
        left -= 1;
        sim.advance(Duration::from_secs(1)).await;
    }
    Ok(())
}

async fn holds(sim: &Sim, deeds: &[String]) -> Result<(), String> {
    let serving = serving(sim).await.len();
    if serving + MOST >= REPLICAS {
        return Ok(());
    }
    let status = budgets(sim).get("web").await.unwrap().data["status"].clone();
    Err(format!("{serving} pods serve at {}: {status}\n{}", sim.clock().now(), deeds.join("\n")))
}

async fn act(sim: &mut Sim) -> Option<String> {
    let serving = serving(sim).await;
    let pod = sim.pick_one(&serving)?.clone();
    let deed = sim.pick(0..3);
    let force = DeleteParams::default().grace_period(0);
    let answer = match deed {
        0 => pods(sim).delete(&pod, &DeleteParams::default()).await.map(drop),
        1 => pods(sim).delete(&pod, &force).await.map(drop),
        _ => pods(sim).evict(&pod, &EvictParams::default()).await.map(drop),
    };
    let what = ["delete", "force", "evict"][usize::try_from(deed).unwrap()];
    let answer = answer.map_or_else(|error| error.to_string(), |()| "ok".to_owned());
    Some(format!("{} {what} {pod}: {answer}", sim.clock().now()))
}

async fn story(seed: u64, class: Class) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(3).without_events().start();
    install(&sim).await;
    let random = Random::seeded(seed);
    let resync = if class.loses_events() { "--sync-period=60s" } else { "--sync-period=0s" };
    let mut process = Process::start(&sim, &random, resync);
    sim.advance(Duration::from_secs(5)).await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 3,
        "containers": [{"name": "main", "image": "app:v1"}]}});
    create(
        api(&sim, "apps.kruise.io", "v1beta1", "CloneSet", true),
        json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}}, "template": template}}),
    )
    .await;
    create(budgets(&sim), json!({
        "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget", "metadata": {"name": "web"},
        "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}, "maxUnavailable": MOST}})).await;
    until_whole(&sim, 120).await?;
    class.begin(&mut sim);
    let mut deeds = Vec::new();
    let mut crashes = 0;
    for _ in 0..DEEDS {
        deeds.extend(act(&mut sim).await);
        for _ in 0..sim.pick(1..16) {
            sim.advance(Duration::from_millis(500)).await;
            if sim.faults().is_crashed() {
                drop(process);
                sim.faults().revive();
                crashes += 1;
                if crashes < 12 {
                    crash_soon(&mut sim);
                }
                process = Process::start(&sim, &random, resync);
            }
            process.is_well()?;
            holds(&sim, &deeds).await?;
        }
    }
    sim.faults().heal();
    sim.faults().revive();
    if class.loses_events() {
        // What was lost shows with the next list.
        drop(process);
        process = Process::start(&sim, &random, resync);
    }
    until_whole(&sim, WITHIN).await.map_err(|problem| format!("{problem}\n{}", deeds.join("\n")))?;
    sim.advance(Duration::from_secs(120)).await;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(600)).await;
    if sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    process.is_well()?;
    is_whole(&sim).await
}

macro_rules! under_faults {
    ($($name:ident: $class:ident, $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            each_seed($seeds, |seed| story(seed, Class::$class));
        }
    )*};
}

under_faults! {
    the_budget_holds_when_the_process_dies: Crash, 0..6;
    the_budget_holds_when_reads_come_late: LateReads, 100..106;
    the_budget_holds_when_watch_events_are_lost: LostEvents, 300..306;
    the_budget_holds_when_watch_events_are_merged: MergedEvents, 400..406;
    the_budget_holds_when_calls_are_refused: Refusals, 500..506;
    the_budget_holds_when_answers_are_lost: LostAnswers, 600..606;
    the_budget_holds_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 700..706;
    the_budget_holds_when_everything_goes_wrong: Storm, 800..806;
    the_budget_holds_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 900..906;
}
