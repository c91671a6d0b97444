//! On which nodes the pods of a set run, and how a pod is bound to its node.

use kruise_api::{json as paths, placement::Toleration};
use serde_json::{Value, json};

use crate::{
    node::Node,
    node_fit::{Misfit, Needs},
};

/// Who places pods that the scheduler does not: nobody, they have their node from the start.
const SCHEDULER_NAME: &str = "kubernetes.io/daemonset-controller";

const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";

/// What every pod of a DaemonSet tolerates: trouble of the node is no reason not to run an agent there.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
];
/// What pods in the network of the host tolerate besides.
const TOLERATED_BY_HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE);

/// What a node means for the pods of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// A pod is wanted there.
    pub should_run: bool,
    /// A pod that is there may stay.
    pub should_continue: bool,
    /// Why no pod is wanted.
    pub misfit: Option<Misfit>,
}

/// Which nodes fit a template.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    needs: Needs,
}

impl Placement {
    /// Of a pod template.
    pub fn of(template: &Value) -> Self {
        Self { needs: Needs::of_template(template).tolerating(automatic(template)) }
    }

    /// What a node means. How large it is and whether it is ready does not matter. What cannot be read of a node changes
    /// nothing there.
    pub fn fit(&self, node: &Node) -> Fit {
        if node.metadata.unreadable {
            return Fit { should_run: false, should_continue: true, misfit: None };
        }
        match self.needs.misfit(node) {
            misfit @ Some(Misfit::OtherNode | Misfit::Labels) => Fit { misfit, ..Fit::default() },
            misfit @ Some(Misfit::Taint) => {
                Fit { should_run: false, should_continue: self.needs.may_stay(node), misfit }
            }
            Some(Misfit::Size) | None => Fit { should_run: true, should_continue: true, misfit: None },
        }
    }
}

/// The tolerations that pods get besides their own.
fn automatic(template: &Value) -> impl Iterator<Item = Toleration> {
    let has_host_network = template.pointer("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
    let more = has_host_network.then_some(TOLERATED_BY_HOST_NETWORK);
    TOLERATED.into_iter().chain(more).map(|(key, effect)| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    })
}

/// The tolerations of a new pod: those of the template, and the automatic ones. One that says the same takes the place
/// of that of the template.
pub(super) fn tolerations(template: &Value) -> Value {
    let own = template.pointer("/spec/tolerations").and_then(Value::as_array);
    let mut all: Vec<Value> = own.cloned().unwrap_or_default();
    for toleration in automatic(template) {
        let text =
            |toleration: &Value, key: &str| toleration.get(key).and_then(Value::as_str).map(str::to_owned);
        let added = json!(toleration);
        let is_same = |other: &Value| {
            ["key", "effect", "operator", "value"]
                .iter()
                .all(|key| text(other, key).unwrap_or_default() == text(&added, key).unwrap_or_default())
        };
        match all.iter_mut().find(|other| is_same(other)) {
            Some(other) => *other = added,
            None => all.push(added),
        }
    }
    all.into()
}

