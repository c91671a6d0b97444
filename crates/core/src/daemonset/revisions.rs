//! The revisions of a set: which one its template is, and which ones its pods are on.

use kruise_api::labels::CONTROLLER_REVISION_HASH;
use serde_json::{Map, Value, json};

use super::{Desired, Observed};
use crate::{
    effect::{Effect, Patch, Target},
    lifecycle,
    object::{CONTROLLER_REVISION, ObjectRef},
    pod::Pod,
    revision::{self, Found, Revision},
    text::Text,
};

/// The revisions of a set.
pub(super) struct Revisions<'a> {
    pub(super) shared: revision::Revisions<'a>,
    hash: Text,
    /// Other revisions with the content of the template's: another process made them at the same time.
    pub(super) duplicates: Vec<&'a Revision>,
}

impl<'a> Revisions<'a> {
    pub(super) fn of(seen: &'a Observed, desired: &Desired, set: &ObjectRef) -> Self {
        let status = seen.set.status.as_ref();
        let owner = revision::Owner {
            reference: set,
            annotations: revision::inherited(seen.set.metadata.annotations.iter().flatten()),
            collision_count: status.and_then(|status| status.collision_count).unwrap_or(0),
            follows: None,
            hash_label: CONTROLLER_REVISION_HASH,
        };
        let shared =
            revision::Revisions::new(&owner, &desired.template, &desired.matcher, &seen.revisions, None);
        let hash = hash_of(&shared.update);
        let update = &shared.update;
        let is_same = |one: &&Revision| one.name() != update.name() && one.means(&update.template);
        let duplicates = shared.all.iter().copied().filter(is_same).collect();
        Self { shared, hash, duplicates }
    }

    /// The hash of the template's revision, which its pods have as a label.
    pub(super) fn hash(&self) -> &Text {
        &self.hash
    }

    /// Whether the label of a pod names the template's revision, or one with the same content.
    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        revision::label_of(pod).is_some_and(|label| *label == *self.hash)
            || revision::is_on(pod, &self.shared.update)
            || self.duplicates.iter().any(|duplicate| revision::is_on(pod, duplicate))
    }

    /// Whether a revision has the content of the template's, under another name.
    pub(super) fn is_duplicate(&self, one: &Revision) -> bool {
        self.duplicates.iter().any(|duplicate| duplicate.name() == one.name())
    }

    /// How many names of revisions were taken; nothing if none was.
    pub(super) fn collision_count(&self, seen: &Observed) -> Option<i32> {
        match &self.shared.found {
            Found::Missing(new) => Some(new.collision_count).filter(|count| *count > 0),
            Found::Newest(_) | Found::Older(..) => None,
        }
        .or_else(|| seen.set.status.as_ref()?.collision_count)
    }

    /// Writes that bring stored revisions into order: those of nobody get an owner (then the second is true), those without a
    /// hash get one.
    pub(super) fn tidy(&self, set: &ObjectRef) -> Vec<(Effect, bool)> {
        let mut writes = Vec::new();
        for one in self.shared.all.iter().filter(|one| !one.metadata.is_deleting()) {
            let adopts = one.metadata.controller().is_none();
            let lacks_hash = !one.metadata.labels.contains(CONTROLLER_REVISION_HASH);
            let mut change = Map::new();
            if adopts {
                change.insert("ownerReferences".to_owned(), json!([set.controller_reference()]));
            }
            if lacks_hash {
                change.insert("labels".to_owned(), json!({CONTROLLER_REVISION_HASH: one.metadata.name}));
            }
            if change.is_empty() {
                continue;
            }
            let target = Target::with_uid(CONTROLLER_REVISION, one.metadata.key(), one.metadata.uid.clone())
                .at_version(one.metadata.resource_version.clone());
            let patch = Patch::Strategic(json!({"metadata": change}));
            writes.push((Effect::Patch { target, subresource: None, patch }, adopts));
        }
        writes
    }
}

/// The hash in the label of a revision. Where there is none, its name takes the place.
pub(super) fn hash_of(revision: &Revision) -> Text {
    let label = revision.metadata.labels.get(CONTROLLER_REVISION_HASH);
    label.cloned().unwrap_or_else(|| revision.metadata.name.clone())
}

/// The label of a pod that names its revision.
pub(super) fn labels(revision: &Revision) -> Map<String, Value> {
    Map::from_iter([(CONTROLLER_REVISION_HASH.to_owned(), json!(hash_of(revision)))])
}

/// Names another revision of the same content on a pod. Nothing else changes.
pub(super) fn relabel(pod: &Pod, revision: &Revision) -> Effect {
    lifecycle::patch(pod, json!({"metadata": {"labels": labels(revision)}}))
}

/// Deletes a revision.
pub(super) fn delete(revision: &Revision) -> Effect {
    let target =
        Target::with_uid(CONTROLLER_REVISION, revision.metadata.key(), revision.metadata.uid.clone());
    Effect::Delete { target, grace: None, follows: false }
}
