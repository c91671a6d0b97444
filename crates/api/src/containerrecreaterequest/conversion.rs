//! ContainerRecreateRequest between v1alpha1 and v1beta1.
//!
//! Two things that the manager tells the daemon are annotations in v1alpha1 and parts of the status in v1beta1. Daemons
//! of the older version keep working: they see the annotations, and their status updates keep the parts.

use serde_json::{Value, json};

use super::v1beta1::ContainerSnapshot;
use crate::{
    annotations::{CRR_SYNC_CONTAINER_STATUSES, CRR_UNREADY_ACQUIRED},
    convert::{Error, set_annotation, take_annotation},
    json::{at, drop_if_empty, set, take, text},
    time::Time,
};

const SNAPSHOT: &[&str] = &["status", "containerStatusSnapshot"];
const CONDITIONS: &[&str] = &["status", "conditions"];
const PHASE: &[&str] = &["status", "phase"];

/// The condition that says since when the pod is held not ready, and the words in which it says so.
const GRACE: &str = "PreRecreateGrace";
const GRACE_MESSAGE: &str = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain";

/// v1alpha1 to v1beta1. Malformed annotations are dropped.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    // Older clients write an empty phase for a request that nobody has seen yet; v1beta1 has no status then.
    if text(object, PHASE) == Some("") {
        take(object, PHASE);
        drop_if_empty(object, &["status"]);
    }
    let snapshot = take_annotation(object, CRR_SYNC_CONTAINER_STATUSES)
        .and_then(|text| serde_json::from_str::<Vec<ContainerSnapshot>>(&text).ok());
    if let Some(snapshot) = snapshot.filter(|snapshot| !snapshot.is_empty()) {
        set(object, SNAPSHOT, json!(snapshot));
    }
    let held_since = take_annotation(object, CRR_UNREADY_ACQUIRED)
        .and_then(|text| serde_json::from_value::<Time>(Value::String(text)).ok());
    if let Some(since) = held_since {
        let condition = json!({ "type": GRACE, "status": "True", "reason": GRACE, "message": GRACE_MESSAGE,
            "lastTransitionTime": since });
        set(object, CONDITIONS, json!([condition]));
    }
    // A status of v1beta1 always has a phase.
    if at(object, &["status"]).is_some() && at(object, PHASE).is_none() {
        set(object, PHASE, "Pending");
    }
    Ok(())
}

/// v1beta1 to v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    take_annotation(object, CRR_SYNC_CONTAINER_STATUSES);
    take_annotation(object, CRR_UNREADY_ACQUIRED);
    if let Some(Value::Array(snapshot)) = take(object, SNAPSHOT)
        && !snapshot.is_empty()
    {
        set_annotation(object, CRR_SYNC_CONTAINER_STATUSES, written(&snapshot));
    }
    if let Some(Value::Array(conditions)) = take(object, CONDITIONS) {
        let held = conditions.iter().find(|condition| {
            text(condition, &["type"]) == Some(GRACE) && text(condition, &["status"]) == Some("True")
        });
        if let Some(since) = held.and_then(|condition| text(condition, &["lastTransitionTime"])) {
            set_annotation(object, CRR_UNREADY_ACQUIRED, since);
        }
    }
    Ok(())
}

/// The snapshot as the original writes it, byte for byte: members in its order, then those that it does not know.
fn written(snapshot: &[Value]) -> String {
    const ORDER: [&str; 4] = ["name", "ready", "restartCount", "containerID"];
    let entry = |entry: &Value| {
        let mut members: Vec<(&String, &Value)> = entry.as_object().into_iter().flatten().collect();
        members.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len()));
        let members: Vec<String> =
            members.into_iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
        format!("{{{}}}", members.join(","))
    };
    let entries: Vec<String> = snapshot.iter().map(entry).collect();
    format!("[{}]", entries.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn older() -> Value {
        json!({
            "metadata": {"name": "r", "annotations": {
                "crr.apps.kruise.io/sync-container-statuses":
                    r#"[{"name":"main","ready":true,"restartCount":2,"containerID":"docker://1"}]"#,
                "crr.apps.kruise.io/unready-acquired": "2026-11-15T19:00:00Z",
            }},
            "spec": {"podName": "p"},
            "status": {"phase": "Recreating"},
        })
    }

    fn newer() -> Value {
        json!({
            "metadata": {"name": "r"},
            "spec": {"podName": "p"},
            "status": {
                "phase": "Recreating",
                "containerStatusSnapshot":
                    [{"name": "main", "ready": true, "restartCount": 2, "containerID": "docker://1"}],
                "conditions": [{"type": "PreRecreateGrace", "status": "True", "reason": "PreRecreateGrace",
                    "message": "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain",
                    "lastTransitionTime": "2026-11-15T19:00:00Z"}],
            },
        })
    }

    #[test]
    fn annotations_of_the_manager_become_status_and_back() {
        let mut object = older();
        up(&mut object).unwrap();
        assert_eq!(object, newer());
        down(&mut object).unwrap();
        assert_eq!(object, older());
    }

    #[test]
    fn malformed_annotations_are_dropped() {
        let mut object = older();
        object["metadata"]["annotations"] = json!({"crr.apps.kruise.io/sync-container-statuses": "{",
            "crr.apps.kruise.io/unready-acquired": "yesterday", "other": "stays"});
        up(&mut object).unwrap();
        assert_eq!(object["metadata"]["annotations"], json!({"other": "stays"}));
        assert_eq!(object["status"], json!({"phase": "Recreating"}));
    }

    #[test]
    fn an_empty_phase_is_no_status_in_the_newer_version() {
        let mut object = json!({"metadata": {}, "spec": {}, "status": {"phase": ""}});
        up(&mut object).unwrap();
        assert_eq!(object, json!({"metadata": {}, "spec": {}}));
    }
}
