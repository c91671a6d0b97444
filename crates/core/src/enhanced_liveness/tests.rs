use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::gates::{Gate, Gates};
use serde_json::{Value, json};

use super::{
    budget::{Budget, exhausted},
    decide::{Memory, Observed, Plan, Waits, decide},
    pace::{Backoff, Limiter},
    take,
};
use crate::{
    admission::{
        Request,
        kinds::{Context, Empty},
        pod::PodContext,
    },
    effect::Effect,
    pod::Pod,
    text::Text,
};

const START: &str = "2026-01-01T00:00:00Z";

fn at(second: i64) -> Timestamp {
    START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second)
}

fn taken(pod: Value) -> Value {
    let gates = Gates::default();
    let context = Context { gates: &gates, allow_privileged: true, now: at(0), seed: 7, cluster: &Empty };
    let mut pod = pod;
    take::step(&mut pod, &PodContext { request: &Request::default(), context: &context }).unwrap();
    pod
}

fn asking(containers: Value) -> Value {
    json!({
        "metadata": {"name": "p", "annotations": {"apps.kruise.io/using-enhanced-liveness": "true"},
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "controller": true}]},
        "spec": {"containers": containers},
    })
}

/// EL-1: the pod's half.
#[test]
fn liveness_probes_are_taken_out_and_remembered() {
    let pod = taken(asking(json!([
        {"name": "app", "livenessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 5}},
        {"name": "plain"},
        {"name": "web", "livenessProbe": {"httpGet": {"path": "/", "port": "web"}}},
    ])));
    assert_eq!(pod["spec"]["containers"], json!([{"name": "app"}, {"name": "plain"}, {"name": "web"}]));
    assert_eq!(
        pod["metadata"]["annotations"]["apps.kruise.io/container-probe-context"],
        r#"[{"name":"app","livenessProbe":{"exec":{"command":["true"]},"periodSeconds":5}},{"name":"web","livenessProbe":{"httpGet":{"path":"/","port":"web"}}}]"#
    );
}

/// EL-2 and EL-7: pods that do not ask, pods of others, and probes that the daemon cannot run.
#[test]
fn all_other_probes_stay_with_the_kubelet() {
    let probed = json!([{"name": "app", "livenessProbe": {"exec": {"command": ["true"]}}}]);
    let mut silent = asking(probed.clone());
    silent["metadata"]["annotations"] = json!({"apps.kruise.io/using-enhanced-liveness": "false"});
    let mut other = asking(probed);
    other["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps/v1");
    let grpc = asking(json!([{"name": "app", "livenessProbe": {"grpc": {"port": 1}}}]));
    let host =
        asking(json!([{"name": "app", "livenessProbe": {"tcpSocket": {"port": 1, "host": "example.com"}}}]));
    let none = asking(json!([{"name": "app"}]));
    for pod in [silent, other, grpc, host, none] {
        assert_eq!(taken(pod.clone()), pod);
    }
}

/// EL-2 and EL-11: where something is off that would run the probes, the kubelet keeps them.
#[test]
fn probes_are_taken_only_where_everything_is_on_that_runs_them() {
    let on = Gates::default().with(Gate::EnhancedLivenessProbe);
    assert!(take::runs(&on));
    assert!(!take::runs(&Gates::default()));
    for gate in [Gate::PodProbeMarkerGate, Gate::KruiseDaemon, Gate::PodWebhook] {
        assert!(!take::runs(&on.clone().without(gate)), "{gate}");
    }
}

fn pod(name: &str, change: Value) -> Value {
    let context = r#"[{"name":"app","livenessProbe":{"exec":{"command":["a"]},"terminationGracePeriodSeconds":7}},{"name":"web","livenessProbe":{"exec":{"command":["a"]}}}]"#;
    let running = |name: &str, id: &str| json!({"name": name, "containerID": id, "started": true, "state": {"running": {"startedAt": START}}});
    let mut pod = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "annotations": {
            "apps.kruise.io/using-enhanced-liveness": "true", "apps.kruise.io/container-probe-context": context}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [running("app", "containerd://a"), running("web", "containerd://w")]},
    });
    json_patch::merge(&mut pod, &change);
    pod
}

fn seen(pod: Value, failing: &[&str], second: i64) -> Observed {
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    let state = |container: &&str| {
        let state = json!({"name": format!("{name}-{container}"), "state": "Failed", "message": "no answer",
            "lastTransitionTime": "2026-01-01T00:00:10Z"});
        serde_json::from_value(state).unwrap()
    };
    Observed {
        states: failing.iter().map(state).collect(),
        pod: Arc::new(serde_json::from_value(pod).unwrap()),
        requests: Vec::new(),
        exhausted_budget: None,
        now: at(second),
    }
}

fn memory() -> Memory {
    Memory { limiter: Limiter::new(1.0, 10), backoff: BTreeMap::new() }
}

