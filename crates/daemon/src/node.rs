//! What all parts of the daemon on one node share.

use std::{sync::Arc, time::Duration};

use kruise_api::{
    gates::{Gate, Gates},
    nodeimage::v1beta1::NodeImage,
    nodepodprobe::v1alpha1::NodePodProbe,
};
use kruise_core::{
    object::{ObjectKey, POD},
    pod::Pod,
};
use kruise_runtime::{
    cache::{self, Cache, Guarded},
    client,
    clock::Clock,
    controller::Environment,
    effects,
    events::Events,
    lease::Fence,
    metrics::{Framework, Registry},
    queue,
    random::Random,
};

use crate::{
    controllers::image_puller,
    cri::Runtimes,
    probing::NODE_POD_PROBE,
    pulling::{
        NODE_IMAGE, Wanted,
        secrets::{Credentials, Sources},
    },
    recreation::{REQUEST, Request},
};

/// The index of requests by their pod.
pub const BY_POD: &str = "pod";

/// The server's name in metrics of calls.
const HOST: &str = "kubernetes.default.svc";
/// How long an answer may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the daemon is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the node.
    pub node: String,
    /// Which features are on.
    pub gates: Gates,
    /// Calls per second and at once, of each controller.
    pub rate: (f64, u32),
    /// How many pulls may run at once; all, unless given.
    pub most_pulls: Option<usize>,
    /// How much must be free before a pull.
    pub space: Wanted,
    /// The time of day.
    pub clock: Clock,
    /// Random numbers.
    pub random: Random,
}

/// What all parts of the daemon share. Clones are the same.
#[derive(Clone)]
pub struct Node(Arc<Parts>);

/// See [`Node`].
pub struct Parts {
    /// The way to the cluster.
    pub client: kube::Client,
    /// The container runtimes.
    pub runtimes: Runtimes,
    /// Who knows the credentials of registries.
    pub credentials: Credentials,
    /// What it was started with.
    pub settings: Settings,
    /// All numbers for dashboards.
    pub registry: Registry,
    /// Those about the machinery.
    pub metrics: Framework,
    /// Where events go.
    pub events: Events,
    /// What is known of the cluster.
    pub caches: Caches,
}

/// What is known of the cluster: only what belongs to this node.
#[derive(Clone, Debug)]
pub struct Caches {
    /// The one NodeImage.
    pub node_images: Cache<Guarded<NodeImage>>,
    /// The requests of pods of this node.
    pub requests: Cache<Guarded<Request>>,
    /// The one NodePodProbe.
    pub probes: Cache<Guarded<NodePodProbe>>,
    /// The pods of this node.
    pub pods: Cache<Pod>,
}

impl Caches {
    fn new(metrics: &Framework) -> Self {
        let requests = Cache::new(REQUEST).with_index(BY_POD, |view: &Guarded<Request>, texts| {
            if let Ok(request) = &view.object {
                texts.push(format!("{}/{}", view.metadata.namespace, request.spec.pod_name).into());
            }
        });
        Self {
            node_images: Cache::new(NODE_IMAGE).with_metrics(metrics),
            requests: requests.with_metrics(metrics),
            probes: Cache::new(NODE_POD_PROBE).with_metrics(metrics),
            pods: Cache::new(POD).with_metrics(metrics),
        }
    }
}

impl Node {
    /// The parts of a daemon.
    pub fn new(client: kube::Client, runtimes: Runtimes, sources: Sources, settings: Settings) -> Self {
        let registry = Registry::default();
        let metrics = Framework::new(&registry);
        let reader = dressed(&client, &metrics, image_puller::NAME);
        let credentials = Credentials::new(reader, settings.random.clone(), sources);
        let caches = Caches::new(&metrics);
        let events = Events::new(settings.clock.clone(), settings.random.clone(), metrics.clone());
        let events = events.on_host(settings.node.as_str());
        Self(Arc::new(Parts { client, runtimes, credentials, settings, registry, metrics, events, caches }))
    }

    /// Whether a feature is on.
    pub fn has(&self, gate: Gate) -> bool {
        self.settings.gates.enabled(gate)
    }

    /// The key of the cluster-wide objects that are named after the node.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::cluster(self.settings.node.as_str())
    }

    /// What the controller of this name works with; `patience` is how long a cache may take to show its own writes.
    pub fn environment(&self, name: &str, patience: Duration) -> Environment {
        let (qps, burst) = self.settings.rate;
        Environment {
            client: self.dressed(name),
            clock: self.settings.clock.clone(),
            random: self.settings.random.clone(),
            metrics: self.metrics.clone(),
            events: self.events.clone(),
            fence: Fence::default(),
            patience,
            writes: effects::Options { qps, burst, ..effects::Options::default() },
        }
    }

    /// The way to the cluster under a name of its own.
    pub fn dressed(&self, name: &str) -> kube::Client {
        dressed(&self.client, &self.metrics, name)
    }

    /// How far failures push keys back: half a second, then twice as long each time, up to something near a minute that
    /// differs between nodes.
    pub fn queue(&self) -> queue::Options {
        let max = Duration::from_secs(50) + Duration::from_millis(self.settings.random.below(5000));
        queue::Options { base: Duration::from_millis(500), max, ..queue::Options::default() }
    }

    /// What to follow of the objects that are named after the node.
    pub fn own_objects(&self) -> cache::Options {
        let fields = Some(format!("metadata.name={}", self.settings.node));
        cache::Options { fields, ..cache::Options::default() }
    }

    /// What to follow of requests.
    pub fn own_requests(&self) -> cache::Options {
        let labels = Some(crate::recreation::selector(&self.settings.node));
        cache::Options { labels, ..cache::Options::default() }
    }

    /// What to follow of pods.
    pub fn own_pods(&self) -> cache::Options {
        let fields = Some(format!("spec.nodeName={}", self.settings.node));
        cache::Options { fields, ..cache::Options::default() }
    }
}

fn dressed(client: &kube::Client, metrics: &Framework, name: &str) -> kube::Client {
    let options = client::Options {
        user_agent: format!("kruise-daemon/{name}"),
        host: HOST.to_owned(),
        rate: None,
        timeout: PATIENCE,
        metrics: metrics.clone(),
    };
    client::dressed(client.clone(), options)
}

impl std::ops::Deref for Node {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
