//! What the controller counts and writes.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{super::*, kit::*};
use crate::effect::Effect;

#[track_caller]
fn check(spec: Value, pods_there: usize, expected: u32, numbers_wanted: [i32; 4]) {
    let plan = decide(&observed(&budget(spec, json!({})), &pods(pods_there), expected, start()));
    assert_eq!(numbers(&plan), numbers_wanted);
}

/// PROTECTION-1, PROTECTION-2, PROTECTION-3, PROTECTION-4, PROTECTION-5 and the recorded arithmetic of the original.
#[test]
fn numbers_are_those_of_the_original() {
    check(json!({"maxUnavailable": "60%"}), 5, 5, [3, 5, 2, 5]);
    check(json!({"maxUnavailable": "10%"}), 15, 15, [2, 15, 13, 15]);
    check(json!({"minAvailable": "80%"}), 7, 7, [1, 7, 6, 7]);
    check(json!({"minAvailable": 10}), 3, 3, [0, 3, 10, 3]);
    check(json!({"minAvailable": "80%"}), 3, 3, [0, 3, 3, 3]);
    check(json!({"maxUnavailable": "10%"}), 3, 3, [1, 3, 2, 3]);
    check(json!({"maxUnavailable": "100%"}), 3, 3, [3, 3, 0, 3]);
    check(json!({"maxUnavailable": 0}), 3, 3, [0, 3, 3, 3]);
    check(json!({"maxUnavailable": "34%"}), 3, 3, [2, 3, 1, 3]);
    check(json!({"minAvailable": "1%"}), 3, 3, [2, 3, 1, 3]);
    check(json!({"maxUnavailable": 1}), 3, 10, [0, 3, 9, 10]);
    check(json!({"minAvailable": "50%"}), 3, 7, [0, 3, 4, 7]);
    // PROTECTION-15: surplus pods of a scale-in may go.
    check(json!({"maxUnavailable": "10%"}), 100, 50, [55, 100, 45, 50]);
    // PROTECTION-16, and a workload at zero replicas.
    check(json!({"maxUnavailable": 1}), 0, 0, [0, 0, 0, 0]);
    check(json!({"minAvailable": 2}), 0, 0, [0, 0, 0, 0]);
    // PROTECTION-31, and pods that a deleted workload left.
    check(json!({"minAvailable": 2}), 3, 0, [3, 3, 0, 0]);
}

/// PROTECTION-30: nobody knows how many there should be.
#[test]
fn a_budget_that_cannot_be_counted_lets_everything_pass_and_says_so() {
    let mut seen = observed(&budget(json!({"minAvailable": 4}), json!({})), &pods(5), 0, start());
    seen.expected = Expected::Unknown("Job web has no scale subresource".to_owned());
    let plan = decide(&seen);
    assert_eq!(numbers(&plan), [5, 5, 0, 0]);
    let told: Vec<&str> = plan.notices.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(told, ["CalculateExpectedPodCountFailed"]);
}

/// A read that failed is not the same as a workload that does not say how many pods it wants.
#[test]
fn numbers_stay_while_a_workload_cannot_be_read() {
    let counted = json!({"observedGeneration": 1, "unavailableAllowed": 1, "currentAvailable": 5, "desiredAvailable": 4, "totalReplicas": 5});
    let with = |status: Value| {
        let mut seen = observed(&budget(json!({"maxUnavailable": 1}), status), &pods(4), 0, start());
        seen.expected = Expected::Unread("the server is not there".to_owned());
        decide(&seen)
    };
    let plan = with(counted);
    assert_eq!(numbers(&plan), [0, 4, 4, 5]);
    assert!(plan.unread.is_some() && plan.status.is_some());
    let told: Vec<&str> = plan.notices.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(told, ["CalculateExpectedPodCountFailed"]);
    let plan = with(json!({}));
    assert!(plan.unread.is_some() && plan.status.is_none());
}

#[test]
fn a_stored_limit_that_cannot_be_read_is_reported_and_changes_nothing() {
    let seen = observed(&budget(json!({"maxUnavailable": "5"}), json!({})), &pods(5), 5, start());
    let plan = decide(&seen);
    assert!(plan.status.is_none() && plan.failure.is_some());
}

/// PROTECTION-18 and what else makes a pod unavailable.
#[test]
fn pods_that_do_not_serve_are_not_counted() {
    let mut all = pods(4);
    all.push(pod("a", 0, not_ready()));
    all.push(pod("b", 0, json!({"metadata": {"labels": {"unavailable-pod.kruise.io/offline": "1"}}})));
    all.push(pod("c", 0, json!({"metadata": {"deletionTimestamp": at(5)}})));
    all.push(pod("d", 0, json!({"status": {"phase": "Succeeded"}})));
    all.push(pod("e", 0, json!({"spec": {"containers": [{"name": "main", "image": "app@sha256:new"}]}})));
    let mut unreadable = (*pod("f", 0, json!({}))).clone();
    unreadable.metadata.unreadable = true;
    all.push(unreadable.into());
    let state =
        json!({"s": {"revision": "r", "lastContainerStatuses": {"main": {"imageID": "x"}}}}).to_string();
    all.push(pod(
        "g",
        0,
        json!({"metadata": {"annotations": {
        "kruise.io/sidecarset-injected-list": "s", "kruise.io/sidecarset-inplace-update-state": state}},
        "spec": {"containers": [{"name": "main", "image": "app:2"}]}}),
    ));
    let plan = decide(&observed(&budget(json!({"maxUnavailable": 1}), json!({})), &all, 5, start()));
    assert_eq!(plan.counted.current_available, 4);
}

