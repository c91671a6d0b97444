//! The garbage collector: what loses all its owners goes, in the background, before its owner, or not at all.
//!
//! An owner is known by its uid: a namesake does not count. What cannot be looked up (an unknown kind, or an
//! owner in a namespace for an object without one) keeps its dependents: nothing is deleted on a guess.

use serde_json::{Map, Value, json};

use super::graph::{Meta, ObjectKey, Owner};
use super::object::{is_gone, merge, or_gone};
use super::recorder::Involved;
use super::{Context, Key, Outcome, Work};
use crate::registry::{Resource, split_api_version};
use crate::rest::{DeleteOptions, Preconditions, Propagation};
use crate::status::Status;
use crate::store::Record;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const COMPONENT: &str = "garbage-collector-controller";

/// How an owner stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is there.
    Solid,
    /// It is there and waits for its dependents to go.
    Waiting,
    /// It is gone.
    Dangling,
    /// Nobody knows.
    Unknown,
}

/// What to do with a dependent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    /// Only the references that no longer hold are removed.
    Trim,
    Delete(Propagation),
}

/// The rule. `has_dependents` and the marks are the dependent's own.
fn verdict(standings: &[Standing], has_dependents: bool, orphans: bool, foreground: bool) -> Verdict {
    let any = |standing| standings.contains(&standing);
    if standings.is_empty() || any(Standing::Unknown) {
        return Verdict::Keep;
    }
    if any(Standing::Solid) {
        return if any(Standing::Dangling) || any(Standing::Waiting) { Verdict::Trim } else { Verdict::Keep };
    }
    if (any(Standing::Waiting) && has_dependents) || (foreground && !orphans) {
        return Verdict::Delete(Propagation::Foreground);
    }
    Verdict::Delete(if orphans { Propagation::Orphan } else { Propagation::Background })
}

/// Looks at one object.
pub(super) async fn check(cx: &Context, key: &Key) -> Outcome {
    let Some(resource) = cx.resource_of(&key.table) else { return Ok(None) };
    let Some(record) = cx.client.server().store().get(&key.table, &key.namespace, &key.name) else {
        return Ok(None);
    };
    let meta = Meta::of(&record);
    if record.deleting {
        if meta.has_finalizer(ORPHAN) {
            return orphan(cx, &resource, &record, &meta).await;
        }
        if meta.has_finalizer(FOREGROUND) {
            return foreground(cx, &resource, &record, &meta).await;
        }
        return Ok(None);
    }
    let mut standings = Vec::new();
    for owner in &meta.owner_references {
        standings.push(standing(cx, &resource, &record, owner).await);
    }
    let dependents = cx.graph().dependents_of(&record.uid);
    let verdict = verdict(
        &standings,
        !dependents.is_empty(),
        meta.has_finalizer(ORPHAN),
        meta.has_finalizer(FOREGROUND),
    );
    match verdict {
        Verdict::Keep => {}
        Verdict::Trim => {
            let kept = meta.owner_references.iter().zip(&standings);
            let kept =
                kept.filter(|(_, standing)| **standing == Standing::Solid).map(|(owner, _)| &*owner.uid);
            let kept: Vec<&str> = kept.collect();
            keep_owners(cx, &resource, &record, |uid| kept.contains(&uid)).await?;
        }
        Verdict::Delete(propagation) => {
            if propagation == Propagation::Foreground {
                unblock(cx, &resource, &record, &dependents).await?;
            }
            delete(cx, &resource, &record, propagation).await?;
        }
    }
    Ok(None)
}

/// The key of an owner, where its kind is served and may own an object of that namespace.
pub(super) fn owner_key(cx: &Context, namespace: &str, owner: &Owner) -> Option<ObjectKey> {
    let (group, version) = split_api_version(&owner.api_version);
    let resource = cx.client.server().registry().find_kind(group, version, &owner.kind)?;
    if resource.namespaced && namespace.is_empty() {
        return None;
    }
    let namespace = if resource.namespaced { namespace } else { "" };
    Some((resource.table.clone(), namespace.into(), owner.name.as_ref().into()))
}

async fn standing(cx: &Context, resource: &Resource, record: &Record, owner: &Owner) -> Standing {
    let Some((table, namespace, name)) = owner_key(cx, &record.namespace, owner) else {
        let (group, version) = split_api_version(&owner.api_version);
        if cx.client.server().registry().find_kind(group, version, &owner.kind).is_some() {
            let message = format!(
                "ownerRef [{}/{}, namespace: , name: {}, uid: {}] does not exist in namespace \"\"",
                owner.api_version, owner.kind, owner.name, owner.uid
            );
            let involved = Involved::of(resource, &record.value());
            cx.record(COMPONENT, &involved, "Warning", "OwnerRefInvalidNamespace", &message).await;
        }
        return Standing::Unknown;
    };
    match cx.client.server().store().get(&table, &namespace, &name) {
        Some(found) if *found.uid == *owner.uid => {
            if found.deleting && Meta::of(&found).has_finalizer(FOREGROUND) {
                Standing::Waiting
            } else {
                Standing::Solid
            }
        }
        _ => Standing::Dangling,
    }
}

/// Dependents lose their owner, then the owner loses its mark.
async fn orphan(cx: &Context, resource: &std::sync::Arc<Resource>, record: &Record, meta: &Meta) -> Outcome {
    let dependents = cx.graph().dependents_of(&record.uid);
    for (table, namespace, name) in dependents {
        let Some(of) = cx.resource_of(&table) else { continue };
        let Some(dependent) = cx.client.server().store().get(&table, &namespace, &name) else { continue };
        keep_owners(cx, &of, &dependent, |uid| uid != &*record.uid).await?;
    }
    drop_finalizer(cx, resource, record, meta, ORPHAN).await
}

