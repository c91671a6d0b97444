//! The cluster as a value.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use http::Request;
use jiff::{SignedDuration, Timestamp};
use kruise_apiserver::admission::User;
use kruise_apiserver::clock::Clock;
use kruise_apiserver::random::Random;
use kruise_apiserver::store::Journal;
use kruise_apiserver::{ApiServer, controllers};
use tokio::task::{JoinError, JoinSet};
use tower::Layer as _;
use tower::util::MapRequest;

use crate::connections::Connections;
use crate::faults::Faults;
use crate::history::Recorder;
use crate::image::{Behaviour, Images};
use crate::kubelet::{Command, Control, Kubelets, Options};
use crate::load::Load;
use crate::logs::Logs;
use crate::machine::{Machine, Machines, Stations};
use crate::node::Node;
use crate::scheduler::Scheduler;
use crate::steps::Steps;

/// The zones that nodes are spread over, in turn.
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// How long nothing may happen before a cluster counts as settled.
const QUIET: Duration = Duration::from_secs(30);
/// How long a cluster is given to settle.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// How to build a [`Sim`].
#[derive(Clone, Debug)]
pub struct Builder {
    seed: u64,
    nodes: Vec<Node>,
    start: Timestamp,
    speed: f64,
    latency: Duration,
    heartbeat: Option<Duration>,
    steps: Steps,
    events: bool,
    parallel: bool,
    controllers: controllers::Options,
    journal: Option<Arc<dyn Journal>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            seed: 1,
            nodes: nodes(3),
            start: Clock::DEFAULT_BASE,
            speed: 1.0,
            latency: Duration::ZERO,
            heartbeat: None,
            steps: Steps::default(),
            events: true,
            parallel: false,
            controllers: controllers::Options::default(),
            journal: None,
        }
    }
}

/// Nodes `node-1`, `node-2` and so on over three zones. Names have as many digits as the last one needs.
fn nodes(count: usize) -> Vec<Node> {
    let digits = count.to_string().len();
    let mut zones = ZONES.iter().cycle();
    (1..=count)
        .map(|n| Node {
            zone: zones.next().map_or(String::new(), |zone| (*zone).to_owned()),
            ..Node::named(format!("node-{n:0digits$}"))
        })
        .collect()
}

impl Builder {
    /// The seed of everything random. Default: 1.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many nodes there are, over three zones. Default: 3.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = nodes(count);
        self
    }

    /// Exactly these nodes.
    #[must_use]
    pub fn with_nodes(mut self, nodes: Vec<Node>) -> Self {
        self.nodes = nodes;
        self
    }

    /// The time at the start. Default: 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn start_time(mut self, start: Timestamp) -> Self {
        self.start = start;
        self
    }

    /// How much faster than real time the cluster lives. Only of use without paused time.
    #[must_use]
    pub fn speed(mut self, factor: f64) -> Self {
        self.speed = factor;
        self
    }

    /// How long each call of a client takes.
    #[must_use]
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// How often nodes renew their leases. Default: 10 s, and up to 20 s for thousands of nodes.
    #[must_use]
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = Some(every);
        self
    }

    /// Other times in the table of the nodes' steps.
    #[must_use]
    pub fn steps(mut self, steps: Steps) -> Self {
        self.steps = steps;
        self
    }

    /// Scheduler and nodes write no events.
    #[must_use]
    pub fn without_events(mut self) -> Self {
        self.events = false;
        self
    }

    /// Nodes live beside scheduler and controllers, on several threads where the runtime has them. That is faster,
    /// but one seed no longer gives one history.
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.parallel = true;
        self
    }

    /// Which built-in controllers run.
    #[must_use]
    pub fn controllers(mut self, options: controllers::Options) -> Self {
        self.controllers = options;
        self
    }

    /// Where the cluster is kept. It begins with what is kept there: nodes and pods go on.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// A cluster in which nothing moves yet; see [`Sim::run`].
    pub fn build(self) -> Sim {
        let clock = Clock::starting_at(self.start).with_speed(self.speed);
        let server = ApiServer::builder().clock(clock).seed(self.seed);
        let server = match self.journal.clone() {
            Some(journal) => server.journal(journal).build(),
            None => server.build(),
        };
        server.set_metrics_source(Arc::new(Load { store: server.store().clone() }));
        let faults = Faults::seeded(self.seed);
        faults.latency(self.latency);
        let sim = Sim {
            random: Random::seeded(self.seed ^ 0x7069_636b),
            server,
            faults,
            images: Arc::default(),
            control: Arc::default(),
            stations: Arc::default(),
            tasks: Mutex::default(),
            builder: self,
            is_running: false,
        };
        let logs = Logs { store: sim.server.store().clone(), clock, machines: sim.machines() };
        sim.server.set_log_source(Arc::new(logs.clone()));
        sim.server.set_connector(Arc::new(Connections { machines: sim.machines(), logs }));
        sim
    }

    /// A cluster that lives: [`Self::build`] and [`Sim::run`].
    pub fn start(self) -> Sim {
        let mut sim = self.build();
        sim.run();
        sim
    }
}

