use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    effect::{Effect, Patch},
    pod::Pod,
};

fn marker(change: Value) -> Value {
    let mut marker = json!({
        "metadata": {"name": "m", "namespace": "ns", "uid": "m1", "resourceVersion": "3", "generation": 2,
            "finalizers": ["kruise.io/node-pod-probe-cleanup"]},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": [probe("ok", json!([]))]},
        "status": {"observedGeneration": 2, "matchedPods": 0},
    });
    json_patch::merge(&mut marker, &change);
    marker
}

fn probe(name: &str, policies: Value) -> Value {
    json!({"name": name, "containerName": "main", "podConditionType": format!("x.io/{name}"),
        "probe": {"exec": {"command": ["true"]}}, "markerPolicy": policies})
}

fn pod(change: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}]},
    });
    json_patch::merge(&mut pod, &change);
    pod
}

fn seen(marker: Value, pods: &[Value], nodes: &[(&str, &str)]) -> Observed {
    let node = |(name, kind): &(&str, &str)| {
        let node = json!({"metadata": {"name": name, "labels": {"type": kind}}});
        ((*name).into(), Arc::new(serde_json::from_value(node).unwrap()))
    };
    Observed {
        marker: Arc::new(serde_json::from_value(marker).unwrap()),
        pods: pods.iter().map(|pod| Arc::new(serde_json::from_value(pod.clone()).unwrap())).collect(),
        nodes: nodes.iter().map(node).collect(),
        is_listed: false,
        serverless: false,
    }
}

