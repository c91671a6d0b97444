//! A cluster with a manager and daemons, and words to talk about it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    catalogue,
    gates::{self, Gates},
    names,
};
use kruise_manager::inside::{Inside, Running, Surroundings};
use kruise_nodes::{Daemon, Options};
use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::{Sim, machine::Deed};
use serde_json::{Value, json};

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const EVENTS: &str = "/api/v1/events";
pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub(crate) const COPIES: &str = "/api/v1/namespaces/kruise-daemon-config/secrets";
pub(crate) const REQUESTS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";
pub(crate) const JOBS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagepulljobs";
pub(crate) const LISTS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/imagelistpulljobs";
pub(crate) const IMAGES: &str = "/apis/apps.kruise.io/v1beta1/nodeimages";
pub(crate) const MARKERS: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/podprobemarkers";
pub(crate) const PROBES: &str = "/apis/apps.kruise.io/v1alpha1/nodepodprobes";
pub(crate) const CLONESETS: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets";

/// The flag that switches pull jobs on, and nodes known at once.
pub(crate) const PULLS: &[&str] = &["--feature-gates=ImagePullJobGate=true", "--nodeimage-creation-delay=0s"];

pub(crate) struct World {
    pub(crate) sim: Sim,
    manager: Option<Running>,
    daemons: BTreeMap<String, Daemon>,
    flags: Vec<&'static str>,
    /// How far the clocks of all nodes are off.
    skew: Arc<Mutex<SignedDuration>>,
    pub(crate) most_pulls: Option<usize>,
    starts: u64,
    is_direct: bool,
}

