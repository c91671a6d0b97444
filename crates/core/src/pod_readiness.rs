//! The first `KruisePodReady` of a pod: a pod that waits for the condition gets it as True, once.
//!
//! Who wants the pod not ready later changes the condition; see [`crate::readiness`].

use jiff::Timestamp;
use kruise_api::conditions::KRUISE_POD_READY;

use serde_json::json;

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

/// What to do with a pod: nothing, or one patch. The patch names no version: kubelet and scheduler write at the same
/// time while many pods start, and a conflict with them would only cost another try.
pub fn plan(pod: &Pod, now: Timestamp) -> Vec<Effect> {
    if !is_waiting(pod) {
        return Vec::new();
    }
    let condition = json!({"type": KRUISE_POD_READY, "status": "True", "lastTransitionTime": seconds(now)});
    vec![status_patch(pod, vec![condition])]
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
}
