//! What a pod asks of a node.

use std::collections::BTreeMap;

use kruise_api::kubernetes::quantity::Quantity;
use kruise_apiserver::selector::Labels;
use serde_json::{Value, json};

use crate::json::{at, list, text};
use crate::kubelet::PodSpec;

/// Pods that a rule counts: a selector within namespaces, per value of a node label.
#[derive(Clone, Debug)]
pub(super) struct Term {
    /// Tells equal terms apart from others.
    pub(super) key: String,
    pub(super) namespaces: Vec<String>,
    pub(super) selector: Labels,
    pub(super) topology: String,
}

impl Term {
    fn new(namespaces: Vec<String>, selector: Option<&Value>, topology: &str) -> Option<Self> {
        let labels = Labels::from_object(selector).ok()?;
        let text = selector.map(Value::to_string).unwrap_or_default();
        let key = format!("{}|{text}|{topology}", namespaces.join(","));
        Some(Self { key, namespaces, selector: labels, topology: topology.to_owned() })
    }

    pub(super) fn counts(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        self.namespaces.iter().any(|own| own == namespace) && self.selector.matches(labels)
    }
}

/// An even spread over the values of a node label.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    pub(super) term: Term,
    pub(super) max_skew: i64,
    /// `DoNotSchedule`, or else only a wish.
    pub(super) required: bool,
    pub(super) min_domains: i64,
}

/// A toleration of taints.
#[derive(Clone, Debug)]
struct Toleration {
    key: String,
    exists: bool,
    value: String,
    effect: String,
}

/// One requirement on a node's labels (or on its name).
#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    operator: String,
    values: Vec<String>,
    on_name: bool,
}

/// Requirements that must all hold.
type All = Vec<Requirement>;

/// Everything a scheduler reads from a pod.
#[derive(Clone, Debug)]
pub(super) struct Wants {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) priority: i64,
    pub(super) created: String,
    pub(super) cpu: i128,
    pub(super) memory: i128,
    selector: BTreeMap<String, String>,
    /// One of these lists must hold; `None` asks for nothing.
    required: Option<Vec<All>>,
    preferred: Vec<(i64, All)>,
    tolerations: Vec<Toleration>,
    pub(super) spreads: Vec<Spread>,
    pub(super) with: Vec<Term>,
    pub(super) apart: Vec<Term>,
    /// Weight (negative to keep away) and which pods.
    pub(super) wishes: Vec<(i64, Term)>,
    pub(super) gated: bool,
    /// The claims of its volumes.
    pub(super) claims: Vec<String>,
    /// Amounts of everything but cpu and memory, by name.
    pub(super) others: BTreeMap<String, i128>,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taint {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) effect: String,
}

impl Wants {
    pub(super) fn read(pod: &Value) -> Self {
        let namespace = text(pod, "/metadata/namespace").to_owned();
        let labels = strings(at(pod, "/metadata/labels"));
        let affinity = "/spec/affinity/nodeAffinity";
        let scheduling = "requiredDuringSchedulingIgnoredDuringExecution";
        let wish = "preferredDuringSchedulingIgnoredDuringExecution";
        let required = at(pod, &format!("{affinity}/{scheduling}")).map(|node| {
            list(node, "/nodeSelectorTerms").iter().map(node_term).filter(|all| !all.is_empty()).collect()
        });
        let preferred = list(pod, &format!("{affinity}/{wish}"))
            .iter()
            .map(|term| {
                let weight = term.get("weight").and_then(Value::as_i64).unwrap_or(1);
                (weight, node_term(term.get("preference").unwrap_or(&Value::Null)))
            })
            .collect();
        let terms = |part: &str| -> Vec<Term> {
            list(pod, &format!("/spec/affinity/{part}/{scheduling}"))
                .iter()
                .filter_map(|term| pod_term(term, &namespace))
                .collect()
        };
        let mut wishes = Vec::new();
        for (part, sign) in [("podAffinity", 1), ("podAntiAffinity", -1)] {
            for term in list(pod, &format!("/spec/affinity/{part}/{wish}")) {
                let weight = term.get("weight").and_then(Value::as_i64).unwrap_or(1);
                let inner = term.get("podAffinityTerm").and_then(|term| pod_term(term, &namespace));
                wishes.extend(inner.map(|term| (sign * weight, term)));
            }
        }
        let (cpu, memory) = PodSpec::read(pod).requests();
        let overhead = json!({"requests": at(pod, "/spec/overhead").cloned().unwrap_or_default()});
        Self {
            name: text(pod, "/metadata/name").to_owned(),
            priority: at(pod, "/spec/priority").and_then(Value::as_i64).unwrap_or(0),
            created: text(pod, "/metadata/creationTimestamp").to_owned(),
            cpu: cpu + crate::kubelet::amount(&overhead, "cpu"),
            memory: memory + crate::kubelet::amount(&overhead, "memory"),
            selector: strings(at(pod, "/spec/nodeSelector")),
            required,
            preferred,
            tolerations: list(pod, "/spec/tolerations")
                .iter()
                .map(|t| Toleration {
                    key: text(t, "/key").to_owned(),
                    exists: text(t, "/operator") == "Exists",
                    value: text(t, "/value").to_owned(),
                    effect: text(t, "/effect").to_owned(),
                })
                .collect(),
            spreads: list(pod, "/spec/topologySpreadConstraints")
                .iter()
                .filter_map(|constraint| spread(constraint, &namespace, &labels))
                .collect(),
            with: terms("podAffinity"),
            apart: terms("podAntiAffinity"),
            wishes,
            gated: !list(pod, "/spec/schedulingGates").is_empty(),
            claims: list(pod, "/spec/volumes")
                .iter()
                .map(|volume| text(volume, "/persistentVolumeClaim/claimName"))
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            others: others(pod),
            namespace,
            labels,
        }
    }

