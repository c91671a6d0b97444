//! Which nodes a new pod may and should go to. Nothing here ever refuses a pod: what of an object or of a pod cannot be used
//! is left out.

use std::collections::BTreeSet;

use kruise_api::{
    annotations::INJECTED_PERSISTENT_POD_STATE,
    json,
    kubernetes::validation::names,
    persistentpodstate::v1beta1::{PersistentPodState, PreferredTopology},
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Kinds, Target};
use crate::{admission::pod::PodContext, pod::Owner};

const PREFERRED: &[&str] =
    &["spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"];
/// The weights that the API server takes.
const LIGHTEST: i32 = 1;
const HEAVIEST: i32 = 100;

/// The step of the admission of pods.
pub fn step(pod: &mut Value, cx: &PodContext<'_>) -> Result<(), String> {
    let Some(owner) = controller(pod) else { return Ok(()) };
    let target = Target::owner(&owner);
    let cluster = cx.context.cluster;
    let states = cluster.persistent_pod_states(&cx.request.namespace);
    let found = states
        .iter()
        .find(|state| state.metadata.deletion_timestamp.is_none() && Target::of(state) == target);
    let Some(state) = found else { return Ok(()) };
    let is_supported = Kinds::is_built_in(target.group, target.kind)
        || cluster.configuration().is_some_and(|data| Kinds::read(&data).supports(target.group, target.kind));
    if is_supported {
        inject(pod, state);
    }
    Ok(())
}

/// The controller of a pod.
fn controller(pod: &Value) -> Option<Owner> {
    let owners = json::at(pod, &["metadata", "ownerReferences"]).and_then(Value::as_array);
    let mut owners = owners.into_iter().flatten().filter_map(|owner| Owner::deserialize(owner).ok());
    owners.find(|owner| owner.controller)
}

/// Sends a new pod to where the pod of its name was. A second time changes nothing more.
pub fn inject(pod: &mut Value, state: &PersistentPodState) {
    let name = json::text(pod, &["metadata", "name"]).unwrap_or_default();
    let Some(record) = state.status.as_ref().and_then(|status| status.pod_states.get(name)) else { return };
    let labels = &record.node_topology_labels;
    let known = |key: &str| labels.get(key).map(String::as_str).filter(|value| is_label(key, value));
    let mut is_injected = false;
    for key in state.spec.required_persistent_topology.iter().flat_map(|topology| &topology.keys) {
        let Some(value) = known(key) else { continue };
        if let Some(selector) = json::object_or_insert(pod, &["spec", "nodeSelector"]) {
            selector.insert(key.clone(), value.into());
            is_injected = true;
        }
    }
    let terms = state.spec.preferred_persistent_topology.iter().filter_map(|wish| term(wish, known));
    for term in terms {
        json::default_at(pod, PREFERRED, json!([]));
        let Some(list) = json::at_mut(pod, PREFERRED).and_then(Value::as_array_mut) else { continue };
        if !list.contains(&term) {
            list.push(term);
        }
        is_injected = true;
    }
    if is_injected && let Some(name) = &state.metadata.name {
        json::set(pod, &["metadata", "annotations", INJECTED_PERSISTENT_POD_STATE], name.as_str());
    }
}

/// A preferred term; nothing where no value is known, or where the weight says that the wish does not count.
fn term<'v>(wish: &PreferredTopology, known: impl Fn(&str) -> Option<&'v str>) -> Option<Value> {
    let mut taken = BTreeSet::new();
    let keys = wish.preference.keys.iter().filter(|key| taken.insert(key.as_str()));
    let expressions: Vec<Value> =
        keys.filter_map(|key| Some(json!({"key": key, "operator": "In", "values": [known(key)?]}))).collect();
    if expressions.is_empty() || wish.weight < LIGHTEST {
        return None;
    }
    // The API server refuses a pod with another weight.
    let weight = wish.weight.min(HEAVIEST);
    Some(json!({"weight": weight, "preference": {"matchExpressions": expressions}}))
}

/// Whether the API server takes this as a label: records may have been edited.
fn is_label(key: &str, value: &str) -> bool {
    names::qualified_name(key).is_empty() && names::label_value(value).is_empty()
}
