//! Which nodes a pod fits: its node name, node selector, node affinity, tolerations and requests against the labels,
//! taints and size of a node.
//!
//! This is for kinds that run one pod on every node that fits. Other pods of the node do not count: whether there is space
//! left is for the scheduler to find out. Readiness does not count either: a node that is not ready has taints.

use std::collections::BTreeMap;

use kruise_api::{
    json,
    kubernetes::quantity::Quantity,
    placement::{NodeRequirement, NodeSelectorTerm, Toleration},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    node::{Node, Taint},
    pod::{Container, Pod},
};

/// The taint that a cordoned node has, whether the node controller has set it yet or not.
pub const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";
const ALWAYS: &str = "Always";

/// What a pod demands of its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    node_name: String,
    selector: Vec<(String, String)>,
    /// One of these must hold. Nothing demands nothing, an empty list allows no node.
    terms: Option<Vec<NodeSelectorTerm>>,
    tolerations: Vec<Toleration>,
    /// In billionths, by the name of the resource.
    requests: Requests,
}

type Requests = BTreeMap<String, i128>;

/// Why a node does not fit, in the order in which it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    /// The pod names another node.
    OtherNode,
    /// Node selector or required node affinity do not match.
    Labels,
    /// A taint is not tolerated, or the node is cordoned.
    Taint,
    /// The node is too small, even without any other pod.
    Size,
}

impl Needs {
    /// What a pod made from a template demands. Anything of the form of a pod will do.
    pub fn of_template(template: &Value) -> Self {
        let at = |path: &[&str]| json::at(template, &[&["spec"], path].concat());
        let selector = at(&["nodeSelector"]).and_then(Value::as_object).into_iter().flatten();
        let required = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = |required: &Value| list(required.get("nodeSelectorTerms"));
        Self {
            node_name: json::text(template, &["spec", "nodeName"]).unwrap_or_default().to_owned(),
            selector: selector.map(|(key, value)| (key.clone(), plain(value))).collect(),
            terms: at(&required).map(terms),
            tolerations: list(at(&["tolerations"])),
            requests: template_requests(template),
        }
    }

    /// What a pod that exists demands. Of what it requests only cpu and memory are known.
    pub fn of_pod(pod: &Pod) -> Self {
        let spec = &pod.spec;
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        let terms = (!spec.affinity.terms.is_empty()).then(|| list(parsed(&spec.affinity.terms).as_ref()));
        let requests = ["cpu", "memory"].into_iter().filter_map(|resource| {
            let of = |container: &Container| {
                let amount = container.resources.requests.get(resource)?;
                Some(Quantity::parse(amount).ok()?.nanos())
            };
            let containers = spec.containers.iter().map(|one| of(one).unwrap_or(0));
            let inits = spec.init_containers.iter();
            let inits = inits.map(|one| (one.restart_policy == ALWAYS, of(one).unwrap_or(0)));
            let most = most_at_once(containers, inits);
            (most > 0).then(|| (resource.to_owned(), most))
        });
        Self {
            node_name: pod.node().to_string(),
            selector: spec
                .node_selector
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
            terms,
            tolerations: list(parsed(&spec.tolerations).as_ref()),
            requests: requests.collect(),
        }
    }

    /// The same with more tolerations.
    #[must_use]
    pub fn tolerating(mut self, more: impl IntoIterator<Item = Toleration>) -> Self {
        self.tolerations.extend(more);
        self
    }

    /// The same with a further demand in each of the terms.
    #[must_use]
    pub fn requiring(mut self, more: &NodeSelectorTerm) -> Self {
        match &mut self.terms {
            Some(terms) => terms.iter_mut().for_each(|term| {
                term.match_expressions.extend(more.match_expressions.iter().cloned());
                term.match_fields.extend(more.match_fields.iter().cloned());
            }),
            none => *none = Some(vec![more.clone()]),
        }
        self
    }

    /// The same for any node: for pods that are known to be meant for the nodes that are asked about.
    #[must_use]
    pub fn anywhere(self) -> Self {
        Self { node_name: String::new(), ..self }
    }

    /// Why a pod cannot run on a node; nothing where it can.
    pub fn misfit(&self, node: &Node) -> Option<Misfit> {
        if !self.node_name.is_empty() && self.node_name != *node.metadata.name {
            Some(Misfit::OtherNode)
        } else if !self.demands(node) {
            Some(Misfit::Labels)
        } else if !self.is_let_in(node) {
            Some(Misfit::Taint)
        } else if !self.has_space(node) {
            Some(Misfit::Size)
        } else {
            None
        }
    }

    /// Whether a pod can run on a node.
    pub fn fits(&self, node: &Node) -> bool {
        self.misfit(node).is_none()
    }