/// A cluster in one process. Dropping it stops everything in it.
///
/// A panic of a part of the cluster comes out where the test is: of [`Sim::advance`], [`Sim::settle`] or, at the
/// latest, of dropping the cluster.
#[derive(Debug)]
pub struct Sim {
    server: ApiServer,
    faults: Faults,
    images: Arc<RwLock<Images>>,
    control: Arc<Control>,
    stations: Stations,
    tasks: Mutex<JoinSet<()>>,
    random: Random,
    builder: Builder,
    is_running: bool,
}

impl Sim {
    /// Starts to describe a cluster.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Lets controllers, scheduler and nodes live on the current tokio runtime. A second call changes nothing.
    pub fn run(&mut self) {
        if self.is_running {
            return;
        }
        self.is_running = true;
        let Builder { seed, events, .. } = self.builder;
        let local = self.server.local();
        let few = Duration::from_secs(10);
        let many = few + Duration::from_millis(self.builder.nodes.len() as u64 * 5);
        let options = Options {
            nodes: std::mem::take(&mut self.builder.nodes),
            steps: self.builder.steps.clone(),
            images: self.images.clone(),
            control: self.control.clone(),
            machines: self.machines(),
            heartbeat: self.builder.heartbeat.unwrap_or(many.min(few * 2)),
            events,
            seed,
        };
        let kubelets = Kubelets::new(local.named("kubelet"), options);
        let scheduler = Scheduler::new(local.named("kube-scheduler"), seed, events);
        let expiry = crate::events::watch(&local);
        let options = self.builder.controllers.clone();
        let nodes = async {
            if let Some(kubelets) = kubelets {
                kubelets.run().await;
            }
        };
        let placing = async {
            if let Some(scheduler) = scheduler {
                scheduler.run().await;
            }
        };
        let expiring = {
            let local = local.clone();
            async move {
                if let Some((events, cursor)) = expiry {
                    crate::events::expire(local, events, cursor).await;
                }
            }
        };
        let controllers = async move {
            controllers::run(local, options).await;
        };
        if self.builder.parallel {
            self.spawn(nodes);
            self.spawn(async move {
                futures::join!(controllers, placing, expiring);
            });
            return;
        }
        // One task for all of them: tokio wakes several tasks that wait for one signal in a random order, but one
        // task looks at its parts always in the same order.
        self.spawn(async move {
            futures::join!(nodes, controllers, placing, expiring);
        });
    }

