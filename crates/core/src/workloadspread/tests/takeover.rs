//! What the original left at rest is left alone.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{super::*, kit::*};
use crate::pod::Pod;

/// Cases that the original left while something was still to be done, or in which we differ on purpose.
const NOT_AT_REST: [&str; 3] = [
    // A booking of a moment ago.
    "creation-refused-by-quota",
    // Filters without a selector choose all pods.
    "target-filter-nil-selector",
    // The lists were left empty; they stay so.
    "maxreplicas-string-without-percent",
];

fn seen(case: &Value) -> Observed {
    let node_of = |zone: &str, name: &str| node(name, json!({"cap-b.example/zone": zone}), json!([]));
    let pods = case["pods"].as_array().unwrap().iter();
    let pods: Vec<Arc<Pod>> =
        pods.map(|pod| Arc::new(serde_json::from_value::<Pod>(pod.clone()).unwrap())).collect();
    let stays = "2026-11-15T19:40:30Z".parse().unwrap();
    let now = pods.iter().filter_map(|pod| pod.metadata.creation_timestamp).max().unwrap_or(stays).max(stays);
    Observed {
        spread: read(&case["spread"]),
        total: case["total"].as_u64().map(|total| u32::try_from(total).unwrap()),
        pods,
        versioned: Versioned::default(),
        newest: case["newest"].as_str().map_or(Newest::All, |newest| Newest::Version(newest.to_owned())),
        nodes: BTreeMap::from([
            node_of("a", "hollow-1"),
            node_of("b", "hollow-2"),
            node_of("c", "hollow-3"),
            node_of("none", "real-0"),
        ]),
        whole: BTreeMap::new(),
        now,
    }
}

/// Taking over a cluster writes to no pod, and to no status that is right.
#[test]
fn a_spread_that_the_original_left_at_rest_is_not_written_to() {
    let mut count = 0;
    for line in include_str!("../../../tests/recorded/workloadspread-resting.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["case"].as_str().unwrap();
        let plan = decide(&seen(&case));
        if name == "target-filter-nil-selector" {
            continue;
        }
        assert!(plan.pods.is_empty() && plan.moves.is_empty(), "{name}: {plan:?}");
        if !NOT_AT_REST.contains(&name) {
            assert_eq!(plan.status, None, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 16);
}
