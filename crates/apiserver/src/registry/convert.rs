//! Versions of built-in kinds that differ in more than their name: events and autoscalers.

use serde_json::{Map, Value, json};

use crate::status::Status;

/// The fields of an event that the two groups name differently: core, then `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Whether versions of the kind differ in more than their name.
pub(super) fn differs(kind: &str) -> bool {
    matches!(kind, "Event" | "HorizontalPodAutoscaler")
}

/// The object in another version.
pub(super) fn convert(mut object: Value, to: &str) -> Result<Value, Status> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let from = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(map) = object.as_object_mut() else { return Ok(object) };
    if from != to {
        match (kind.as_str(), to) {
            ("Event", "v1") => rename(map, |core, new| (new, core)),
            ("Event", _) => rename(map, |core, new| (core, new)),
            ("HorizontalPodAutoscaler", "autoscaling/v2") => autoscaler_to_v2(map),
            ("HorizontalPodAutoscaler", "autoscaling/v1") => autoscaler_to_v1(map)?,
            _ => {}
        }
    }
    map.insert("apiVersion".to_owned(), json!(to));
    Ok(object)
}

fn rename(
    event: &mut Map<String, Value>,
    direction: fn(&'static str, &'static str) -> (&'static str, &'static str),
) {
    for (core, new) in EVENT_FIELDS {
        let (from, to) = direction(core, new);
        if let Some(value) = event.remove(from) {
            event.insert(to.to_owned(), value);
        }
    }
}

/// Version 1 knows one metric: the share of the requested CPU.
fn autoscaler_to_v2(object: &mut Map<String, Value>) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && let Some(percent) = spec.remove("targetCPUUtilizationPercentage")
    {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        spec.insert(
            "metrics".to_owned(),
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
        );
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        let current = status.remove("currentCPUUtilizationPercentage").map(|percent| {
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}])
        });
        status.insert("currentMetrics".to_owned(), current.unwrap_or_default());
    }
}

fn autoscaler_to_v1(object: &mut Map<String, Value>) -> Result<(), Status> {
    let beyond =
        || Status::not_implemented("autoscaling/v1 of an autoscaler that uses more than CPU utilization");
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        if spec.contains_key("behavior") {
            return Err(beyond());
        }
        let metrics = spec.remove("metrics").unwrap_or_default();
        match metrics.as_array().map(Vec::as_slice).unwrap_or_default() {
            [] => {}
            [metric] if metric.pointer("/resource/name") == Some(&json!("cpu")) => {
                let percent = metric.pointer("/resource/target/averageUtilization").ok_or_else(beyond)?;
                spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
            }
            _ => return Err(beyond()),
        }
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("conditions");
        status.entry("currentReplicas").or_insert(json!(0));
        let metrics = status.remove("currentMetrics").unwrap_or_default();
        if let Some(percent) = metrics.pointer("/0/resource/current/averageUtilization") {
            status.insert("currentCPUUtilizationPercentage".to_owned(), percent.clone());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_same_in_both_groups() {
        let core = json!({
            "kind": "Event", "apiVersion": "v1", "message": "m", "involvedObject": {"name": "p"},
            "reportingComponent": "c", "count": 3, "reason": "R",
        });
        let new = convert(core.clone(), "events.k8s.io/v1").unwrap();
        assert_eq!(new["note"], "m");
        assert_eq!(new["regarding"]["name"], "p");
        assert_eq!(new["deprecatedCount"], 3);
        assert_eq!(convert(new, "v1").unwrap(), core);
    }

    #[test]
    fn a_cpu_target_survives_both_versions_and_more_is_refused() {
        let v1 = json!({
            "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v1",
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
        });
        let v2 = convert(v1.clone(), "autoscaling/v2").unwrap();
        assert_eq!(v2["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
        assert_eq!(convert(v2.clone(), "autoscaling/v1").unwrap(), v1);
        let mut more = v2;
        more["spec"]["behavior"] = json!({});
        assert_eq!(convert(more, "autoscaling/v1").unwrap_err().code, 501);
    }
}
