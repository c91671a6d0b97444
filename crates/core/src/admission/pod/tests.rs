use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::{
    admission::{
        Resource,
        kinds::{Cluster, Empty},
    },
    pod::Pod,
};

fn request(operation: Operation, subresource: &str, object: Value) -> Request {
    Request {
        operation,
        subresource: subresource.to_owned(),
        resource: Resource { resource: "pods".to_owned(), version: "v1".to_owned(), ..Resource::default() },
        namespace: "shop".to_owned(),
        name: "web-1".to_owned(),
        old_object: object.clone(),
        object,
        ..Request::default()
    }
}

fn context<'a>(gates: &'a Gates, cluster: &'a dyn Cluster) -> Context<'a> {
    Context { gates, allow_privileged: true, now: "2026-11-16T00:00:00Z".parse().unwrap(), seed: 7, cluster }
}

fn pod(owner: Option<&str>) -> Value {
    let owners =
        owner.map(|version| json!([{"apiVersion": version, "kind": "X", "name": "x", "controller": true}]));
    json!({"metadata": {"name": "web-1", "ownerReferences": owners}, "spec": {"containers": []}})
}

#[track_caller]
fn check_gate(gates: &Gates, pod: Value, expected: Option<Vec<Value>>) {
    let request = request(Operation::Create, "", pod);
    let answer = mutate(&request, &context(gates, &Empty));
    let expected = expected.map(|steps| serde_json::from_value(steps.into()).unwrap());
    assert_eq!(answer, Answer::Allowed { patch: expected, warnings: Vec::new() });
}