impl World {
    /// So many nodes, each with a daemon, and a manager with these flags.
    pub(crate) async fn new(nodes: usize, flags: &[&'static str]) -> Self {
        let mut world = Self::bare(1, nodes, flags).await;
        world.start_daemons();
        world.live(5).await;
        world
    }

    /// The same with this seed, and without daemons.
    pub(crate) async fn bare(seed: u64, nodes: usize, flags: &[&'static str]) -> Self {
        Self::begin(seed, nodes, flags, false).await
    }

    /// The same without a place for faults on the way to the server: every byte arrives as it is stored.
    #[allow(dead_code, reason = "most tests have faults")]
    pub(crate) async fn direct(seed: u64, nodes: usize, flags: &[&'static str]) -> Self {
        Self::begin(seed, nodes, flags, true).await
    }

    async fn begin(seed: u64, nodes: usize, flags: &[&'static str], is_direct: bool) -> Self {
        let sim = Sim::builder().seed(seed).nodes(nodes).start();
        let flags = flags.to_vec();
        let mut world = Self {
            sim,
            manager: None,
            daemons: BTreeMap::new(),
            flags,
            skew: Arc::default(),
            most_pulls: None,
            starts: seed * 1000,
            is_direct,
        };
        for crd in catalogue::CRDS {
            world.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd.object()).await;
        }
        let label = json!({"control-plane": "openkruise"});
        for (name, labels) in [(names::NAMESPACE, label), (names::DAEMON_CONFIG_NAMESPACE, json!({}))] {
            world.post("/api/v1/namespaces", json!({"metadata": {"name": name, "labels": labels}})).await;
        }
        world.live(2).await;
        let inside = world.inside();
        for (plural, configuration) in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
            .into_iter()
            .zip(inside.configurations())
        {
            world.post(&format!("/apis/admissionregistration.k8s.io/v1/{plural}"), configuration).await;
        }
        world.start_manager();
        world.live(5).await;
        world
    }

    fn client(&self) -> kube::Client {
        if self.is_direct { self.sim.client() } else { self.sim.faulty_client() }
    }

    fn inside(&mut self) -> Inside {
        self.starts += 1;
        let clock = *self.sim.clock();
        let surroundings = Surroundings {
            client: self.client(),
            version: "v1.35.0".to_owned(),
            clock: Clock::from_fn(move || clock.now()),
            random: Random::seeded(self.starts),
        };
        Inside::new(surroundings, &self.flags).unwrap()
    }

    /// A manager that knows nothing of a former one.
    pub(crate) fn start_manager(&mut self) {
        self.manager = None;
        let inside = self.inside();
        let (namespace, service) = (names::NAMESPACE, names::WEBHOOK_SERVICE);
        self.sim.server().register_webhook_service(namespace, service, inside.webhooks());
        self.manager = Some(inside.start());
    }

    /// The controllers of the manager end at once. Its webhooks are those of another replica.
    pub(crate) fn kill_manager(&mut self) {
        self.manager = None;
    }

    /// What the manager knows.
    #[allow(dead_code, reason = "not all who use this look at it")]
    pub(crate) fn caches(&self) -> &kruise_manager::caches::Caches {
        &self.manager.as_ref().unwrap().manager().shared().caches
    }

    /// The numbers of the manager.
    #[allow(dead_code, reason = "not all who use this look at it")]
    pub(crate) fn metrics(&self) -> String {
        self.manager.as_ref().unwrap().manager().shared().registry.text()
    }

    /// How a part of the manager ended, which it should not.
    #[allow(dead_code, reason = "not all who use this look at it")]
    pub(crate) fn ended(&mut self) -> Option<String> {
        use futures::FutureExt as _;
        let ended = self.manager.as_mut()?.ended().now_or_never()?;
        Some(
            std::iter::successors(Some(&ended as &dyn std::error::Error), |error| error.source())
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(": "),
        )
    }

    /// A daemon on each node.
    pub(crate) fn start_daemons(&mut self) {
        for node in self.nodes() {
            self.start_daemon(&node);
        }
    }

    fn nodes(&self) -> Vec<String> {
        let (_, nodes) = self.sim.server().store().list("/nodes", None);
        nodes.iter().map(|node| node.name.to_string()).collect()
    }

    /// A daemon that knows nothing of a former one, which ends at once.
    pub(crate) fn start_daemon(&mut self, node: &str) {
        self.daemons.remove(node);
        self.starts += 1;
        let gates = self.flags.iter().find_map(|flag| flag.strip_prefix("--feature-gates="));
        let (gates, _) = Gates::parse(gates.unwrap_or_default(), &gates::Options::default()).unwrap();
        let (clock, skew) = (*self.sim.clock(), self.skew.clone());
        let options = Options {
            gates,
            most_pulls: self.most_pulls,
            rate: (30.0, 50),
            clock: Clock::from_fn(move || clock.now() + *skew.lock().unwrap()),
            random: Random::seeded(self.starts),
        };
        let daemon = Daemon::start(self.client(), self.sim.machine(node), options);
        self.daemons.insert(node.to_owned(), daemon);
    }

    pub(crate) fn kill_daemon(&mut self, node: &str) {
        self.daemons.remove(node);
    }

    /// The clocks of all nodes are off by so much from now on.
    pub(crate) fn step_clocks(&self, by: SignedDuration) {
        *self.skew.lock().unwrap() = by;
        for node in self.nodes() {
            self.sim.skew_node(&node, by);
        }
    }

    /// The same for the clocks of daemons alone: a node whose kubelet is far behind would count as lost.
    pub(crate) fn step_daemon_clocks(&self, by: SignedDuration) {
        *self.skew.lock().unwrap() = by;
    }

    pub(crate) async fn live(&self, seconds: u64) {
        self.sim.advance(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn live_millis(&self, millis: u64) {
        self.sim.advance(Duration::from_millis(millis)).await;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.sim.clock().now()
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        match self.sim.client().request(request.body(bytes).unwrap()).await {
            Ok(value) => Ok(value),
            Err(kube::Error::Api(status)) => {
                // Which webhook it was does not matter here.
                let words = status
                    .message
                    .split_once("denied the request: ")
                    .map_or(&*status.message, |(_, words)| words);
                Err(format!("{} {words}", status.code))
            }
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    #[track_caller]
    pub(crate) fn post<'a>(&'a self, path: &'a str, object: Value) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let made = self.send("POST", path, &object).await;
            made.unwrap_or_else(|problem| panic!("{place}: {problem} for {object}"))
        }
    }

    /// What is said to somebody who may not create this.
    pub(crate) async fn refused(&self, path: &str, object: Value) -> String {
        self.send("POST", path, &object).await.unwrap_err()
    }

    pub(crate) async fn patch(&self, path: &str, patch: Value) -> Value {
        self.send("PATCH", path, &patch).await.unwrap()
    }

    pub(crate) async fn put(&self, path: &str, object: &Value) -> Result<Value, String> {
        self.send("PUT", path, object).await
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send("DELETE", path, &Value::Null).await.unwrap();
    }

    /// An object; null when it is not there.
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send("GET", path, &Value::Null).await.unwrap_or_default()
    }

    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        self.get(path).await["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits up to half an hour until something holds of an object.
    #[track_caller]
    pub(crate) fn until<'a>(
        &'a self,
        path: &'a str,
        holds: impl Fn(&Value) -> bool + 'a,
    ) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            for _ in 0..9000 {
                let object = self.get(path).await;
                if holds(&object) {
                    return object;
                }
                self.live_millis(200).await;
            }
            panic!("waited in vain at {place}: {}", self.get(path).await);
        }
    }

    /// Objects, texts and counts of the events of this reason.
    pub(crate) async fn events(&self, reason: &str) -> Vec<(String, String)> {
        self.live(3).await;
        let mut found: Vec<(String, String)> = Vec::new();
        for event in self.list(EVENTS).await {
            if event["reason"] == reason {
                let about = &event["involvedObject"];
                let object = format!("{}/{}", text(&about["kind"]), text(&about["name"]));
                found.push((object, text(&event["message"]).to_owned()));
            }
        }
        found.sort();
        found
    }

    /// Creates a pod and waits until it is ready.
    pub(crate) async fn ready(&self, pod: Value) -> Value {
        let made = self.post(PODS, pod).await;
        let path = format!("{PODS}/{}", text(&made["metadata"]["name"]));
        self.until(&path, is_ready).await
    }

    /// Waits until a request is over.
    pub(crate) async fn over(&self, request: &str) -> Value {
        let is_over = |request: &Value| request["status"]["phase"] == "Completed";
        self.until(&format!("{REQUESTS}/{request}"), is_over).await
    }

    /// The containers that were told to stop on a node, with the time.
    pub(crate) fn stops(&self, node: &str) -> Vec<(Timestamp, String)> {
        let stop = |(at, deed): (Timestamp, Deed)| match deed {
            Deed::Stop { container, .. } => Some((at, container)),
            _ => None,
        };
        self.sim.machine(node).deeds().into_iter().filter_map(stop).collect()
    }

    /// The images that were pulled on a node, with the account.
    pub(crate) fn pulls(&self, node: &str) -> Vec<(String, Option<String>)> {
        let pull = |(_, deed): (Timestamp, Deed)| match deed {
            Deed::Pull { image, user, .. } => Some((image, user)),
            _ => None,
        };
        self.sim.machine(node).deeds().into_iter().filter_map(pull).collect()
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn time(value: &Value) -> Timestamp {
    text(value).parse().unwrap()
}

/// Seconds from one time to a later one.
pub(crate) fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "True"
}

/// The status of a container of a pod.
pub(crate) fn container<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let lists = ["initContainerStatuses", "containerStatuses"].map(|list| pod["status"][list].as_array());
    lists.into_iter().flatten().flatten().find(|one| one["name"] == name).unwrap_or(&Value::Null)
}

/// A pod on `node-1` with the containers `app` and `sidecar`.
pub(crate) fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 20, "nodeSelector": {"kubernetes.io/hostname": "node-1"}, "containers": [
            {"name": "app", "image": "app:v1", "ports": [{"name": "web", "containerPort": 8080}]},
            {"name": "sidecar", "image": "sidecar:v1"}]}})
}

/// A request about these containers of the pod `web`.
pub(crate) fn request(name: &str, containers: &[&str], strategy: Value) -> Value {
    let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest", "metadata": {"name": name},
        "spec": {"podName": "web", "containers": containers, "strategy": strategy}})
}

/// How far each container of a request is, as `app:Succeeded sidecar:Pending`.
pub(crate) fn states(request: &Value) -> String {
    let all = request["status"]["containerRecreateStates"].as_array().cloned().unwrap_or_default();
    let told: Vec<String> =
        all.iter().map(|one| format!("{}:{}", text(&one["name"]), text(&one["phase"]))).collect();
    told.join(" ")
}
