//! Which budget protects a pod. The name stands in annotations of the pod: admission notes it when the pod is made, the
//! controller where it is missing or out of date.

use std::sync::Arc;

use kruise_api::{
    annotations::{RELATED_PUB, RELATED_PUB_OLD},
    gates::{Gate, Gates},
    json,
    podunavailablebudget::v1beta1::PodUnavailableBudget,
};
use serde_json::Value;

use super::{Budget, Covers};
use crate::{
    admission::pod::PodContext,
    pod::{Owner, Pairs, Pod},
    workload,
};

/// The name of the budget that protects a pod.
pub fn related(annotations: &Pairs) -> Option<&str> {
    annotations
        .text(RELATED_PUB)
        .or_else(|| annotations.text(RELATED_PUB_OLD))
        .filter(|name| !name.is_empty())
}

/// Whether a budget is about a pod with these labels and this chain of controllers, its own first.
pub fn matches<'l>(budget: &Budget, owners: &[Owner], label: impl Fn(&str) -> Option<&'l str>) -> bool {
    match &budget.covers {
        Covers::Workload(target) => owners.iter().any(|owner| target.is(owner)),
        Covers::Labels(labels) => labels.accepts(label),
        Covers::Nothing => false,
    }
}

/// Whether a budget may be about a pod, by the pod alone: workloads name what they make after themselves. A few more than those
/// that are may pass. Every pod of a cluster comes by here, for each budget of its namespace.
pub fn may_cover(budget: &PodUnavailableBudget, pod: &Pod) -> bool {
    let spec = &budget.spec;
    if let Some(target) = &spec.target_ref {
        let (group, _) =
            target.api_version.as_deref().and_then(|one| one.split_once('/')).unwrap_or_default();
        let is_known = workload::known(group, target.kind.as_deref().unwrap_or_default()).is_some();
        let name = target.name.as_deref().unwrap_or_default();
        return !is_known || pod.metadata.controller().is_some_and(|owner| owner.name.starts_with(name));
    }
    let Some(selector) = spec.selector.as_ref().filter(|selector| !selector.is_empty()) else { return false };
    let label = |key: &str| pod.metadata.labels.text(key);
    selector.match_labels.iter().all(|(key, value)| label(key) == Some(value.as_str()))
        && (selector.match_expressions.is_empty()
            || selector.matcher().is_ok_and(|labels| labels.accepts(label)))
}

/// The budget of a new pod: one that names its workload comes before one that chooses by labels, then the first by name.
pub fn chosen<'b, 'l>(
    budgets: &'b [Budget],
    owners: &[Owner],
    label: impl Fn(&str) -> Option<&'l str> + Copy,
) -> Option<&'b Budget> {
    let fitting = budgets.iter().filter(|budget| !budget.is_deleting() && matches(budget, owners, label));
    fitting.min_by_key(|budget| (!matches!(budget.covers, Covers::Workload(_)), budget.key.name.clone()))
}

/// Whether a pod that a budget counts is to be noted as protected by it. A pod is never taken away from another budget that
/// is about it.
pub fn relate(budget: &Budget, pod: &Pod, owners: &[Owner], others: &[Budget]) -> bool {
    let label = |key: &str| pod.metadata.labels.text(key);
    let is_about =
        |other: &Budget| !other.is_deleting() && (matches(other, owners, label) || is_hidden(other));
    match related(&pod.metadata.annotations) {
        Some(name) if budget.key.name == *name => false,
        Some(name) if others.iter().any(|other| other.key.name == *name && is_about(other)) => false,
        _ => match chosen(others, owners, label) {
            Some(first) => first.key == budget.key,
            None => true,
        },
    }
}

/// Whether the pods of a budget are found in a way that owner references do not show.
fn is_hidden(budget: &Budget) -> bool {
    matches!(&budget.covers, Covers::Workload(target) if workload::known(&target.group, &target.kind).is_none())
}

/// Whether budgets do anything: one of their gates is open.
pub fn is_on(gates: &Gates) -> bool {
    gates.enabled(Gate::PodUnavailableBudgetDeleteGate) || gates.enabled(Gate::PodUnavailableBudgetUpdateGate)
}

/// Notes the budget of a new pod in its annotations.
pub fn stamp(pod: &mut Value, cx: &PodContext<'_>) -> Result<(), String> {
    let cluster = cx.context.cluster;
    let stored = cluster.budgets(&cx.request.namespace);
    if stored.is_empty() {
        return Ok(());
    }
    let budgets: Vec<Budget> =
        stored.iter().map(|object: &Arc<PodUnavailableBudget>| Budget::of(object)).collect();
    let owners = cluster.owners();
    let found = {
        let label = |key: &str| json::text(pod, &["metadata", "labels", key]);
        chosen(&budgets, &owners, label).map(|budget| budget.key.name.clone())
    };
    if let Some(name) = found {
        for key in [RELATED_PUB, RELATED_PUB_OLD] {
            json::set(pod, &["metadata", "annotations", key], name.as_str());
        }
    }
    Ok(())
}
