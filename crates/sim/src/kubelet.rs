//! All simulated nodes, driven by one task.
//!
//! A node registers itself, renews its lease, and runs the pods bound to it. Each pod is a small state machine
//! ([`pod`]) that is looked at when its object changed or when its next step is due; nothing polls. What the
//! nodes do is written through the API server like anybody else's writes.

mod adopt;
mod container;
mod inside;
mod mount;
mod pass;
mod pod;
mod process;
mod spec;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::kubernetes::quantity::Quantity;
use kruise_apiserver::client::Local;
use kruise_apiserver::clock::{Clock, micros_text};
use kruise_apiserver::patch::Patch;
use kruise_apiserver::random::Random;
use kruise_apiserver::registry::Resource;
use kruise_apiserver::rest::{DeleteOptions, Preconditions};
use kruise_apiserver::store::{Cursor, Record, Store};
use serde_json::json;
use tokio::sync::Notify;

use crate::events::{About, Recorder};
use crate::image::Images;
use crate::json::{fields, list, text};
use crate::machine::Machines;
use crate::node::{Node, host_ip, number_of_pod_ip, pod_ip};
use crate::steps::Steps;
use crate::time::{later, sooner, stamp, until};
pub(crate) use inside::{Question, port_numbers};
use pass::{Pass, Said};
use pod::{Pod, Stage};
use spec::Specs;
pub(crate) use spec::{PodSpec, amount};

const LEASES: &str = "kube-node-lease";
/// How often a node repeats its whole status although nothing changed.
const STATUS_EVERY: Duration = Duration::from_secs(300);
/// How long a node waits after a write that failed for no reason of its own.
const RETRY: Duration = Duration::from_secs(1);

/// What a test or a person does to the nodes.
#[derive(Debug)]
pub(crate) enum Command {
    /// A new node comes.
    Add(Node),
    /// The node falls silent.
    Stop { node: String },
    /// The node is back; its containers went on, or died with the machine.
    Return { node: String, containers_died: bool },
    /// The node's clock is off.
    Skew { node: String, by: SignedDuration },
    /// A container's readiness probe changes its mind.
    Readiness { namespace: String, pod: String, container: String, ready: bool },
    /// Someone on the node stops a container; it is started again as its restart policy says.
    Kill { namespace: String, pod: String, container: String },
    /// A program on the node asks something.
    Inside { node: String, question: Question },
    /// The node evicts a pod for lack of resources.
    Evict { namespace: String, pod: String, message: String },
}

/// The way into the nodes' task.
#[derive(Debug, Default)]
pub(crate) struct Control {
    commands: Mutex<Vec<Command>>,
    bell: Notify,
}

impl Control {
    pub(crate) fn send(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        self.bell.notify_one();
    }

