//! Which events wake which keys.

use std::sync::Arc;

use serde_json::{Value, json};

use super::graph::Owner;
use super::object::{controller_of, text};
use super::pods::Pod;
use super::{Context, Key, Work, cronjob, daemonset, endpoints, furnish, garbage, lock};
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
    quotas(cx, resource, record, keys);
    let own = |work| Key::new(work, &record.namespace, &record.name);
    match &*resource.table {
        "/namespaces" => {
            keys.push(Key::new(Work::Namespace, "", &record.name));
            keys.push(Key::new(Work::Furnish, "", &record.name));
        }
        table if event.kind == EventKind::Deleted && furnish::is_kept(table, &record.name) => {
            keys.push(Key::new(Work::Furnish, "", &record.namespace));
        }
        "rbac.authorization.k8s.io/clusterroles" => keys.push(Key::new(Work::Gather, "", "")),
        "/nodes" => {
            keys.push(Key::new(Work::Node, "", &record.name));
            node(cx, event, keys);
        }
        "/persistentvolumeclaims" => {
            keys.push(own(Work::Claim));
            if event.kind == EventKind::Deleted {
                let claim = record.value();
                keys.push(Key::new(Work::Volume, "", text(&claim, "/spec/volumeName")));
            }
        }
        "/persistentvolumes" => volume(cx, record, keys),
        "apps/statefulsets" => keys.push(own(Work::StatefulSet)),
        "apps/daemonsets" => keys.push(own(Work::DaemonSet)),
        "batch/cronjobs" => {
            cronjob::note(cx, event);
            keys.push(own(Work::CronJob));
        }
        "batch/jobs" => {
            keys.push(own(Work::Job));
            if let Some(("CronJob", name, _)) = controller_of(&record.value()) {
                keys.push(Key::new(Work::CronJob, &record.namespace, name));
            }
            if event.kind == EventKind::Deleted {
                let pods = cx.pods().controlled(&record.uid);
                keys.extend(
                    pods.iter().map(|pod| Key::new(Work::JobPod, &record.namespace, &pod.record.name)),
                );
            }
        }
        "policy/poddisruptionbudgets" => keys.push(own(Work::Budget)),
        "autoscaling/horizontalpodautoscalers" => keys.push(own(Work::Autoscaler)),
        "/services" => {
            lock(&cx.services).observe(event);
            keys.push(own(Work::Service));
        }
        // Somebody may have changed or deleted what is ours.
        "/endpoints" => keys.push(own(Work::Service)),
        "discovery.k8s.io/endpointslices" => {
            let service = endpoints::service_of(record);
            keys.extend(service.map(|service| Key::new(Work::Service, &record.namespace, service)));
        }
        "/pods" => {
            let (before, after) = cx.pods().observe(event);
            let services = lock(&cx.services).selecting(before.as_deref(), after.as_deref());
            keys.extend(services.iter().map(|name| Key::new(Work::Service, &record.namespace, name)));
            pod(cx, before.as_deref(), after.as_deref(), keys);
        }
        "apps/replicasets" => {
            keys.push(own(Work::ReplicaSet));
            replica_set(cx, record, keys);
        }
        "/replicationcontrollers" => keys.push(own(Work::Replication)),
        "apps/deployments" => keys.push(own(Work::Deployment)),
        _ => {}
    }
}

/// The quotas of a namespace in which something changed. Events and leases come too often to be counted.
fn quotas(cx: &Context, resource: &Resource, record: &Record, keys: &mut Vec<Key>) {
    if record.namespace.is_empty() || matches!(&*resource.table, "/events" | "coordination.k8s.io/leases") {
        return;
    }
    let (_, quotas) = cx.client.server().store().list("/resourcequotas", Some(&record.namespace));
    keys.extend(quotas.iter().map(|quota| Key::new(Work::Quota, &quota.namespace, &quota.name)));
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
        ("v1", "ReplicationController") => Some(Work::Replication),
        ("apps/v1", "StatefulSet") => Some(Work::StatefulSet),
        ("apps/v1", "DaemonSet") => Some(Work::DaemonSet),
        ("batch/v1", "Job") => Some(Work::Job),
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
    // An orphan is offered when it becomes one, and when its labels change.
    let offered = |pod: &&Pod| {
        let same = |before: &Pod| before.controller.is_none() && before.record.labels == pod.record.labels;
        pod.controller.is_none() && !before.is_some_and(same)
    };
    if let Some(pod) = after.filter(offered) {
        for (table, work) in ADOPTERS {
            adopters(cx, table, &pod.record, work, keys);
        }
    }
    place(cx, before, after, keys);
    budgets(cx, before, after, keys);
    // A deployment that waits for its old pods to go hears of it only here.
    let finished = after.is_none_or(Pod::is_finished);
    if finished {
        // A claim that is being deleted waits for the last pod that has it.
        let (_, claims) = cx.client.server().store().list("/persistentvolumeclaims", Some(namespace));
        let leaving = claims.iter().filter(|claim| claim.deleting);
        keys.extend(leaving.map(|claim| Key::new(Work::Claim, namespace, &claim.name)));
    }
    if finished && let Some(owner) = pod.controller.as_ref().filter(|owner| &*owner.kind == "ReplicaSet") {
        let set = cx.client.server().store().get("apps/replicasets", namespace, &owner.name);
        if let Some(set) = set.map(|set| set.value())
            && let Some(("Deployment", name, _)) = controller_of(&set)
        {
            keys.push(Key::new(Work::Deployment, namespace, name));
        }
    }
}

