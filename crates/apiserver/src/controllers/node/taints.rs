//! Which taints a node has by its state, and what pods tolerate.

use serde_json::{Value, json};

use super::super::object::{condition, flag, items, number, text};

const PREFIX: &str = "node.kubernetes.io/";
/// A condition, its status, and the taint that follows.
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", "not-ready"),
    ("Ready", "Unknown", "unreachable"),
    ("MemoryPressure", "True", "memory-pressure"),
    ("DiskPressure", "True", "disk-pressure"),
    ("PIDPressure", "True", "pid-pressure"),
    ("NetworkUnavailable", "True", "network-unavailable"),
];
const SENDS_AWAY: [&str; 2] = ["not-ready", "unreachable"];

/// The taints a node shall have: those of others as they are, ours by the node's state.
pub(super) fn wanted(node: &Value, now: &str) -> Vec<Value> {
    let before = items(node, "/spec/taints");
    let mut ours: Vec<(&str, &str)> = Vec::new();
    if flag(node, "/spec/unschedulable") {
        ours.push(("unschedulable", "NoSchedule"));
    }
    for (kind, status, name) in BY_CONDITION {
        if condition(node, kind).is_some_and(|condition| text(condition, "/status") == status) {
            ours.push((name, "NoSchedule"));
            if SENDS_AWAY.contains(&name) {
                ours.push((name, "NoExecute"));
            }
        }
    }
    let is_ours = |taint: &Value| {
        let name = text(taint, "/key").strip_prefix(PREFIX).unwrap_or_default();
        let effect = text(taint, "/effect");
        (effect == "NoSchedule" && (name == "unschedulable" || BY_CONDITION.iter().any(|row| row.2 == name)))
            || (effect == "NoExecute" && SENDS_AWAY.contains(&name))
    };
    let holds = |taint: &Value| {
        let name = text(taint, "/key").strip_prefix(PREFIX).unwrap_or_default();
        ours.contains(&(name, text(taint, "/effect")))
    };
    // A node that never reported keeps what it registered with.
    let reports = condition(node, "Ready").is_some();
    let mut taints: Vec<Value> =
        before.iter().filter(|taint| !is_ours(taint) || holds(taint) || !reports).cloned().collect();
    for (name, effect) in ours {
        let key = format!("{PREFIX}{name}");
        if !taints.iter().any(|taint| text(taint, "/key") == key && text(taint, "/effect") == effect) {
            taints.push(json!({"key": key, "effect": effect, "timeAdded": now}));
        }
    }
    taints
}

/// How long a pod may stay on a node with these taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    ForEver,
    Seconds(i64),
}

/// The shortest time that the pod's tolerations leave it.
pub(super) fn stay(pod: &Value, taints: &[Value]) -> Stay {
    let tolerations = items(pod, "/spec/tolerations");
    let mut shortest = Stay::ForEver;
    for taint in taints.iter().filter(|taint| text(taint, "/effect") == "NoExecute") {
        let fitting: Vec<&Value> =
            tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
        if fitting.is_empty() {
            return Stay::Seconds(0);
        }
        for seconds in fitting.iter().filter_map(|toleration| number(toleration, "/tolerationSeconds")) {
            let seconds = seconds.max(0);
            shortest = match shortest {
                Stay::ForEver => Stay::Seconds(seconds),
                Stay::Seconds(known) => Stay::Seconds(known.min(seconds)),
            };
        }
    }
    shortest
}

/// Whether a toleration covers a taint.
pub(in super::super) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let is = |path: &str| text(toleration, path);
    let effect = is("/effect").is_empty() || is("/effect") == text(taint, "/effect");
    let key = is("/key").is_empty() || is("/key") == text(taint, "/key");
    let value = is("/operator") == "Exists" || is("/value") == text(taint, "/value");
    effect && key && value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_node_repels_and_a_ready_one_does_not() {
        let node = |ready: &str, taints: Value| json!({"spec": {"taints": taints}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let short = |taints: Vec<Value>| -> Vec<String> {
            taints.iter().map(|t| format!("{}:{}", text(t, "/key"), text(t, "/effect"))).collect()
        };
        let own = json!({"key": "mine", "effect": "NoSchedule"});
        let unknown = wanted(&node("Unknown", json!([own])), "now");
        assert_eq!(
            short(unknown.clone()),
            [
                "mine:NoSchedule",
                "node.kubernetes.io/unreachable:NoSchedule",
                "node.kubernetes.io/unreachable:NoExecute"
            ]
        );
        assert_eq!(short(wanted(&node("True", json!(unknown)), "now")), ["mine:NoSchedule"]);
        let cordoned = json!({"spec": {"unschedulable": true}});
        assert_eq!(short(wanted(&cordoned, "now")), ["node.kubernetes.io/unschedulable:NoSchedule"]);
    }

    #[test]
    fn a_pod_stays_as_long_as_it_tolerates() {
        let taints = [json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"})];
        let pod = |tolerations: Value| json!({"spec": {"tolerations": tolerations}});
        let fits =
            json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300});
        assert_eq!(stay(&pod(json!([])), &taints), Stay::Seconds(0));
        assert_eq!(stay(&pod(json!([fits])), &taints), Stay::Seconds(300));
        assert_eq!(stay(&pod(json!([{"operator": "Exists"}])), &taints), Stay::ForEver);
        assert_eq!(stay(&pod(json!([])), &[json!({"key": "a", "effect": "NoSchedule"})]), Stay::ForEver);
    }
}