    fn take(&self) -> Vec<Command> {
        std::mem::take(&mut self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the nodes are made of.
pub(crate) struct Options {
    pub(crate) nodes: Vec<Node>,
    pub(crate) steps: Steps,
    pub(crate) images: Arc<RwLock<Images>>,
    pub(crate) control: Arc<Control>,
    pub(crate) machines: Machines,
    pub(crate) heartbeat: Duration,
    pub(crate) events: bool,
    pub(crate) seed: u64,
}

/// Namespace and name.
type Key = (Arc<str>, Arc<str>);

struct Host {
    node: Node,
    index: usize,
    up: bool,
    skew: SignedDuration,
    pulled: BTreeSet<String>,
    /// How many of them its status lists.
    listed: usize,
    pods: BTreeSet<Key>,
    since: String,
    next_status: Timestamp,
}

/// The task that plays all kubelets.
pub(crate) struct Kubelets {
    local: Local,
    store: Arc<Store>,
    clock: Clock,
    resources: Resources,
    options: Options,
    random: Random,
    recorder: Recorder,
    cursor: Cursor,
    hosts: BTreeMap<String, Host>,
    /// A pod is large, and a tree has empty places.
    pods: BTreeMap<Key, Box<Pod>>,
    specs: Specs,
    timers: BTreeSet<(Timestamp, Key)>,
    beats: BTreeSet<(Timestamp, String)>,
    addresses: u32,
}

struct Resources {
    pods: Arc<Resource>,
    nodes: Arc<Resource>,
    leases: Arc<Resource>,
}

impl Kubelets {
    /// `None` when the server does not serve the kinds that nodes need.
    pub(crate) fn new(local: Local, options: Options) -> Option<Self> {
        let resources = Resources {
            pods: local.resource("", "pods").ok()?,
            nodes: local.resource("", "nodes").ok()?,
            leases: local.resource("coordination.k8s.io", "leases").ok()?,
        };
        let store = local.server().store().clone();
        // Nothing before this version is missed: the first look lists everything.
        let cursor = store.watch(&resources.pods.table, store.version());
        let recorder = Recorder::new(local.clone(), "kubelet", options.events);
        Some(Self {
            store,
            clock: *local.server().clock(),
            resources,
            random: Random::seeded(options.seed ^ 0x6e6f_6465),
            options,
            recorder,
            cursor,
            local,
            hosts: BTreeMap::new(),
            pods: BTreeMap::new(),
            specs: Specs::default(),
            timers: BTreeSet::new(),
            beats: BTreeSet::new(),
            addresses: 0,
        })
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        for node in self.nodes() {
            self.add(node).await;
        }
        let mut dirty = self.relist();
        loop {
            let mut worked = !dirty.is_empty();
            for command in self.options.control.take() {
                worked = true;
                self.obey(command, &mut dirty).await;
            }
            match self.cursor.take() {
                Ok(events) => {
                    worked |= !events.is_empty();
                    for event in &events {
                        self.see(&event.new, &mut dirty);
                    }
                }
                Err(_) => {
                    self.cursor = self.store.watch(&self.resources.pods.table, self.store.version());
                    dirty.extend(self.relist());
                }
            }
            let now = self.clock.now();
            while let Some((_, key)) = self.timers.pop_first_if(now) {
                dirty.insert(key);
            }
            for key in std::mem::take(&mut dirty) {
                worked = true;
                self.sync(&key).await;
            }
            while let Some((_, node)) = self.beats.pop_first_if(now) {
                worked = true;
                self.beat(&node).await;
            }
            if !worked {
                self.wait().await;
            }
        }
    }

    /// The nodes to begin with: those that are wanted, and those that are registered already.
    fn nodes(&mut self) -> Vec<Node> {
        let mut nodes = std::mem::take(&mut self.options.nodes);
        let (_, registered) = self.store.list(&self.resources.nodes.table, None);
        for node in registered.iter().filter_map(|record| Node::registered(&record.value())) {
            if !nodes.iter().any(|wanted| wanted.name == node.name) {
                nodes.push(node);
            }
        }
        nodes
    }

    async fn wait(&mut self) {
        let now = self.clock.now();
        let next = sooner(self.timers.first().map(|(at, _)| *at), self.beats.first().map(|(at, _)| *at));
        let control = self.options.control.clone();
        let mut changed = pin!(self.cursor.wait());
        let mut told = pin!(control.bell.notified());
        let woken = futures::future::select(changed.as_mut(), told.as_mut());
        match next {
            Some(at) => {
                let pause = self.clock.real(until(now, at)).max(Duration::from_millis(1));
                let _ = tokio::time::timeout(pause, woken).await;
            }
            None => {
                woken.await;
            }
        }
    }

    /// Reads all pods anew.
    fn relist(&mut self) -> BTreeSet<Key> {
        let (_, records) = self.store.list(&self.resources.pods.table, None);
        let mut dirty: BTreeSet<Key> = self.pods.keys().cloned().collect();
        // Whatever was missed may be hidden behind a write of our own.
        for pod in self.pods.values_mut() {
            pod.own_version = 0;
        }
        for record in &records {
            self.see(record, &mut dirty);
        }
        dirty
    }

    /// A pod changed: take over its newest state.
    fn see(&mut self, record: &Record, dirty: &mut BTreeSet<Key>) {
        let key: Key = (record.namespace.clone(), record.name.clone());
        let current = self.store.get(&self.resources.pods.table, &key.0, &key.1);
        let known = self.pods.get(&key).map(|pod| pod.uid.clone());
        let Some(current) = current else {
            self.forget(&key);
            return;
        };
        if known.as_deref().is_some_and(|uid| uid != &*current.uid) {
            self.forget(&key);
        }
        let node = current.field("spec.nodeName");
        let Some(host) = self.hosts.get_mut(node) else { return };
        let now = self.clock.now();
        match self.pods.get_mut(&key) {
            // Only the change itself tells whether it is ours: our write may stand on one that we have not seen.
            Some(pod) if pod.own_version == record.rv => return,
            Some(pod) => {
                let value = current.value();
                pod.see(&value, self.specs.read(&value), now);
            }
            None => {
                let value = current.value();
                if matches!(current.field("status.phase"), "Succeeded" | "Failed") && !current.deleting {
                    return;
                }
                let ip = text(&value, "/status/podIP");
                let ip = if ip.is_empty() {
                    self.addresses += 1;
                    pod_ip(self.addresses)
                } else {
                    self.addresses = self.addresses.max(number_of_pod_ip(ip));
                    ip.to_owned()
                };
                let spec = self.specs.read(&value);
                let pod = Pod::new(&current, &value, spec, ip, host_ip(host.index), now);
                host.pods.insert(key.clone());
                self.pods.insert(key.clone(), Box::new(pod));
            }
        }
        dirty.insert(key);
    }

    fn forget(&mut self, key: &Key) {
        let Some(pod) = self.pods.remove(key) else { return };
        if let Some(at) = pod.wake {
            self.timers.remove(&(at, key.clone()));
        }
        if let Some(host) = self.hosts.get_mut(&*pod.node) {
            host.pods.remove(key);
        }
        self.options.machines.forget(&pod.node, pod.all_ids());
    }

    /// Looks at a pod and writes what came of it.
    async fn sync(&mut self, key: &Key) {
        self.weigh(key);
        let Some(pod) = self.pods.get_mut(key) else { return };
        let Some(host) = self.hosts.get_mut(&*pod.node) else { return };
        if !host.up {
            return;
        }
        let images = self.options.images.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut pass = Pass {
            now: self.clock.now(),
            skew: host.skew,
            images: &images,
            steps: &self.options.steps,
            pulled: &mut host.pulled,
            random: &mut self.random,
            store: &self.store,
            machines: &self.options.machines,
            said: Vec::new(),
        };
        let next = pod.look(&mut pass);
        let patch = pod.report(&pass);
        let said = std::mem::take(&mut pass.said);
        let (uid, node, gone) = (pod.uid.clone(), pod.node.clone(), pod.stage == Stage::Gone);
        self.set_timer(key, next);
        if let Some(patch) = patch {
            let patch = Patch::Strategic(patch);
            let written =
                self.local.patch(&self.resources.pods, &key.0, &key.1, Some("status"), &patch).await;
            match (written, self.pods.get_mut(key)) {
                (Ok(record), Some(pod)) => pod.own_version = record.rv,
                (Err(status), Some(pod)) if !matches!(status.code, 404 | 422) => {
                    pod.written = 0;
                    let retry = later(self.clock.now(), RETRY);
                    self.set_timer(key, Some(next.map_or(retry, |next| next.min(retry))));
                    return;
                }
                _ => {}
            }
        }
        for Said { warning, reason, message, field } in said {
            let about = About { namespace: &key.0, name: &key.1, uid: &uid, field: &field };
            self.recorder.record(about, &node, warning, reason, &message).await;
        }
        if gone {
            let options = DeleteOptions {
                grace_period_seconds: Some(0),
                preconditions: Preconditions { uid: Some(uid.to_string()), resource_version: None },
                ..DeleteOptions::default()
            };
            let deleted = self.local.delete(&self.resources.pods, &key.0, &key.1, &options).await;
            if deleted.is_err_and(|status| !matches!(status.code, 404 | 409)) {
                let retry = later(self.clock.now(), RETRY);
                self.set_timer(key, Some(retry));
            }
        }
    }

    fn set_timer(&mut self, key: &Key, at: Option<Timestamp>) {
        let Some(pod) = self.pods.get_mut(key) else { return };
        if let Some(old) = std::mem::replace(&mut pod.wake, at) {
            self.timers.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.timers.insert((at, key.clone()));
        }
    }

    /// Whether a wish for other resources fits the node, now or ever.
    fn weigh(&mut self, key: &Key) {
        let Some(pod) = self.pods.get(key) else { return };
        let wishes = pod.spec.containers.iter().zip(&pod.containers);
        if wishes.clone().all(|(spec, container)| spec.resources == container.allocated) {
            if let Some(pod) = self.pods.get_mut(key) {
                pod.resize_waits = None;
            }
            return;
        }
        let Some(host) = self.hosts.get(&*pod.node) else { return };
        let others = host.pods.iter().filter(|other| *other != key).filter_map(|other| self.pods.get(other));
        let (cpu, memory) = others
            .filter(|other| !matches!(other.stage, Stage::Over | Stage::Gone | Stage::Leaving { .. }))
            .map(|other| other.spec.requests())
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let wanted = pod.spec.requests();
        let has = |text: &str| Quantity::parse(text).ok();
        let capacity_cpu = has(&host.node.cpu).map_or(0, |q| q.millis());
        let capacity_memory = has(&host.node.memory).map_or(0, |q| q.value());
        let mut waits = None;
        for (name, wanted, used, capacity) in
            [("cpu", wanted.0, cpu, capacity_cpu), ("memory", wanted.1, memory, capacity_memory)]
        {
            if wanted > capacity {
                let text = format!(
                    "Node didn't have enough capacity: {name}, requested: {wanted}, capacity: {capacity}"
                );
                waits = Some(("Infeasible", text));
                break;
            }
            if wanted + used > capacity {
                let text = format!(
                    "Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {capacity}"
                );
                waits = Some(("Deferred", text));
            }
        }
        if let Some(pod) = self.pods.get_mut(key) {
            pod.resize_waits = waits;
        }
    }

    /// Registers a node.
    async fn add(&mut self, node: Node) {
        let index = self.hosts.len();
        let now = self.clock.now();
        let name = node.name.clone();
        let since = self.ready_since(&name).unwrap_or_else(|| stamp(now, SignedDuration::ZERO));
        let _ = self.local.create(&self.resources.nodes, "", node.object(index)).await;
        let status = Patch::Strategic(node.status(index, &since, &since));
        let _ = self.local.patch(&self.resources.nodes, "", &name, Some("status"), &status).await;
        let host = Host {
            node,
            index,
            up: true,
            skew: SignedDuration::ZERO,
            pulled: BTreeSet::new(),
            listed: 0,
            pods: BTreeSet::new(),
            since,
            next_status: later(now, STATUS_EVERY),
        };
        self.hosts.insert(name.clone(), host);
        self.beat(&name).await;
    }

    /// Since when a node that is registered already is ready.
    fn ready_since(&self, name: &str) -> Option<String> {
        let node = self.store.get(&self.resources.nodes.table, "", name)?.value();
        let mut conditions = list(&node, "/status/conditions").iter();
        let ready = conditions.find(|condition| text(condition, "/type") == "Ready")?;
        (text(ready, "/status") == "True").then(|| text(ready, "/lastTransitionTime").to_owned())
    }

    /// A sign of life: the lease, and from time to time the whole status.
    async fn beat(&mut self, name: &str) {
        let now = self.clock.now();
        let jitter = Duration::from_millis(self.random.below(1000));
        self.beats.insert((later(now, self.options.heartbeat + jitter), name.to_owned()));
        let Some(host) = self.hosts.get_mut(name) else { return };
        if !host.up {
            return;
        }
        let renewed = micros_text(now.checked_add(host.skew).unwrap_or(now));
        let patch = Patch::Merge(fields(json!({"spec": {"renewTime": renewed}})));
        // As a kubelet does: from time to time, and soon after something in it has changed.
        let status = (host.next_status <= now || host.listed != host.pulled.len()).then(|| {
            host.next_status = later(now, STATUS_EVERY);
            host.listed = host.pulled.len();
            let mut status = host.node.status(host.index, &host.since, &stamp(now, host.skew));
            let images = self.options.images.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(status) = status.get_mut("status").filter(|_| host.listed > 0) {
                status["images"] = images.listed(&host.pulled);
            }
            Patch::Strategic(status)
        });
        let lease = self.local.patch(&self.resources.leases, LEASES, name, None, &patch).await;
        if lease.is_err_and(|status| status.code == 404) {
            let uid = self.store.get(&self.resources.nodes.table, "", name).map(|record| record.uid.clone());
            let lease = json!({
                "metadata": {"name": name, "namespace": LEASES, "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid.as_deref()}]},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed},
            });
            let _ = self.local.create(&self.resources.leases, LEASES, lease).await;
        }
        if let Some(status) = status {
            let _ = self.local.patch(&self.resources.nodes, "", name, Some("status"), &status).await;
        }
    }

    async fn obey(&mut self, command: Command, dirty: &mut BTreeSet<Key>) {
        match command {
            Command::Add(node) => self.add(node).await,
            Command::Stop { node } => {
                if let Some(host) = self.hosts.get_mut(&node) {
                    host.up = false;
                }
            }
            Command::Return { node, containers_died } => self.come_back(&node, containers_died, dirty).await,
            Command::Skew { node, by } => {
                if let Some(host) = self.hosts.get_mut(&node) {
                    host.skew = by;
                }
            }
            Command::Readiness { namespace, pod, container, ready } => {
                let key: Key = (namespace.into(), pod.into());
                let now = self.clock.now();
                if let Some(pod) = self.pods.get_mut(&key) {
                    pod.change_readiness(&container, ready, now);
                    dirty.insert(key);
                }
            }
            Command::Kill { namespace, pod, container } => {
                let key: Key = (namespace.into(), pod.into());
                let now = self.clock.now();
                if let Some(pod) = self.pods.get_mut(&key) {
                    pod.kill(&container, now);
                    dirty.insert(key);
                }
            }
            Command::Inside { node, question } => self.answer(&node, question, dirty),
            Command::Evict { namespace, pod, message } => {
                let key: Key = (namespace.into(), pod.into());
                if let Some(pod) = self.pods.get_mut(&key) {
                    pod.failed = Some(("Evicted", message));
                    dirty.insert(key);
                }
            }
        }
    }

    async fn come_back(&mut self, name: &str, containers_died: bool, dirty: &mut BTreeSet<Key>) {
        let now = self.clock.now();
        let Some(host) = self.hosts.get_mut(name) else { return };
        if std::mem::replace(&mut host.up, true) {
            return;
        }
        host.next_status = now;
        host.since = stamp(now, host.skew);
        let keys: Vec<Key> = host.pods.iter().cloned().collect();
        let mut said = Vec::new();
        for key in keys {
            // What changed while the node was away is in the API now.
            if let Some(current) = self.store.get(&self.resources.pods.table, &key.0, &key.1) {
                self.see(&current, dirty);
            }
            let (Some(pod), Some(host)) = (self.pods.get_mut(&key), self.hosts.get_mut(name)) else {
                continue;
            };
            pod.written = 0;
            if containers_died {
                self.addresses += 1;
                let images = self.options.images.read().unwrap_or_else(PoisonError::into_inner).clone();
                let mut pass = Pass {
                    now,
                    skew: host.skew,
                    images: &images,
                    steps: &self.options.steps,
                    pulled: &mut host.pulled,
                    random: &mut self.random,
                    store: &self.store,
                    machines: &self.options.machines,
                    said: Vec::new(),
                };
                pod.reboot(pod_ip(self.addresses), &mut pass);
                said.extend(pass.said.into_iter().map(|said| (key.clone(), pod.uid.clone(), said)));
            }
            dirty.insert(key);
        }
        for (key, uid, said) in said {
            let about = About { namespace: &key.0, name: &key.1, uid: &uid, field: &said.field };
            self.recorder.record(about, name, said.warning, said.reason, &said.message).await;
        }
        self.beats.retain(|(_, node)| node != name);
        self.beat(name).await;
    }
}

/// Taking what is due from a set ordered by time.
trait PopDue<T> {
    fn pop_first_if(&mut self, now: Timestamp) -> Option<(Timestamp, T)>;
}

impl<T: Ord> PopDue<T> for BTreeSet<(Timestamp, T)> {
    fn pop_first_if(&mut self, now: Timestamp) -> Option<(Timestamp, T)> {
        if self.first().is_some_and(|(at, _)| *at <= now) { self.pop_first() } else { None }
    }
}
