//! What controllers and webhooks of one manager share.

use std::sync::Arc;

use kruise_api::gates::Gates;
use kruise_core::workloadspread::Versioned;
use kruise_runtime::{
    clock::Clock,
    events::Events,
    lease::Fence,
    metrics::{Framework, Registry},
    random::Random,
};
use kube::Client;

use crate::{
    budgets::Budgets,
    caches::Caches,
    configuration::Configuration,
    copies::Copies,
    definitions::Definitions,
    kinds::Kinds,
    listed_workloads::ListedWorkloads,
    options::{Environment, Options},
    protection_log::ProtectionLog,
    sidecar_sets::SidecarSets,
    spreads::Spreads,
    waiting::Waiting,
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
    /// Which kinds cannot be read.
    pub kinds: Kinds,
    /// Why objects wait.
    pub waiting: Waiting,
    /// What is known of the cluster.
    pub caches: Caches,
    /// Objects of the names that ResourceDistributions distribute.
    pub copies: Copies,
    /// The SidecarSets in the form in which new pods get them.
    pub sidecar_sets: SidecarSets,
    /// The newest state of PodUnavailableBudgets, and who takes from them.
    pub budgets: Budgets,
    /// The newest state of WorkloadSpreads, and who books places in them.
    pub spreads: Spreads,
    /// Whether this process may write as the leader.
    pub fence: Fence,
    /// Where refused deletions are noted.
    pub protection_log: ProtectionLog,
    /// Settings that need no restart, and which of them cannot be read.
    pub configuration: Configuration,
    /// Workloads of the kinds of the white list of PersistentPodState.
    pub listed_workloads: ListedWorkloads,
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
        let budgets = Budgets::follow(&caches);
        let configuration = Configuration::follow(&caches, &registry);
        let listed_workloads = ListedWorkloads::follow(&caches);
        let versioned = Versioned::parse(&settings.options.ws_enabled_versioned_status);
        let spreads = Spreads::follow(&caches, versioned);
        let events = Events::new(settings.clock.clone(), settings.random.clone(), metrics.clone());
        let protection_log = ProtectionLog::open(&settings.options.protection_log_path);
        let kinds = Kinds::new(&registry);
        let waiting = Waiting::new(&registry);
        let resize_subresource = kruise_api::version::uses_resize_subresource(server_version);
        Self(Arc::new(Parts {
            client,
            settings,
            resize_subresource,
            registry,
            metrics,
            events,
            definitions: Definitions::default(),
            kinds,
            waiting,
            caches,
            copies: Copies::default(),
            sidecar_sets,
            budgets,
            spreads,
            fence,
            protection_log,
            configuration,
            listed_workloads,
        }))
    }
}

impl std::ops::Deref for Shared {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
