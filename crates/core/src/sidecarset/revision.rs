//! The revisions of a set: the part of its spec that pods get, under a name that pods record.
//!
//! They live in the namespace of the manager. Names and bytes equal the original's.

use std::sync::Arc;

use kruise_api::{
    annotations::LAST_APPLIED_CONFIGURATION,
    kubernetes::{
        shape::{self, Unknown},
        validation::names::label_value,
    },
    labels::{REVISION_HASH, SIDECARSET_CUSTOM_VERSION, SIDECARSET_NAME},
    sidecarset::v1beta1::{InjectionRevision, SidecarSet},
};
use serde_json::{Map, Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    object::CONTROLLER_REVISION,
    revision::{self, Content, Found, Owner, Revision, drop_nulls},
};

/// The members of the spec that a revision holds.
const MEMBERS: [&str; 5] =
    ["containers", "imagePullSecrets", "initContainers", "patchPodMetadata", "volumes"];
/// How many revisions stay unless the set says something else.
const HISTORY_LIMIT: usize = 10;

/// `data` of the revision of a spec in the hub version.
pub fn data(spec: &Value) -> Value {
    let mut kept = written(spec);
    kept.insert("$patch".to_owned(), "replace".into());
    json!({"spec": kept})
}

/// The part of a spec that a revision holds, in the form in which equal ones are equal. Takes `data.spec` as well.
pub fn comparable(spec: &Value) -> Value {
    let mut value = Value::Object(written(spec));
    drop_nulls(&mut value);
    value
}

/// The members as the original writes them: all of them, those that are empty as null.
fn written(spec: &Value) -> Map<String, Value> {
    let mut kept = Map::new();
    for name in MEMBERS {
        let items = spec.get(name).and_then(Value::as_array).filter(|items| !items.is_empty());
        let items = items.map(|items| items.iter().map(|item| written_item(name, item)).collect());
        kept.insert(name.to_owned(), items.unwrap_or_default());
    }
    kept
}

fn written_item(list: &str, item: &Value) -> Value {
    let mut item = item.clone();
    match list {
        "containers" | "initContainers" => {
            let _ = shape::canonical("core.Container", &mut item, Unknown::Keep);
            if let Some(members) = item.as_object_mut() {
                for by_value in ["upgradeStrategy", "shareVolumePolicy"] {
                    let member = members.entry(by_value).or_insert(Value::Null);
                    if member.is_null() {
                        *member = json!({});
                    }
                }
                let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
                if members.get("transferEnv").is_some_and(is_empty) {
                    members.remove("transferEnv");
                }
            }
        }
        "volumes" => {
            let _ = shape::canonical("core.Volume", &mut item, Unknown::Keep);
        }
        _ => {}
    }
    item
}

/// The revisions of a set, from old to new: those that name it and belong to it or to nobody.
pub fn of_set<'a>(set: &SidecarSet, revisions: &'a [Arc<Revision>]) -> Vec<&'a Revision> {
    let (name, uid) = (super::name(set), set.metadata.uid.as_deref().unwrap_or_default());
    let is_ours = |revision: &&Revision| {
        names(revision, name) && revision.metadata.controller().is_none_or(|owner| owner.uid == *uid)
    };
    let mut ours: Vec<&Revision> = revisions.iter().map(AsRef::as_ref).filter(is_ours).collect();
    revision::sort(&mut ours);
    ours
}

/// Whether a revision carries the name of a set.
fn names(revision: &Revision, set: &str) -> bool {
    revision.metadata.labels.text(SIDECARSET_NAME) == Some(set)
}

/// A revision that new pods should get and that is not there. The text is the original's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ControllerRevision.apps {0:?} not found")]
pub struct NotFound(pub String);

/// The revision that new pods should get: by its name, else the newest one with the custom version. `None` when neither
/// is said.
pub fn chosen<'a>(
    set: &str,
    choice: &InjectionRevision,
    revisions: &'a [Arc<Revision>],
) -> Result<Option<&'a Revision>, NotFound> {
    let mut ours: Vec<&Revision> =
        revisions.iter().map(AsRef::as_ref).filter(|revision| names(revision, set)).collect();
    revision::sort(&mut ours);
    let found = match (&choice.revision_name, &choice.custom_version) {
        (Some(name), _) => {
            ours.into_iter().find(|one| one.name() == name).ok_or_else(|| NotFound(name.clone()))?
        }
        (None, Some(version)) => ours
            .into_iter()
            .rfind(|one| one.metadata.labels.text(SIDECARSET_CUSTOM_VERSION) == Some(version))
            .ok_or_else(|| NotFound(set.to_owned()))?,
        (None, None) => return Ok(None),
    };
    Ok(Some(found))
}

/// How the history of a set stands after this pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    /// The name of the newest revision: the one of the spec as it is.
    pub latest: String,
    /// How many names were taken so far, for `status.collisionCount`.
    pub collision_count: i32,
    /// What must be written for that: a new revision, a number, a label, and revisions that go. Empty at rest.
    pub effects: Vec<Effect>,
}

