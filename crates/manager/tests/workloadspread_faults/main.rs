//! A WorkloadSpread under every class of faults. A Deployment is scaled, rolled and loses pods, while the process dies, reads
//! lag, events get lost and calls fail. After the faults every pod that is wanted is there, no place of a limited subset is lost,
//! the accounts are those of the pods, and nothing is written any more.
//!
//! One fault never ends: a zone that stays full. Then every pod that the rest of the
//! cluster has room for runs all the same.
//!
//! One class is left out: a server that answers a read of one object with an older state (`OldReads`). Kubernetes promises
//! that it does not.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../runtime/tests/faults/classes.rs"]
#[allow(dead_code, reason = "shared with other kinds")]
mod classes;

#[path = "../sidecarset_faults/process.rs"]
mod process;

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kruise_api::{annotations::MATCHED_WORKLOADSPREAD, names, workloadspread};
use kruise_core::features::webhooks;
use kruise_runtime::random::Random;
use kruise_sim::{Node, Sim};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use classes::{Class, crash_soon, each_seed};
use process::Process;

/// The limit of the first subset.
const MOST: usize = 3;
const DEEDS: u64 = 14;
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
    let definition = workloadspread::CRD.object();
    create(api(sim, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", false), definition).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::NAMESPACE, "labels": {"control-plane": "openkruise"}}});
    create(api(sim, "", "v1", "Namespace", false), namespace).await;
    let gates = kruise_api::gates::Gates::default();
    for configuration in webhooks::configurations(&gates, &webhooks::Options::default()) {
        let kind = configuration["kind"].as_str().unwrap().to_owned();
        create(api(sim, "admissionregistration.k8s.io", "v1", &kind, false), configuration).await;
    }
    sim.advance(Duration::from_secs(2)).await;
}

/// What never heals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasting {
    Nothing,
    /// The zone of the first subset has no node.
    FullZone,
}

fn zoned() -> Vec<Node> {
    ["zone-a", "zone-b", "zone-b"]
        .iter()
        .enumerate()
        .map(|(index, zone)| {
            let mut node = Node::named(format!("node-{index}"));
            node.zone = (*zone).to_owned();
            node
        })
        .collect()
}

fn subset(name: &str, zone: &str, most: Option<usize>) -> Value {
    let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]});
    let mut subset = json!({"name": name, "requiredNodeSelector": {"matchExpressions": [zone]}});
    if let Some(most) = most {
        subset["maxReplicas"] = json!(most);
    }
    subset
}

fn spread(lasting: Lasting) -> Value {
    let first = if lasting == Lasting::FullZone { "zone-x" } else { "zone-a" };
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread", "metadata": {"name": "web"}, "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "subsets": [subset("a", first, Some(MOST)), subset("b", "zone-b", None)],
        "scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 20}}}})
}

fn spreads(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps.kruise.io", "v1beta1", "WorkloadSpread", true)
}

fn deployments(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps", "v1", "Deployment", true)
}

async fn pods(sim: &Sim) -> Vec<Pod> {
    let api: Api<Pod> = Api::namespaced(sim.client(), "default");
    let all = api.list(&ListParams::default()).await.unwrap().items;
    let is_active = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
    all.into_iter().filter(is_active).collect()
}

