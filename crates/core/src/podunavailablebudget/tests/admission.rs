//! What admission answers.

use kruise_api::{
    gates::{Gate, Gates},
    podunavailablebudget::v1beta1::Operation,
};
use serde_json::{Value, json};

use super::{super::*, kit::*};
use crate::pod::Pod;

fn counted(allowed: i32) -> Value {
    json!({"observedGeneration": 1, "unavailableAllowed": allowed, "currentAvailable": 4, "desiredAvailable": 4 - allowed, "totalReplicas": 5})
}

fn asked<'a>(pod: &'a Pod, operation: &'a Operation, gates: &'a Gates) -> Asked<'a> {
    let record = Kind::of_operation(operation);
    Asked {
        pod,
        operation,
        record,
        dry_run: false,
        gates,
        recount: None,
        others_first: false,
        now: after(100),
    }
}

fn verdict(spec: Value, status: Value, pod: &Pod, operation: Operation) -> Verdict {
    let gates = Gates::default();
    admit(&budget(spec, status), &asked(pod, &operation, &gates))
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Free => "free",
        Verdict::Open => "open",
        Verdict::Take(_) => "take",
        Verdict::Refuse(_) => "refuse",
    }
}

#[track_caller]
fn check(spec: Value, allowed: i32, change: Value, operation: Operation, expected: &str) {
    assert_eq!(word(&verdict(spec, counted(allowed), &pod("web-0", 0, change), operation)), expected);
}

fn one() -> Value {
    json!({"maxUnavailable": 1})
}

#[test]
fn what_is_not_counted_passes() {
    check(one(), 0, json!({}), Operation::Delete, "refuse");
    check(one(), 1, json!({}), Operation::Delete, "take");
    // PROTECTION-17
    check(one(), 0, not_ready(), Operation::Delete, "free");
    check(one(), 0, json!({"metadata": {"deletionTimestamp": at(1)}}), Operation::Delete, "free");
    // PROTECTION-8
    for (text, expected) in
        [("true", "free"), ("1", "free"), ("false", "refuse"), ("yes", "refuse"), ("", "refuse")]
    {
        let exempt = json!({"metadata": {"annotations": {"pub.kruise.io/no-protect": text}}});
        check(one(), 0, exempt, Operation::Evict, expected);
    }
    // PROTECTION-9
    let ignoring = json!({"maxUnavailable": 1, "ignoredPodSelector": {"matchLabels": {"force": "true"}}});
    check(ignoring.clone(), 0, json!({"metadata": {"labels": {"force": "true"}}}), Operation::Evict, "open");
    check(ignoring, 0, json!({}), Operation::Evict, "refuse");
    // PROTECTION-5
    let all = json!({"observedGeneration": 1, "unavailableAllowed": 0, "desiredAvailable": 0});
    assert_eq!(
        verdict(json!({"maxUnavailable": "100%"}), all, &pod("web-0", 0, json!({})), Operation::Delete),
        Verdict::Open
    );
}

/// PROTECTION-22
#[test]
fn only_protected_operations_take_from_the_budget() {
    let only = json!({"maxUnavailable": 1, "protectOperations": ["EVICT"]});
    check(only.clone(), 0, json!({}), Operation::Evict, "refuse");
    check(only.clone(), 0, json!({}), Operation::Delete, "open");
    check(only, 0, json!({}), Operation::Update, "open");
}

/// PROTECTION-24: the table of A.9.
#[test]
fn a_resize_is_an_update_unless_its_gate_is_open() {
    let open = Gates::default().with(Gate::InPlacePodVerticalScaling);
    let cases: [(&[&str], [bool; 4]); 5] = [
        (&[], [true, true, true, false]),
        (&["DELETE"], [false, false, false, false]),
        (&["RESIZE"], [false, true, false, true]),
        (&["UPDATE"], [true, true, true, false]),
        (&["UPDATE", "RESIZE"], [true, true, true, true]),
    ];
    for (operations, expected) in cases {
        let budget = budget(json!({"maxUnavailable": 1, "protectOperations": operations}), json!({}));
        let off = Gates::default();
        let found = [
            budget.protects(&Operation::Update, &off),
            budget.protects(&Operation::Resize, &off),
            budget.protects(&Operation::Update, &open),
            budget.protects(&Operation::Resize, &open),
        ];
        assert_eq!(found, expected, "{operations:?}");
    }
}

#[test]
fn what_is_taken_is_recorded_in_the_map_of_its_operation() {
    let pod = pod("web-0", 0, json!({}));
    let maps = |operation: Operation| {
        let spec = json!({"maxUnavailable": 1, "protectOperations": ["DELETE", "EVICT", "UPDATE", "RESIZE"]});
        let Verdict::Take(status) = verdict(spec, counted(2), &pod, operation) else { panic!("not taken") };
        assert_eq!(status.unavailable_allowed, 1);
        (status.disrupted_pods.len(), status.unavailable_pods.len())
    };
    assert_eq!(maps(Operation::Delete), (1, 0));
    assert_eq!(maps(Operation::Evict), (1, 0));
    assert_eq!(maps(Operation::Update), (0, 1));
    assert_eq!(maps(Operation::Resize), (0, 1));
}

/// PROTECTION-11
#[test]
fn a_dry_run_takes_nothing_and_is_refused_like_any_other() {
    let (pod, gates) = (pod("web-0", 0, json!({})), Gates::default());
    let asked = Asked { dry_run: true, ..asked(&pod, &Operation::Delete, &gates) };
    assert_eq!(admit(&budget(one(), counted(1)), &asked), Verdict::Free);
    assert_eq!(word(&admit(&budget(one(), counted(0)), &asked)), "refuse");
}

fn recorded(second: i64) -> Value {
    let mut status = counted(0);
    status["disruptedPods"] = json!({"web-0": at(second)});
    status
}

