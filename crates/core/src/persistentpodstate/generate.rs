//! Objects that are made from annotations of workloads.

use kruise_api::{
    annotations::AUTO_GENERATE_PERSISTENT_POD_STATE, persistentpodstate::v1beta1::PersistentPodState,
    target::TargetReference,
};
use serde_json::{Value, json};

use super::{PERSISTENT_POD_STATE, Set, Target as Workload, annotations, reference};
use crate::{
    effect::{Effect, Event, Level, Patch, Target},
    merge_patch,
    object::ObjectRef,
    pod::{Metadata, Owner},
    waiting::Reason,
};

/// What stands in the way of an object that a workload wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// What people read.
    pub event: Event,
    /// What the event is about: it is repeated when this changes.
    pub mark: String,
    /// Why the wanted object is not there, as the list of reasons says it.
    pub wait: (Reason, String),
}

/// What to do about the object of a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Generated {
    /// At most one write.
    pub effect: Option<Effect>,
    /// What stands in the way.
    pub conflicts: Vec<Conflict>,
    /// Workloads that want an object and name no topology.
    pub incomplete: Vec<ObjectRef>,
}

/// Decides about the object of a name: `state` is the one that is there, `sets` are the workloads of that name. The
/// workload that controls the object comes first, then the order given counts.
pub fn generate(state: Option<&PersistentPodState>, sets: &[Set]) -> Generated {
    let mut found = Generated::default();
    if state.is_some_and(|state| state.metadata.deletion_timestamp.is_some()) {
        return found;
    }
    for set in sets.iter().filter(|set| !set.metadata.is_deleting()) {
        let is_own = state.is_some_and(|state| controls(set, state));
        if !annotations::is_enabled(&set.metadata.annotations) {
            if let Some(state) = state.filter(|_| is_own) {
                found.effect = Some(delete(state));
            }
            continue;
        }
        let Some(spec) = annotations::spec(&set.metadata.annotations, target(set)) else {
            found.incomplete.push(set.reference());
            continue;
        };
        let spec = serde_json::to_value(spec).unwrap_or_default();
        match state {
            Some(state) if is_own => found.effect = change(state, spec),
            // The garbage collector deletes it, and its end wakes the workload.
            Some(state) if is_left_behind(set, state) => {}
            Some(state) => found.conflicts.push(conflict(set, state)),
            // The other one finds the object of the first when that is there.
            None if found.effect.is_some() => {}
            None => found.effect = Some(create(set, spec)),
        }
    }
    if matches!(found.effect, Some(Effect::Delete { .. })) {
        found.conflicts.clear();
    }
    found
}

fn controls(set: &Set, state: &PersistentPodState) -> bool {
    controller(state).is_some_and(|owner| owner.uid == set.metadata.uid)
}

/// Whether an object belongs to a workload that was deleted, and had the name of this one.
fn is_left_behind(set: &Set, state: &PersistentPodState) -> bool {
    controller(state)
        .is_some_and(|owner| Workload::owner(&owner) == set.target() && owner.uid != set.metadata.uid)
}

fn controller(state: &PersistentPodState) -> Option<Owner> {
    let mut owners = state.metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some(Owner {
        api_version: owner.api_version.as_str().into(),
        kind: owner.kind.as_str().into(),
        name: owner.name.as_str().into(),
        uid: owner.uid.as_str().into(),
        controller: true,
    })
}

fn target(set: &Set) -> TargetReference {
    TargetReference {
        api_version: set.resource.api_version(),
        kind: set.resource.kind.to_owned(),
        name: set.metadata.name.to_string(),
    }
}

fn create(set: &Set, spec: Value) -> Effect {
    let Metadata { name, namespace, uid, .. } = &set.metadata;
    let owner = json!({
        "apiVersion": set.resource.api_version(),
        "kind": set.resource.kind,
        "name": name,
        "uid": uid,
        "controller": true,
    });
    let object = json!({
        "apiVersion": PERSISTENT_POD_STATE.api_version(),
        "kind": PERSISTENT_POD_STATE.kind,
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
        "spec": spec,
    });
    Effect::Create { resource: PERSISTENT_POD_STATE, namespace: namespace.clone(), object }
}

/// Brings the spec up to date. The reference to the workload stays as it is: it may have the version of an older release,
/// and nobody may change it.
fn change(state: &PersistentPodState, mut spec: Value) -> Option<Effect> {
    let old = serde_json::to_value(&state.spec).unwrap_or_default();
    if let (Some(spec), Some(target)) = (spec.as_object_mut(), old.get("targetRef")) {
        spec.insert("targetRef".to_owned(), target.clone());
    }
    let change = merge_patch::between(&old, &spec)?;
    let patch = Patch::Merge(json!({"spec": change}));
    Some(Effect::Patch { target: seen(state), subresource: None, patch })
}

fn delete(state: &PersistentPodState) -> Effect {
    Effect::Delete { target: seen(state), grace: None, follows: false }
}

/// The object as long as it is as it was seen.
fn seen(state: &PersistentPodState) -> Target {
    let ObjectRef { key, uid, .. } = reference(state);
    let version = state.metadata.resource_version.as_deref().unwrap_or_default();
    Target::with_uid(PERSISTENT_POD_STATE, key, uid).at_version(version.into())
}

fn conflict(set: &Set, state: &PersistentPodState) -> Conflict {
    let own = set.reference();
    let belongs_to = match controller(state) {
        Some(owner) => format!("{} {} of {}", owner.kind, owner.name, owner.group()),
        None => "nobody".to_owned(),
    };
    let sentence = format!(
        "{} {} exists and belongs to {belongs_to}; delete or rename it",
        PERSISTENT_POD_STATE.plural, own.key.name
    );
    let message = format!(
        "PersistentPodState {} exists and is not controlled by this {}; it is left alone. Delete or rename it, or remove the \
         annotation {AUTO_GENERATE_PERSISTENT_POD_STATE}",
        own.key, set.resource.kind
    );
    let said = annotations::ALL.map(|key| set.metadata.annotations.text(key).unwrap_or_default());
    let generation = state.metadata.generation.unwrap_or(0);
    let mark = format!("{} {said:?} {} {generation}", own.uid, reference(state).uid);
    let reason = "PersistentPodStateConflict".into();
    let event = Event { regarding: own, level: Level::Warning, reason, message };
    Conflict { event, mark, wait: (Reason::NameTaken, sentence) }
}
