//! Which objects belong to a controller: those it controls and selects, and orphans that it selects.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Context;
use super::garbage::{change_owners, change_owners_and};
use super::graph::{Meta, ObjectKey};
use super::object::{controller_reference, deleting, text};
use super::pods::{Pod, TRACKING};
use crate::registry::Resource;
use crate::selector::Labels;
use crate::status::Status;
use crate::store::Record;

/// The pods of an owner. Pods that it no longer selects are released, orphans that it selects adopted.
pub(super) async fn pods(
    cx: &Context,
    resource: &Arc<Resource>,
    owner: &Value,
    selector: &Labels,
) -> Result<Vec<Arc<Pod>>, Status> {
    let table = cx.client.resource("", "pods")?;
    let (mine, orphans) = {
        let pods = cx.pods();
        (pods.controlled(text(owner, "/metadata/uid")), pods.uncontrolled(text(owner, "/metadata/namespace")))
    };
    let leaving = deleting(owner);
    let selects = |record: &Record| selector.matches_by(|key| record.label(key));
    let mut claimed = Vec::with_capacity(mine.len());
    for pod in mine {
        if selects(&pod.record) {
            claimed.push(pod);
        } else if !leaving && !pod.record.deleting {
            release(cx, &table, owner, &pod.record).await?;
        }
    }
    for pod in orphans {
        if !leaving && !pod.record.deleting && !pod.is_finished() && selects(&pod.record) {
            adopt(cx, resource, &table, owner, &pod.record).await?;
            claimed.push(pod);
        }
    }
    Ok(claimed)
}

/// The objects of another table that belong to an owner, by the same rules, sorted by name.
pub(super) async fn objects(
    cx: &Context,
    resource: &Arc<Resource>,
    owner: &Value,
    selector: &Labels,
    table: &Arc<Resource>,
) -> Result<Vec<Value>, Status> {
    let store = cx.client.server().store();
    let namespace = text(owner, "/metadata/namespace");
    let mine = cx.graph().controlled(&table.table, text(owner, "/metadata/uid"));
    let leaving = deleting(owner);
    let mut claimed = Vec::new();
    for (_, namespace, name) in mine {
        let Some(record) = store.get(&table.table, &namespace, &name) else { continue };
        if selector.matches_by(|key| record.label(key)) {
            claimed.push(record.value());
        } else if !leaving && !record.deleting {
            release(cx, table, owner, &record).await?;
        }
    }
    if leaving {
        return Ok(claimed);
    }
    for record in store.list(&table.table, Some(namespace)).1 {
        let key: ObjectKey = (table.table.clone(), record.namespace.clone(), record.name.clone());
        if record.deleting || !selector.matches_by(|key| record.label(key)) {
            continue;
        }
        let object = record.value();
        // The index may lag behind the store within one pass, so the object itself has the last word.
        if cx.graph().controller(&key).is_none() && super::object::controller_of(&object).is_none() {
            adopt(cx, resource, table, owner, &record).await?;
            if let Some(adopted) = store.get(&table.table, namespace, &record.name) {
                claimed.push(adopted.value());
            }
        }
    }
    claimed.sort_by(|a, b| text(a, "/metadata/name").cmp(text(b, "/metadata/name")));
    Ok(claimed)
}

async fn release(cx: &Context, of: &Arc<Resource>, owner: &Value, record: &Record) -> Result<(), Status> {
    let uid = text(owner, "/metadata/uid");
    change_owners(cx, of, record, |owners| owners.retain(|known| text(known, "/uid") != uid)).await
}

async fn adopt(
    cx: &Context,
    resource: &Arc<Resource>,
    of: &Arc<Resource>,
    owner: &Value,
    record: &Record,
) -> Result<(), Status> {
    let meta = Meta::of(record);
    let mut patch = Map::new();
    // A job counts only pods that wait for it to have counted them.
    if resource.kind == "Job" && !meta.finalizers.iter().any(|finalizer| finalizer == TRACKING) {
        let finalizers: Vec<&str> =
            meta.finalizers.iter().map(String::as_str).chain(std::iter::once(TRACKING)).collect();
        patch.insert("finalizers".to_owned(), json!(finalizers));
    }
    change_owners_and(cx, of, record, patch, |owners| owners.push(controller_reference(resource, owner)))
        .await
}
