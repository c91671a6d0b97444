//! The readiness gate by which pods can be held back from their services while something is done to them.

use kruise_api::{conditions::KRUISE_POD_READY, gates::Gate, json, names::APPS_GROUP};
use serde_json::{Value, json};

use super::PodContext;

/// Adds the gate to pods of our workloads, and with `KruisePodReadinessGate` to all pods.
pub(super) fn gate(pod: &mut Value, cx: &PodContext<'_>) -> Result<(), String> {
    if !cx.context.gates.enabled(Gate::KruisePodReadinessGate) && !is_ours(pod) {
        return Ok(());
    }
    let Some(spec) = json::object_or_insert(pod, &["spec"]) else {
        return Err("spec of the pod is no object".to_owned());
    };
    let gates = spec.entry("readinessGates").or_insert(Value::Null);
    if gates.is_null() {
        *gates = json!([]);
    }
    let Some(gates) = gates.as_array_mut() else {
        return Err("spec.readinessGates of the pod is no list".to_owned());
    };
    if !gates.iter().any(|gate| json::text(gate, &["conditionType"]) == Some(KRUISE_POD_READY)) {
        gates.push(json!({"conditionType": KRUISE_POD_READY}));
    }
    Ok(())
}

/// Whether the controller of the pod is of our group.
fn is_ours(pod: &Value) -> bool {
    let owners = json::at(pod, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    let mut controllers = owners
        .into_iter()
        .flatten()
        .filter(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
    controllers.any(|owner| {
        json::text(owner, &["apiVersion"]).and_then(|version| version.split_once('/')).map(|(group, _)| group)
            == Some(APPS_GROUP)
    })
}
