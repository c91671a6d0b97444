//! What controllers and webhooks of one manager share.

use std::sync::Arc;

use kruise_api::gates::Gates;
use kruise_runtime::{
    clock::Clock,
    events::Events,
    lease::Fence,
    metrics::{Framework, Registry},
    random::Random,
};
use kube::Client;

use crate::{
    caches::Caches,
    definitions::Definitions,
    options::{Environment, Options},
    protection_log::ProtectionLog,
    sidecar_sets::SidecarSets,
};

/// What a manager is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The flags.
    pub options: Options,
    /// The variables.
    pub environment: Environment,
    /// The open gates, with the rules between them applied.
    pub gates: Gates,
    /// The time of day.
    pub clock: Clock,
    /// Random names and jitter.
    pub random: Random,
}

/// What controllers and webhooks share. Clones are cheap and the same.
#[derive(Clone)]
pub struct Shared(Arc<Parts>);

/// The parts of [`Shared`].
pub struct Parts {
    /// Talks to the API server. Does not retry by itself.
    pub client: Client,
    /// What the manager was started with.
    pub settings: Settings,
    /// Whether the server resizes pods through the subresource `pods/resize`.
    pub resize_subresource: bool,
    /// All numbers for dashboards.
    pub registry: Registry,
    /// Those about the machinery.
    pub metrics: Framework,
    /// Where events go.
    pub events: Events,
    /// Which of our kinds the cluster has.
    pub definitions: Definitions,
    /// What is known of the cluster.
    pub caches: Caches,
    /// The SidecarSets in the form in which new pods get them.
    pub sidecar_sets: SidecarSets,
    /// Whether this process may write as the leader.
    pub fence: Fence,
    /// Where refused deletions are noted.
    pub protection_log: ProtectionLog,
}

impl Shared {
    /// The parts of a manager that talks to a server of this version.
    pub fn new(
        client: Client,
        settings: Settings,
        server_version: &str,
        fence: Fence,
        registry: Registry,
    ) -> Self {
        let metrics = Framework::new(&registry);
        let caches = Caches::new(&metrics);
        let sidecar_sets = SidecarSets::follow(&caches, &settings.environment.namespace);
        let events = Events::new(settings.clock.clone(), settings.random.clone(), metrics.clone());
        let protection_log = ProtectionLog::open(&settings.options.protection_log_path);
        let resize_subresource = kruise_api::version::uses_resize_subresource(server_version);
        Self(Arc::new(Parts {
            client,
            settings,
            resize_subresource,
            registry,
            metrics,
            events,
            definitions: Definitions::default(),
            caches,
            sidecar_sets,
            fence,
            protection_log,
        }))
    }
}

impl std::ops::Deref for Shared {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
