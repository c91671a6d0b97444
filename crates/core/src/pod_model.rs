//! What a kubelet makes of pods, for models of clusters in tests.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::patch_model::strategic;

/// Runs a pod on its node for a moment. `works` says whether a container of the spec can run.
pub(crate) fn run(pod: &mut Value, works: &dyn Fn(&Value) -> bool, now: Timestamp) {
    let containers = pod["spec"]["containers"].as_array().unwrap().clone();
    let statuses: Vec<Value> = containers
        .iter()
        .map(|container| {
            json!({"name": container["name"], "image": container["image"], "imageID": container["image"],
                "containerID": container["image"], "ready": works(container), "resources": container["resources"]})
        })
        .collect();
    let all_work = containers.iter().all(works);
    pod["status"]["phase"] = "Running".into();
    pod["status"]["containerStatuses"] = statuses.into();
    let gates: Vec<Value> = pod["spec"]["readinessGates"].as_array().into_iter().flatten().cloned().collect();
    let ready =
        all_work && gates.iter().all(|gate| has_condition(pod, gate["conditionType"].as_str().unwrap()));
    for (kind, status) in [("ContainersReady", all_work), ("Ready", ready)] {
        let known = pod["status"]["conditions"].as_array().into_iter().flatten();
        if known.clone().any(|one| one["type"] == kind) && has_condition(pod, kind) == status {
            continue;
        }
        let text = if status { "True" } else { "False" };
        let condition = json!({"type": kind, "status": text, "lastTransitionTime": now.to_string()});
        strategic(pod, &json!({"status": {"conditions": [condition]}}));
    }
}

/// Whether a condition of a pod is true.
pub(crate) fn has_condition(pod: &Value, kind: &str) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == kind && one["status"] == "True")
}
