//! What holds whatever happens.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::model::{World, bound_to};

/// Something that happens around a job.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Succeeds(usize),
    Fails(usize),
    IsDeleted(usize),
    Ends,
    Cordon(usize, bool),
    NodeComes(usize),
    NodeGoes(usize),
    Parallelism(usize),
    Paused(bool),
    /// A container of a pod restarts, more often than it may.
    Restarts(usize),
    /// The server refuses so many deletions.
    RefusesDeletions(usize),
    Pass,
    /// A pass whose process dies before it writes the status.
    LastPass,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => (0..6usize).prop_map(Happens::Succeeds),
        1 => (0..6usize).prop_map(Happens::Fails),
        1 => (0..6usize).prop_map(Happens::IsDeleted),
        2 => Just(Happens::Ends),
        1 => (0..6usize, any::<bool>()).prop_map(|(node, on)| Happens::Cordon(node, on)),
        1 => (0..8usize).prop_map(Happens::NodeComes),
        1 => (0..6usize).prop_map(Happens::NodeGoes),
        1 => (0..4usize).prop_map(Happens::Parallelism),
        1 => any::<bool>().prop_map(Happens::Paused),
        1 => (0..6usize).prop_map(Happens::Restarts),
        1 => (1..4usize).prop_map(Happens::RefusesDeletions),
        6 => Just(Happens::Pass),
        2 => Just(Happens::LastPass),
    ]
}

fn occur(world: &mut World, what: Happens) {
    let node = |number: usize| format!("n{number}");
    let has_pod = |world: &World, number: usize| {
        world.pods.values().any(|pod| bound_to(pod) == node(number) && pod["status"]["phase"] == "Running")
    };
    match what {
        Happens::Succeeds(number) if has_pod(world, number) && !proves_failure(world) => {
            world.end(&node(number), "Succeeded");
        }
        Happens::Fails(number) if has_pod(world, number) => world.end(&node(number), "Failed"),
        // A pod that proves a failure stays: what nobody has seen cannot be known.
        Happens::IsDeleted(number) if has_pod(world, number) && !proves_failure(world) => {
            world.delete(&node(number));
        }
        Happens::Ends => world.gone(),
        Happens::Cordon(number, on) if world.nodes.contains_key(&node(number)) => {
            world.cordon(&node(number), on);
        }
        Happens::NodeComes(number) => world.add_node(&node(number)),
        Happens::NodeGoes(number) => world.remove_node(&node(number)),
        Happens::Parallelism(number) => world.change(json!({"spec": {"parallelism": number}})),
        Happens::Paused(paused) => world.change(json!({"spec": {"paused": paused}})),
        Happens::Restarts(number) if has_pod(world, number) => world.restarts(&node(number), 9),
        Happens::RefusesDeletions(count) => world.refuse_deletes = count,
        Happens::Pass => world.pass(),
        Happens::LastPass => {
            world.dies = true;
            world.pass();
            world.dies = false;
        }
        _ => {}
    }
}

/// Whether a pod has failed, and nobody is deleting it.
fn proves_failure(world: &World) -> bool {
    world.pods.values().any(|pod| {
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap_or(0);
        let phase = pod["status"]["phase"].as_str().unwrap();
        let has_failed = phase == "Failed" || (phase == "Running" && restarts > 0);
        has_failed && pod["metadata"].get("deletionTimestamp").is_none()
    })
}

/// How many running pods have restarted.
fn restarted(world: &World) -> usize {
    let restarts = |pod: &&serde_json::Value| {
        pod["status"]["phase"] == "Running"
            && pod["metadata"].get("deletionTimestamp").is_none()
            && pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap_or(0) > 0
    };
    world.pods.values().filter(restarts).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No node does the work twice, parallelism is never exceeded by the job's own doing, no two pods are on one node, counts
    /// are never below zero, and in the end the job is done or has failed.
    #[test]
    fn every_node_does_the_work_once(
        all in prop::collection::vec(happens(), 0..60), never in any::<bool>(),
        policy in prop::sample::select(vec!["FailFast", "Continue", "Pause"]), deadline in any::<bool>(),
    ) {
        let kind = if never { "Never" } else { "Always" };
        let limit_of_time = (deadline && !never).then_some(10_000);
        let spec = json!({"parallelism": 2, "failurePolicy": {"type": policy},
            "completionPolicy": {"type": kind, "activeDeadlineSeconds": limit_of_time},
            "template": {"spec": {"restartPolicy": "OnFailure"}}});
        let mut world = World::new(4, spec);
        let mut limit = 2;
        let mut must_fail = false;
        for what in all {
            // A pod that restarted too often is deleted when the next one is created.
            let before = world.active() - restarted(&world);
            let pods: Vec<String> = world.pods.keys().cloned().collect();
            if matches!(what, Happens::Pass | Happens::LastPass) && policy == "FailFast" {
                let is_open = world.spec("paused") != json!(true) && world.status()["phase"] != "completed";
                must_fail = must_fail || (is_open && proves_failure(&world));
            }
            occur(&mut world, what);
            if let Happens::Parallelism(number) = what {
                limit = number;
            }
            let mut by_node: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for pod in world.pods.values() {
                by_node.entry(bound_to(pod)).or_default().push(pod["status"]["phase"].as_str().unwrap());
            }
            prop_assert!(by_node.values().all(|phases| phases.len() == 1), "{by_node:?} after {what:?}");
            let made = world.pods.keys().filter(|name| !pods.contains(name)).count();
            prop_assert!(made == 0 || before + made <= limit, "{made} beside {before} of {limit}");
            for field in ["active", "succeeded", "failed", "desired"] {
                prop_assert!(world.status()[field].as_i64().unwrap_or(0) >= 0);
            }
        }
        world.refuse_deletes = 0;
        world.change(json!({"spec": {"parallelism": 9}}));
        for number in 0..8 {
            if world.nodes.contains_key(&format!("n{number}")) {
                world.cordon(&format!("n{number}"), false);
            }
        }
        for _ in 0..12 {
            world.change(json!({"spec": {"paused": false}}));
            world.pass();
            world.gone();
            world.end_all("Succeeded");
            world.pass();
        }
        let phase = world.status()["phase"].as_str().unwrap().to_owned();
        let has_nodes = !world.nodes.is_empty();
        prop_assert!(
            matches!(phase.as_str(), "completed" | "failed") || (phase == "running" && (never || !has_nodes)),
            "{phase}"
        );
        prop_assert!(!must_fail || phase == "failed", "{phase} after a pod has failed");
        prop_assert!(phase != "failed" || world.active() == 0);
        prop_assert!(world.is_calm());
    }
}