/// The owner loses its mark when no dependent blocks it; until then the dependents are looked at.
async fn foreground(
    cx: &Context,
    resource: &std::sync::Arc<Resource>,
    record: &Record,
    meta: &Meta,
) -> Outcome {
    let blocking = cx.graph().blocking(&record.uid);
    let store = cx.client.server().store();
    let mut blocked = false;
    for (table, namespace, name) in blocking {
        let Some(dependent) = store.get(&table, &namespace, &name) else { continue };
        blocked = true;
        if !dependent.deleting {
            cx.wake(Key {
                work: Work::Garbage,
                table: table.to_string(),
                namespace: namespace.to_string(),
                name: name.to_string(),
            });
        }
    }
    if blocked {
        return Ok(None);
    }
    drop_finalizer(cx, resource, record, meta, FOREGROUND).await
}

async fn drop_finalizer(
    cx: &Context,
    resource: &std::sync::Arc<Resource>,
    record: &Record,
    meta: &Meta,
    name: &str,
) -> Outcome {
    let left: Vec<&String> = meta.finalizers.iter().filter(|finalizer| *finalizer != name).collect();
    let patch = merge(json!({"metadata": {
        "finalizers": if left.is_empty() { Value::Null } else { json!(left) },
        "resourceVersion": record.rv.to_string(), "uid": &*record.uid,
    }}));
    or_gone(cx.client.patch(resource, &record.namespace, &record.name, None, &patch).await)?;
    Ok(None)
}

/// Removes the owner references whose uid is not wanted.
async fn keep_owners(
    cx: &Context,
    resource: &std::sync::Arc<Resource>,
    record: &Record,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), Status> {
    change_owners(cx, resource, record, |owners| {
        owners.retain(|owner| wanted(owner.get("uid").and_then(Value::as_str).unwrap_or_default()));
    })
    .await
}

/// A circle of objects that wait for each other would wait for ever: the references stop blocking.
async fn unblock(
    cx: &Context,
    resource: &std::sync::Arc<Resource>,
    record: &Record,
    dependents: &[ObjectKey],
) -> Result<(), Status> {
    let store = cx.client.server().store();
    let waits = dependents.iter().any(|(table, namespace, name)| {
        store
            .get(table, namespace, name)
            .is_some_and(|dependent| dependent.deleting && Meta::of(&dependent).has_finalizer(FOREGROUND))
    });
    if !waits {
        return Ok(());
    }
    change_owners(cx, resource, record, |owners| {
        for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
            owner.insert("blockOwnerDeletion".to_owned(), json!(false));
        }
    })
    .await
}

/// Rewrites the owner references of an object, if it is still in the seen version.
pub(super) async fn change_owners(
    cx: &Context,
    resource: &std::sync::Arc<Resource>,
    record: &Record,
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<(), Status> {
    change_owners_and(cx, resource, record, Map::new(), change).await
}

/// The same, together with other metadata.
pub(super) async fn change_owners_and(
    cx: &Context,
    resource: &std::sync::Arc<Resource>,
    record: &Record,
    mut metadata: Map<String, Value>,
    change: impl FnOnce(&mut Vec<Value>),
) -> Result<(), Status> {
    let object = record.value();
    let before =
        object.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut owners = before.clone();
    change(&mut owners);
    if owners == before {
        return Ok(());
    }
    let owners = if owners.is_empty() { Value::Null } else { Value::Array(owners) };
    metadata.insert("ownerReferences".to_owned(), owners);
    metadata.insert("resourceVersion".to_owned(), json!(record.rv.to_string()));
    metadata.insert("uid".to_owned(), json!(&*record.uid));
    let patch = merge(json!({"metadata": metadata}));
    or_gone(cx.client.patch(resource, &record.namespace, &record.name, None, &patch).await).map(|_| ())
}

async fn delete(
    cx: &Context,
    resource: &std::sync::Arc<Resource>,
    record: &Record,
    propagation: Propagation,
) -> Result<(), Status> {
    let preconditions = Preconditions { uid: Some(record.uid.to_string()), resource_version: None };
    let options = DeleteOptions { propagation: Some(propagation), preconditions, ..DeleteOptions::default() };
    match cx.client.delete(resource, &record.namespace, &record.name, &options).await {
        Ok(_) => Ok(()),
        Err(status) if is_gone(&status) => Ok(()),
        Err(status) => Err(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lost_all_owners_is_deleted() {
        use Standing::{Dangling, Solid, Unknown, Waiting};
        for (standings, dependents, orphans, foreground, expected) in [
            (vec![], false, false, false, Verdict::Keep),
            (vec![Solid], false, false, false, Verdict::Keep),
            (vec![Solid, Dangling], false, false, false, Verdict::Trim),
            (vec![Solid, Waiting], true, false, false, Verdict::Trim),
            (vec![Dangling, Unknown], false, false, false, Verdict::Keep),
            (vec![Dangling], false, false, false, Verdict::Delete(Propagation::Background)),
            (vec![Dangling], true, true, false, Verdict::Delete(Propagation::Orphan)),
            (vec![Dangling], true, false, true, Verdict::Delete(Propagation::Foreground)),
            (vec![Waiting], false, false, false, Verdict::Delete(Propagation::Background)),
            (vec![Waiting, Dangling], true, false, false, Verdict::Delete(Propagation::Foreground)),
        ] {
            assert_eq!(verdict(&standings, dependents, orphans, foreground), expected, "{standings:?}");
        }
    }
}
