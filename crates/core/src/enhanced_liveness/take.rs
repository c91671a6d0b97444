//! Takes the liveness probes of a new pod from the kubelet.

use kruise_api::{
    annotations::{CONTAINER_PROBE_CONTEXT, USING_ENHANCED_LIVENESS},
    gates::{Gate, Gates},
    json,
    names::APPS_GROUP,
};
use serde_json::{Value, json};

use crate::admission::pod::PodContext;

/// Whether probes are taken with these gates: only where everything is on that then runs them.
pub fn runs(gates: &Gates) -> bool {
    [Gate::EnhancedLivenessProbe, Gate::PodWebhook, Gate::KruiseDaemon, Gate::PodProbeMarkerGate]
        .into_iter()
        .all(|gate| gates.enabled(gate))
}

/// Takes the probes of a pod that asks for it out of its containers, and remembers them.
pub fn step(pod: &mut Value, _: &PodContext<'_>) -> Result<(), String> {
    if !asks_for_it(pod) {
        return Ok(());
    }
    let mut taken = Vec::new();
    for container in json::items_mut(pod, &["spec", "containers"]) {
        if !json::at(container, &["livenessProbe"]).is_some_and(can_be_taken) {
            continue;
        }
        if let Some(probe) = json::take(container, &["livenessProbe"]) {
            taken.push((json::text(container, &["name"]).unwrap_or_default().to_owned(), probe));
        }
    }
    if taken.is_empty() {
        return Ok(());
    }
    // Members in the order of the original: others read this text too.
    let entry =
        |(name, probe): (String, Value)| format!(r#"{{"name":{},"livenessProbe":{probe}}}"#, json!(name));
    let entries: Vec<String> = taken.into_iter().map(entry).collect();
    let context = format!("[{}]", entries.join(","));
    json::set(pod, &["metadata", "annotations", CONTAINER_PROBE_CONTEXT], context);
    Ok(())
}

fn asks_for_it(pod: &Value) -> bool {
    let owners = json::at(pod, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    let controller = owners
        .into_iter()
        .flatten()
        .find(|owner| json::at(owner, &["controller"]) == Some(&Value::Bool(true)));
    let group = controller
        .and_then(|owner| json::text(owner, &["apiVersion"]))
        .and_then(|version| version.split_once('/'))
        .map(|(group, _)| group);
    group == Some(APPS_GROUP)
        && json::text(pod, &["metadata", "annotations", USING_ENHANCED_LIVENESS]) == Some("true")
}

/// The daemon asks in three ways, and only the pod itself: what else the kubelet can do stays with the kubelet.
fn can_be_taken(probe: &Value) -> bool {
    let has_host = |way: &str| json::text(probe, &[way, "host"]).is_some_and(|host| !host.is_empty());
    ["exec", "httpGet", "tcpSocket"].iter().any(|way| json::at(probe, &[way]).is_some())
        && !has_host("httpGet")
        && !has_host("tcpSocket")
}
