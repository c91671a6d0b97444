//! What the annotations of a workload ask for.

use kruise_api::{
    annotations::{
        AUTO_GENERATE_PERSISTENT_POD_STATE, PERSISTENT_POD_ANNOTATIONS, PREFERRED_PERSISTENT_TOPOLOGY,
        REQUIRED_PERSISTENT_TOPOLOGY,
    },
    persistentpodstate::v1beta1::{NodeTopology, PodAnnotation, PreferredTopology, Spec},
    target::TargetReference,
};

use crate::pod::Pairs;

/// How much the one wish of a generated object counts.
const WEIGHT: i32 = 100;

/// All annotations that matter.
pub(super) const ALL: [&str; 4] = [
    AUTO_GENERATE_PERSISTENT_POD_STATE,
    REQUIRED_PERSISTENT_TOPOLOGY,
    PREFERRED_PERSISTENT_TOPOLOGY,
    PERSISTENT_POD_ANNOTATIONS,
];

/// Whether an object is to be generated.
pub(super) fn is_enabled(annotations: &Pairs) -> bool {
    annotations.text(AUTO_GENERATE_PERSISTENT_POD_STATE) == Some("true")
}

/// The spec that annotations ask for; nothing where they name no topology.
pub(super) fn spec(annotations: &Pairs, target_ref: TargetReference) -> Option<Spec> {
    let required = keys(annotations, REQUIRED_PERSISTENT_TOPOLOGY);
    let preferred = keys(annotations, PREFERRED_PERSISTENT_TOPOLOGY);
    if required.is_empty() && preferred.is_empty() {
        return None;
    }
    let wish = |keys: Vec<String>| PreferredTopology { preference: NodeTopology { keys }, weight: WEIGHT };
    let noted = keys(annotations, PERSISTENT_POD_ANNOTATIONS);
    Some(Spec {
        target_ref,
        persistent_pod_annotations: noted.into_iter().map(|key| PodAnnotation { key }).collect(),
        required_persistent_topology: (!required.is_empty()).then_some(NodeTopology { keys: required }),
        preferred_persistent_topology: (!preferred.is_empty()).then(|| wish(preferred)).into_iter().collect(),
        persistent_pod_state_retention_policy: None,
    })
}

/// The items of a list that is separated by commas, without blanks around them.
fn keys(annotations: &Pairs, key: &str) -> Vec<String> {
    let items = annotations.text(key).unwrap_or_default().split(',').map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
