//! Readiness gates that we write: who holds a pod not ready, and what its `Ready` condition is then.
//!
//! Several writers share the condition `KruisePodReady`: its message is a sorted JSON list of those who hold the pod. A
//! gate that becomes False makes the pod not ready in the same write, so that traffic stops before the kubelet looks.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_api::conditions::KRUISE_POD_READY;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    object::POD,
    pod::Pod,
};

/// Who holds a pod not ready, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// Which part of us.
    pub user_agent: String,
    /// What for.
    pub key: String,
}

impl Reason {
    /// A reason.
    pub fn new(user_agent: impl Into<String>, key: impl Into<String>) -> Self {
        Self { user_agent: user_agent.into(), key: key.into() }
    }
}

/// Whether a reason is among those that hold the pod.
pub fn is_held(pod: &Pod, reason: &Reason) -> bool {
    pod.condition(KRUISE_POD_READY).is_some_and(|condition| reasons(&condition.message).contains(reason))
}

/// Holds a pod not ready for one more reason. Nothing without the gate, or when it is held for this reason already.
pub fn add(pod: &Pod, reason: &Reason, now: Timestamp) -> Option<Effect> {
    if !pod.has_readiness_gate(KRUISE_POD_READY) {
        return None;
    }
    let present = pod.condition(KRUISE_POD_READY);
    let mut held = present.map(|condition| reasons(&condition.message)).unwrap_or_default();
    if !held.insert(reason.clone()) && present.is_some_and(|condition| !condition.is_true()) {
        return None;
    }
    let mut conditions = vec![json!({
        "type": KRUISE_POD_READY, "status": "False", "message": message(&held), "lastTransitionTime": seconds(now),
    })];
    conditions.extend(ready_without(pod, KRUISE_POD_READY, now));
    Some(list_patch(pod, conditions))
}

/// Ends one reason. The pod may be ready again when no other is left.
pub fn remove(pod: &Pod, reason: &Reason, now: Timestamp) -> Option<Effect> {
    let condition = pod.condition(KRUISE_POD_READY).filter(|_| pod.has_readiness_gate(KRUISE_POD_READY))?;
    let mut held = reasons(&condition.message);
    if !held.remove(reason) {
        return None;
    }
    let status = if held.is_empty() { "True" } else { "False" };
    let mut written = json!({"type": KRUISE_POD_READY, "status": status, "message": message(&held)});
    if condition.status != status
        && let Some(members) = written.as_object_mut()
    {
        members.insert("lastTransitionTime".to_owned(), seconds(now));
    }
    Some(list_patch(pod, vec![written]))
}

/// Who holds a pod not ready after a change of its status that was made by [`add`].
pub(crate) fn held_by(change: &Value) -> BTreeSet<Reason> {
    let written = change.pointer("/status/conditions").and_then(Value::as_array);
    let text = |condition: &Value, field: &str| {
        condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let is_hold = |one: &&Value| text(one, "type") == KRUISE_POD_READY && text(one, "status") == "False";
    let hold = written.into_iter().flatten().find(is_hold);
    hold.map(|condition| reasons(&text(condition, "message"))).unwrap_or_default()
}

/// The `Ready` condition of a pod whose gate is False from now on, if that changes it. The kubelet finds the same a
/// little later.
pub fn ready_without(pod: &Pod, gate: &str, now: Timestamp) -> Option<Value> {
    let ready = pod.condition("Ready")?;
    if !pod.condition("ContainersReady")?.is_true() || ready.status == "False" {
        return None;
    }
    let problems: Vec<String> = pod
        .spec
        .readiness_gates
        .iter()
        .filter_map(|other| {
            let name = &other.condition_type;
            let status = if *name == gate {
                Some("False")
            } else {
                pod.condition(name).map(|one| one.status.as_str())
            };
            match status {
                Some("True") => None,
                Some(status) => {
                    Some(format!("the status of pod readiness gate \"{name}\" is not \"True\", but {status}"))
                }
                None => {
                    Some(format!("corresponding condition of pod readiness gate \"{name}\" does not exist."))
                }
            }
        })
        .collect();
    (!problems.is_empty()).then(|| {
        json!({
            "type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": problems.join(", "),
            "lastTransitionTime": seconds(now),
        })
    })
}

/// A write of conditions of a pod. Others stay.
pub fn status_patch(pod: &Pod, conditions: Vec<Value>) -> Effect {
    Effect::Patch {
        target: Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone()),
        subresource: Some("status"),
        patch: Patch::Strategic(json!({"status": {"conditions": conditions}})),
    }
}

/// A write of the condition that several writers share: its list is written as a whole, so only to the version that it was
/// read from.
fn list_patch(pod: &Pod, conditions: Vec<Value>) -> Effect {
    match status_patch(pod, conditions) {
        Effect::Patch { target, subresource, patch } => {
            let target = target.at_version(pod.metadata.resource_version.clone());
            Effect::Patch { target, subresource, patch }
        }
        other => other,
    }
}