#[test]
fn a_converged_budget_writes_nothing() {
    let status = json!({"observedGeneration": 1, "unavailableAllowed": 1, "currentAvailable": 3, "desiredAvailable": 2, "totalReplicas": 3});
    let plan = decide(&observed(&budget(json!({"maxUnavailable": 1}), status), &pods(3), 3, start()));
    assert_eq!(plan, Plan { counted: plan.counted.clone(), ..Plan::default() });
}

fn with_record(map: &str, second: i64) -> Budget {
    budget(
        json!({"maxUnavailable": 1}),
        json!({
        "observedGeneration": 1, "unavailableAllowed": 0, "currentAvailable": 2, "desiredAvailable": 2,
        "totalReplicas": 3, map: {"web-0": at(second)}}),
    )
}

fn records_of(plan: &Plan) -> usize {
    plan.counted.disrupted_pods.len() + plan.counted.unavailable_pods.len()
}

/// PROTECTION-13, and PROTECTION-32: whoever takes over reads the same time.
#[test]
fn a_record_runs_out_only_after_the_server_was_asked() {
    let budget = with_record("disruptedPods", 0);
    let mut seen = observed(&budget, &pods(3), 3, after(19));
    let plan = decide(&seen);
    assert_eq!((records_of(&plan), plan.counted.unavailable_allowed), (1, 0));
    seen.now = after(21);
    let asked = doubtful(&budget.status(), &seen.noticed, |name| seen.recorded.get(name), seen.now);
    assert_eq!(asked, ["web-0"]);
    assert_eq!(records_of(&decide(&seen)), 1, "not before the answer");
    seen.live.insert("web-0".into(), Some(seen.recorded["web-0"].clone()));
    let plan = decide(&seen);
    assert_eq!((records_of(&plan), plan.counted.unavailable_allowed), (0, 1));
    let Some(Effect::Event(event)) = plan.effects.first() else { panic!("{plan:?}") };
    assert_eq!(event.reason, "NotDeleted");
    assert_eq!(event.message, "Pod was expected by PUB shop/web to be deleted but it wasn't");
    // The server says that it is gone: nobody has failed to delete it.
    seen.live.insert("web-0".into(), None);
    let plan = decide(&seen);
    assert_eq!((records_of(&plan), plan.counted.current_available, plan.effects.len()), (0, 2, 0));
}

/// PROTECTION-25: an update that was admitted is no deletion that is missing.
#[test]
fn an_update_runs_out_sooner_and_without_a_warning() {
    let budget = with_record("unavailablePods", 0);
    let mut seen = observed(&budget, &pods(3), 3, after(11));
    seen.live.insert("web-0".into(), Some(seen.recorded["web-0"].clone()));
    let plan = decide(&seen);
    assert_eq!((records_of(&plan), plan.counted.unavailable_allowed, plan.effects.len()), (0, 1, 0));
}

/// PROTECTION-12: a pod that ends does not count, and its record goes.
#[test]
fn a_disruption_that_is_seen_ends_its_record() {
    let budget = with_record("disruptedPods", 0);
    let mut all = pods(3);
    all[0] = pod("web-0", -60, json!({"metadata": {"deletionTimestamp": at(30)}}));
    let plan = decide(&observed(&budget, &all, 3, after(5)));
    assert_eq!((records_of(&plan), plan.counted.current_available), (1, 2));
    let plan = decide(&observed(&budget, &all, 3, after(11)));
    assert_eq!((records_of(&plan), plan.counted.current_available), (0, 2));
}

/// PROTECTION-14: a new pod of the same name is another pod.
#[test]
fn a_pod_that_was_made_again_counts() {
    let budget = with_record("disruptedPods", 0);
    let mut all = pods(3);
    all[0] = pod("web-0", 2, json!({}));
    let plan = decide(&observed(&budget, &all, 3, after(5)));
    assert_eq!((plan.counted.current_available, plan.counted.unavailable_allowed), (3, 1));
}

/// The clock of the manager that wrote it runs an hour ahead.
#[test]
fn a_record_from_the_future_runs_out_too() {
    let budget = with_record("disruptedPods", 3600);
    let mut seen = observed(&budget, &pods(3), 3, after(21));
    notice(&mut seen.noticed, &budget.status(), start());
    seen.live.insert("web-0".into(), Some(seen.recorded["web-0"].clone()));
    assert_eq!(records_of(&decide(&seen)), 0);
}

