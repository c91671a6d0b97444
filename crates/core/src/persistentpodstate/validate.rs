//! What a PersistentPodState must look like.

use kruise_api::{json, kubernetes::validation::Violation, persistentpodstate::v1beta1::PersistentPodState};
use serde_json::Value;

use super::{Kinds, Target, kinds::group};
use crate::admission::{
    Answer,
    kinds::{Change, Context},
};

const TARGET: &[&str] = &["spec", "targetRef"];
const REQUIRED: &[&str] = &["spec", "requiredPersistentTopology"];
const PREFERRED: &[&str] = &["spec", "preferredPersistentTopology"];
const WEIGHTS: std::ops::RangeInclusive<i64> = 1..=100;

/// The kinds that are supported, as far as is known.
fn supported(context: &Context<'_>) -> Kinds {
    Kinds::read(&context.cluster.configuration().unwrap_or_default())
}

/// Refuses an object that needs the white list while that cannot be read.
pub fn unreadable_list(change: &Change<'_>, context: &Context<'_>) -> Option<Answer> {
    let problem = supported(context).problem().filter(|_| needs_list(change.new))?.to_owned();
    let message =
        format!(": Internal error: failed to get persistent pod state config white list, error: {problem}");
    Some(Answer::Denied { code: 422, message })
}

/// Appends what is wrong. Rules that the original does not have look only at what the request changes, so that what is
/// stored can still be worked with.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    target(change.new, &supported(context), found);
    topologies(change.new, found);
    if change.old.is_some() && change.touches(TARGET) {
        found.push(Violation::forbidden("spec.targetRef", "targetRef is immutable"));
    }
    if found.is_empty() {
        found.extend(conflict(change, context));
    }
    let keys = if change.is_written_as("v1alpha1") { "nodeTopologyKeys" } else { "keys" };
    additions(change.new, change.old, keys, found);
}

/// What of a stored object cannot be carried out, as if it were new: it may be older than the rules.
pub fn stored_problem(state: &PersistentPodState, kinds: &Kinds) -> Option<String> {
    let object = serde_json::to_value(state).unwrap_or_default();
    let mut found = Vec::new();
    target(&object, kinds, &mut found);
    topologies(&object, &mut found);
    additions(&object, None, "keys", &mut found);
    found.first().map(ToString::to_string)
}

fn target(object: &Value, kinds: &Kinds, found: &mut Vec<Violation>) {
    let target = json::at(object, TARGET).cloned().unwrap_or_default();
    let text = |field| json::text(&target, &[field]).unwrap_or_default();
    let mut refuse = |detail| found.push(Violation::invalid("spec.targetRef", target.clone(), detail));
    if ["apiVersion", "kind", "name"].into_iter().any(|field| text(field).is_empty()) {
        refuse("empty targetRef is not valid for PersistentPodState.");
    }
    if !kinds.supports(group(text("apiVersion")), text("kind")) {
        refuse("targetRef.Kind must be StatefulSet or in PPS_Watch_Custom_Workload_WhiteList");
    }
}

fn topologies(object: &Value, found: &mut Vec<Violation>) {
    if json::at(object, REQUIRED).is_none() && wishes(object).is_empty() {
        let spec = json::at(object, &["spec"]).cloned().unwrap_or_default();
        let detail = "TopologyConstraint and TopologyPreference cannot be empty at the same time";
        found.push(Violation::invalid("spec", spec, detail));
    }
}

fn wishes(object: &Value) -> &[Value] {
    json::at(object, PREFERRED).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Another object of the namespace that is about the same workload.
fn conflict(change: &Change<'_>, context: &Context<'_>) -> Option<Violation> {
    let state: PersistentPodState = serde_json::from_value(change.new.clone()).ok()?;
    let others = context.cluster.persistent_pod_states(&change.request.namespace);
    let name = json::text(change.new, &["metadata", "name"]).unwrap_or(&change.request.name);
    let mut others = others.iter().filter(|other| other.metadata.name.as_deref() != Some(name));
    let other = others.find(|other| Target::of(other) == Target::of(&state))?;
    let other = other.metadata.name.as_deref().unwrap_or_default();
    let detail = format!("targetRef is in conflict with other PersistentPodState {other}");
    let target = json::at(change.new, TARGET).cloned().unwrap_or_default();
    Some(Violation::invalid("spec.targetRef", target, detail))
}

/// The rules that the original does not have: a pod with another weight is refused by the API server, and a list without
/// keys does nothing.
fn additions(new: &Value, old: Option<&Value>, field: &str, found: &mut Vec<Violation>) {
    let keys = ["keys"];
    let list = |topology: Option<&Value>| topology.and_then(|topology| json::at(topology, &keys)).cloned();
    let is_hollow = |list: &Value| {
        list.as_array().is_some_and(|keys| keys.is_empty() || keys.iter().any(|key| key == ""))
    };
    let required = list(json::at(new, REQUIRED));
    let before = list(old.and_then(|old| json::at(old, REQUIRED)));
    if required.as_ref().is_some_and(is_hollow) && (old.is_none() || required != before) {
        found.push(Violation::required(format!("{}.{field}", REQUIRED.join(".")), ""));
    }
    let stored = old.map(wishes);
    for (index, wish) in wishes(new).iter().enumerate() {
        let path = format!("{}[{index}]", PREFERRED.join("."));
        let before = stored.and_then(|stored| stored.get(index));
        let weight = json::at(wish, &["weight"]);
        let is_new = before.is_none_or(|before| json::at(before, &["weight"]) != weight);
        if let Some(number) = weight.and_then(Value::as_i64).filter(|number| !WEIGHTS.contains(number))
            && is_new
        {
            found.push(Violation::invalid(format!("{path}.weight"), number, "must be in the range 1-100"));
        }
        let keys = list(json::at(wish, &["preference"]));
        let is_new = before.is_none_or(|before| list(json::at(before, &["preference"])) != keys);
        if keys.as_ref().is_some_and(is_hollow) && is_new {
            found.push(Violation::required(format!("{path}.preference.{field}"), ""));
        }
    }
}

/// Whether the white list is needed to answer a request about an object.
pub fn needs_list(object: &Value) -> bool {
    let text = |field| json::text(object, &[TARGET, &[field]].concat()).unwrap_or_default();
    !Kinds::is_built_in(group(text("apiVersion")), text("kind"))
}