/// A time as Kubernetes writes it.
pub fn seconds(now: Timestamp) -> Value {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

/// A message that is no such list counts as an empty one.
fn reasons(message: &str) -> BTreeSet<Reason> {
    serde_json::from_str(message).unwrap_or_default()
}

fn message(held: &BTreeSet<Reason>) -> String {
    serde_json::to_string(held).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(conditions: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "web-1", "namespace": "default", "uid": "u1"},
            "spec": {"readinessGates": [{"conditionType": "KruisePodReady"}, {"conditionType": "Other"}]},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn condition(kind: &str, status: &str, message: &str) -> Value {
        json!({"type": kind, "status": status, "message": message})
    }

    fn written(effect: Option<Effect>) -> Value {
        let Some(Effect::Patch { patch: Patch::Strategic(patch), subresource: Some("status"), .. }) = effect
        else {
            return Value::Null;
        };
        patch["status"]["conditions"].clone()
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    /// INPLACE-24: the condition, its message, and the pod that is not ready at once.
    #[test]
    fn the_first_reason_makes_the_pod_not_ready() {
        let pod = pod(json!([
            condition("KruisePodReady", "True", ""),
            condition("Other", "True", ""),
            condition("Ready", "True", ""),
            condition("ContainersReady", "True", ""),
        ]));
        let conditions = written(add(&pod, &Reason::new("Lifecycle", "preDeleteHook"), now()));
        assert_eq!(conditions[0]["message"], r#"[{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#);
        assert_eq!(conditions[0]["status"], "False");
        assert_eq!(conditions[1]["reason"], "ReadinessGatesNotReady");
        assert_eq!(
            conditions[1]["message"],
            r#"the status of pod readiness gate "KruisePodReady" is not "True", but False"#
        );
    }

    /// INPLACE-25
    #[test]
    fn a_pod_stays_held_until_the_last_reason_ends() {
        let hook = Reason::new("Lifecycle", "preDeleteHook");
        let request = Reason::new("ContainerRecreateRequest", "ns/crr-1");
        let one = pod(json!([condition(
            "KruisePodReady",
            "False",
            r#"[{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#
        )]));
        assert_eq!(add(&one, &hook, now()), None, "it is held for this already");
        let both = r#"[{"userAgent":"ContainerRecreateRequest","key":"ns/crr-1"},{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#;
        assert_eq!(written(add(&one, &request, now()))[0]["message"], both);
        let two = pod(json!([condition("KruisePodReady", "False", both)]));
        let left = written(remove(&two, &request, now()));
        assert_eq!((&left[0]["status"], left[0].get("lastTransitionTime")), (&json!("False"), None));
        let free = written(remove(&one, &hook, now()));
        assert_eq!((&free[0]["status"], &free[0]["message"]), (&json!("True"), &json!("[]")));
        assert_eq!(remove(&one, &request, now()), None);
    }

    /// Each writer knows all reasons, but only as they were when it looked: a pod must not stay held by one that has ended.
    #[test]
    fn the_list_of_reasons_is_written_only_to_the_version_that_it_was_read_from() {
        let hook = Reason::new("Lifecycle", "preDeleteHook");
        let mut pod = pod(json!([condition("KruisePodReady", "True", "")]));
        pod.metadata.resource_version = "7".into();
        let held = r#"[{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#;
        let mut two = self::pod(json!([condition("KruisePodReady", "False", held)]));
        two.metadata.resource_version = "7".into();
        for effect in [add(&pod, &hook, now()), remove(&two, &hook, now())] {
            let Some(Effect::Patch { target, .. }) = effect else { panic!("no write") };
            assert_eq!(target.resource_version.as_deref(), Some("7"));
        }
    }

    #[test]
    fn a_condition_that_does_not_exist_yet_is_made_false_and_a_wrong_message_is_no_list() {
        let reason = Reason::new("a", "b");
        for conditions in [json!([]), json!([condition("KruisePodReady", "True", "so it is")])] {
            let conditions = written(add(&pod(conditions), &reason, now()));
            assert_eq!(conditions[0]["status"], "False");
            assert_eq!(conditions[0]["message"], r#"[{"userAgent":"a","key":"b"}]"#);
        }
        let mut plain = pod(json!([]));
        plain.spec.readiness_gates = Box::default();
        assert_eq!(add(&plain, &reason, now()), None, "without the gate nothing reads it");
    }

    #[test]
    fn a_missing_gate_is_named() {
        let pod = pod(json!([condition("Ready", "True", ""), condition("ContainersReady", "True", "")]));
        assert_eq!(
            ready_without(&pod, "KruisePodReady", now()).unwrap()["message"],
            "the status of pod readiness gate \"KruisePodReady\" is not \"True\", but False, corresponding condition of pod readiness gate \"Other\" does not exist."
        );
    }
}
