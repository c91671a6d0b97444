//! What the original left behind, and what it did, as recorded.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::gates::Gates;
use serde_json::{Value, json};

use super::kit::{World, node};
use crate::{
    daemonset::{Backoff, Observed, decide, status_write},
    node::Node,
    plan::WriteBudget,
    pod::Pod,
    revision::Revision,
    waiting::{Reason, Waits},
};

fn seen(case: &Value) -> Observed {
    let of = |kind: &'static str| {
        case["objects"].as_array().unwrap().iter().filter(move |one| one["kind"] == kind)
    };
    let pods: Vec<Arc<Pod>> =
        of("Pod").map(|pod| Arc::new(serde_json::from_value::<Pod>(pod.clone()).unwrap())).collect();
    // The cluster had more nodes; those without a pod did not fit.
    let nodes = pods.iter().map(|pod| pod.spec.node_name.to_string());
    let nodes: BTreeMap<String, Arc<Node>> = nodes
        .map(|name| (name.clone(), Arc::new(serde_json::from_value(node(&name, &json!({}))).unwrap())))
        .collect();
    Observed {
        set: Arc::new(serde_json::from_value(case["set"].clone()).unwrap()),
        pods,
        nodes: nodes.into_values().collect(),
        revisions: of("ControllerRevision").map(|one| Arc::new(Revision::read(one).unwrap())).collect(),
        jobs: Vec::new(),
        now: "2026-11-16T12:00:00Z".parse().unwrap(),
        gates: Arc::new(Gates::default()),
        assign_by_scheduler: true,
        resize_subresource: true,
        refusals: Default::default(),
        backoff: Backoff::default(),
        refused: Default::default(),
        write_budget: WriteBudget::default(),
        seed: 1,
    }
}

/// DAEMONSET-41: what the original left at rest is left alone, pods, revisions and status.
#[test]
fn a_set_that_the_original_left_at_rest_is_not_written_to() {
    let (mut count, mut problems) = (0, Vec::new());
    for line in include_str!("../../../tests/recorded/resting-daemonsets.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let seen = seen(&case);
        let (plan, standing) = decide(&seen);
        let status = standing.status(&seen, true, &Waits::default());
        let write = status_write(&seen.set, &status);
        let is_wanted = plan.waits.main().is_none_or(Reason::is_wanted);
        if !plan.steps.is_empty() || write.is_some() || plan.wake_after.is_some() || !is_wanted {
            problems.push(format!("{}: {:?} {write:?}", case["case"], plan.steps));
        }
        count += 1;
    }
    assert!(problems.is_empty() && count == 19, "{count} cases\n{}", problems.join("\n"));
}

/// DAEMONSET-19: 55 changes of partition and selector, followed to rest, end as they ended in the original.
#[test]
fn recorded_changes_of_partition_and_selector_end_the_same_way() {
    let recorded = include_str!("../../../tests/recorded/daemonset-partition-selector.tsv");
    let mut count = 0;
    for line in recorded.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [before, partition, selector, after] = fields.as_slice() else { panic!("{line}") };
        let (partition, selector): (Value, Value) =
            (serde_json::from_str(partition).unwrap(), serde_json::from_str(selector).unwrap());
        let mut world = World::new(
            0,
            json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 4, "partition": 9}}}),
        );
        let nodes: Vec<(&str, bool)> = before
            .split(' ')
            .map(|node| node.split_once('=').unwrap())
            .map(|(name, is)| (name, is == "new"))
            .collect();
        nodes.iter().for_each(|(name, _)| world.add_node(name));
        world.rest();
        world.image("app:v2");
        world.rest();
        for (name, _) in nodes.iter().filter(|(_, is_new)| *is_new) {
            world.delete_pod(name);
        }
        world.rest();
        let hosts = json!([{"key": "kubernetes.io/hostname", "operator": "In", "values": selector}]);
        let selector = if selector.is_null() { Value::Null } else { json!({"matchExpressions": hosts}) };
        world.rolling(json!({"partition": partition, "selector": selector}));
        world.rest();
        let found = world.images().replace("=v1", "=old").replace("=v2", "=new");
        assert_eq!(found, *after, "{line}");
        count += 1;
    }
    assert_eq!(count, 55);
}