    /// Whether the pod asks for certain nodes at all.
    pub(super) fn is_choosy(&self) -> bool {
        !self.selector.is_empty() || self.required.is_some()
    }

    /// Node selector and required node affinity.
    pub(super) fn likes(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.required.as_ref().is_none_or(|terms| terms.iter().any(|term| holds(term, name, labels)))
    }

    /// The weight of the preferred node affinity that holds.
    pub(super) fn preference(&self, name: &str, labels: &BTreeMap<String, String>) -> i64 {
        self.preferred.iter().filter(|(_, term)| holds(term, name, labels)).map(|(weight, _)| weight).sum()
    }

    pub(super) fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations.iter().any(|t| {
            (t.effect.is_empty() || t.effect == taint.effect)
                && (t.key == taint.key || (t.key.is_empty() && t.exists))
                && (t.exists || t.value == taint.value)
        })
    }
}

/// What else the pod asks for: its containers together, or one init container if that is more.
fn others(pod: &Value) -> BTreeMap<String, i128> {
    let mut together = amounts(at(pod, "/spec/overhead"));
    let mut alone: BTreeMap<String, i128> = BTreeMap::new();
    for container in list(pod, "/spec/containers") {
        add(&mut together, container);
    }
    for container in list(pod, "/spec/initContainers") {
        if text(container, "/restartPolicy") == "Always" {
            add(&mut together, container);
            continue;
        }
        for (name, amount) in amounts(at(container, "/resources/requests")) {
            let most = alone.entry(name).or_default();
            *most = amount.max(*most);
        }
    }
    for (name, amount) in alone {
        let sum = together.entry(name).or_default();
        *sum = amount.max(*sum);
    }
    together.retain(|_, amount| *amount > 0);
    together
}

fn add(sum: &mut BTreeMap<String, i128>, container: &Value) {
    for (name, amount) in amounts(at(container, "/resources/requests")) {
        *sum.entry(name).or_default() += amount;
    }
}

/// Whole amounts by name, but those that are counted on their own.
pub(super) fn amounts(resources: Option<&Value>) -> BTreeMap<String, i128> {
    let all = resources.and_then(Value::as_object).into_iter().flatten();
    all.filter(|(name, _)| !matches!(name.as_str(), "cpu" | "memory" | "pods"))
        .filter_map(|(name, amount)| Some((name.clone(), Quantity::from_json(amount).ok()?.value())))
        .collect()
}

pub(super) fn strings(map: Option<&Value>) -> BTreeMap<String, String> {
    let map = map.and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

fn node_term(term: &Value) -> All {
    let part = |pointer: &str, on_name: bool| -> Vec<Requirement> {
        list(term, pointer)
            .iter()
            .map(|expression| Requirement {
                key: text(expression, "/key").to_owned(),
                operator: text(expression, "/operator").to_owned(),
                values: list(expression, "/values")
                    .iter()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
                on_name,
            })
            .collect()
    };
    let mut all = part("/matchExpressions", false);
    all.extend(part("/matchFields", true));
    all
}

fn holds(all: &All, name: &str, labels: &BTreeMap<String, String>) -> bool {
    all.iter().all(|requirement| {
        let value =
            if requirement.on_name { Some(name) } else { labels.get(&requirement.key).map(String::as_str) };
        let listed = || requirement.values.iter().any(|one| Some(one.as_str()) == value);
        let compare = |greater: bool| {
            let left = value.and_then(|v| v.parse::<i64>().ok());
            let right = requirement.values.first().and_then(|v| v.parse::<i64>().ok());
            left.zip(right).is_some_and(|(l, r)| if greater { l > r } else { l < r })
        };
        match requirement.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => compare(true),
            "Lt" => compare(false),
            _ => false,
        }
    })
}

fn pod_term(term: &Value, namespace: &str) -> Option<Term> {
    let mut namespaces: Vec<String> =
        list(term, "/namespaces").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if namespaces.is_empty() {
        namespaces.push(namespace.to_owned());
    }
    Term::new(namespaces, term.get("labelSelector"), text(term, "/topologyKey"))
}

fn spread(constraint: &Value, namespace: &str, labels: &BTreeMap<String, String>) -> Option<Spread> {
    let mut selector = constraint.get("labelSelector").cloned();
    for key in list(constraint, "/matchLabelKeys").iter().filter_map(Value::as_str) {
        let (Some(value), Some(selector)) =
            (labels.get(key), selector.as_mut().and_then(Value::as_object_mut))
        else {
            continue;
        };
        if let Some(map) = selector.entry("matchLabels").or_insert_with(|| json!({})).as_object_mut() {
            map.insert(key.to_owned(), json!(value));
        }
    }
    let term = Term::new(vec![namespace.to_owned()], selector.as_ref(), text(constraint, "/topologyKey"))?;
    Some(Spread {
        term,
        max_skew: constraint.get("maxSkew").and_then(Value::as_i64).unwrap_or(1),
        required: text(constraint, "/whenUnsatisfiable") != "ScheduleAnyway",
        min_domains: constraint.get("minDomains").and_then(Value::as_i64).unwrap_or(1),
    })
}
