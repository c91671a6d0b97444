//! What the original left behind, recorded while it ran.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::kit::read;
use crate::{
    effect::{Effect, Patch},
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

/// Where the counts of the original lag behind: it does not look again when a pod that is ready becomes Running, when a set
/// does not update, and for five seconds after its own writes.
const LATE: [&str; 4] = [
    "canary-and-base-sets/cap-b-cn1",
    "native-sidecar/cap-b-native",
    "patch-pod-metadata/cap-b-pm",
    "v1alpha1-namespace-customversion/cap-b-al1",
];

/// SIDECARSET-5: pods that the original injected or updated are recognised, and nothing is written.
#[test]
fn what_the_original_left_at_rest_is_left_alone() {
    let mut problems = Vec::new();
    for case in recorded() {
        let name = case["case"].as_str().unwrap();
        // These two are not at rest, see below.
        if ["hot-upgrade-bad-image-2-after-rollback-attempt", "injection-revision"].contains(&name) {
            continue;
        }
        let seen = seen(&case);
        let plan = plan(&seen);
        if !plan.steps.is_empty() || !plan.failures.is_empty() {
            problems.push(format!("{name}: {:?} {:?}", plan.effects(), plan.failures));
        }
        let ours = serde_json::to_value(status(&seen)).unwrap();
        // The original leaves out this count at zero.
        let mut theirs = case["set"]["status"].clone();
        theirs.as_object_mut().unwrap().entry("updatedReadyPods").or_insert_with(|| 0.into());
        let name = format!("{name}/{}", case["set"]["metadata"]["name"].as_str().unwrap());
        if (ours != theirs) != LATE.contains(&name.as_str())
            || ours["latestRevision"] != theirs["latestRevision"]
        {
            problems.push(format!("{name}: {ours}, not {theirs}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Someone deleted the newest revision of this set.
#[test]
fn a_revision_that_is_gone_is_made_again_under_its_old_name() {
    let recorded = recorded();
    let case = recorded.iter().find(|case| case["case"] == "injection-revision").unwrap();
    let plan = plan(&seen(case));
    let [Effect::Create { object, .. }] = plan.effects().as_slice() else { panic!("{:?}", plan.effects()) };
    assert_eq!(object["metadata"]["name"], case["set"]["status"]["latestRevision"]);
    assert_eq!(object["metadata"]["labels"]["apps.kruise.io/sidecarset-custom-version"], "3b");
}

/// D14 of the specification, on the very pod of the original.
#[test]
fn a_pod_that_the_original_left_half_way_back_is_mended() {
    let recorded = recorded();
    let case = recorded
        .iter()
        .find(|case| case["case"] == "hot-upgrade-bad-image-2-after-rollback-attempt")
        .unwrap();
    let plan = plan(&seen(case));
    let [Effect::Patch { patch: Patch::Strategic(patch), target, .. }] = plan.effects().as_slice() else {
        panic!("{:?}", plan.effects())
    };
    assert_eq!(target.key.to_string(), "cap-b-ss2/hot-jkspm");
    assert_eq!(patch["spec"], json!({"containers": [{"name": "mesh-2", "image": "empty:v1"}]}));
    let annotations = patch["metadata"]["annotations"].as_object().unwrap();
    let written = |key: &str| annotations.get(key).and_then(Value::as_str);
    assert_eq!(written("kruise.io/sidecarset-working-hotupgrade-container"), Some(r#"{"mesh":"mesh-1"}"#));
    assert_eq!(written("version.sidecarset.kruise.io/mesh-2"), Some("0"));
    assert_eq!(written("versionalt.sidecarset.kruise.io/mesh-1"), Some("0"));
    assert_eq!(annotations.len(), 4, "and what ran before: {annotations:?}");
}
