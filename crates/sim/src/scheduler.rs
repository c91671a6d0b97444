//! A scheduler: gives pods their nodes, one after the other, by priority and age.
//!
//! It follows pods and nodes by their histories and keeps its own picture ([`cluster`]) of what is used where.
//! A pod that fits nowhere says why in its `PodScheduled` condition and in an event, and is tried again when
//! something changed that may help.

mod cluster;
mod fit;
mod wants;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select;
use kruise_apiserver::client::Local;
use kruise_apiserver::patch::Patch;
use kruise_apiserver::registry::Resource;
use kruise_apiserver::store::{Cursor, EventKind, Record, Store};
use serde_json::json;

use crate::events::{About, Recorder};
use crate::json::{fields, text};
use cluster::Cluster;
use wants::Wants;

/// The name in `spec.schedulerName` of pods that are ours.
const NAME: &str = "default-scheduler";
/// The table of the claims that pods may wait for.
const CLAIMS: &str = "/persistentvolumeclaims";
/// How many pods are placed before events are read again.
const BATCH: usize = 64;
/// How long a pod waits after a bind that failed for no reason of its own.
const RETRY: Duration = Duration::from_secs(1);

/// The order of waiting pods: priority, age, then name.
type Turn = (Reverse<i64>, String, String, String);

/// The task that places pods.
pub(crate) struct Scheduler {
    local: Local,
    store: Arc<Store>,
    pods: Arc<Resource>,
    pod_events: Cursor,
    node_events: Cursor,
    claim_events: Cursor,
    nodes: Arc<Resource>,
    recorder: Recorder,
    cluster: Cluster,
    waiting: BTreeMap<String, (Turn, Wants)>,
    queue: BTreeSet<(Turn, String)>,
    /// What was last said about a pod that fits nowhere.
    said: BTreeMap<String, String>,
    /// The node to begin with.
    start: String,
    seed: u64,
}

impl Scheduler {
    /// `None` when the server does not serve pods and nodes.
    pub(crate) fn new(local: Local, seed: u64, events: bool) -> Option<Self> {
        let store = local.server().store().clone();
        let (pods, nodes) = (local.resource("", "pods").ok()?, local.resource("", "nodes").ok()?);
        let version = store.version();
        Some(Self {
            pod_events: store.watch(&pods.table, version),
            node_events: store.watch(&nodes.table, version),
            claim_events: store.watch(CLAIMS, version),
            recorder: Recorder::new(local.clone(), NAME, events),
            cluster: Cluster::default(),
            waiting: BTreeMap::new(),
            queue: BTreeSet::new(),
            said: BTreeMap::new(),
            start: String::new(),
            store,
            local,
            pods,
            nodes,
            seed,
        })
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        self.relist();
        loop {
            let worked = self.follow();
            let mut placed = 0;
            while placed < BATCH
                && let Some((_, uid)) = self.queue.pop_first()
            {
                placed += 1;
                self.place(&uid).await;
            }
            if !worked && placed == 0 {
                let (nodes, claims) = (pin!(self.node_events.wait()), pin!(self.claim_events.wait()));
                select(pin!(self.pod_events.wait()), select(nodes, claims)).await;
            }
        }
    }

    fn relist(&mut self) {
        let version = self.store.version();
        self.pod_events = self.store.watch(&self.pods.table, version);
        self.node_events = self.store.watch(&self.nodes.table, version);
        self.claim_events = self.store.watch(CLAIMS, version);
        self.cluster = Cluster::default();
        self.waiting.clear();
        for record in self.store.list(&self.nodes.table, None).1 {
            self.cluster.node(&record.name, &record.value());
        }
        for record in self.store.list(&self.pods.table, None).1 {
            self.see_pod(EventKind::Added, &record, None);
        }
        self.wake_all();
    }

    /// Takes over what happened. Returns whether anything did.
    fn follow(&mut self) -> bool {
        let (nodes, pods, claims) =
            (self.node_events.take(), self.pod_events.take(), self.claim_events.take());
        let (Ok(nodes), Ok(pods), Ok(claims)) = (nodes, pods, claims) else {
            self.relist();
            return true;
        };
        let mut helps =
            !claims.is_empty() && self.waiting.values().any(|(_, wants)| !wants.claims.is_empty());
        for event in &nodes {
            let name = &event.new.name;
            if event.kind == EventKind::Deleted {
                self.cluster.node_gone(name);
            } else {
                helps |= self.cluster.node(name, &event.new.value());
            }
        }
        for event in &pods {
            helps |= self.see_pod(event.kind, &event.new, event.old.as_deref());
        }
        if helps {
            self.wake_all();
        }
        !nodes.is_empty() || !pods.is_empty() || !claims.is_empty()
    }

