//! The containers of SidecarSets in new pods.

use std::sync::Arc;

use kruise_api::{gates::Gate, json};
use serde_json::Value;

use super::PodContext;
use crate::{
    admission::{Request, kinds::Context},
    sidecarset::{Seen, Set, inject as add},
};

/// Adds what all sets that are about the pod give it.
pub(super) fn inject(pod: &mut Value, cx: &PodContext<'_>) -> Result<(), String> {
    let PodContext { request, context } = cx;
    let sets = context.cluster.sidecar_sets();
    let namespace = request.namespace.as_str();
    let sets: Vec<&Arc<Set>> = sets.of_namespace(namespace).collect();
    if sets.is_empty() {
        return Ok(());
    }
    let asks_for_labels = sets.iter().any(|set| set.matching().chooses_namespaces());
    let labels = asks_for_labels.then(|| context.cluster.namespace(namespace)).flatten();
    let seen = Seen {
        sets: &sets,
        namespace,
        namespace_labels: labels.as_ref(),
        sorts_by_name: context.gates.enabled(Gate::EnableSortSidecarContainerByName),
        now: context.now,
        seed: context.seed,
    };
    add(pod, &seen).map(drop).map_err(|error| error.to_string())
}

/// Whether a set may be about a new pod, depending on labels of a namespace that is not known.
pub(super) fn needs_namespace(request: &Request, context: &Context<'_>) -> bool {
    let Request { namespace, object, .. } = request;
    let labels = json::at(object, &["metadata", "labels"]).and_then(Value::as_object);
    let label = |key: &str| labels.and_then(|labels| labels.get(key)?.as_str());
    let sets = context.cluster.sidecar_sets();
    let mut sets = sets.of_namespace(namespace).map(|set| set.matching());
    sets.any(|matching| matching.chooses_namespaces() && matching.selects(label))
        && context.cluster.namespace(namespace).is_none()
}
