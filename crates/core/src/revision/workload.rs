//! The revisions of one workload, and which of them its pods are on.

use std::sync::Arc;

use kruise_api::{annotations::LAST_APPLIED_CONFIGURATION, labels, selector::Matcher};
use serde_json::{Map, Value};

use super::{Found, Owner, Revision, find, history, is_label_of, label, short_hash};
use crate::{
    effect::{Effect, Target},
    in_place::OtherImages,
    object::CONTROLLER_REVISION,
    pod::Pod,
};

/// The revisions of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisions<'a> {
    /// Those that exist and belong to it, from old to new.
    pub all: Vec<&'a Revision>,
    /// Where the revision of the template was found.
    pub found: Found<'a>,
    /// The revision of the template.
    pub update: Revision,
    /// The one that all pods had before.
    pub current: Revision,
}

impl<'a> Revisions<'a> {
    /// Finds the revision of a template. `known` are the revisions that belong to the workload or to nobody, and those whose
    /// names begin with its name; `current` is the name in its status.
    pub fn new(
        owner: &Owner<'_>,
        template: &Value,
        selector: &Matcher,
        known: &'a [Arc<Revision>],
        current: Option<&str>,
    ) -> Self {
        let is_ours = |revision: &&Revision| {
            let controller = revision.metadata.controller();
            controller.is_none_or(|controller| controller.uid == owner.reference.uid)
                && selector.accepts(|key| revision.metadata.labels.text(key))
        };
        let mut all: Vec<&Revision> = known.iter().map(AsRef::as_ref).filter(is_ours).collect();
        history::sort(&mut all);
        let taken = |name: &str| known.iter().any(|known| known.name() == name);
        let found = find(owner, template, &all, &taken);
        let update = match &found {
            Found::Newest(revision) | Found::Older(revision, _) => (*revision).clone(),
            Found::Missing(new) => Revision::from(new.as_ref()),
        };
        let current = current.and_then(|name| all.iter().find(|one| one.name() == name));
        let current = current.map_or_else(|| update.clone(), |current| (*current).clone());
        Self { all, found, update, current }
    }

    /// The write that must come before everything that refers to the revision of the template; nothing when it is there.
    pub fn write(&self, namespace: &str) -> Option<Effect> {
        match &self.found {
            Found::Newest(_) => None,
            Found::Older(_, effect) => Some(effect.clone()),
            Found::Missing(new) => Some(Effect::Create {
                resource: CONTROLLER_REVISION,
                namespace: namespace.into(),
                object: new.object.clone(),
            }),
        }
    }

    /// The revision of this name, or with this hash.
    pub fn named(&self, name: &str) -> Option<&'a Revision> {
        self.all.iter().copied().find(|one| is_label_of(name, one.name()))
    }

    /// The revision that a pod is on.
    pub fn of(&self, pod: &Pod) -> Option<&'a Revision> {
        self.all.iter().copied().find(|one| is_on(pod, one))
    }

    /// The images that containers have in all revisions.
    pub fn other_images(&self) -> OtherImages {
        let mut images = OtherImages::new();
        for revision in &self.all {
            let containers = revision.template.pointer("/spec/containers").and_then(Value::as_array);
            for container in containers.into_iter().flatten() {
                let text = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default();
                images.entry(text("name").into()).or_default().insert(text("image").into());
            }
        }
        images
    }

    /// Deletes the oldest revisions that nobody needs, beyond `limit`. The current one and that of the template are always
    /// needed; `is_used` says which others are.
    pub fn truncate(&self, limit: usize, is_used: &dyn Fn(&Revision) -> bool) -> Vec<Effect> {
        let is_live = |one: &Revision| {
            one.name() == self.update.name() || one.name() == self.current.name() || is_used(one)
        };
        let outdated = history::outdated(&self.all, limit, &is_live);
        let delete = |old: &Revision| Effect::Delete {
            target: Target::with_uid(CONTROLLER_REVISION, old.metadata.key(), old.metadata.uid.clone()),
            grace: None,
            follows: false,
        };
        outdated.into_iter().map(delete).collect()
    }
}

/// The annotations that a revision takes over from its workload.
pub fn inherited<'m>(annotations: impl IntoIterator<Item = (&'m String, &'m String)>) -> Value {
    let kept = annotations.into_iter().filter(|(key, _)| *key != LAST_APPLIED_CONFIGURATION);
    kept.map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect::<Map<_, _>>().into()
}

/// The label of a pod that names its revision.
pub fn label_of(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.text(labels::CONTROLLER_REVISION_HASH)
}

/// Whether a pod is on a revision, as its label says.
pub fn is_on(pod: &Pod, revision: &Revision) -> bool {
    label_of(pod).is_some_and(|label| is_label_of(label, revision.name()))
}

/// The labels of a pod that name its revision: in full, or only the hash if `prefer_short`, and the hash alone.
pub fn pod_labels(revision: &Revision, prefer_short: bool) -> Map<String, Value> {
    let mut pairs = Map::new();
    let name = revision.name();
    pairs.insert(labels::CONTROLLER_REVISION_HASH.to_owned(), label(name, prefer_short).into());
    pairs.insert(labels::POD_TEMPLATE_HASH.to_owned(), short_hash(name).into());
    pairs
}