    /// Returns whether other pods may fit now.
    fn see_pod(&mut self, kind: EventKind, record: &Record, before: Option<&Record>) -> bool {
        let uid = record.uid.to_string();
        let over =
            kind == EventKind::Deleted || matches!(record.field("status.phase"), "Succeeded" | "Failed");
        let node = record.field("spec.nodeName");
        if over || !node.is_empty() {
            self.forget(&uid);
        }
        if over {
            return self.cluster.take(&uid);
        }
        if !node.is_empty() {
            if self.cluster.placed.get(&uid).is_none_or(|placed| *placed.node != *node) {
                let wants = Wants::read(&record.value());
                self.cluster.put(&uid, &wants, node);
                // A new neighbour may be what a pod with affinity waits for.
                return true;
            }
            // Most changes are of the status, which takes no room.
            let same = |before: &Record| before.labels == record.labels && before.has_spec_of(record);
            return !before.is_some_and(same) && self.resized(&uid, record);
        }
        if record.deleting || record.field("spec.schedulerName") != NAME {
            self.forget(&uid);
            return false;
        }
        let wants = Wants::read(&record.value());
        let turn: Turn =
            (Reverse(wants.priority), wants.created.clone(), wants.namespace.clone(), wants.name.clone());
        let gated = wants.gated;
        let known = self.waiting.insert(uid.clone(), (turn.clone(), wants));
        if let Some((old, _)) = &known {
            self.queue.remove(&(old.clone(), uid.clone()));
        }
        // Our own message about the pod is no reason to try again, a change of the pod itself is.
        let changed =
            before.is_some_and(|before| !before.has_spec_of(record) || before.labels != record.labels);
        if !gated && (changed || known.is_none_or(|(_, old)| old.gated) || !self.said.contains_key(&uid)) {
            self.queue.insert((turn, uid));
        }
        false
    }

    /// A placed pod may ask for other resources later.
    fn resized(&mut self, uid: &str, record: &Record) -> bool {
        let Some(placed) = self.cluster.placed.get(uid) else { return false };
        let wants = Wants::read(&record.value());
        let load = &placed.load;
        if (wants.cpu, wants.memory) == (load.cpu, load.memory) && wants.labels == load.labels {
            return false;
        }
        let node = placed.node.clone();
        self.cluster.put(uid, &wants, &node);
        true
    }

    fn forget(&mut self, uid: &str) {
        if let Some((turn, _)) = self.waiting.remove(uid) {
            self.queue.remove(&(turn, uid.to_owned()));
        }
        self.said.remove(uid);
    }

    fn wake_all(&mut self) {
        for (uid, (turn, wants)) in &self.waiting {
            if !wants.gated {
                self.queue.insert((turn.clone(), uid.clone()));
            }
        }
    }

    /// Why the claims of a pod keep it from every node.
    fn unready_claim(&self, wants: &Wants) -> Option<String> {
        wants.claims.iter().find_map(|name| {
            let Some(claim) = self.store.get(CLAIMS, &wants.namespace, name) else {
                return Some(format!("persistentvolumeclaim \"{name}\" not found"));
            };
            if claim.deleting {
                return Some(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            // Claims are bound at once here, whatever their class says.
            let bound = text(&claim.value(), "/status/phase") == "Bound";
            (!bound).then(|| "pod has unbound immediate PersistentVolumeClaims".to_owned())
        })
    }

    async fn place(&mut self, uid: &str) {
        let Some((_, wants)) = self.waiting.get(uid) else { return };
        let wants = wants.clone();
        let (namespace, name) = (wants.namespace.as_str(), wants.name.as_str());
        let about = About { namespace, name, uid, field: "" };
        let chosen = match self.unready_claim(&wants) {
            Some(why) => Err(fit::hopeless(&self.cluster, &why)),
            None => fit::choose(&mut self.cluster, &wants, &self.start, self.seed),
        };
        match chosen {
            Ok((node, next)) => {
                self.start = next;
                // The place is taken at once; the event of the bind confirms it.
                self.cluster.put(uid, &wants, &node);
                match self.local.bind(namespace, name, &node).await {
                    Ok(()) => {
                        self.forget(uid);
                        let text = format!("Successfully assigned {namespace}/{name} to {node}");
                        self.recorder.record(about, "", false, "Scheduled", &text).await;
                    }
                    Err(status) => {
                        self.cluster.take(uid);
                        if !matches!(status.code, 404 | 409) {
                            tokio::time::sleep(self.local.server().clock().real(RETRY)).await;
                            if let Some((turn, _)) = self.waiting.get(uid) {
                                self.queue.insert((turn.clone(), uid.to_owned()));
                            }
                        }
                    }
                }
            }
            Err(message) => {
                if self.said.get(uid) == Some(&message) {
                    return;
                }
                self.said.insert(uid.to_owned(), message.clone());
                let at = self.local.server().clock().now_text();
                let patch = json!({"metadata": {"uid": uid}, "status": {"conditions": [{
                    "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                    "lastProbeTime": null, "lastTransitionTime": at,
                }]}});
                let patch = Patch::Strategic(fields(patch));
                let _ = self.local.patch(&self.pods, namespace, name, Some("status"), &patch).await;
                self.recorder.record(about, "", true, "FailedScheduling", &message).await;
            }
        }
    }
}