/// PROTECTION-26: pods are handed over when their budget is gone, and only then.
#[test]
fn pods_are_noted_once_and_never_taken_away() {
    let own = budget(json!({"maxUnavailable": 1}), json!({}));
    let noted = |name: Value| json!({"metadata": {"annotations": {"pub.kruise.io/related-pub": name}}});
    let all = [
        pod("own", 0, json!({})),
        pod("none", 0, noted(json!(null))),
        pod("gone", 0, noted(json!("deleted"))),
        pod("other", 0, noted(json!("a"))),
        pod(
            "old",
            0,
            json!({"metadata": {"annotations": {
            "pub.kruise.io/related-pub": null, "kruise.io/related-pub": "web"}}}),
        ),
    ];
    let other = |labels: Value| {
        let mut other = object(json!({"selector": {"matchLabels": labels}, "maxUnavailable": 1}), json!({}));
        other["metadata"]["name"] = json!("a");
        read(other)
    };
    let changed = |budgets: Vec<Budget>| -> Vec<String> {
        let mut seen = observed(&own, &all, 5, start());
        seen.budgets = budgets;
        let effects = decide(&seen).effects;
        effects
            .iter()
            .map(|effect| match effect {
                Effect::Patch { target, .. } => target.key.name.to_string(),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    // The other one is about the same pods: it keeps its own, and comes first by name for the rest.
    assert_eq!(changed(vec![other(json!({"app": "web"})), own.clone()]), [""; 0]);
    assert_eq!(
        changed(vec![other(json!({"app": "db", "tier": null})), own.clone()]),
        ["none", "gone", "other"]
    );
    assert_eq!(changed(vec![own.clone()]), ["none", "gone", "other"]);
}

/// A pod without a budget wakes those that may be about it, and no others.
#[test]
fn a_pod_is_news_for_budgets_that_may_be_about_it() {
    let owned = |kind: &str, name: &str| json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}]}});
    let by_labels = object(json!({"maxUnavailable": 1}), json!({}));
    let mut by_expression = by_labels.clone();
    by_expression["spec"]["selector"] = json!({"matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}]});
    let of = |kind: &str, name: &str| {
        let mut object = by_labels.clone();
        object["spec"] =
            json!({"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name}, "maxUnavailable": 1});
        object
    };
    let may =
        |object: &Value, change: Value| may_cover(&read(object.clone()).object, &pod("web-0", 0, change));
    assert!(may(&by_labels, json!({})) && !may(&by_labels, json!({"metadata": {"labels": {"app": "db"}}})));
    assert!(!may(&by_expression, json!({})));
    assert!(may(&by_expression, json!({"metadata": {"labels": {"tier": "front"}}})));
    assert!(may(&of("StatefulSet", "web"), owned("StatefulSet", "web")));
    assert!(may(&of("Deployment", "web"), owned("ReplicaSet", "web-5d9c")));
    assert!(
        !may(&of("Deployment", "web"), owned("Job", "nightly-1"))
            && !may(&of("Deployment", "web"), json!({}))
    );
    assert!(may(&of("Rollout", "web"), owned("ReplicaSet", "other")), "its pods are found in other ways");
}

/// PROTECTION-23 and the take-over of objects that were stored before there was a conversion.
#[test]
fn annotations_count_where_the_fields_say_nothing() {
    let mut stored = object(json!({"maxUnavailable": 1}), json!({}));
    stored["metadata"]["annotations"] = json!({"kruise.io/pub-protect-operations": "EVICT, FOO", "pub.kruise.io/protect-total-replicas": "15"});
    let budget = read(stored);
    let gates = kruise_api::gates::Gates::default();
    use kruise_api::podunavailablebudget::v1beta1::Operation;
    assert!(budget.protects(&Operation::Evict, &gates) && !budget.protects(&Operation::Delete, &gates));
    assert_eq!(budget.total, Some(15));
}

#[test]
fn pods_wake_their_budget_when_something_counts() {
    let one = pod("web-0", 0, json!({}));
    let same = pod("web-0", 0, json!({"metadata": {"resourceVersion": "9"}}));
    assert!(wakes(Some(&one), Some(&same)).is_empty());
    let down = pod("web-0", 0, not_ready());
    assert_eq!(wakes(Some(&one), Some(&down)).len(), 1);
    assert_eq!(wakes(Some(&one), None).len(), 1);
    let ending = pod("web-0", 0, json!({"metadata": {"deletionTimestamp": at(1)}}));
    assert_eq!(wakes(Some(&one), Some(&ending)).len(), 1);
    assert!(wakes(Some(&ending), Some(&ending)).is_empty());
    let free = pod("web-0", 0, json!({"metadata": {"annotations": {"pub.kruise.io/related-pub": null}}}));
    assert!(wakes(None, Some(&free)).is_empty());
    assert!(DISRUPTED_FOR > STAYS_FOR && STAYS_FOR >= UNAVAILABLE_FOR && STAYS_FOR > SignedDuration::ZERO);
}