/// A pod on a node may have to leave it; a pod whose job is gone has nobody to count it.
fn place(cx: &Context, before: Option<&Pod>, after: Option<&Pod>, keys: &mut Vec<Key>) {
    let Some(pod) = after else { return };
    let (namespace, name) = (&pod.record.namespace, &pod.record.name);
    if !pod.node.is_empty() && before.is_none_or(|before| before.node != pod.node) {
        keys.push(Key::new(Work::Evict, namespace, name));
        keys.push(Key::new(Work::Collect, namespace, name));
    }
    if let Some(owner) = pod.controller.as_ref().filter(|owner| pod.tracked && &*owner.kind == "Job") {
        let job = cx.client.server().store().get("batch/jobs", namespace, &owner.name);
        if job.is_none_or(|job| *job.uid != *owner.uid) {
            keys.push(Key::new(Work::JobPod, namespace, name));
        }
    }
}

/// Budgets that cover the pod, or did before.
fn budgets(cx: &Context, before: Option<&Pod>, after: Option<&Pod>, keys: &mut Vec<Key>) {
    let Some(pod) = after.or(before) else { return };
    let (_, budgets) =
        cx.client.server().store().list("policy/poddisruptionbudgets", Some(&pod.record.namespace));
    for budget in budgets {
        let selector = Labels::from_object(budget.value().pointer("/spec/selector"));
        let Ok(selector) = selector else { continue };
        let covers =
            |pod: Option<&Pod>| pod.is_some_and(|pod| selector.matches_by(|key| pod.record.label(key)));
        if covers(before) || covers(after) {
            keys.push(Key::new(Work::Budget, &budget.namespace, &budget.name));
        }
    }
}

/// The pods of a node whose taints changed, or that is gone; and daemons that may come to it or leave it.
fn node(cx: &Context, event: &Event, keys: &mut Vec<Key>) {
    let gone = event.kind == EventKind::Deleted;
    let (old, new) = (event.old.as_ref().map(|old| old.value()), event.new.value());
    if gone || daemonset::matters(old.as_ref(), &new) {
        let (_, sets) = cx.client.server().store().list("apps/daemonsets", None);
        keys.extend(sets.iter().map(|set| Key::new(Work::DaemonSet, &set.namespace, &set.name)));
    }
    let taints = |node: &Value| node.pointer("/spec/taints").cloned();
    if !gone && old.as_ref().and_then(taints) == taints(&new) {
        return;
    }
    for pod in cx.pods().on_node(&event.new.name) {
        let work = if gone { Work::Collect } else { Work::Evict };
        keys.push(Key::new(work, &pod.record.namespace, &pod.record.name));
    }
}

/// A volume, and claims that may have waited for it.
fn volume(cx: &Context, record: &Record, keys: &mut Vec<Key>) {
    keys.push(Key::new(Work::Volume, "", &record.name));
    if let Some(holder) = record.value().pointer("/spec/claimRef") {
        keys.push(Key::new(Work::Claim, text(holder, "/namespace"), text(holder, "/name")));
        return;
    }
    for claim in cx.client.server().store().list("/persistentvolumeclaims", None).1 {
        if text(&claim.value(), "/status/phase") == "Pending" {
            keys.push(Key::new(Work::Claim, &claim.namespace, &claim.name));
        }
    }
}

/// The tables whose objects adopt pods.
const ADOPTERS: [(&str, Work); 5] = [
    ("/replicationcontrollers", Work::Replication),
    ("apps/replicasets", Work::ReplicaSet),
    ("apps/statefulsets", Work::StatefulSet),
    ("apps/daemonsets", Work::DaemonSet),
    ("batch/jobs", Work::Job),
];

/// Wakes the objects of a table that select an object nobody controls.
fn adopters(cx: &Context, table: &str, orphan: &Record, work: Work, keys: &mut Vec<Key>) {
    for record in cx.client.server().store().list(table, Some(&orphan.namespace)).1 {
        let value = record.value();
        let selector = match (work, value.pointer("/spec/selector")) {
            (Work::Replication, selector) => Labels::from_object(Some(&json!({"matchLabels": selector}))),
            (_, selector) => Labels::from_object(selector),
        };
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