fn subset_of(pod: &Pod) -> String {
    let mark = pod.metadata.annotations.as_ref().and_then(|all| all.get(MATCHED_WORKLOADSPREAD));
    let mark = mark.and_then(|mark| serde_json::from_str::<Value>(mark).ok());
    mark.and_then(|mark| mark["subset"].as_str().map(str::to_owned)).unwrap_or("-".to_owned())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

async fn change(sim: &Sim, patch: Value) {
    deployments(sim).patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Everybody runs, and the account is that of the pods.
async fn is_right(sim: &Sim, replicas: u64, lasting: Lasting) -> Result<(), String> {
    let pods = pods(sim).await;
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for pod in &pods {
        *counts.entry(subset_of(pod)).or_default() += 1;
    }
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    let status = spreads(sim).get("web").await.unwrap().data["status"].clone();
    let told = format!("{counts:?} of {replicas}: {status}");
    if pods.len() as u64 != replicas || !pods.iter().all(is_ready) {
        return Err(format!("pods are missing or not ready: {told}"));
    }
    if lasting == Lasting::FullZone && count("a") > 0 {
        return Err(format!("pods are where no node is: {told}"));
    }
    let versions = status["versionedSubsetStatuses"].as_object().cloned().unwrap_or_default();
    let lists = versions.values().chain([&status["subsetStatuses"]]);
    for list in lists {
        let missing = i64::try_from(MOST).unwrap() - count("a");
        let right = list[0]["replicas"] == count("a")
            && list[0]["missingReplicas"] == missing.max(0)
            && list[1]["replicas"] == count("b")
            && !list.to_string().contains("ingPods");
        if !right && replicas > 0 {
            return Err(format!("the account is wrong: {told}"));
        }
    }
    if versions.len() > 1 {
        return Err(format!("versions are left over: {told}"));
    }
    Ok(())
}

async fn until_right(sim: &Sim, replicas: u64, lasting: Lasting, within: u32) -> Result<(), String> {
    let mut left = within;
    while let Err(problem) = is_right(sim, replicas, lasting).await {
        if left == 0 {
            return Err(problem);
        }
        left -= 1;
        sim.advance(Duration::from_secs(1)).await;
    }
    Ok(())
}

async fn act(sim: &mut Sim, replicas: &mut u64, deeds: &mut Vec<String>) {
    let deed = sim.pick(0..4);
    let what = match deed {
        0 => {
            *replicas = sim.pick(1..9);
            change(sim, json!({"spec": {"replicas": *replicas}})).await;
            format!("scale to {replicas}")
        }
        1 => {
            let roll = sim.pick(0..1_000_000).to_string();
            change(sim, json!({"spec": {"template": {"metadata": {"annotations": {"roll": roll}}}}})).await;
            "roll".to_owned()
        }
        _ => {
            let all = pods(sim).await;
            let Some(pod) = sim.pick_one(&all).and_then(|pod| pod.metadata.name.clone()) else { return };
            let api: Api<Pod> = Api::namespaced(sim.client(), "default");
            let answer = api.delete(&pod, &DeleteParams::default()).await.map(drop);
            format!("delete {pod}: {answer:?}")
        }
    };
    deeds.push(format!("{} {what}", sim.clock().now()));
}

async fn story(seed: u64, class: Option<Class>, lasting: Lasting) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).with_nodes(zoned()).without_events().start();
    install(&sim).await;
    let random = Random::seeded(seed);
    let loses = class.is_some_and(Class::loses_events);
    let resync = if loses { "--sync-period=60s" } else { "--sync-period=0s" };
    let mut process = Process::start(&sim, &random, resync);
    sim.advance(Duration::from_secs(5)).await;
    create(spreads(&sim), spread(lasting)).await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 3,
        "containers": [{"name": "main", "image": "app:v1"}]}});
    create(
        deployments(&sim),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": template}}),
    )
    .await;
    let mut replicas = 5;
    until_right(&sim, replicas, lasting, 240).await?;
    if let Some(class) = class {
        class.begin(&mut sim);
    }
    let (mut deeds, mut crashes) = (Vec::new(), 0);
    for _ in 0..DEEDS {
        act(&mut sim, &mut replicas, &mut deeds).await;
        for _ in 0..sim.pick(1..30) {
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
        }
    }
    sim.faults().heal();
    sim.faults().revive();
    if loses {
        // What was lost shows with the next list.
        drop(process);
        process = Process::start(&sim, &random, resync);
    }
    let told = |problem: String| format!("{problem}\n{}", deeds.join("\n"));
    until_right(&sim, replicas, lasting, WITHIN).await.map_err(&told)?;
    // Within its limit the first subset is filled by the pods of the next rollout.
    change(&sim, json!({"spec": {"template": {"metadata": {"annotations": {"roll": "last"}}}}})).await;
    sim.advance(Duration::from_secs(400)).await;
    until_right(&sim, replicas, lasting, WITHIN).await.map_err(&told)?;
    sim.advance(Duration::from_secs(400)).await;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(900)).await;
    if sim.faults().writes() != writes {
        return Err(told("writes after everything was done".to_owned()));
    }
    process.is_well()?;
    is_right(&sim, replicas, lasting).await.map_err(told)
}

macro_rules! under_faults {
    ($($name:ident: $class:ident, $lasting:ident, $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            each_seed($seeds, |seed| story(seed, Some(Class::$class), Lasting::$lasting));
        }
    )*};
}

under_faults! {
    pods_are_spread_when_the_process_dies: Crash, Nothing, 0..4;
    pods_are_spread_when_reads_come_late: LateReads, Nothing, 100..103;
    pods_are_spread_when_watch_events_are_lost: LostEvents, Nothing, 300..303;
    pods_are_spread_when_watch_events_are_merged: MergedEvents, Nothing, 400..403;
    pods_are_spread_when_calls_are_refused: Refusals, Nothing, 500..503;
    pods_are_spread_when_answers_are_lost: LostAnswers, Nothing, 600..603;
    pods_are_spread_when_everything_goes_wrong: Storm, Nothing, 800..803;
    pods_are_spread_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, Nothing, 900..903;
    a_full_zone_and_a_process_that_dies: Crash, FullZone, 1000..1003;
    a_full_zone_while_everything_goes_wrong: CrashInStorm, FullZone, 1100..1103;
}

/// A zone that stays full for ever, and nothing else.
#[test]
fn a_zone_that_stays_full_keeps_no_pod_from_running() {
    each_seed(1200..1203, |seed| story(seed, None, Lasting::FullZone));
}
