//! PodDisruptionBudgets: how many pods may be taken away now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::object::{controller_of, deleting, int_or_percent, number, or_gone, set, set_condition, text};
use super::pods::Pod;
use super::recorder::Involved;
use super::{Context, Key, Outcome};
use crate::registry::split_api_version;
use crate::selector::Labels;

const COMPONENT: &str = "controllermanager";
/// An evicted pod that is still there after this time counts again.
const EVICTION_SECONDS: i64 = 120;

/// The numbers of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    expected: i64,
    healthy: i64,
    desired: i64,
    allowed: i64,
}

/// The arithmetic. `pods` is how many are covered, `scale` what their controllers want together.
fn numbers(budget: &Value, pods: i64, scale: i64, healthy: i64) -> Numbers {
    let (expected, desired) = if let Some(value) = budget.pointer("/spec/maxUnavailable") {
        (scale, (scale - int_or_percent(Some(value), scale, true).unwrap_or(0)).max(0))
    } else {
        match budget.pointer("/spec/minAvailable") {
            Some(Value::String(_)) => {
                let value = budget.pointer("/spec/minAvailable");
                (scale, int_or_percent(value, scale, true).unwrap_or(0))
            }
            Some(value) => (pods, value.as_i64().unwrap_or(0)),
            None => (pods, 1),
        }
    };
    let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
    Numbers { expected, healthy, desired, allowed }
}

/// Counts for one budget.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let budgets = cx.client.resource("policy", "poddisruptionbudgets")?;
    let Some(record) = or_gone(cx.client.get(&budgets, &key.namespace, &key.name))? else { return Ok(None) };
    let budget = record.value();
    if deleting(&budget) {
        return Ok(None);
    }
    let covered = covered(cx, &budget);
    let involved = Involved::of(&budgets, &budget);
    if covered.is_empty() {
        let message = "No matching pods found";
        cx.record(COMPONENT, &involved, "Normal", "NoPods", message).await;
    }
    let now = cx.now();
    let (disrupted, again) = disrupted(&budget, &covered, now);
    let by_scale = budget.pointer("/spec/maxUnavailable").is_some()
        || budget.pointer("/spec/minAvailable").is_some_and(Value::is_string);
    let scale = if by_scale { scale(cx, &covered) } else { Ok(0) };
    let mut changed = budget.clone();
    match scale {
        Err(why) => {
            let message = format!("Failed to calculate the number of expected pods: {why}");
            cx.record(COMPONENT, &involved, "Warning", "CalculateExpectedPodCountFailed", &message).await;
            set(&mut changed, "status", "disruptionsAllowed", json!(0));
            conclude(&mut changed, false, "SyncFailed", &why, &cx.now_text());
        }
        Ok(scale) => {
            let healthy = covered.iter().filter(|pod| {
                pod.is_ready() && !pod.record.deleting && !disrupted.contains_key(&*pod.record.name)
            });
            let healthy = i64::try_from(healthy.count()).unwrap_or(0);
            let pods = i64::try_from(covered.len()).unwrap_or(0);
            let counted = numbers(&budget, pods, scale, healthy);
            write(&mut changed, counted, &disrupted);
            let reason = if counted.allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
            conclude(&mut changed, counted.allowed > 0, reason, "", &cx.now_text());
        }
    }
    if changed.get("status") != budget.get("status") {
        or_gone(cx.client.update(&budgets, Some("status"), changed).await)?;
    }
    Ok(again)
}

fn conclude(budget: &mut Value, holds: bool, reason: &str, message: &str, now: &str) {
    let generation = number(budget, "/metadata/generation").unwrap_or(0);
    set_condition(
        budget,
        json!({
            "type": "DisruptionAllowed", "status": if holds { "True" } else { "False" }, "reason": reason,
            "message": message, "observedGeneration": generation, "lastTransitionTime": now,
        }),
    );
    set(budget, "status", "observedGeneration", json!(generation));
}

fn write(budget: &mut Value, counted: Numbers, disrupted: &BTreeMap<String, Value>) {
    let Some(status) = super::object::child(budget, "status") else { return };
    for (key, number) in [
        ("expectedPods", counted.expected),
        ("currentHealthy", counted.healthy),
        ("desiredHealthy", counted.desired),
        ("disruptionsAllowed", counted.allowed),
    ] {
        status.insert(key.to_owned(), json!(number));
    }
    if disrupted.is_empty() {
        status.remove("disruptedPods");
    } else {
        let map: Map<String, Value> = disrupted.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        status.insert("disruptedPods".to_owned(), Value::Object(map));
    }
}