/// What a plan does, in words.
fn told(plan: &Plan) -> String {
    let effect = |effect: &Effect| match effect {
        Effect::Create { object, .. } => {
            let container = object["spec"]["containers"][0]["name"].as_str().unwrap();
            format!("restart {}/{container}", object["spec"]["podName"].as_str().unwrap())
        }
        Effect::Event(event) => format!("{}: {}", event.reason, event.message),
        other => panic!("{other:?}"),
    };
    plan.effects.iter().map(effect).collect::<Vec<_>>().join("; ")
}

fn request(
    name: &str,
    done: bool,
) -> Arc<kruise_api::containerrecreaterequest::v1beta1::ContainerRecreateRequest> {
    let mut request = json!({"metadata": {"name": name}, "spec": {"podName": "p", "containers": []}});
    if done {
        request["status"] = json!({"phase": "Completed", "completionTime": START});
    }
    Arc::new(serde_json::from_value(request).unwrap())
}

/// EL-3: one request, an event, and no second one for the same instance. EL-10: whoever looks makes the same one.
#[test]
fn a_container_that_fails_is_restarted_once() {
    let first = decide(&seen(pod("p", json!({})), &["app"], 11), &mut memory());
    assert_eq!(told(&first), "restart p/app; Unhealthy: Liveness probe failed: no answer");
    let Effect::Create { object, .. } = &first.effects[0] else { panic!("{first:?}") };
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let (front, hash) = name.rsplit_once('-').unwrap();
    assert_eq!((front, hash.len()), ("p", 12), "{name}");
    assert_eq!(object["metadata"]["labels"], json!({"crr.apps.kruise.io/pod-name": "p"}));
    assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "uid-p");
    assert_eq!(
        object["spec"],
        json!({"podName": "p", "containers": [{"name": "app"}], "ttlSecondsAfterFinished": 300,
            "strategy": {"failurePolicy": "Fail", "terminationGracePeriodSeconds": 7}})
    );
    let other_manager = decide(&seen(pod("p", json!({})), &["app"], 12), &mut memory());
    assert_eq!(first.effects[0], other_manager.effects[0]);
    for is_done in [false, true] {
        let mut again = seen(pod("p", json!({})), &["app"], 13);
        again.requests = vec![request(&name, is_done)];
        let plan = decide(&again, &mut memory());
        assert_eq!((told(&plan), plan.waits), (String::new(), vec![Waits::OtherRequest]));
    }
    // Times have whole seconds: one that was started in the second of its failure counts as well.
    for started in ["2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"] {
        let mut restarted = pod("p", json!({}));
        restarted["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] = json!(started);
        let plan = decide(&seen(restarted, &["app"], 21), &mut memory());
        assert_eq!((told(&plan), plan.waits), (String::new(), vec![Waits::RestartedAlready]), "{started}");
    }
}

/// EL-4: a budget that allows no further pod to be down keeps ready pods as they are, and says so.
#[test]
fn a_budget_stops_restarts_of_pods_that_are_ready() {
    let mut blocked = seen(pod("p", json!({})), &["app"], 11);
    blocked.exhausted_budget = Some("PodUnavailableBudget ns/web".to_owned());
    let plan = decide(&blocked, &mut memory());
    assert_eq!(told(&plan), "LivenessRestartBlocked: PodUnavailableBudget ns/web");
    assert_eq!(plan.wake_after, Some(Duration::from_secs(10)));
    let mut down = seen(pod("p", json!({"status": {"conditions": []}})), &["app"], 11);
    down.exhausted_budget = Some("PodUnavailableBudget ns/web".to_owned());
    assert!(told(&decide(&down, &mut memory())).starts_with("restart"), "it is down anyway");
}

/// EL-5: switched off on the pod.
#[test]
fn a_pod_that_is_switched_off_is_left_alone() {
    let off = json!({"metadata": {"annotations": {"apps.kruise.io/using-enhanced-liveness": "false"}}});
    assert_eq!(decide(&seen(pod("p", off), &["app"], 11), &mut memory()), Plan::default());
    let over = json!({"status": {"phase": "Failed"}});
    assert_eq!(decide(&seen(pod("p", over), &["app"], 11), &mut memory()), Plan::default());
}

/// EL-6: one container after the other.
#[test]
fn of_two_failing_containers_one_is_restarted() {
    let mut memory = memory();
    let first = decide(&seen(pod("p", json!({})), &["app", "web"], 11), &mut memory);
    assert!(told(&first).starts_with("restart p/app;"));
    let mut second = seen(pod("p", json!({})), &["app", "web"], 12);
    second.requests = vec![request("p-running", false)];
    assert_eq!(told(&decide(&second, &mut memory)), "");
    second.requests = vec![request("p-running", true)];
    let plan = decide(&second, &mut memory);
    assert!(told(&plan).starts_with("restart p/web;"), "the other has to wait: {:?}", plan.waits);
}

