//! Where the pods of a DaemonSet may run: node selector, node affinity, and taints.

use serde_json::{Value, json};

use super::super::node::tolerates;
use super::super::object::{items, text};
use super::pods::tolerations;

/// What a template asks of a node.
pub(super) struct Needs<'t> {
    node_name: &'t str,
    selector: Vec<(&'t str, &'t str)>,
    /// One of these must hold; `None` asks for nothing.
    terms: Option<&'t [Value]>,
    tolerations: Vec<Value>,
}

/// Whether a pod starts on a node, and whether one that is there may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) starts: bool,
    pub(super) stays: bool,
}

/// Neither.
pub(super) const NOWHERE: Fit = Fit { starts: false, stays: false };

/// What [`Needs::fit`] looks at: clusters have many nodes, and each is large.
pub(super) fn part_of(node: &Value) -> Value {
    let part = |path: &str| node.pointer(path).cloned().unwrap_or_default();
    json!({
        "metadata": {"name": part("/metadata/name"), "labels": part("/metadata/labels")},
        "spec": {"taints": part("/spec/taints")},
    })
}

impl<'t> Needs<'t> {
    /// Reads the spec of a template.
    pub(super) fn of(spec: &'t Value) -> Self {
        let selector = spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten();
        let required = spec
            .pointer("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution")
            .filter(|required| !required.is_null());
        Self {
            node_name: text(spec, "/nodeName"),
            selector: selector
                .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
                .collect(),
            terms: required.map(|required| items(required, "/nodeSelectorTerms")),
            tolerations: tolerations(spec),
        }
    }

    /// Looks at one node.
    pub(super) fn fit(&self, node: &Value) -> Fit {
        if !self.likes(node) {
            return NOWHERE;
        }
        let endured = |effects: &[&str]| {
            let mut taints = items(node, "/spec/taints").iter();
            taints.all(|taint| {
                !effects.contains(&text(taint, "/effect"))
                    || self.tolerations.iter().any(|toleration| tolerates(toleration, taint))
            })
        };
        Fit { starts: endured(&["NoSchedule", "NoExecute"]), stays: endured(&["NoExecute"]) }
    }

    fn likes(&self, node: &Value) -> bool {
        let name = text(node, "/metadata/name");
        let labels = node.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        (self.node_name.is_empty() || self.node_name == name)
            && self.selector.iter().all(|(key, value)| label(key) == Some(*value))
            && self.terms.is_none_or(|terms| {
                terms.iter().any(|term| {
                    let (labels, fields) = (items(term, "/matchExpressions"), items(term, "/matchFields"));
                    // A term that asks for nothing selects nothing.
                    !(labels.is_empty() && fields.is_empty())
                        && labels.iter().all(|one| holds(one, label(text(one, "/key"))))
                        && fields
                            .iter()
                            .all(|one| text(one, "/key") == "metadata.name" && holds(one, Some(name)))
                })
            })
    }
}

/// One requirement on a value that may be absent.
fn holds(requirement: &Value, value: Option<&str>) -> bool {
    let values = items(requirement, "/values");
    let listed = || value.is_some_and(|value| values.iter().any(|one| one.as_str() == Some(value)));
    let compared = || {
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
        number(value).zip(number(values.first().and_then(Value::as_str)))
    };
    match text(requirement, "/operator") {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(value, bound)| value > bound),
        "Lt" => compared().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spec: Value, node: Value, expected: (bool, bool)) {
        let fit = Needs::of(&spec).fit(&part_of(&node));
        assert_eq!((fit.starts, fit.stays), expected, "{spec} on {node}");
    }

    fn required(terms: Value) -> Value {
        let required = json!({"nodeSelectorTerms": terms});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    }

    fn node(labels: Value, taints: Value) -> Value {
        json!({"metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints}})
    }

    #[test]
    fn labels_and_names_choose_nodes() {
        let disk = || node(json!({"disk": "ssd", "cpus": "8"}), json!([]));
        check(json!({}), disk(), (true, true));
        check(json!({"nodeSelector": {"disk": "ssd"}}), disk(), (true, true));
        check(json!({"nodeSelector": {"disk": "hdd"}}), disk(), (false, false));
        check(json!({"nodeName": "n2"}), disk(), (false, false));
        let expression = |key: &str, operator: &str, values: Value| {
            required(json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]))
        };
        for (key, operator, values, fits) in [
            ("disk", "In", json!(["ssd", "nvme"]), true),
            ("disk", "NotIn", json!(["ssd"]), false),
            ("gone", "NotIn", json!(["ssd"]), true),
            ("disk", "Exists", json!([]), true),
            ("disk", "DoesNotExist", json!([]), false),
            ("cpus", "Gt", json!(["4"]), true),
            ("cpus", "Lt", json!(["4"]), false),
            ("disk", "Gt", json!(["4"]), false),
        ] {
            check(expression(key, operator, values), disk(), (fits, fits));
        }
        let by_name = |name: &str| {
            let field = json!({"key": "metadata.name", "operator": "In", "values": [name]});
            required(json!([{"matchFields": [field]}]))
        };
        check(by_name("n1"), disk(), (true, true));
        check(by_name("n2"), disk(), (false, false));
        check(required(json!([{}])), disk(), (false, false));
        check(required(json!([])), disk(), (false, false));
    }

    #[test]
    fn taints_keep_new_pods_away_and_send_others_off() {
        let tainted = |key: &str, effect: &str| node(json!({}), json!([{"key": key, "effect": effect}]));
        check(json!({}), tainted("mine", "NoSchedule"), (false, true));
        check(json!({}), tainted("mine", "NoExecute"), (false, false));
        check(json!({}), tainted("mine", "PreferNoSchedule"), (true, true));
        let tolerant = json!({"tolerations": [{"key": "mine", "operator": "Exists"}]});
        check(tolerant, tainted("mine", "NoExecute"), (true, true));
        check(json!({}), tainted("node.kubernetes.io/unschedulable", "NoSchedule"), (true, true));
        check(json!({}), tainted("node.kubernetes.io/unreachable", "NoExecute"), (true, true));
        check(json!({}), tainted("node.kubernetes.io/network-unavailable", "NoSchedule"), (false, true));
        let on_host = json!({"hostNetwork": true});
        check(on_host, tainted("node.kubernetes.io/network-unavailable", "NoSchedule"), (true, true));
    }
}