#[test]
fn pods_of_our_workloads_get_the_readiness_gate_and_others_do_not() {
    let add =
        json!({"op": "add", "path": "/spec/readinessGates", "value": [{"conditionType": "KruisePodReady"}]});
    let gates = Gates::default();
    check_gate(&gates, pod(Some("apps.kruise.io/v1beta1")), Some(vec![add.clone()]));
    check_gate(&gates, pod(Some("apps.kruise.io/v1alpha1")), Some(vec![add.clone()]));
    check_gate(&gates, pod(Some("apps/v1")), None);
    check_gate(&gates, pod(Some("v1")), None);
    check_gate(&gates, pod(None), None);
    let mut owner_without_control = pod(Some("apps.kruise.io/v1beta1"));
    owner_without_control["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    check_gate(&gates, owner_without_control, None);
    let gates = gates.with(kruise_api::gates::Gate::KruisePodReadinessGate);
    check_gate(&gates, pod(None), Some(vec![add]));
}

#[test]
fn the_readiness_gate_is_added_once_beside_others() {
    let gates = Gates::default();
    let mut other = pod(Some("apps.kruise.io/v1beta1"));
    other["spec"]["readinessGates"] = json!([{"conditionType": "mine"}]);
    let add =
        json!({"op": "add", "path": "/spec/readinessGates/1", "value": {"conditionType": "KruisePodReady"}});
    check_gate(&gates, other.clone(), Some(vec![add]));
    other["spec"]["readinessGates"] = json!([{"conditionType": "KruisePodReady"}]);
    check_gate(&gates, other, None);
}

#[test]
fn only_the_creation_of_pods_is_changed() {
    let gates = Gates::default();
    let context = context(&gates, &Empty);
    let ours = pod(Some("apps.kruise.io/v1beta1"));
    for (operation, subresource) in [
        (Operation::Update, ""),
        (Operation::Create, "eviction"),
        (Operation::Delete, ""),
        (Operation::Connect, "exec"),
    ] {
        let request = request(operation, subresource, ours.clone());
        assert_eq!(mutate(&request, &context), Answer::allowed());
    }
    let mut node = request(Operation::Create, "", ours);
    node.resource.resource = "nodes".to_owned();
    let text = "this path is about pods and the request about \"nodes\"";
    let refusal = Answer::Denied { code: 400, message: text.to_owned() };
    assert_eq!(mutate(&node, &context), refusal);
    assert_eq!(validate(&node, &context), refusal);
    let nothing = request(Operation::Create, "", Value::Null);
    let refusal = Answer::Denied { code: 400, message: "there is no Pod in the request".to_owned() };
    assert_eq!(mutate(&nothing, &context), refusal);
}

#[test]
fn steps_and_checks_stand_in_the_order_of_the_contract() {
    assert!(STEPS.windows(2).all(|pair| pair[0].position < pair[1].position));
    assert!(CHECKS.windows(2).all(|pair| pair[0].position < pair[1].position));
}

fn mark(pod: &mut Value, text: &str) -> Result<(), String> {
    let so_far = json::text(pod, &["metadata", "annotations", "steps"]).unwrap_or_default().to_owned();
    json::set(pod, &["metadata", "annotations", "steps"], format!("{so_far}{text}"));
    Ok(())
}

#[test]
fn every_step_sees_the_one_before_and_the_patch_is_made_once() {
    let steps = [
        Step { position: Position::ReadinessGate, runs: |_| true, run: |pod, _| mark(pod, "a") },
        Step { position: Position::WorkloadSpread, runs: |_| false, run: |pod, _| mark(pod, "b") },
        Step {
            position: Position::SidecarSet,
            runs: |_| true,
            run: |pod, _| {
                assert_eq!(json::text(pod, &["metadata", "namespace"]), Some("shop"));
                mark(pod, "c")
            },
        },
    ];
    let gates = Gates::default();
    let request = request(Operation::Create, "", pod(None));
    let answer = mutate_by(&steps, &request, &context(&gates, &Empty));
    let patch = json!([{"op": "add", "path": "/metadata/annotations", "value": {"steps": "ac"}}]);
    let patch = serde_json::from_value(patch).unwrap();
    assert_eq!(answer, Answer::Allowed { patch: Some(patch), warnings: Vec::new() });
}

#[test]
fn the_first_failing_step_ends_the_chain_without_a_patch() {
    let steps = [
        Step { position: Position::ReadinessGate, runs: |_| true, run: |pod, _| mark(pod, "a") },
        Step {
            position: Position::SidecarSet,
            runs: |_| true,
            run: |_, _| Err("no sidecars today".to_owned()),
        },
        Step { position: Position::LaunchPriority, runs: |_| true, run: |_, _| unreachable!() },
    ];
    let gates = Gates::default();
    let request = request(Operation::Create, "", pod(None));
    let answer = mutate_by(&steps, &request, &context(&gates, &Empty));
    assert_eq!(answer, Answer::Denied { code: 500, message: "no sidecars today".to_owned() });
}

struct One(Arc<Pod>);

impl Cluster for One {
    fn pod(&self, key: &ObjectKey) -> Option<Arc<Pod>> {
        (*key == ObjectKey::new("shop", "web-1")).then(|| self.0.clone())
    }
}

const REFUSE: [Check; 1] = [Check {
    position: CheckPosition::WorkloadSpread,
    runs: |touch, _| touch != Touch::Update,
    run: |_, touch, _| Ok(Some(Answer::Denied { code: 403, message: format!("{touch:?}") })),
}];

#[track_caller]
fn check_judged(cluster: &dyn Cluster, request: &Request, expected: &str) {
    let gates = Gates::default();
    let answer = validate_by(&REFUSE, request, &context(&gates, cluster));
    let said = match answer {
        Answer::Allowed { .. } => "allowed".to_owned(),
        Answer::Denied { code, message } | Answer::Held { code, message, .. } => format!("{code} {message}"),
    };
    assert_eq!(said, expected);
}

#[test]
fn updates_resizes_deletions_and_evictions_are_told_apart() {
    let one = One(Arc::default());
    check_judged(&one, &request(Operation::Update, "", pod(None)), "allowed");
    check_judged(&one, &request(Operation::Update, "resize", pod(None)), "403 Resize");
    check_judged(&one, &request(Operation::Update, "status", pod(None)), "allowed");
    check_judged(&one, &request(Operation::Delete, "", pod(None)), "403 Delete");
    check_judged(&one, &request(Operation::Create, "eviction", pod(None)), "403 Evict");
    check_judged(&one, &request(Operation::Create, "", pod(None)), "allowed");
}

#[test]
fn a_deletion_without_the_old_pod_passes_and_an_eviction_of_nothing_is_an_error() {
    check_judged(&Empty, &request(Operation::Delete, "", Value::Null), "allowed");
    let eviction = request(Operation::Create, "eviction", json!({}));
    check_judged(&Empty, &eviction, "400 pods \"web-1\" not found");
    let gates = Gates::default();
    let failing =
        [Check { run: |_, _, _| Err("no budget today".to_owned()), runs: |_, _| true, ..REFUSE_ONE }];
    let answer = validate_by(&failing, &request(Operation::Update, "", pod(None)), &context(&gates, &Empty));
    assert_eq!(answer, Answer::Denied { code: 400, message: "no budget today".to_owned() });
}

const REFUSE_ONE: Check =
    Check { position: CheckPosition::WorkloadSpread, runs: |_, _| true, run: |_, _, _| Ok(None) };