/// EL-8: ten at once, then one a second.
#[test]
fn many_restarts_at_once_are_limited() {
    let mut memory = memory();
    let mut restarted = |second: i64| -> usize {
        (0..100)
            .filter(|index| {
                let plan = decide(
                    &seen(pod(&format!("p{second}-{index}"), json!({})), &["app"], second),
                    &mut memory,
                );
                if plan.effects.is_empty() {
                    assert_eq!(plan.waits, [Waits::Limit]);
                    assert!(plan.wake_after.is_some_and(|wait| wait <= Duration::from_secs(1)));
                }
                !plan.effects.is_empty()
            })
            .count()
    };
    assert_eq!(restarted(11), 10);
    assert_eq!(restarted(12), 1);
    assert_eq!(restarted(15), 3);
    assert_eq!(restarted(0), 0, "a clock that goes back gives nothing");
}

/// EL-9: a container that has not started yet has its startup probe.
#[test]
fn a_container_that_still_starts_is_left_alone() {
    for started in [json!(false), Value::Null] {
        let mut starting = pod("p", json!({}));
        starting["status"]["containerStatuses"][0]["started"] = started;
        let plan = decide(&seen(starting, &["app"], 11), &mut memory());
        assert_eq!((told(&plan), plan.waits), (String::new(), vec![Waits::Starting]));
    }
}

#[test]
fn a_container_that_fails_again_waits_longer_each_time() {
    let wait = |backoff: &Backoff, second: i64| backoff.left(at(second)).map(|left| left.as_secs());
    let first = Backoff::after(None, at(0));
    assert_eq!((wait(&first, 4), wait(&first, 10)), (Some(6), None));
    let mut backoff = first;
    for expected in [20, 40, 80, 160, 300, 300] {
        backoff = Backoff::after(Some(backoff), at(0));
        assert_eq!(wait(&backoff, 0), Some(expected));
    }
    assert!(!backoff.is_forgiven(at(599)));
    assert_eq!(wait(&Backoff::after(Some(backoff), at(600)), 600), Some(10), "it was well for ten minutes");
}

/// Whose pods are up, and what a budget says of itself: whether one more may go down.
#[track_caller]
fn check_budget(budget: &Budget, up: &[&str], restarting: &[&str], expected: Option<&str>) {
    let pods: Vec<Arc<Pod>> = ["p", "q", "r"]
        .iter()
        .map(|name| {
            let ready = if up.contains(name) { "True" } else { "False" };
            let change = json!({"metadata": {"labels": {"app": "web"}, "ownerReferences": [
                    {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u", "controller": true}]},
                "status": {"conditions": [{"type": "Ready", "status": ready}]}});
            Arc::new(serde_json::from_value(pod(name, change)).unwrap())
        })
        .collect();
    let restarting: BTreeSet<Text> = restarting.iter().map(|name| Text::from(*name)).collect();
    let held = exhausted(&pods[0], std::slice::from_ref(budget), &pods, &restarting);
    assert_eq!(held.as_deref(), expected);
}

#[test]
fn a_budget_holds_by_its_own_count_and_by_ours() {
    let status =
        |allowed: i64| json!({"observedGeneration": 2, "desiredHealthy": 2, "disruptionsAllowed": allowed});
    let with = |selector: Value, status: Value| {
        Budget::of_kubernetes(&json!({"metadata": {"name": "b", "namespace": "ns", "generation": 2},
            "spec": {"selector": selector}, "status": status}))
    };
    let web = json!({"matchLabels": {"app": "web"}});
    let held = Some("PodDisruptionBudget ns/b");
    check_budget(&with(web.clone(), status(1)), &["p", "q", "r"], &[], None);
    check_budget(&with(web.clone(), status(0)), &["p", "q", "r"], &[], held);
    check_budget(&with(web.clone(), status(1)), &["p", "q"], &[], held);
    check_budget(&with(web.clone(), status(1)), &["p", "q", "r"], &["q"], held);
    check_budget(
        &with(web.clone(), json!({"observedGeneration": 1, "disruptionsAllowed": 9})),
        &["p", "q", "r"],
        &[],
        held,
    );
    check_budget(&with(json!({"matchLabels": {"app": "other"}}), status(0)), &[], &[], None);
    check_budget(&with(Value::Null, status(0)), &[], &[], None);
}

#[test]
fn a_budget_of_ours_covers_a_workload_and_leaves_out_whom_it_ignores() {
    let with = |kind: &str, ignored: Value| {
        Budget::of_ours(&json!({"metadata": {"name": "b", "namespace": "ns", "generation": 1},
            "spec": {"targetRef": {"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "name": "web"}, "ignoredPodSelector": ignored},
            "status": {"observedGeneration": 1, "desiredAvailable": 3, "unavailableAllowed": 1}}))
    };
    check_budget(&with("CloneSet", Value::Null), &["p", "q", "r"], &[], Some("PodUnavailableBudget ns/b"));
    check_budget(&with("StatefulSet", Value::Null), &["p", "q", "r"], &[], None);
    check_budget(&with("CloneSet", json!({"matchLabels": {"app": "web"}})), &["p", "q", "r"], &[], None);
}
