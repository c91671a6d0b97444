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
    let about: Vec<&Arc<Set>> = sets.about(namespace, labels(pod));
    if about.is_empty() {
        return Ok(());
    }
    let namespace_labels =
        sets.choose_among(namespace).then(|| context.cluster.namespace(namespace)).flatten();
    let seen = Seen {
        sets: &about,
        namespace,
        namespace_labels: namespace_labels.as_ref(),
        sorts_by_name: context.gates.enabled(Gate::EnableSortSidecarContainerByName),
        now: context.now,
        seed: context.seed,
    };
    add(pod, &seen).map(drop).map_err(|error| error.to_string())
}

/// Whether a set may be about a new pod, depending on labels of a namespace that is not known.
pub(super) fn needs_namespace(request: &Request, context: &Context<'_>) -> bool {
    let Request { namespace, object, .. } = request;
    let sets = context.cluster.sidecar_sets();
    if !sets.choose_among(namespace) {
        return false;
    }
    let label = |key: &str| json::text(object, &["metadata", "labels", key]);
    let about = sets.about(namespace, labels(object));
    let mut matching = about.iter().map(|set| set.matching());
    matching.any(|matching| matching.chooses_namespaces() && matching.selects(label))
        && context.cluster.namespace(namespace).is_none()
}

fn labels(pod: &Value) -> impl Iterator<Item = (&str, &str)> + Clone {
    let labels = json::at(pod, &["metadata", "labels"]).and_then(Value::as_object);
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
