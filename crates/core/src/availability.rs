//! Whether pods are ready and available, and for how long.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::conditions::IN_PLACE_UPDATE_READY;

use crate::{
    lifecycle,
    pod::{Condition, Pod},
};

/// A pod is available when it has been ready for longer than `minReadySeconds`, so a look at the very end of that time is
/// too early.
const MARGIN: Duration = Duration::from_millis(10);

/// Whether the kubelet runs the pod and reports it as ready.
pub fn is_running_and_ready(pod: &Pod) -> bool {
    pod.status.phase == "Running" && pod.condition("Ready").is_some_and(Condition::is_true)
}

/// Whether a pod is ready and no update in place holds it back. One that cannot be read is not.
pub fn is_ready(pod: &Pod) -> bool {
    !pod.metadata.unreadable
        && is_running_and_ready(pod)
        && pod.condition(IN_PLACE_UPDATE_READY).is_none_or(Condition::is_true)
}

/// Whether a pod is ready, no hook holds it, and it has been ready for longer than `min_ready`.
pub fn is_available(pod: &Pod, min_ready: SignedDuration, now: Timestamp) -> bool {
    lifecycle::is_in_service(pod) && is_ready(pod) && has_been_ready_for(pod, min_ready, now)
}

/// Whether a pod has been ready for longer than this; always true for zero.
pub fn has_been_ready_for(pod: &Pod, min_ready: SignedDuration, now: Timestamp) -> bool {
    min_ready.is_zero() || ready_for(pod, now).is_some_and(|time| time > min_ready)
}

/// How long a pod has been ready, or not ready.
pub fn ready_for(pod: &Pod, now: Timestamp) -> Option<SignedDuration> {
    Some(now.duration_since(pod.condition("Ready")?.last_transition_time?))
}

/// When a pod becomes available by time alone; nothing if it is available, or if more than time is missing.
pub fn time_until_available(pod: &Pod, min_ready: SignedDuration, now: Timestamp) -> Option<Duration> {
    if !is_ready(pod) || !lifecycle::is_in_service(pod) || is_available(pod, min_ready, now) {
        return None;
    }
    let left = min_ready.saturating_sub(ready_for(pod, now)?).max(SignedDuration::ZERO);
    Some(Duration::try_from(left).ok()? + MARGIN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T00:01:00Z";

    fn pod(phase: &str, ready_since: &str, in_place: Option<&str>, state: &str) -> Pod {
        let mut conditions =
            vec![json!({"type": "Ready", "status": "True", "lastTransitionTime": ready_since})];
        conditions.extend(in_place.map(|status| json!({"type": IN_PLACE_UPDATE_READY, "status": status})));
        serde_json::from_value(json!({
            "metadata": {"name": "a", "labels": {"lifecycle.apps.kruise.io/state": state}},
            "status": {"phase": phase, "conditions": conditions},
        }))
        .unwrap()
    }

    #[track_caller]
    fn check(pod: &Pod, min_ready: i64, expected: (bool, bool, Option<u64>)) {
        let (min_ready, now) = (SignedDuration::from_secs(min_ready), NOW.parse().unwrap());
        let left = time_until_available(pod, min_ready, now).map(|left| left.as_secs());
        assert_eq!((is_ready(pod), is_available(pod, min_ready, now), left), expected);
    }

    #[test]
    fn a_pod_is_available_after_min_ready_seconds_and_while_no_hook_holds_it() {
        let since = "2026-01-01T00:00:50Z";
        check(&pod("Running", since, None, ""), 0, (true, true, None));
        check(&pod("Running", since, None, "Normal"), 9, (true, true, None));
        check(&pod("Running", since, None, "Normal"), 10, (true, false, Some(0)));
        check(&pod("Running", since, Some("True"), "Normal"), 30, (true, false, Some(20)));
        check(&pod("Running", since, Some("False"), "Normal"), 0, (false, false, None));
        check(&pod("Running", since, None, "PreparingDelete"), 30, (true, false, None));
        check(&pod("Pending", since, None, ""), 0, (false, false, None));
    }

    #[test]
    fn a_pod_that_cannot_be_read_is_not_available() {
        let mut pod = pod("Running", "2026-01-01T00:00:00Z", None, "");
        pod.metadata.unreadable = true;
        check(&pod, 0, (false, false, None));
    }
}
