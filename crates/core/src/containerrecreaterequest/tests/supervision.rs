use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::super::{Observed, Plan, Waits, plan};
use crate::effect::{Effect, Patch};

const MADE: &str = "2026-01-01T00:00:00Z";

fn request(change: Value) -> Value {
    let mut request = json!({
        "metadata": {
            "name": "r", "namespace": "ns", "uid": "q1", "resourceVersion": "7", "creationTimestamp": MADE,
            "labels": {
                "crr.apps.kruise.io/pod-uid": "u1", "crr.apps.kruise.io/node-name": "n1",
                "crr.apps.kruise.io/active": "true",
            },
        },
        "spec": {"podName": "web-1", "containers": [{"name": "app"}, {"name": "nat"}], "strategy": {}},
    });
    json_patch::merge(&mut request, &change);
    request
}

fn pod(change: Value) -> Value {
    let mut pod = json!({
        "metadata": {"name": "web-1", "namespace": "ns", "uid": "u1"},
        "spec": {"nodeName": "n1", "readinessGates": [{"conditionType": "KruisePodReady"}]},
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": "KruisePodReady", "status": "True"}, {"type": "Ready", "status": "True"},
                {"type": "ContainersReady", "status": "True"},
            ],
            "containerStatuses": [{"name": "app", "containerID": "containerd://a", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2025-12-31T00:00:00Z"}}}],
        },
    });
    json_patch::merge(&mut pod, &change);
    pod
}

fn seen(request: Value, pod: Option<Value>, second: i64) -> Observed {
    let made: jiff::Timestamp = MADE.parse().unwrap();
    Observed {
        request: Arc::new(serde_json::from_value(request).unwrap()),
        pod: pod.map(|pod| Arc::new(serde_json::from_value(pod).unwrap())),
        now: made + jiff::SignedDuration::from_secs(second),
    }
}