/// The affinity that binds a new pod to its node: it takes the place of the required terms, the rest stays.
pub(super) fn affinity(template: &Value, node: &str) -> Value {
    let mut affinity = template.pointer("/spec/affinity").filter(|affinity| affinity.is_object());
    let mut bound = affinity.take().cloned().unwrap_or_else(|| json!({}));
    let name = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    paths::set(
        &mut bound,
        &["nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
        json!({"nodeSelectorTerms": [{"matchFields": [name]}]}),
    );
    bound
}

/// The members of the spec of a new pod that decide where it runs.
pub(super) fn members(template: &Value, node: &str, by_scheduler: bool) -> Vec<(&'static str, Value)> {
    let mut members = vec![("tolerations", tolerations(template))];
    if by_scheduler {
        members.push(("affinity", affinity(template, node)));
    } else {
        members.push(("nodeName", node.into()));
        members.push(("schedulerName", SCHEDULER_NAME.into()));
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(spec: Value) -> Value {
        json!({"spec": spec})
    }

    /// What is expected is written as `runs` / `stays` / `leaves`.
    #[track_caller]
    fn check(spec: Value, node: Value, expected: &str) {
        let node: Node = serde_json::from_value(node).unwrap();
        let fit = Placement::of(&template(spec.clone())).fit(&node);
        let found = match (fit.should_run, fit.should_continue) {
            (true, true) => "runs",
            (false, true) => "stays",
            (false, false) => "leaves",
            (true, false) => "impossible",
        };
        assert_eq!(found, expected, "{spec}");
    }

    fn node(labels: Value, taints: &[(&str, &str)]) -> Value {
        let taints: Vec<Value> =
            taints.iter().map(|(key, effect)| json!({"key": key, "effect": effect})).collect();
        json!({"metadata": {"name": "n1", "labels": labels}, "spec": {"taints": taints}})
    }

    /// DAEMONSET-2, DAEMONSET-3
    #[test]
    fn a_node_must_have_the_name_and_the_labels() {
        check(json!({}), node(json!({}), &[]), "runs");
        check(json!({"nodeName": "n2"}), node(json!({}), &[]), "leaves");
        check(json!({"nodeSelector": {"color": "blue"}}), node(json!({}), &[]), "leaves");
        check(json!({"nodeSelector": {"color": "blue"}}), node(json!({"color": "blue"}), &[]), "runs");
        let zone =
            |zone: &str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        let affinity = |terms: Value| {
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": terms}}}})
        };
        check(affinity(json!([zone("a"), zone("b")])), node(json!({"zone": "b"}), &[]), "runs");
        check(affinity(json!([zone("a"), zone("b")])), node(json!({"zone": "c"}), &[]), "leaves");
        check(affinity(json!([])), node(json!({"zone": "c"}), &[]), "leaves");
        check(affinity(json!([{}])), node(json!({"zone": "c"}), &[]), "leaves");
    }

    /// DAEMONSET-4, DAEMONSET-5
    #[test]
    fn taints_keep_new_pods_away_and_only_no_execute_sends_pods_away() {
        let tainted = |key: &str, effect: &str| node(json!({}), &[(key, effect)]);
        check(json!({}), tainted("k", "NoSchedule"), "stays");
        check(json!({}), tainted("k", "PreferNoSchedule"), "runs");
        check(json!({}), tainted("k", "NoExecute"), "leaves");
        let tolerates = json!({"tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}]});
        check(tolerates, tainted("k", "NoExecute"), "runs");
        check(json!({}), tainted("node.kubernetes.io/unschedulable", "NoSchedule"), "runs");
        check(json!({}), tainted("node.kubernetes.io/not-ready", "NoSchedule"), "stays");
        check(json!({}), tainted("node.kubernetes.io/unreachable", "NoExecute"), "runs");
        check(json!({}), tainted("node.kubernetes.io/network-unavailable", "NoSchedule"), "stays");
        check(
            json!({"hostNetwork": true}),
            tainted("node.kubernetes.io/network-unavailable", "NoSchedule"),
            "runs",
        );
        let cordoned = json!({"metadata": {"name": "n1"}, "spec": {"unschedulable": true}});
        check(json!({}), cordoned, "runs");
    }

    /// DAEMONSET-6
    #[test]
    fn automatic_tolerations_are_added_once() {
        let count = |spec: Value| tolerations(&template(spec)).as_array().unwrap().len();
        assert_eq!(count(json!({})), 6);
        assert_eq!(count(json!({"hostNetwork": true})), 7);
        let same =
            json!({"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"});
        assert_eq!(count(json!({"tolerations": [same]})), 6);
        let other = json!({"key": "node.kubernetes.io/disk-pressure", "operator": "Exists"});
        assert_eq!(count(json!({"tolerations": [other]})), 7);
    }

    /// DAEMONSET-3, DAEMONSET-8
    #[test]
    fn a_pod_is_bound_by_affinity_or_by_name() {
        let preferred = json!([{"weight": 3, "preference": {}}]);
        let own = template(json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}, {}]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }}}));
        let name = json!({"key": "metadata.name", "operator": "In", "values": ["n1"]});
        let expected = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [name]}]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }});
        assert_eq!(affinity(&own, "n1"), expected);
        let named: Vec<(&str, Value)> = members(&own, "n1", false).into_iter().skip(1).collect();
        assert_eq!(named, [("nodeName", json!("n1")), ("schedulerName", json!(SCHEDULER_NAME))]);
    }
}
