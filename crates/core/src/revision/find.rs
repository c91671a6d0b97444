//! Which revision a workload's template is: one that exists, an older one that comes back, or a new one.

use serde_json::{Value, json};

use super::{New, Revision, comparable, data, hash_of, name, object};
use crate::{
    effect::{Effect, Patch, Target},
    object::{CONTROLLER_REVISION, ObjectRef},
};

/// What the owner of revisions brings along.
#[derive(Clone, Debug)]
pub struct Owner<'a> {
    /// The workload.
    pub reference: &'a ObjectRef,
    /// Annotations that a new revision gets.
    pub annotations: Value,
    /// How many names were taken so far.
    pub collision_count: i32,
    /// An annotation that follows the workload although it is no part of the data: key and value.
    pub follows: Option<(&'static str, String)>,
    /// The label of a revision that holds its hash.
    pub hash_label: &'static str,
}

/// Where the revision of a template was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a> {
    /// It is the newest one. Nothing has to be written.
    Newest(&'a Revision),
    /// It is an older one, which becomes the newest by this write.
    Older(&'a Revision, Effect),
    /// There is none yet.
    Missing(Box<New>),
}

/// What a revision is looked for.
pub struct Content<'a> {
    /// The form in which equal ones are equal.
    pub comparable: Value,
    /// Where revisions of the workload are kept.
    pub namespace: &'a str,
    /// Labels that a new revision gets.
    pub labels: Value,
    /// Makes `data` of a new revision.
    pub data: &'a dyn Fn() -> Value,
}

/// Finds the revision of a pod template.
///
/// `revisions` are those that belong to the workload, from old to new; `taken` tells whether a name belongs to someone
/// else or to other data.
pub fn find<'a>(
    owner: &Owner<'_>,
    template: &Value,
    revisions: &[&'a Revision],
    taken: &dyn Fn(&str) -> bool,
) -> Found<'a> {
    let comparable = comparable(template);
    let content = Content {
        namespace: &owner.reference.key.namespace,
        labels: comparable.pointer("/metadata/labels").cloned().unwrap_or_default(),
        comparable,
        data: &|| data(template),
    };
    find_content(owner, content, revisions, taken)
}

/// Finds the revision of anything.
pub fn find_content<'a>(
    owner: &Owner<'_>,
    content: Content<'_>,
    revisions: &[&'a Revision],
    taken: &dyn Fn(&str) -> bool,
) -> Found<'a> {
    let Content { comparable: wanted, namespace, labels, data } = content;
    let number = revisions.last().map_or(1, |newest| newest.number.saturating_add(1));
    if let Some(newest) = revisions.last().filter(|newest| newest.means(&wanted)) {
        return Found::Newest(newest);
    }
    if let Some(older) = revisions.iter().rev().find(|older| older.means(&wanted)) {
        return Found::Older(older, renumber(owner, older, number));
    }
    let data = data();
    let workload = &owner.reference.key.name;
    let mut collision_count = owner.collision_count;
    let (hash, name) = loop {
        let hash = hash_of(&data, collision_count);
        let name = name(workload, &hash);
        // A workload can meet few names in its life; the bound only keeps a wrong `taken` from looping for ever.
        if !taken(&name) || collision_count.saturating_sub(owner.collision_count) >= 1000 {
            break (hash, name);
        }
        collision_count = collision_count.saturating_add(1);
    };
    let mut annotations = owner.annotations.as_object().cloned().unwrap_or_default();
    if let Some((key, value)) = &owner.follows {
        annotations.insert((*key).to_owned(), value.as_str().into());
    }
    let mut labels = labels.as_object().cloned().unwrap_or_default();
    labels.insert(owner.hash_label.to_owned(), hash.into());
    let object = object(owner.reference, namespace, labels, annotations.into(), &name, number, data);
    Found::Missing(Box::new(New { name, number, object, collision_count, template: wanted }))
}

fn renumber(owner: &Owner<'_>, revision: &Revision, number: i64) -> Effect {
    let mut patch = json!({"revision": number});
    if let Some((key, value)) = &owner.follows
        && revision.metadata.annotations.get(key).is_none_or(|present| *present != value.as_str())
        && let Some(members) = patch.as_object_mut()
    {
        members.insert("metadata".to_owned(), json!({"annotations": {*key: value}}));
    }
    Effect::Patch {
        target: Target::with_uid(CONTROLLER_REVISION, revision.metadata.key(), revision.metadata.uid.clone()),
        subresource: None,
        patch: Patch::Merge(patch),
    }
}