/// What a plan does, in words, and when it looks again.
fn told(plan: &Plan) -> String {
    let effect = |effect: &Effect| match effect {
        Effect::Patch { target, subresource, patch: Patch::Merge(patch) | Patch::Strategic(patch) } => {
            let place = subresource.map(|part| format!("/{part}")).unwrap_or_default();
            let version =
                target.resource_version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
            format!("{}{place}{version} {patch}", target.resource.kind)
        }
        Effect::Delete { target, .. } => format!("delete {}", target.key),
        other => panic!("{other:?}"),
    };
    plan.effects.iter().map(effect).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(seen: &Observed, expected: &str) {
    assert_eq!(told(&plan(seen)), expected);
}

fn completed(time: &str, message: &str) -> String {
    format!(
        r#"ContainerRecreateRequest/status {{"status":{{"completionTime":"{time}","message":"{message}","phase":"Completed"}}}}"#
    )
}

fn waits(plan: Plan) -> (Option<Waits>, Option<Duration>) {
    assert_eq!(told(&plan), "");
    (plan.waits, plan.wake_after)
}

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

/// CRR-17: nobody serves the node.
#[test]
fn a_request_that_no_daemon_takes_up_ends_after_a_minute() {
    let at = |second| seen(request(json!({})), Some(pod(json!({}))), second);
    assert_eq!(waits(plan(&at(1))), (Some(Waits::ForDaemon), seconds(59)));
    check(&at(60), &completed("2026-01-01T00:01:00Z", "daemon has not responded for a long time"));
    let waiting = request(json!({"status": {"phase": "Pending"}}));
    let late = seen(waiting, Some(pod(json!({}))), 600);
    assert_eq!(waits(plan(&late)), (Some(Waits::ForOtherRequest), None), "a daemon has seen it");
}

/// CRR-8: the manager's half of the deadline.
#[test]
fn a_request_ends_at_its_deadline_in_every_phase() {
    for phase in [Value::Null, json!("Pending"), json!("Recreating")] {
        let status = if phase.is_null() { Value::Null } else { json!({"phase": phase}) };
        let limited = request(json!({"spec": {"activeDeadlineSeconds": 3}, "status": status}));
        let early = plan(&seen(limited.clone(), Some(pod(json!({}))), 1));
        assert_eq!(early.wake_after, seconds(2), "{phase}");
        check(
            &seen(limited, Some(pod(json!({}))), 3),
            &completed("2026-01-01T00:00:03Z", "recreating has exceeded the activeDeadlineSeconds"),
        );
    }
}

/// CRR-18: also when a new pod of that name appears.
#[test]
fn a_request_ends_with_its_pod() {
    let running = || request(json!({"status": {"phase": "Recreating"}}));
    let gone = completed("2026-01-01T00:00:09Z", "pod has gone");
    check(&seen(running(), None, 9), &gone);
    check(&seen(running(), Some(pod(json!({"metadata": {"uid": "u2"}}))), 9), &gone);
    let deleting = pod(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:30Z"}}));
    check(&seen(running(), Some(deleting), 9), &gone);
}

/// CRR-23: a pod that ends without being deleted (CRR-D4).
#[test]
fn a_request_ends_when_its_pod_has_finished() {
    for phase in ["Succeeded", "Failed"] {
        let finished = pod(json!({"status": {"phase": phase}}));
        check(
            &seen(request(json!({"status": {"phase": "Recreating"}})), Some(finished), 9),
            &completed("2026-01-01T00:00:09Z", "pod has terminated"),
        );
    }
}

#[test]
fn a_request_to_end_sidecars_of_a_finished_job_goes_on_until_they_have_ended() {
    let finished = |state: Value| {
        let mut pod = pod(json!({"status": {"phase": "Succeeded",
            "conditions": [{"type": "SidecarTerminated", "status": "True"}]}}));
        pod["status"]["containerStatuses"][0]["state"] = state;
        seen(request(json!({})), Some(pod), 9)
    };
    let running = finished(json!({"running": {"startedAt": "2025-12-31T00:00:00Z"}}));
    assert_eq!(waits(plan(&running)), (Some(Waits::ForDaemon), seconds(51)));
    check(
        &finished(json!({"terminated": {"exitCode": 137}})),
        &completed("2026-01-01T00:00:09Z", "pod has terminated"),
    );
}

/// CRR-1: the label goes after completion. CRR-2: the request goes after its time, or stays.
#[test]
fn a_finished_request_loses_its_label_and_goes_when_its_time_is_over() {
    let done = json!({"status": {"phase": "Completed", "completionTime": "2026-01-01T00:00:10Z"}});
    check(
        &seen(request(done.clone()), None, 11),
        r#"ContainerRecreateRequest {"metadata":{"labels":{"crr.apps.kruise.io/active":null}}}"#,
    );
    let mut quiet = request(done);
    quiet["metadata"]["labels"]["crr.apps.kruise.io/active"] = Value::Null;
    quiet["metadata"]["labels"].as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(waits(plan(&seen(quiet.clone(), None, 100_000))), (None, None), "without a time it stays");
    quiet["spec"]["ttlSecondsAfterFinished"] = json!(3);
    assert_eq!(waits(plan(&seen(quiet.clone(), None, 12))), (Some(Waits::ForItsTime), seconds(1)));
    check(&seen(quiet.clone(), None, 13), "delete ns/r");
    quiet["spec"]["ttlSecondsAfterFinished"] = json!(-1);
    check(&seen(quiet, None, 10), "delete ns/r");
}

/// CRR-8: what the daemon says after the end changes nothing.
#[test]
fn a_container_that_is_reported_after_the_end_does_not_begin_anything_again() {
    let late = request(json!({
        "metadata": {"labels": {"crr.apps.kruise.io/active": null}},
        "spec": {"strategy": {"unreadyGracePeriodSeconds": 5}},
        "status": {"phase": "Completed", "completionTime": "2026-01-01T00:00:03Z",
            "containerRecreateStates": [{"name": "app", "phase": "Recreating", "isKilled": true}]},
    }));
    let mut late = late;
    late["metadata"]["labels"].as_object_mut().unwrap().retain(|_, value| !value.is_null());
    assert_eq!(waits(plan(&seen(late, Some(pod(json!({}))), 20))), (None, None));
}

/// CRR-19 and CRR-20: what the daemon compares with is what runs since after the request was made.
#[test]
fn new_containers_are_told_to_the_daemon_once() {
    let recreating = |snapshot: Value| {
        request(json!({"status": {"phase": "Recreating", "containerStatusSnapshot": snapshot}}))
    };
    let old = seen(recreating(json!([])), Some(pod(json!({}))), 5);
    let first = plan(&old);
    assert_eq!((told(&first), first.wake_after), (String::new(), seconds(3)), "the old container is no news");
    let new = pod(json!({"status": {
        "containerStatuses": [{"name": "app", "containerID": "containerd://b", "ready": false, "restartCount": 1,
            "state": {"running": {"startedAt": MADE}}}],
        "initContainerStatuses": [{"name": "nat", "containerID": "containerd://n", "ready": true, "restartCount": 2,
            "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}}}],
    }}));
    let snapshot = json!([
        {"containerID": "containerd://b", "name": "app", "ready": false, "restartCount": 1},
        {"containerID": "containerd://n", "name": "nat", "ready": true, "restartCount": 2},
    ]);
    check(
        &seen(recreating(json!([])), Some(new.clone()), 5),
        &format!(r#"ContainerRecreateRequest/status {{"status":{{"containerStatusSnapshot":{snapshot}}}}}"#),
    );
    check(&seen(recreating(snapshot.clone()), Some(new), 5), "");
    let ended = pod(
        json!({"status": {"containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": 1}}}]}}),
    );
    check(&seen(recreating(snapshot), Some(ended), 6), "");
}

/// A node whose clock is behind starts containers before the request was made, as it seems. They count by their ids.
#[test]
fn a_new_container_counts_whatever_the_clock_of_its_node_says() {
    let context = json!({"containerID": "containerd://a", "restartCount": 0});
    let recreating = request(json!({"spec": {"containers": [{"name": "app", "statusContext": context}]},
        "status": {"phase": "Recreating"}}));
    check(&seen(recreating.clone(), Some(pod(json!({}))), 5), "");
    let behind = pod(json!({"status": {"containerStatuses": [
        {"name": "app", "containerID": "containerd://b", "ready": true, "restartCount": 1,
            "state": {"running": {"startedAt": "2025-12-31T23:50:00Z"}}}]}}));
    let snapshot =
        json!([{"containerID": "containerd://b", "name": "app", "ready": true, "restartCount": 1}]);
    check(
        &seen(recreating, Some(behind), 5),
        &format!(r#"ContainerRecreateRequest/status {{"status":{{"containerStatusSnapshot":{snapshot}}}}}"#),
    );
}

const KEY: &str = r#"[{"userAgent":"ContainerRecreateRequest","key":"ns/r"}]"#;

fn held() -> Value {
    pod(json!({"status": {"conditions": [
        {"type": "KruisePodReady", "status": "False", "message": KEY}, {"type": "Ready", "status": "False"},
        {"type": "ContainersReady", "status": "True"},
    ]}}))
}

fn draining() -> Value {
    request(
        json!({"spec": {"strategy": {"unreadyGracePeriodSeconds": 5}}, "status": {"phase": "Recreating"}}),
    )
}

/// CRR-12: finalizer, pod, condition, one after the other, and back.
#[test]
fn a_pod_is_held_not_ready_before_its_containers_stop() {
    let mut request = draining();
    check(
        &seen(request.clone(), Some(pod(json!({}))), 1),
        r#"ContainerRecreateRequest@7 {"metadata":{"finalizers":["crr.apps.kruise.io/unready-acquired"]}}"#,
    );
    request["metadata"]["finalizers"] = json!(["other", "crr.apps.kruise.io/unready-acquired"]);
    let Plan { effects, .. } = plan(&seen(request.clone(), Some(pod(json!({}))), 1));
    let [Effect::Patch { subresource: Some("status"), patch: Patch::Strategic(patch), .. }] = &effects[..]
    else {
        panic!("{effects:?}");
    };
    let conditions = &patch["status"]["conditions"];
    assert_eq!((&conditions[0]["status"], &conditions[0]["message"]), (&json!("False"), &json!(KEY)));
    assert_eq!((&conditions[1]["type"], &conditions[1]["status"]), (&json!("Ready"), &json!("False")));
    assert_eq!(conditions[1]["reason"], "ReadinessGatesNotReady");
    request["status"]["conditions"] = json!([{"type": "Other", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": MADE}]);
    let Plan { effects, .. } = plan(&seen(request.clone(), Some(held()), 2));
    let [Effect::Patch { subresource: Some("status"), patch: Patch::Merge(patch), .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions[0]["type"], "Other", "the conditions of others survive");
    assert_eq!(
        conditions[1],
        json!({"type": "PreRecreateGrace", "status": "True", "reason": "PreRecreateGrace",
            "message": "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
            "lastTransitionTime": "2026-01-01T00:00:02Z"})
    );
    // CRR-14: the time does not move, whoever looks and whenever.
    request["status"]["conditions"] = json!(conditions);
    check(&seen(request.clone(), Some(held()), 4), "");
    // The end: first the pod is let go, then the finalizer goes.
    request["status"]["completionTime"] = json!("2026-01-01T00:00:09Z");
    request["status"]["phase"] = json!("Completed");
    check(
        &seen(request.clone(), Some(held()), 10),
        r#"Pod/status@ {"status":{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:10Z","message":"[]","status":"True","type":"KruisePodReady"}]}}"#,
    );
    check(
        &seen(request, Some(pod(json!({}))), 11),
        r#"ContainerRecreateRequest@7 {"metadata":{"finalizers":["other"]}}"#,
    );
}

/// CRR-13: a deleted request leaves no pod behind that is not ready.
#[test]
fn a_request_that_is_deleted_in_its_grace_lets_the_pod_go() {
    let mut request = draining();
    request["metadata"]["finalizers"] = json!(["crr.apps.kruise.io/unready-acquired"]);
    request["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:03Z");
    assert!(told(&plan(&seen(request.clone(), Some(held()), 3))).starts_with("Pod/status"));
    let freed = r#"ContainerRecreateRequest@7 {"metadata":{"finalizers":[]}}"#;
    check(&seen(request.clone(), Some(pod(json!({}))), 4), freed);
    check(&seen(request.clone(), None, 4), freed);
    let mut other = held();
    other["metadata"]["uid"] = json!("u2");
    check(&seen(request.clone(), Some(other), 4), freed);
    request["metadata"]["finalizers"] = json!([]);
    assert_eq!(waits(plan(&seen(request, Some(held()), 5))), (None, None));
}

/// CRR-15: without the gate the time passes and the pod stays ready.
#[test]
fn a_pod_without_the_gate_is_not_held_but_the_time_is_marked() {
    let plain = pod(json!({"spec": {"readinessGates": []}}));
    let plan = plan(&seen(draining(), Some(plain), 2));
    assert!(
        told(&plan).starts_with(r#"ContainerRecreateRequest/status {"status":{"conditions":[{"lastTrans"#)
    );
}

/// CRR-34: a request that an older manager has taken half-way is carried on, its drain is not begun again.
#[test]
fn a_request_of_an_older_manager_goes_on_where_it_was() {
    let older = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest",
        "metadata": {"name": "r", "namespace": "ns", "uid": "q1", "resourceVersion": "7", "creationTimestamp": MADE,
            "finalizers": ["crr.apps.kruise.io/unready-acquired"],
            "labels": {"crr.apps.kruise.io/pod-uid": "u1", "crr.apps.kruise.io/active": "true"},
            "annotations": {"crr.apps.kruise.io/unready-acquired": "2026-01-01T00:00:01Z",
                "crr.apps.kruise.io/sync-container-statuses":
                    r#"[{"name":"app","ready":true,"restartCount":1,"containerID":"containerd://b"}]"#}},
        "spec": {"podName": "web-1", "containers": [{"name": "app"}], "strategy": {"unreadyGracePeriodSeconds": 5}},
        "status": {"phase": "Recreating"},
    });
    let newer = kruise_api::convert::convert(older, "apps.kruise.io/v1beta1").unwrap();
    let mut pod = held();
    pod["status"]["containerStatuses"][0] = json!({"name": "app", "containerID": "containerd://b", "ready": true,
        "restartCount": 1, "state": {"running": {"startedAt": "2026-01-01T00:00:06Z"}}});
    check(&seen(newer, Some(pod), 7), "");
}
