//! What the original left behind and answered, as recorded.

use std::{collections::BTreeMap, sync::Arc};

use kruise_api::{gates::Gates, persistentpodstate::v1beta1::PersistentPodState};
use serde_json::{Value, json};

use super::kit::nodes;
use crate::{
    effect::{Effect, Patch},
    persistentpodstate::{Members, Observed, Set, decide, generate, inject},
    pod::Pod,
};

const NODES: &str = "hollow-1:cap-b.example/zone=a,kubernetes.io/hostname=hollow-1,cap-b.example/rack=r \
     hollow-2:cap-b.example/zone=b,kubernetes.io/hostname=hollow-2 \
     hollow-3:cap-b.example/zone=c,kubernetes.io/hostname=hollow-3";

fn cases() -> BTreeMap<String, Value> {
    let lines = include_str!("../../../tests/recorded/persistentpodstates.jsonl").lines();
    let cases = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.map(|case| (case["case"].as_str().unwrap().to_owned(), case)).collect()
}

fn state(case: &Value) -> Option<Arc<PersistentPodState>> {
    (!case["state"].is_null()).then(|| Arc::new(serde_json::from_value(case["state"].clone()).unwrap()))
}

fn set(case: &Value) -> Option<Set> {
    let object = &case["set"];
    match object["apiVersion"].as_str()? {
        "apps/v1" => Some(Set::of_native(&serde_json::from_value(object.clone()).unwrap())),
        _ => {
            let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
            let own = serde_json::from_value(object.clone()).unwrap();
            Some(Set::of_own(&metadata, &own, &Gates::default()))
        }
    }
}

fn seen(case: &Value, state: Arc<PersistentPodState>) -> Observed {
    let pods = || -> Vec<Arc<Pod>> {
        let pods = case["pods"].as_array().unwrap().iter();
        pods.map(|pod| Arc::new(serde_json::from_value(pod.clone()).unwrap())).collect()
    };
    let members = set(case).map(|set| Members { ordinals: set.ordinals, pods: pods() });
    Observed { state, members, nodes: nodes(NODES) }
}

/// What the original left at rest is taken over without a write. Where it kept blanks in keys, its spec is corrected.
#[test]
fn what_the_original_left_at_rest_is_taken_over() {
    let mut taken = Vec::new();
    for (name, case) in cases() {
        let Some(state) = state(&case).filter(|_| name != "weight-zero-blocks-pod") else { continue };
        assert_eq!(decide(&seen(&case, state.clone())), Default::default(), "{name}");
        let sets: Vec<Set> = set(&case).into_iter().collect();
        let found = generate(Some(&state), &sets);
        assert!(found.conflicts.is_empty() && found.incomplete.is_empty(), "{name}");
        match found.effect {
            None => taken.push(name),
            Some(Effect::Patch { patch: Patch::Merge(patch), .. }) => {
                let spec = json!({"persistentPodAnnotations": [{"key": "other"}],
                    "requiredPersistentTopology": {"keys": ["cap-b.example/zone", "cap-b.example/rack"]}});
                assert_eq!(patch, json!({"spec": spec}), "{name}");
                assert!(["annotations-changed", "scaled-in"].contains(&name.as_str()), "{name}");
            }
            Some(other) => panic!("{name}: {other:?}"),
        }
    }
    let expected = [
        "auto-generated",
        "native-v1alpha1",
        "native-workload-deleted",
        "ordinals-start",
        "pod-recreated",
        "whendeleted-scaled-in",
    ];
    assert_eq!(taken, expected);
}

/// From nothing the same records are made that the original made.
#[test]
fn the_same_pods_give_the_same_records() {
    for name in ["auto-generated", "native-v1alpha1", "ordinals-start", "scaled-in"] {
        let case = &cases()[name];
        let state = state(case).unwrap();
        let bare = PersistentPodState { status: None, ..(*state).clone() };
        let plan = decide(&seen(case, Arc::new(bare.clone())));
        let status = super::kit::written(&bare, &plan)["status"].clone();
        assert_eq!(status, case["state"]["status"], "{name}");
    }
}

/// PPS-2: a pod of the template becomes the pod that was recorded, but for the empty term that the original adds.
#[test]
fn pods_are_sent_where_the_original_sent_them() {
    let mark = "kruise.io/injected-persistent-pod-state";
    let mut count = 0;
    for name in ["pod-recreated", "native-v1alpha1"] {
        let case = &cases()[name];
        let state = state(case).unwrap();
        for recorded in case["pods"].as_array().unwrap() {
            if recorded["metadata"]["annotations"].get(mark).is_none() {
                continue;
            }
            let mut pod = json!({"metadata": {"name": recorded["metadata"]["name"]},
                "spec": case["set"]["spec"]["template"]["spec"]});
            inject(&mut pod, &state);
            assert_eq!(pod["metadata"]["annotations"][mark], recorded["metadata"]["annotations"][mark]);
            assert_eq!(pod["spec"]["nodeSelector"], recorded["spec"]["nodeSelector"]);
            let mut affinity = recorded["spec"]["affinity"].clone();
            let preferred = "/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
            let terms = affinity.pointer_mut(preferred).and_then(Value::as_array_mut).unwrap();
            terms.retain(|term| term["preference"] != json!({}));
            assert_eq!(pod["spec"]["affinity"], affinity);
            count += 1;
        }
    }
    assert_eq!(count, 2);
}

/// With the recorded object the original makes a pod that the API server refuses, for ever.
#[test]
fn the_recorded_weight_of_zero_keeps_no_pod_away() {
    let case = &cases()["weight-zero-blocks-pod"];
    let before = json!({"metadata": {"name": "wz-0"}, "spec": {"containers": []}});
    let mut pod = before.clone();
    inject(&mut pod, &state(case).unwrap());
    assert_eq!(pod, before);
}
