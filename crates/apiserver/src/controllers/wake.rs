//! Which events wake which keys.

use std::sync::Arc;

use super::graph::Owner;
use super::object::{controller_of, text};
use super::pods::Pod;
use super::{Context, Key, Work, garbage};
use crate::registry::Resource;
use crate::selector::Labels;
use crate::store::{Event, EventKind, Record};

/// Takes an event into the indexes and adds the keys that it wakes.
pub(super) fn keys(cx: &Context, resource: &Arc<Resource>, event: &Event, keys: &mut Vec<Key>) {
    collect(cx, resource, event, keys);
    let record = &event.new;
    if event.kind == EventKind::Deleted && !record.namespace.is_empty() {
        let namespace = cx.client.server().store().get("/namespaces", "", &record.namespace);
        if namespace.is_some_and(|namespace| namespace.deleting) {
            keys.push(Key::new(Work::Namespace, "", &record.namespace));
        }
    }
    let own = |work| Key::new(work, &record.namespace, &record.name);
    match &*resource.table {
        "/namespaces" => keys.push(Key::new(Work::Namespace, "", &record.name)),
        "/pods" => {
            let (before, after) = cx.pods().observe(event);
            pod(cx, before.as_deref(), after.as_deref(), keys);
        }
        "apps/replicasets" => {
            keys.push(own(Work::ReplicaSet));
            replica_set(cx, record, keys);
        }
        "apps/deployments" => keys.push(own(Work::Deployment)),
        _ => {}
    }
}

/// What the garbage collector has to look at.
fn collect(cx: &Context, resource: &Arc<Resource>, event: &Event, keys: &mut Vec<Key>) {
    let stir = cx.graph().observe(&resource.table, event);
    let owners = stir.owners.iter().filter_map(|owner| garbage::owner_key(cx, &event.new.namespace, owner));
    keys.extend(stir.check.into_iter().chain(owners).map(|(table, namespace, name)| Key {
        work: Work::Garbage,
        table: table.to_string(),
        namespace: namespace.to_string(),
        name: name.to_string(),
    }));
}

/// Owners of kinds that were unknown may be known now.
pub(super) fn resources_changed(cx: &Context, keys: &mut Vec<Key>) {
    let graph = cx.graph();
    keys.extend(graph.all().map(|(table, namespace, name)| Key {
        work: Work::Garbage,
        table: table.to_string(),
        namespace: namespace.to_string(),
        name: name.to_string(),
    }));
}

/// The work on the controller of a pod.
fn controller_work(owner: &Owner) -> Option<Work> {
    match (&*owner.api_version, &*owner.kind) {
        ("apps/v1", "ReplicaSet") => Some(Work::ReplicaSet),
        _ => None,
    }
}

fn pod(cx: &Context, before: Option<&Pod>, after: Option<&Pod>, keys: &mut Vec<Key>) {
    let Some(pod) = after.or(before) else { return };
    let namespace = &pod.record.namespace;
    for pod in [before, after].into_iter().flatten() {
        if let Some(owner) = &pod.controller
            && let Some(work) = controller_work(owner)
        {
            keys.push(Key::new(work, namespace, &owner.name));
        }
    }
    if let Some(pod) = after.filter(|pod| pod.controller.is_none()) {
        for (table, work) in ADOPTERS {
            adopters(cx, table, &pod.record, work, keys);
        }
    }
    // A deployment that waits for its old pods to go hears of it only here.
    let finished = after.is_none_or(|pod| pod.is_finished());
    if finished && let Some(owner) = pod.controller.as_ref().filter(|owner| &*owner.kind == "ReplicaSet") {
        let set = cx.client.server().store().get("apps/replicasets", namespace, &owner.name);
        if let Some(set) = set.map(|set| set.value())
            && let Some(("Deployment", name, _)) = controller_of(&set)
        {
            keys.push(Key::new(Work::Deployment, namespace, name));
        }
    }
}

/// The tables whose objects adopt pods.
const ADOPTERS: [(&str, Work); 1] = [("apps/replicasets", Work::ReplicaSet)];

/// Wakes the objects of a table that select an object nobody controls.
fn adopters(cx: &Context, table: &str, orphan: &Record, work: Work, keys: &mut Vec<Key>) {
    for record in cx.client.server().store().list(table, Some(&orphan.namespace)).1 {
        let selector = Labels::from_object(record.value().pointer("/spec/selector"));
        if selector.is_ok_and(|selector| selector.matches_by(|key| orphan.label(key))) {
            keys.push(Key::new(work, &record.namespace, &record.name));
        }
    }
}

fn replica_set(cx: &Context, record: &Record, keys: &mut Vec<Key>) {
    let set = record.value();
    match controller_of(&set) {
        Some(("Deployment", name, _)) => {
            keys.push(Key::new(Work::Deployment, text(&set, "/metadata/namespace"), name));
        }
        Some(_) => {}
        None => adopters(cx, "apps/deployments", record, Work::Deployment, keys),
    }
}