/// Finds or makes the revision of a set, and lets old ones go.
///
/// `revisions` are those of the manager's namespace that name the set or could be in the way of its names; `is_used` tells
/// whether a pod follows the revision of a name.
pub fn register(
    set: &SidecarSet,
    revisions: &[Arc<Revision>],
    namespace: &str,
    is_used: &dyn Fn(&str) -> bool,
) -> Registered {
    let spec = serde_json::to_value(&set.spec).unwrap_or_default();
    let ours = of_set(set, revisions);
    let reference = super::reference(set);
    let collision_count = set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let owner = Owner {
        reference: &reference,
        annotations: annotations(set),
        collision_count,
        follows: None,
        hash_label: REVISION_HASH,
    };
    let content =
        Content { comparable: comparable(&spec), namespace, labels: labels(set), data: &|| data(&spec) };
    let taken = |name: &str| revisions.iter().any(|known| known.name() == name);
    let mut effects = Vec::new();
    let (latest, collision_count) = match revision::find_content(&owner, content, &ours, &taken) {
        Found::Newest(newest) => {
            effects.extend(version_patch(set, newest));
            (newest.name().to_owned(), collision_count)
        }
        Found::Older(older, renumbered) => {
            effects.push(renumbered);
            effects.extend(version_patch(set, older));
            (older.name().to_owned(), collision_count)
        }
        Found::Missing(new) => {
            effects.push(Effect::Create {
                resource: CONTROLLER_REVISION,
                namespace: namespace.into(),
                object: new.object,
            });
            (new.name, new.collision_count)
        }
    };
    effects.extend(outdated(set, &ours, &latest, is_used).map(|gone| Effect::Delete {
        target: target(gone),
        grace: None,
        follows: false,
    }));
    Registered { latest, collision_count, effects }
}

/// The revisions above the limit, oldest first, but for those that somebody needs.
fn outdated<'a>(
    set: &SidecarSet,
    ours: &[&'a Revision],
    latest: &str,
    is_used: &dyn Fn(&str) -> bool,
) -> impl Iterator<Item = &'a Revision> {
    let limit = set.spec.revision_history_limit.map(|limit| usize::try_from(limit).unwrap_or(0));
    let limit = limit.unwrap_or(HISTORY_LIMIT).max(1);
    // The newest one counts, whether it is there already or just being made.
    let is_new = ours.iter().all(|revision| revision.name() != latest);
    let surplus = (ours.len() + usize::from(is_new)).saturating_sub(limit);
    let choice = set.spec.injection_strategy.as_ref().and_then(|strategy| strategy.revision.as_ref());
    let chosen = choice.and_then(|choice| match (&choice.revision_name, &choice.custom_version) {
        (Some(name), _) => ours.iter().find(|one| one.name() == name),
        (None, Some(version)) => {
            ours.iter().rfind(|one| one.metadata.labels.text(SIDECARSET_CUSTOM_VERSION) == Some(version))
        }
        (None, None) => None,
    });
    let chosen = chosen.map(|revision| revision.name().to_owned());
    let is_needed = |name: &str| name == latest || chosen.as_deref() == Some(name) || is_used(name);
    let gone: Vec<&Revision> =
        ours.iter().copied().filter(|one| !is_needed(one.name())).take(surplus).collect();
    gone.into_iter()
}

/// The custom version follows the set although it is no part of the data.
fn version_patch(set: &SidecarSet, revision: &Revision) -> Option<Effect> {
    let version = version(set)?;
    let present = revision.metadata.labels.text(SIDECARSET_CUSTOM_VERSION);
    (present != Some(version)).then(|| Effect::Patch {
        target: target(revision),
        subresource: None,
        patch: Patch::Merge(json!({"metadata": {"labels": {SIDECARSET_CUSTOM_VERSION: version}}})),
    })
}

/// The custom version, if a label can hold it: a revision with a broken label would be refused as a whole.
fn version(set: &SidecarSet) -> Option<&str> {
    let version = set.spec.custom_version.as_deref().filter(|version| !version.is_empty())?;
    label_value(version).is_empty().then_some(version)
}

fn target(revision: &Revision) -> Target {
    Target::with_uid(CONTROLLER_REVISION, revision.metadata.key(), revision.metadata.uid.clone())
}

fn labels(set: &SidecarSet) -> Value {
    let mut labels: Map<String, Value> = Map::new();
    for (key, value) in set.metadata.labels.iter().flatten() {
        labels.insert(key.clone(), value.as_str().into());
    }
    labels.insert(SIDECARSET_NAME.to_owned(), super::name(set).into());
    if let Some(version) = version(set) {
        labels.insert(SIDECARSET_CUSTOM_VERSION.to_owned(), version.into());
    }
    labels.into()
}

fn annotations(set: &SidecarSet) -> Value {
    let all = set.metadata.annotations.iter().flatten();
    let kept = all.filter(|(key, _)| *key != LAST_APPLIED_CONFIGURATION);
    kept.map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect()
}

#[cfg(test)]
mod tests;