/// PROTECTION-14: a pod is paid for once, and a new pod of its name pays again.
#[test]
fn a_pod_is_paid_for_once() {
    let old = pod("web-0", 0, json!({}));
    assert_eq!(word(&verdict(one(), recorded(95), &old, Operation::Delete)), "free");
    let new = pod("web-0", 96, json!({}));
    assert_eq!(word(&verdict(one(), recorded(95), &new, Operation::Delete)), "refuse");
    let same_second = pod("web-0", 95, json!({}));
    assert_eq!(word(&verdict(one(), recorded(95), &same_second, Operation::Delete)), "refuse");
}

/// Who tries again shortly before the record runs out would otherwise delete a pod that nobody counts as gone; were the record
/// renewed, it would never end for a pod whose deletion something else refuses.
#[test]
fn an_old_record_runs_out_before_its_pod_pays_again() {
    let again = |spec: Value, second: i64| {
        word(&verdict(spec, recorded(second), &pod("web-0", 0, json!({})), Operation::Delete))
    };
    assert_eq!((again(one(), 91), again(one(), 89), again(one(), 81)), ("free", "refuse", "refuse"));
    let mut left = recorded(85);
    left["unavailableAllowed"] = json!(1);
    left["desiredAvailable"] = json!(3);
    let spec = json!({"maxUnavailable": 2});
    assert_eq!(word(&verdict(spec, left, &pod("web-0", 0, json!({})), Operation::Delete)), "refuse");
}

/// PROTECTION-33
#[test]
fn too_many_records_are_refused() {
    let mut status = counted(2);
    let records = |from: usize, count: usize| -> Value {
        (from..from + count)
            .map(|number| (format!("p-{number}"), json!(at(99))))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    status["disruptedPods"] = records(0, 1000);
    status["unavailablePods"] = records(1000, 1000);
    let pod = pod("web-0", 0, json!({}));
    assert_eq!(word(&verdict(one(), status.clone(), &pod, Operation::Delete)), "take");
    status["unavailablePods"] = records(1000, 1001);
    let Verdict::Refuse(refusal) = verdict(one(), status, &pod, Operation::Delete) else {
        panic!("not refused")
    };
    assert_eq!(
        refusal.message,
        "podunavailablebudget.policy.kruise.io \"web\" is forbidden: DisruptedPods and UnavailablePods map too big - too many unavailable not confirmed by PUB controller"
    );
}

/// PROTECTION-4, PROTECTION-6, PROTECTION-7: texts and codes, and what stands beside them.
#[test]
fn a_refusal_says_what_users_match_on_and_the_numbers_beside_it() {
    let mut status = counted(0);
    status["disruptedPods"] = json!({"web-1": at(95), "web-2": at(96), "web-3": at(97), "web-4": at(98)});
    let Verdict::Refuse(refusal) =
        verdict(json!({"maxUnavailable": "20%"}), status, &pod("web-0", 0, json!({})), Operation::Delete)
    else {
        panic!("not refused")
    };
    assert_eq!(
        refusal.message,
        "podunavailablebudget.policy.kruise.io \"web\" is forbidden: pub unavailable allowed is negative"
    );
    assert_eq!(
        [Operation::Delete, Operation::Update, Operation::Evict].map(|operation| refusal.code(&operation)),
        [403, 403, 429]
    );
    let causes: Vec<String> =
        refusal.causes().into_iter().map(|cause| format!("{} {}", cause.reason, cause.message)).collect();
    assert_eq!(
        causes,
        [
            "PodUnavailableBudget PodUnavailableBudget web (maxUnavailable: 20%) allows 0 more unavailable pods now: 4 of 5 are available and 4 must be",
            "PodsBeingDisrupted admitted and not seen yet: web-1 (since 2026-11-16T00:01:35Z), web-2 (since 2026-11-16T00:01:36Z), web-3 (since 2026-11-16T00:01:37Z) and 1 more",
        ]
    );
    assert_eq!(
        refusal.waits(&["web-x7k2p".into()]),
        "1 pod waits for PodUnavailableBudget web (web-x7k2p): it allows 0 more unavailable pods now, 4 of 5 are available and 4 must be"
    );
    let passed_on = format!("admission webhook \"vpod.kb.io\" denied the request: {}", refusal.message);
    assert!(is_by_budget(&passed_on) && !is_by_budget("admission webhook \"x\" denied the request: no"));
    let conflicts = Refusal::conflicts(&budget(one(), counted(1)));
    assert_eq!(conflicts.message, "couldn't update PodUnavailableBudget web due to conflicts");
}

/// A status that is old is not believed where this process sees fewer pods.
#[test]
fn what_this_process_sees_counts_beside_the_status() {
    let (pod, gates) = (pod("web-0", 0, json!({})), Gates::default());
    let with = |budget: &Budget, available: usize, expected: Option<u32>| {
        let recount = Some(Recount { available, expected });
        word(&admit(budget, &Asked { recount, ..asked(&pod, &Operation::Delete, &gates) }))
    };
    let counted_one = budget(one(), counted(1));
    assert_eq!(with(&counted_one, 5, Some(5)), "take");
    assert_eq!(with(&counted_one, 3, Some(5)), "refuse");
    // A budget that was never counted, and one whose spec has changed since.
    let new = budget(one(), json!({}));
    assert_eq!(with(&new, 5, Some(5)), "take");
    assert_eq!(with(&new, 4, Some(5)), "refuse");
    assert_eq!(with(&new, 0, None), "open");
    let mut changed = object(json!({"maxUnavailable": 0}), counted(1));
    changed["metadata"]["generation"] = json!(2);
    assert_eq!(with(&read(changed), 5, Some(5)), "refuse");
}
