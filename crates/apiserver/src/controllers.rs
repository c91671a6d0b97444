//! The controllers that every cluster has built in.
//!
//! One future runs them all: [`run`]. Events of all tables put keys on one queue, keys are worked on by small
//! handlers that compare the wanted with the seen state, and a handler that fails or wants to look again later
//! gets its key back after a while. Nothing is polled: the future sleeps until an event or a timer wakes it.
//! Reads go to the store itself (or to an index that is brought up to date before each handler starts), so a
//! handler always sees its own last writes.

mod autoscaler;
mod claim;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod furnish;
mod garbage;
mod gather;
mod graph;
mod job;
mod namespace;
mod node;
mod object;
mod pods;
mod queue;
mod quota;
mod recorder;
mod replicaset;
mod revisions;
mod sources;
mod statefulset;
mod volume;
mod wake;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::Future as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::client::Local;
use crate::registry::Resource;
use crate::status::Status;
use graph::Graph;
use pods::Pods;
use queue::Queue;
use recorder::{Involved, Recorder};
use sources::Sources;

/// Most handlers that wait for something (a webhook, mostly) at the same time.
const MOST_RUNNING: usize = 64;
/// Who asks for a later time is woken before it and looks again; clocks do not reach every time that can be written.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);
/// How often resources that came without any event are looked for.
const LOOK_AROUND: Duration = Duration::from_secs(30);

/// A built-in controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// Deletes what lost its owners.
    GarbageCollector,
    /// Empties namespaces that are being deleted.
    Namespace,
    /// Keeps the pods of ReplicaSets and ReplicationControllers.
    ReplicaSet,
    /// Rolls out deployments.
    Deployment,
    /// Keeps the pods of StatefulSets.
    StatefulSet,
    /// Keeps a pod of each DaemonSet on every node that fits.
    DaemonSet,
    /// Runs jobs to their end.
    Job,
    /// Starts jobs when their time has come.
    CronJob,
    /// Keeps the addresses behind services.
    Endpoints,
    /// Scales targets by their load.
    Autoscaler,
    /// Counts for quotas.
    Quota,
    /// Binds claims to volumes.
    Volume,
    /// Watches over nodes: silence, taints, and pods that do not tolerate them.
    NodeLifecycle,
    /// Removes pods whose node is gone.
    PodCollector,
    /// Counts for disruption budgets.
    Disruption,
    /// Puts the default service account and the root certificate into namespaces.
    Furnish,
    /// Fills cluster roles that are made of others.
    RoleAggregation,
}

/// Which controllers run, and how patient they are.
#[derive(Clone, Debug)]
pub struct Options {
    /// Controllers that do not run.
    pub without: BTreeSet<Controller>,
    /// How long a node may be silent.
    pub node_grace: Duration,
    /// How long workloads rest after each look at them. A pause lets many changes of pods become one look, which
    /// matters where pods change while controllers run.
    pub rest: Duration,
    /// The certificate (PEM) for `kube-root-ca.crt`; without one there is no such config map.
    pub root_ca: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            without: BTreeSet::new(),
            node_grace: Duration::from_secs(40),
            rest: Duration::ZERO,
            root_ca: None,
        }
    }
}

/// What a handler works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Garbage,
    Namespace,
    ReplicaSet,
    Replication,
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    JobPod,
    CronJob,
    Service,
    Autoscaler,
    Quota,
    Claim,
    Volume,
    Node,
    Evict,
    Collect,
    Budget,
    Furnish,
    Gather,
}

impl Work {
    /// Whether every change of a pod is a reason to look again at all pods of the object.
    fn is_of_many_pods(self) -> bool {
        matches!(
            self,
            Self::ReplicaSet
                | Self::Replication
                | Self::Deployment
                | Self::StatefulSet
                | Self::DaemonSet
                | Self::Job
                | Self::Service
                | Self::Quota
                | Self::Budget
        )
    }