/// What a plan writes, in words.
fn told(effects: &[Effect]) -> String {
    let effect = |effect: &Effect| match effect {
        Effect::Patch { target, subresource, patch: Patch::Merge(patch) | Patch::Strategic(patch) } => {
            let place = subresource.map(|part| format!("/{part}")).unwrap_or_default();
            format!("{}{place} {patch}", target.key.name)
        }
        other => panic!("{other:?}"),
    };
    effects.iter().map(effect).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(seen: &Observed, expected: &str) {
    assert_eq!(told(&plan(seen).effects), expected);
}

/// DAEMON-2: finalizer and status.
#[test]
fn a_marker_gets_its_finalizer_and_counts_the_pods_that_can_be_asked() {
    let bare = marker(json!({"metadata": {"finalizers": ["other"]}}));
    check(
        &seen(bare, &[], &[]),
        r#"m {"metadata":{"finalizers":["other","kruise.io/node-pod-probe-cleanup"]}}"#,
    );
    let nodes = [("n1", ""), ("v1", "virtual-kubelet")];
    let pods = [
        pod(json!({})),
        pod(json!({"metadata": {"name": "virtual"}, "spec": {"nodeName": "v1"}})),
        pod(json!({"metadata": {"name": "other", "labels": {"app": "db"}}})),
        pod(json!({"metadata": {"name": "waiting"}, "spec": {"nodeName": ""}})),
        pod(json!({"metadata": {"name": "lost"}, "spec": {"nodeName": "gone"}})),
        pod(json!({"metadata": {"name": "young"}, "status": {"conditions": []}})),
        pod(json!({"metadata": {"name": "done"}, "status": {"phase": "Succeeded"}})),
        pod(json!({"metadata": {"name": "going", "deletionTimestamp": "2026-01-01T00:00:00Z"}})),
        pod(json!({"metadata": {"name": "elsewhere", "namespace": "other"}})),
    ];
    check(
        &seen(marker(json!({})), &pods, &nodes),
        r#"m/status {"status":{"matchedPods":2,"observedGeneration":2}}"#,
    );
    let counted = marker(json!({"status": {"matchedPods": 2}}));
    check(&seen(counted, &pods, &nodes), "");
}

/// DAEMON-15: a marker stays until no node has a probe of it.
#[test]
fn a_marker_does_not_go_before_its_probes() {
    let going = marker(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let mut seen = Observed { is_listed: true, ..seen(going, &[], &[]) };
    let waiting = plan(&seen);
    assert_eq!((waiting.effects, waiting.waits), (Vec::new(), Some(Waits::ForNodes)));
    seen.is_listed = false;
    check(&seen, r#"m {"metadata":{"finalizers":[]}}"#);
}

fn both() -> Value {
    json!([
        {"state": "Succeeded", "labels": {"ok": "yes", "good": "1"}, "annotations": {"cost": "10"}},
        {"state": "Failed", "labels": {"ok": "no"}, "annotations": {"cost": "-10", "why": "x"}},
    ])
}

/// What a result does to a pod, in words.
fn marked(pod: &Value, probes: &[(Value, &str, &str)]) -> String {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    let probes: Vec<_> = probes
        .iter()
        .map(|(probe, state, message)| (serde_json::from_value(probe.clone()).unwrap(), *state, *message))
        .collect();
    let time = |text: &str| Some(kruise_api::time::Time(text.parse().unwrap()));
    let results: Vec<Result<'_>> = probes
        .iter()
        .map(|(probe, state, message)| Result {
            probe,
            state: (*state).into(),
            message,
            probed: time("2026-01-01T00:00:09Z"),
            changed: time("2026-01-01T00:00:05Z"),
        })
        .collect();
    told(&by_results(&pod, &results).into_iter().collect::<Vec<_>>())
}

/// DAEMON-2 and DAEMON-3: conditions and labels follow the result.
#[test]
fn a_result_becomes_a_condition_and_marks_in_one_write() {
    let one = || probe("ok", json!([{"state": "Succeeded", "labels": {"ok": "yes"}}]));
    assert_eq!(
        marked(&pod(json!({})), &[(one(), "Succeeded", "data\n")]),
        r#"a/status {"metadata":{"labels":{"ok":"yes"}},"status":{"conditions":[{"lastProbeTime":"2026-01-01T00:00:09Z","lastTransitionTime":"2026-01-01T00:00:05Z","message":"data\n","status":"True","type":"x.io/ok"}]}}"#
    );
    let good = pod(json!({"metadata": {"labels": {"ok": "yes"}}, "status": {"conditions": [
        {"type": "x.io/ok", "status": "True", "message": "data\n"}]}}));
    assert_eq!(marked(&good, &[(one(), "Succeeded", "data\n")]), "", "nothing changes");
    assert_eq!(
        marked(&good, &[(one(), "Failed", "")]),
        r#"a/status {"metadata":{"labels":{"ok":null}},"status":{"conditions":[{"lastProbeTime":"2026-01-01T00:00:09Z","lastTransitionTime":"2026-01-01T00:00:05Z","message":"","status":"False","type":"x.io/ok"}]}}"#
    );
}

/// DAEMON-4: keys of both results change over in one write. PPM-D9: `Unknown` clears the keys of all policies.
#[test]
fn marks_of_both_results_take_turns() {
    let held = |labels: Value, annotations: Value| {
        pod(json!({"metadata": {"labels": labels, "annotations": annotations}, "status": {"conditions": [
            {"type": "x.io/ok", "status": "False", "message": ""}]}}))
    };
    let good = held(json!({"ok": "yes", "good": "1"}), json!({"cost": "10", "own": "stays"}));
    assert_eq!(
        marked(&good, &[(probe("ok", both()), "Failed", "")]),
        r#"a/status {"metadata":{"annotations":{"cost":"-10","why":"x"},"labels":{"good":null,"ok":"no"}}}"#
    );
    assert_eq!(
        marked(&good, &[(probe("ok", both()), "Unknown", "")]),
        r#"a/status {"metadata":{"annotations":{"cost":null},"labels":{"good":null,"ok":null}}}"#
    );
}

/// DAEMON-12: of two probes with the same condition the first one writes it.
#[test]
fn one_probe_writes_a_condition() {
    let mut second = probe("other", json!([]));
    second["podConditionType"] = json!("x.io/ok");
    let both = [(probe("ok", json!([])), "Succeeded", "first"), (second, "Failed", "second")];
    let told = marked(&pod(json!({})), &both);
    assert!(told.contains("first") && !told.contains("second"), "{told}");
}

#[test]
fn conditions_of_the_kubelet_are_never_written() {
    let mut bold = probe("ok", json!([]));
    bold["podConditionType"] = json!("Ready");
    assert_eq!(marked(&pod(json!({})), &[(bold, "Failed", "")]), "");
}

/// Admission refuses such a marker. One that was stored before it must not keep possible marks from being written.
#[test]
fn marks_that_no_pod_can_have_are_left_out_of_the_write() {
    let policies = json!([{"state": "Succeeded",
        "labels": {"ok": "yes", "not a key": "x", "bad": "not a value!"},
        "annotations": {"Fine.IO/cost": "any value!", "-": "x"}}]);
    let mut odd = probe("odd", json!([]));
    odd["podConditionType"] = json!("not a type");
    let told = marked(&pod(json!({})), &[(probe("ok", policies), "Succeeded", ""), (odd, "Succeeded", "")]);
    let (metadata, status) = told.split_once(",\"status\"").unwrap();
    assert_eq!(
        metadata,
        r#"a/status {"metadata":{"annotations":{"Fine.IO/cost":"any value!"},"labels":{"ok":"yes"}}"#
    );
    assert_eq!(status.matches("\"type\"").count(), 1, "{status}");
}

/// DAEMON-23: the second half, marks of pods whose conditions others write. PPM-D10: keys of the other result go.
#[test]
fn conditions_of_a_provider_become_marks() {
    let virtual_pod = |status: &str, labels: Value| {
        pod(json!({"metadata": {"labels": labels}, "spec": {"nodeName": "v1"}, "status": {"conditions": [
            {"type": "Initialized", "status": "True"}, {"type": "x.io/ok", "status": status}]}}))
    };
    let marked = |pod: Value, serverless: bool| {
        let marker = marker(json!({"spec": {"probes": [probe("ok", both())]}, "status": {"matchedPods": 1}}));
        let seen = seen(marker, &[pod], &[("v1", "virtual-kubelet")]);
        told(&plan(&Observed { serverless, ..seen }).effects)
    };
    let fresh = || virtual_pod("True", json!({"app": "web"}));
    assert_eq!(
        marked(fresh(), true),
        r#"a {"metadata":{"annotations":{"cost":"10"},"labels":{"good":"1","ok":"yes"}}}"#
    );
    assert_eq!(marked(fresh(), false), "", "the gate is closed");
    assert_eq!(
        marked(virtual_pod("False", json!({"app": "web", "ok": "yes", "good": "1"})), true),
        r#"a {"metadata":{"annotations":{"cost":"-10","why":"x"},"labels":{"good":null,"ok":"no"}}}"#
    );
    let on_a_daemon = pod(json!({"status": {"conditions": [
        {"type": "Initialized", "status": "True"}, {"type": "x.io/ok", "status": "True"}]}}));
    let marker = marker(json!({"spec": {"probes": [probe("ok", both())]}, "status": {"matchedPods": 1}}));
    let seen = seen(marker, &[on_a_daemon], &[("n1", "")]);
    check(&Observed { serverless: true, ..seen }, "");
}

#[test]
fn names_of_nodes_are_taken_apart_and_put_together() {
    assert_eq!(parts(&full_name("a-b", "ok")), Some(("a-b", "ok")));
    assert_eq!(parts("web-1-app"), None, "PPM-D11: what belongs to no marker is no trouble");
}

proptest! {
    /// What was written once is not written again.
    #[test]
    fn marks_that_are_there_are_left_alone(states in proptest::collection::vec(0_usize..3, 1..4)) {
        let names = ["Succeeded", "Failed", "Unknown"];
        let probes: Vec<(Value, &str, &str)> = states
            .iter()
            .enumerate()
            .map(|(index, state)| (probe(&format!("p{index}"), both()), names[*state], "m"))
            .collect();
        let mut world = pod(json!({"metadata": {"labels": {"ok": "before"}, "annotations": {"cost": "5"}}}));
        for round in 0..2 {
            let view: Pod = serde_json::from_value(world.clone()).unwrap();
            let typed: Vec<_> = probes
                .iter()
                .map(|(probe, state, message)| (serde_json::from_value(probe.clone()).unwrap(), *state, *message))
                .collect();
            let results: Vec<Result<'_>> = typed
                .iter()
                .map(|(probe, state, message)| Result {
                    probe, state: (*state).into(), message, probed: None, changed: None,
                })
                .collect();
            let effect = by_results(&view, &results);
            prop_assert!(round == 0 || effect.is_none(), "{effect:?}");
            let Some(Effect::Patch { patch: Patch::Strategic(patch), .. }) = effect else { continue };
            json_patch::merge(&mut world["metadata"], &patch["metadata"]);
            let conditions = patch["status"]["conditions"].as_array().cloned().unwrap_or_default();
            world["status"]["conditions"].as_array_mut().unwrap().extend(conditions);
        }
    }
}