    /// Lets something more live in the cluster. It ends with the cluster, and its panics come out as the cluster's.
    pub fn spawn(&self, part: impl Future<Output = ()> + Send + 'static) {
        self.tasks().spawn(part);
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a part of the cluster panics.
    pub async fn failed(&mut self) -> JoinError {
        let tasks = self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner);
        loop {
            match tasks.join_next().await {
                Some(Err(error)) if error.is_panic() => return error,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Goes on with the panic of a part of the cluster, if there was one.
    fn check(&self) {
        while let Some(ended) = self.tasks().try_join_next() {
            if let Err(error) = ended
                && let Ok(payload) = error.try_into_panic()
            {
                std::panic::resume_unwind(payload);
            }
        }
    }

    /// The API server.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The clock of the cluster.
    pub fn clock(&self) -> &Clock {
        self.server.clock()
    }

    /// A client without faults, for tests and people.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.server.clone(), "default")
    }

    /// A client in somebody's name, with no more rights than they have.
    pub fn client_as(&self, user: User) -> kube::Client {
        kube::Client::new(named(self.server.clone(), user), "default")
    }

    /// A client of a service account, with the rights that are bound to it.
    pub fn account_client(&self, namespace: &str, name: &str) -> kube::Client {
        kube::Client::new(named(self.server.clone(), User::service_account(namespace, name)), namespace)
    }

    /// The faults of [`Self::faulty_client`].
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// A client whose calls go through [`Self::faults`], for the controller that is tested.
    pub fn faulty_client(&self) -> kube::Client {
        kube::Client::new(self.faults.layer(self.server.clone()), "default")
    }

    /// Says what an image does. See [`crate::image`] for what names alone can say.
    pub fn declare_image(&self, image: &str, behaviour: Behaviour) {
        self.images.write().unwrap_or_else(PoisonError::into_inner).declare(image, behaviour);
    }

    /// Makes two names mean one image, with one imageID.
    pub fn alias_image(&self, image: &str, target: &str) {
        self.images.write().unwrap_or_else(PoisonError::into_inner).alias(image, target);
    }

    /// Only this account may pull images whose full name, with the registry, begins so.
    pub fn protect_images(&self, beginning: &str, user: &str, password: &str) {
        self.images.write().unwrap_or_else(PoisonError::into_inner).protect(beginning, user, password);
    }

    /// Images whose full name, with the registry, begins so run a server when a pod names no command.
    pub fn serve_images(&self, beginning: &str) {
        self.images.write().unwrap_or_else(PoisonError::into_inner).serve(beginning);
    }

    /// A node as a program on it sees it.
    pub fn machine(&self, node: &str) -> Machine {
        self.machines().of(node)
    }

    /// All nodes, as programs on them see them.
    pub fn machines(&self) -> Machines {
        Machines {
            stations: self.stations.clone(),
            control: self.control.clone(),
            images: self.images.clone(),
            clock: *self.clock(),
            store: self.server.store().clone(),
        }
    }

    /// Adds a node.
    pub fn add_node(&self, node: Node) {
        self.control.send(Command::Add(node));
    }

    /// A node falls silent: no heartbeats, no news of its pods. What runs there goes on unseen.
    pub fn stop_node(&self, node: &str) {
        self.control.send(Command::Stop { node: node.to_owned() });
    }

    /// A silent node speaks again; its containers have been running all the time.
    pub fn return_node(&self, node: &str) {
        self.control.send(Command::Return { node: node.to_owned(), containers_died: false });
    }

    /// A silent node has been restarted: its containers died and start anew.
    pub fn reboot_node(&self, node: &str) {
        self.control.send(Command::Return { node: node.to_owned(), containers_died: true });
    }

    /// The clock of a node is off from now on.
    pub fn skew_node(&self, node: &str, by: SignedDuration) {
        self.control.send(Command::Skew { node: node.to_owned(), by });
    }

    /// The readiness probe of a container passes or fails from now on. A container without one stays ready.
    pub fn set_ready(&self, namespace: &str, pod: &str, container: &str, ready: bool) {
        let [namespace, pod, container] = [namespace, pod, container].map(str::to_owned);
        self.control.send(Command::Readiness { namespace, pod, container, ready });
    }

    /// Someone on the node stops a container that runs; it is started again as its restart policy says.
    pub fn kill_container(&self, namespace: &str, pod: &str, container: &str) {
        let [namespace, pod, container] = [namespace, pod, container].map(str::to_owned);
        self.control.send(Command::Kill { namespace, pod, container });
    }

    /// The node evicts a pod, as under memory pressure: it fails with reason `Evicted`.
    pub fn evict_by_node(&self, namespace: &str, pod: &str, message: &str) {
        let [namespace, pod, message] = [namespace, pod, message].map(str::to_owned);
        self.control.send(Command::Evict { namespace, pod, message });
    }

    /// Lets the cluster live for a while.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(self.clock().real(time)).await;
        self.check();
    }

    /// Lets the cluster live until nothing but signs of life happened for 30 seconds. Returns whether it came to
    /// rest within two hours.
    pub async fn settle(&self) -> bool {
        let mut history = Recorder::new(&self.server);
        let step = Duration::from_secs(1);
        let (mut quiet, mut spent) = (Duration::ZERO, Duration::ZERO);
        while quiet < QUIET {
            if spent > PATIENCE {
                return false;
            }
            self.advance(step).await;
            spent += step;
            quiet = if history.moved() { Duration::ZERO } else { quiet + step };
        }
        true
    }

    /// A recorder of everything that happens from now on.
    pub fn history(&self) -> Recorder {
        Recorder::new(&self.server)
    }

    /// A random number of the range, from the seed.
    pub fn pick(&mut self, range: Range<u64>) -> u64 {
        let width = range.end.saturating_sub(range.start);
        if width == 0 { range.start } else { range.start + self.random.below(width) }
    }

    /// One of the choices, from the seed.
    pub fn pick_one<'c, T>(&mut self, choices: &'c [T]) -> Option<&'c T> {
        let at = self.pick(0..choices.len() as u64);
        choices.get(usize::try_from(at).unwrap_or(0))
    }
}

/// The server for somebody: all requests are theirs.
fn named(
    server: ApiServer,
    user: User,
) -> MapRequest<ApiServer, impl Fn(Request<kube::client::Body>) -> Request<kube::client::Body> + Clone> {
    MapRequest::new(server, move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(user.clone());
        request
    })
}

impl Drop for Sim {
    fn drop(&mut self) {
        // A second panic while the first one is on its way would end the process without a word.
        if !std::thread::panicking() {
            self.check();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn broken() -> Sim {
        let sim = Sim::builder().start();
        sim.spawn(async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            panic!("a node lost its mind");
        });
        sim
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "a node lost its mind")]
    async fn a_panic_inside_the_cluster_comes_out_while_time_goes_on() {
        let sim = broken().await;
        sim.advance(Duration::from_secs(10)).await;
        std::mem::forget(sim);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "a node lost its mind")]
    async fn a_panic_inside_the_cluster_comes_out_at_its_end() {
        let sim = broken().await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        drop(sim);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_panic_is_told_of_it() {
        let error = broken().await.failed().await;
        assert!(error.to_string().contains("a node lost its mind"), "{error}");
    }
}
