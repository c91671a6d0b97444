//! Which budgets keep a pod from being restarted.
//!
//! What a budget says of itself may be a moment old, and restarts that were just asked for are not in it. Pods are therefore
//! counted here again, and a budget holds when either count says so.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::{
    annotations::{RELATED_PUB, RELATED_PUB_OLD},
    json,
    podunavailablebudget::v1beta1::TargetReference,
    selector::{LabelSelector, Matcher},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    object::{ObjectKey, Resource},
    pod::{Condition, Pod},
    text::Text,
};

/// Budgets of Kubernetes, newest version first: servers before 1.21 have only the second one.
pub const POD_DISRUPTION_BUDGETS: [Resource; 2] = [
    Resource::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Resource::namespaced("policy", "v1beta1", "PodDisruptionBudget", "poddisruptionbudgets"),
];
/// Budgets of our own.
pub use crate::podunavailablebudget::POD_UNAVAILABLE_BUDGET;

/// A budget of a namespace.
#[derive(Clone, Debug)]
pub struct Budget {
    kind: &'static str,
    key: ObjectKey,
    covered: Covered,
    /// Pods that the budget leaves alone although it covers them.
    ignored: Option<Matcher>,
    /// How many pods must stay available; nothing while nobody has counted for what is asked now.
    wanted: Option<i64>,
    /// How many more may be down, by its own count.
    allowed: i64,
}

#[derive(Clone, Debug)]
enum Covered {
    Labels(Matcher),
    Workload(TargetReference),
    Nobody,
}

impl Budget {
    /// A PodDisruptionBudget.
    pub fn of_kubernetes(object: &Value) -> Self {
        Self::read(object, "PodDisruptionBudget", ["desiredHealthy", "disruptionsAllowed"])
    }

    /// A PodUnavailableBudget.
    pub fn of_ours(object: &Value) -> Self {
        Self::read(object, POD_UNAVAILABLE_BUDGET.kind, ["desiredAvailable", "unavailableAllowed"])
    }

    fn read(object: &Value, kind: &'static str, [wanted, allowed]: [&str; 2]) -> Self {
        let text = |path: &[&str]| json::text(object, path).unwrap_or_default();
        let number = |path: &[&str]| json::at(object, path).and_then(Value::as_i64);
        let is_counted = number(&["status", "observedGeneration"])
            >= Some(number(&["metadata", "generation"]).unwrap_or(0));
        let matcher = |path: &[&str]| part::<LabelSelector>(object, path)?.matcher().ok();
        let covered = match (matcher(&["spec", "selector"]), part(object, &["spec", "targetRef"])) {
            (Some(labels), _) => Covered::Labels(labels),
            (None, Some(workload)) => Covered::Workload(workload),
            (None, None) => Covered::Nobody,
        };
        Self {
            kind,
            key: ObjectKey::new(text(&["metadata", "namespace"]), text(&["metadata", "name"])),
            covered,
            ignored: matcher(&["spec", "ignoredPodSelector"]),
            // A number that is 0 may be left out.
            wanted: is_counted.then(|| number(&["status", wanted]).unwrap_or(0)),
            allowed: number(&["status", allowed]).unwrap_or(0),
        }
    }

    fn covers(&self, pod: &Pod) -> bool {
        let metadata = &pod.metadata;
        let accepts = |matcher: &Matcher| matcher.accepts(|key| metadata.labels.text(key));
        if metadata.namespace != self.key.namespace || self.ignored.as_ref().is_some_and(accepts) {
            return false;
        }
        let is_noted = || {
            [RELATED_PUB, RELATED_PUB_OLD]
                .into_iter()
                .any(|key| metadata.annotations.text(key) == Some(self.key.name.as_str()))
        };
        match &self.covered {
            Covered::Labels(matcher) => accepts(matcher),
            // Pods of a Deployment belong to a ReplicaSet; admission has noted whose budget they are under.
            Covered::Workload(workload) => {
                metadata.controller().is_some_and(|owner| {
                    workload.kind.as_deref() == Some(owner.kind.as_str())
                        && workload.name.as_deref() == Some(owner.name.as_str())
                        && group(workload) == owner.group()
                }) || is_noted()
            }
            Covered::Nobody => false,
        }
    }
}

fn group(workload: &TargetReference) -> &str {
    workload.api_version.as_deref().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group)
}

fn part<T: DeserializeOwned>(object: &Value, path: &[&str]) -> Option<T> {
    json::at(object, path).filter(|part| !part.is_null()).and_then(|part| T::deserialize(part).ok())
}

/// A budget that covers the pod and allows no further pod to be down, by kind and name. `restarting` are the names of the pods
/// of the namespace that lose a container now, or will in a moment.
pub fn exhausted(
    pod: &Pod,
    budgets: &[Budget],
    neighbours: &[Arc<Pod>],
    restarting: &BTreeSet<Text>,
) -> Option<String> {
    let is_up = |pod: &&Arc<Pod>| {
        pod.is_active()
            && pod.condition("Ready").is_some_and(Condition::is_true)
            && !restarting.contains(&pod.metadata.name)
    };
    let holds = |budget: &&Budget| {
        let Some(wanted) = budget.wanted else { return true };
        let up = neighbours.iter().filter(|pod| budget.covers(pod)).filter(is_up).count();
        budget.allowed <= 0 || i64::try_from(up).unwrap_or(i64::MAX) <= wanted
    };
    let held = budgets.iter().filter(|budget| budget.covers(pod)).find(holds)?;
    Some(format!("{} {}", held.kind, held.key))
}