    fn controller(self) -> Controller {
        match self {
            Self::Garbage => Controller::GarbageCollector,
            Self::Namespace => Controller::Namespace,
            Self::ReplicaSet | Self::Replication => Controller::ReplicaSet,
            Self::Deployment => Controller::Deployment,
            Self::StatefulSet => Controller::StatefulSet,
            Self::DaemonSet => Controller::DaemonSet,
            Self::Job | Self::JobPod => Controller::Job,
            Self::CronJob => Controller::CronJob,
            Self::Service => Controller::Endpoints,
            Self::Autoscaler => Controller::Autoscaler,
            Self::Quota => Controller::Quota,
            Self::Claim | Self::Volume => Controller::Volume,
            Self::Node | Self::Evict => Controller::NodeLifecycle,
            Self::Collect => Controller::PodCollector,
            Self::Budget => Controller::Disruption,
            Self::Furnish => Controller::Furnish,
            Self::Gather => Controller::RoleAggregation,
        }
    }
}

/// One piece of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    work: Work,
    /// Only where objects of any table are meant.
    table: String,
    namespace: String,
    name: String,
}

impl Key {
    fn new(work: Work, namespace: &str, name: &str) -> Self {
        Self { work, table: String::new(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// When to look again, if no event comes earlier.
type Outcome = Result<Option<Duration>, Status>;

/// What handlers share.
struct Context {
    client: Local,
    graph: Mutex<Graph>,
    pods: Mutex<Pods>,
    resources: Mutex<BTreeMap<Arc<str>, Arc<Resource>>>,
    recorder: Mutex<Recorder>,
    wakes: Mutex<Vec<Key>>,
    /// Since when pods have to leave their node.
    leaving: Mutex<BTreeMap<(String, String), Timestamp>>,
    daemon_pauses: Mutex<daemonset::Pauses>,
    daemon_nodes: Mutex<daemonset::Nodes>,
    rescheduled: Mutex<cronjob::Rescheduled>,
    services: Mutex<endpoints::Services>,
    autoscalers: Mutex<autoscaler::Memories>,
    node_grace: Duration,
    root_ca: Option<String>,
    /// When the controllers began: nobody can be silent for longer than they listen.
    began: Timestamp,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        lock(&self.graph)
    }

    fn pods(&self) -> MutexGuard<'_, Pods> {
        lock(&self.pods)
    }

    fn resources(&self) -> BTreeMap<Arc<str>, Arc<Resource>> {
        lock(&self.resources).clone()
    }

    fn resource_of(&self, table: &str) -> Option<Arc<Resource>> {
        lock(&self.resources).get(table).cloned()
    }

    /// Puts a key on the queue.
    fn wake(&self, key: Key) {
        lock(&self.wakes).push(key);
    }

    fn now(&self) -> Timestamp {
        self.client.server().clock().now()
    }

    fn now_text(&self) -> String {
        self.client.server().clock().now_text()
    }

    async fn record(
        &self,
        component: &'static str,
        involved: &Involved,
        kind: &'static str,
        reason: &str,
        message: &str,
    ) {
        recorder::record(&self.recorder, &self.client, component, involved, kind, reason, message).await;
    }
}

async fn handle(cx: &Context, key: &Key) -> Outcome {
    match key.work {
        Work::Garbage => garbage::check(cx, key).await,
        Work::Namespace => namespace::sync(cx, key).await,
        Work::ReplicaSet | Work::Replication => replicaset::sync(cx, key).await,
        Work::Deployment => deployment::sync(cx, key).await,
        Work::StatefulSet => statefulset::sync(cx, key).await,
        Work::DaemonSet => daemonset::sync(cx, key).await,
        Work::Job => job::sync(cx, key).await,
        Work::JobPod => job::forget_pod(cx, key).await,
        Work::CronJob => cronjob::sync(cx, key).await,
        Work::Service => endpoints::sync(cx, key).await,
        Work::Autoscaler => autoscaler::sync(cx, key).await,
        Work::Quota => quota::sync(cx, key).await,
        Work::Claim => volume::claim(cx, key).await,
        Work::Volume => volume::volume(cx, key).await,
        Work::Node => node::sync(cx, key).await,
        Work::Evict => node::evict(cx, key).await,
        Work::Collect => node::collect(cx, key).await,
        Work::Budget => disruption::sync(cx, key).await,
        Work::Furnish => furnish::sync(cx, key).await,
        Work::Gather => gather::sync(cx).await,
    }
}

/// What ended a wait.
enum Woken {
    Done(Key, Outcome),
    Look,
}

/// Runs the built-in controllers until the future is dropped.
pub async fn run(client: Local, options: Options) -> Infallible {
    let client = client.named("kube-controller-manager");
    let cx = Context {
        client: client.clone(),
        graph: Mutex::default(),
        pods: Mutex::default(),
        resources: Mutex::default(),
        recorder: Mutex::default(),
        wakes: Mutex::default(),
        leaving: Mutex::default(),
        daemon_pauses: Mutex::default(),
        daemon_nodes: Mutex::default(),
        rescheduled: Mutex::default(),
        services: Mutex::default(),
        autoscalers: Mutex::default(),
        node_grace: options.node_grace,
        root_ca: options.root_ca.clone(),
        began: client.server().clock().now(),
    };
    let cx = &cx;
    let clock = *client.server().clock();
    let mut sources = Sources::new(client.clone());
    let mut queue: Queue<Key> = Queue::new();
    let mut running = FuturesUnordered::new();
    loop {
        let mut keys = std::mem::take(&mut *lock(&cx.wakes));
        let changed = sources.drain(|resource, event| wake::keys(cx, resource, event, &mut keys));
        if changed {
            *lock(&cx.resources) = sources.resources();
            wake::resources_changed(cx, &mut keys);
        }
        for key in keys {
            if !options.without.contains(&key.work.controller()) {
                queue.add(key);
            }
        }
        while running.len() < MOST_RUNNING
            && let Some(key) = queue.pop(Instant::now())
        {
            running.push(async move {
                let outcome = handle(cx, &key).await;
                (key, outcome)
            });
        }
        let woken = match running.next().now_or_never() {
            Some(Some((key, outcome))) => {
                breathe().await;
                Woken::Done(key, outcome)
            }
            _ => {
                let far = Instant::now() + clock.real(LOOK_AROUND);
                let until = queue.next_due().map_or(far, |due| due.min(far));
                let mut timer = Box::pin(tokio::time::sleep_until(until));
                let mut news = Box::pin(sources.wait());
                std::future::poll_fn(|task| {
                    if let Poll::Ready(Some((key, outcome))) = running.poll_next_unpin(task) {
                        return Poll::Ready(Woken::Done(key, outcome));
                    }
                    if news.as_mut().poll(task).is_ready() || timer.as_mut().poll(task).is_ready() {
                        return Poll::Ready(Woken::Look);
                    }
                    Poll::Pending
                })
                .await
            }
        };
        let Woken::Done(key, outcome) = woken else { continue };
        match outcome {
            Ok(again) => {
                if !options.rest.is_zero() && key.work.is_of_many_pods() {
                    queue.rest(&key, Instant::now() + options.rest);
                }
                queue.done(&key);
                if let Some(after) = again {
                    queue.add_at(key, Instant::now() + clock.real(after.min(LONGEST_WAIT)));
                }
            }
            Err(status) => {
                tracing::debug!(work = ?key.work, namespace = %key.namespace, name = %key.name,
                    error = %status.message, "a controller tries again");
                queue.failed(&key, Instant::now(), |pause| clock.real(pause));
            }
        }
    }
}

/// Lets other tasks of the thread run.
async fn breathe() {
    let mut rested = false;
    std::future::poll_fn(|task| {
        if rested {
            return Poll::Ready(());
        }
        rested = true;
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