/// The pods that a budget covers. No selector covers nothing, an empty one the namespace.
fn covered(cx: &Context, budget: &Value) -> Vec<Arc<Pod>> {
    let Some(selector) = budget.pointer("/spec/selector").filter(|selector| !selector.is_null()) else {
        return Vec::new();
    };
    let Ok(selector) = Labels::from_object(Some(selector)) else { return Vec::new() };
    let mut pods = cx.pods().in_namespace(text(budget, "/metadata/namespace"));
    pods.retain(|pod| selector.matches_by(|key| pod.record.label(key)));
    pods
}

/// Evicted pods that are still expected to go, and when to look at them again.
fn disrupted(
    budget: &Value,
    covered: &[Arc<Pod>],
    now: Timestamp,
) -> (BTreeMap<String, Value>, Option<Duration>) {
    let mut kept = BTreeMap::new();
    let mut again: Option<i64> = None;
    let marks = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    for (name, at) in marks.into_iter().flatten() {
        let waits = covered.iter().any(|pod| *pod.record.name == **name && !pod.record.deleting);
        let since = at.as_str().and_then(|at| at.parse::<Timestamp>().ok());
        let left = since.map_or(0, |since| since.as_second() + EVICTION_SECONDS - now.as_second());
        if waits && left > 0 {
            kept.insert(name.clone(), at.clone());
            again = Some(again.map_or(left, |known| known.min(left)));
        }
    }
    (kept, again.and_then(|left| u64::try_from(left).ok()).map(Duration::from_secs))
}

/// How many pods the controllers of the covered pods want together.
fn scale(cx: &Context, covered: &[Arc<Pod>]) -> Result<i64, String> {
    let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
    let mut known: BTreeMap<Box<str>, ()> = BTreeMap::new();
    for pod in covered {
        let Some(owner) = &pod.controller else { continue };
        if known.insert(owner.uid.clone(), ()).is_some() {
            continue;
        }
        let namespace = &pod.record.namespace;
        let found = scale_of(cx, namespace, &owner.api_version, &owner.kind, &owner.name, &owner.uid);
        let Some((uid, replicas)) = found else {
            return Err(format!("found no controllers for pod {:?}", pod.record.name));
        };
        wanted.insert(uid, replicas);
    }
    Ok(wanted.values().sum())
}

/// The uid and size of a controller; of a ReplicaSet's deployment in its stead.
fn scale_of(
    cx: &Context,
    namespace: &str,
    api_version: &str,
    kind: &str,
    name: &str,
    uid: &str,
) -> Option<(String, i64)> {
    let (group, version) = split_api_version(api_version);
    let server = cx.client.server();
    let resource = server.registry().find_kind(group, version, kind)?;
    let record = server.store().get(&resource.table, namespace, name).filter(|record| *record.uid == *uid)?;
    let object = record.value();
    if resource.table.as_ref() == "apps/replicasets"
        && let Some(("Deployment", name, uid)) = controller_of(&object)
    {
        return scale_of(cx, namespace, "apps/v1", "Deployment", name, uid);
    }
    let paths = resource.scale.as_ref()?;
    let path = paths.spec_replicas.replace('.', "/");
    Some((uid.to_owned(), number(&object, &path).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_is_what_is_healthy_beyond_what_must_be() {
        for (spec, pods, scale, healthy, expected) in [
            (json!({"minAvailable": 2}), 3, 0, 3, (3, 2, 1)),
            (json!({"minAvailable": 2}), 3, 0, 1, (3, 2, 0)),
            (json!({"minAvailable": "50%"}), 3, 5, 5, (5, 3, 2)),
            (json!({"maxUnavailable": 1}), 3, 3, 3, (3, 2, 1)),
            (json!({"maxUnavailable": "30%"}), 10, 10, 9, (10, 7, 2)),
            (json!({"maxUnavailable": 1}), 0, 0, 0, (0, 0, 0)),
            (json!({}), 2, 0, 2, (2, 1, 1)),
        ] {
            let counted = numbers(&json!({"spec": spec}), pods, scale, healthy);
            assert_eq!((counted.expected, counted.desired, counted.allowed), expected, "{spec}");
        }
    }
}