    /// Whether node selector and required node affinity match.
    pub fn demands(&self, node: &Node) -> bool {
        let label = |key: &str| node.metadata.labels.text(key);
        self.selector.iter().all(|(key, value)| label(key) == Some(value))
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| is_met(term, node)))
    }

    /// Whether a new pod may start: every taint that keeps pods away is tolerated, and the node is not cordoned.
    pub fn is_let_in(&self, node: &Node) -> bool {
        let cordon = Taint { key: UNSCHEDULABLE.into(), value: "".into(), effect: NO_SCHEDULE.into() };
        self.tolerates_all(node, &[NO_SCHEDULE, NO_EXECUTE])
            && (!node.spec.unschedulable || self.tolerates(&cordon))
    }

    /// Whether every taint that keeps pods away is tolerated, cordoned or not.
    pub fn tolerates_taints(&self, node: &Node) -> bool {
        self.tolerates_all(node, &[NO_SCHEDULE, NO_EXECUTE])
    }

    /// Whether a pod that runs may stay: every taint that sends pods away is tolerated.
    pub fn may_stay(&self, node: &Node) -> bool {
        self.tolerates_all(node, &[NO_EXECUTE])
    }

    /// Whether the node could hold the pod if there was no other one.
    pub fn has_space(&self, node: &Node) -> bool {
        let allocatable = |resource: &str| node.status.allocatable.get(resource).unwrap_or(0);
        let one_pod = 1_000_000_000;
        allocatable("pods") >= one_pod
            && self.requests.iter().all(|(resource, asked)| *asked <= allocatable(resource))
    }

    fn tolerates_all(&self, node: &Node, effects: &[&str]) -> bool {
        let mut taints = node.spec.taints.iter().filter(|taint| effects.contains(&taint.effect.as_str()));
        taints.all(|taint| self.tolerates(taint))
    }

    fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|toleration| tolerates(toleration, taint))
    }
}

/// Whether a toleration covers a taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let Toleration { key, operator, value, effect, toleration_seconds: _ } = toleration;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (key, operator, effect) = (text(key), text(operator), text(effect));
    let exists = operator == "Exists";
    (effect.is_empty() || effect == *taint.effect)
        && (key == *taint.key || (key.is_empty() && exists))
        && (exists || (matches!(operator.as_str(), "" | "Equal") && text(value) == *taint.value))
}

/// Whether a node is what a term demands. A term that states nothing is met by no node.
pub fn is_met(term: &NodeSelectorTerm, node: &Node) -> bool {
    let NodeSelectorTerm { match_expressions, match_fields } = term;
    let label = |key: &str| node.metadata.labels.text(key);
    !(match_expressions.is_empty() && match_fields.is_empty())
        && match_expressions.iter().all(|one| holds(one, label(&one.key)))
        && match_fields
            .iter()
            .all(|one| one.key == "metadata.name" && holds(one, Some(node.metadata.name.as_str())))
}

/// One demand on a value that may be absent.
fn holds(demand: &NodeRequirement, value: Option<&str>) -> bool {
    let NodeRequirement { key: _, operator, values } = demand;
    let is_listed = || value.is_some_and(|value| values.iter().any(|one| one == value));
    let compared = || {
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
        number(value).zip(number(values.first().map(String::as_str)))
    };
    match operator.as_str() {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(value, bound)| value > bound),
        "Lt" => compared().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Those of a list that can be read.
fn list<T: DeserializeOwned>(value: Option<&Value>) -> Vec<T> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| serde_json::from_value(item.clone()).ok()).collect()
}

/// What a pod requests, as the scheduler counts it: pod-level amounts where there are any, else its containers together
/// or one of its init containers if that is more; and what the pod costs by itself.
fn template_requests(template: &Value) -> Requests {
    let containers = |name: &str| {
        let found = json::at(template, &["spec", name]).and_then(Value::as_array);
        let all = found.into_iter().flatten();
        all.map(|one| (json::text(one, &["restartPolicy"]) == Some(ALWAYS), requests_of(one)))
            .collect::<Vec<_>>()
    };
    let (regular, init) = (containers("containers"), containers("initContainers"));
    let pod_level = json::at(template, &["spec"]).map(requests_of).unwrap_or_default();
    let overhead = amounts(json::at(template, &["spec", "overhead"]));
    let all = regular.iter().chain(&init).map(|(_, requests)| requests);
    let all = all.chain([&pod_level, &overhead]).flat_map(BTreeMap::keys);
    let mut total = Requests::new();
    for resource in all {
        let of = |requests: &Requests| requests.get(resource).copied().unwrap_or(0);
        let most = pod_level.get(resource).copied().unwrap_or_else(|| {
            let inits = init.iter().map(|(stays, requests)| (*stays, of(requests)));
            most_at_once(regular.iter().map(|(_, requests)| of(requests)), inits)
        });
        total.insert(resource.clone(), most.saturating_add(of(&overhead)));
    }
    total.retain(|_, amount| *amount > 0);
    total
}

/// The most that the containers of a pod use at one time. Init containers run one after the other; those that stay run
/// beside all that come later.
fn most_at_once(regular: impl Iterator<Item = i128>, init: impl Iterator<Item = (bool, i128)>) -> i128 {
    let (mut beside, mut most) = (0_i128, 0_i128);
    for (stays, amount) in init {
        let now = beside.saturating_add(amount);
        most = most.max(now);
        if stays {
            beside = now;
        }
    }
    most.max(regular.fold(beside, i128::saturating_add))
}

/// What one container, or a pod as a whole, requests. Where only a limit is given, that is requested.
fn requests_of(container: &Value) -> Requests {
    let mut all = amounts(json::at(container, &["resources", "limits"]));
    all.extend(amounts(json::at(container, &["resources", "requests"])));
    all
}

fn amounts(written: Option<&Value>) -> Requests {
    let all = written.and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(name, amount)| Some((name.clone(), Quantity::from_json(amount).ok()?.nanos()))).collect()
}

#[cfg(test)]
mod tests;
