//! The first `KruisePodReady` of a pod: a pod that waits for the condition gets it as True, once.
//!
//! A pod that is to get its first `InPlaceUpdateReady` from its workload gets both in that one write, see
//! [`in_place::refresh()`](crate::in_place::refresh()). Only when that does not come, the condition is written here.
//!
//! Who wants the pod not ready later changes the condition; see [`crate::readiness`].

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::conditions::{IN_PLACE_UPDATE_READY, KRUISE_POD_READY};

use serde_json::{Value, json};

use crate::{
    effect::Effect,
    pod::Pod,
    readiness::{seconds, status_patch},
};

/// Whether a pod waits for its first condition.
pub fn is_waiting(pod: &Pod) -> bool {
    !pod.metadata.is_deleting()
        && pod.has_readiness_gate(KRUISE_POD_READY)
        && pod.condition(KRUISE_POD_READY).is_none()
}

/// How long a workload has for the first write to a pod that got a node.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);
/// The API group of the workloads that give their pods both conditions.
const WORKLOADS: &str = "apps.kruise.io";

/// What becomes of a pod that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It gets the condition now.
    Now,
    /// It is left to its workload for so long.
    After(Duration),
    /// It has no node, so nothing waits for the condition; news of the pod will tell.
    WithNode,
}

/// Who gives a pod that waits its first condition, and when.
pub fn turn(pod: &Pod, now: Timestamp) -> Turn {
    let is_left = pod.has_readiness_gate(IN_PLACE_UPDATE_READY)
        && pod.condition(IN_PLACE_UPDATE_READY).is_none()
        && pod.metadata.controller().is_some_and(|owner| owner.group() == WORKLOADS);
    if !is_left {
        return Turn::Now;
    }
    if pod.spec.node_name.is_empty() {
        return Turn::WithNode;
    }
    let bound = pod.condition("PodScheduled").and_then(|condition| condition.last_transition_time);
    let Some(since) = bound.or(pod.metadata.creation_timestamp) else { return Turn::Now };
    let left = PATIENCE.saturating_sub(now.duration_since(since)).min(PATIENCE);
    Duration::try_from(left).ok().filter(|left| !left.is_zero()).map_or(Turn::Now, Turn::After)
}

/// The first condition, as it is written.
pub fn first(now: Timestamp) -> Value {
    json!({"type": KRUISE_POD_READY, "status": "True", "lastTransitionTime": seconds(now)})
}

/// What to do with a pod: nothing, or one patch. The patch names no version: kubelet and scheduler write at the same
/// time while many pods start, and a conflict with them would only cost another try.
pub fn plan(pod: &Pod, now: Timestamp) -> Vec<Effect> {
    if !is_waiting(pod) {
        return Vec::new();
    }
    vec![status_patch(pod, vec![first(now)])]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::effect::Patch;

    fn pod(value: serde_json::Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_pod_that_waits_gets_the_condition_once() {
        let now = "2026-01-01T00:00:00.7Z".parse().unwrap();
        let gates = json!([{"conditionType": "KruisePodReady"}]);
        let waiting = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "3"}, "spec": {"readinessGates": gates}});
        let effects = plan(&pod(waiting.clone()), now);
        let [Effect::Patch { target, subresource: Some("status"), patch: Patch::Strategic(patch) }] =
            &effects[..]
        else {
            panic!("{effects:?}");
        };
        assert_eq!(target.uid.as_deref(), Some("u"));
        assert_eq!(target.resource_version, None);
        assert_eq!(
            *patch,
            json!({"status": {"conditions": [{"type": "KruisePodReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        );
        let mut done = waiting.clone();
        done["status"] = json!({"conditions": [{"type": "KruisePodReady", "status": "False"}]});
        assert!(plan(&pod(done), now).is_empty(), "it has the condition");
        let mut ending = waiting.clone();
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(plan(&pod(ending), now).is_empty(), "it is being deleted");
        let mut plain = waiting;
        plain["spec"] = json!({});
        assert!(plan(&pod(plain), now).is_empty(), "it has no gate");
    }

    #[test]
    fn a_pod_of_a_workload_is_left_to_it_for_a_while_once_it_has_a_node() {
        let value = json!({
            "metadata": {
                "name": "a", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "w", "controller": true}],
            },
            "spec": {"readinessGates": [{"conditionType": "KruisePodReady"}, {"conditionType": "InPlaceUpdateReady"}]},
        });
        let at = |text: &str, value: &Value| turn(&pod(value.clone()), text.parse().unwrap());
        assert_eq!(at("2026-01-01T01:00:00Z", &value), Turn::WithNode);
        let mut bound = value.clone();
        bound["spec"]["nodeName"] = json!("n1");
        assert_eq!(at("2026-01-01T00:00:04Z", &bound), Turn::After(Duration::from_secs(6)));
        assert_eq!(at("2025-12-31T23:00:00Z", &bound), Turn::After(Duration::from_secs(10)), "clocks differ");
        assert_eq!(at("2026-01-01T00:00:10Z", &bound), Turn::Now);
        bound["status"] = json!({"conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:59:00Z"},
        ]});
        assert_eq!(at("2026-01-01T00:59:03Z", &bound), Turn::After(Duration::from_secs(7)));
        let mut asked = bound.clone();
        asked["status"]["conditions"][0] = json!({"type": "InPlaceUpdateReady", "status": "True"});
        assert_eq!(at("2026-01-01T00:59:03Z", &asked), Turn::Now, "its workload has written already");
        let mut other = bound.clone();
        other["metadata"]["ownerReferences"][0]["apiVersion"] = json!("apps/v1");
        assert_eq!(at("2026-01-01T00:59:03Z", &other), Turn::Now, "others do not write it");
    }
}
