//! Our manager in the same process: the cluster calls its webhooks directly, and its controllers use the cluster's own
//! client. Nothing of it listens, so it needs no certificates, and being alone it needs no election.

use kruise_api::{gates::Gates, names};
use kruise_core::features::webhooks;
use kruise_manager::{
    manager::Manager,
    options::{Environment, Options},
    shared::{Settings, Shared},
};
use kruise_runtime::{
    clock::Clock,
    lease::Fence,
    metrics::Registry,
    random::Random,
    scope::{self, BoxError, Scope},
};
use kruise_sim::Sim;
use serde_json::Value;

/// A manager that is not running yet.
pub struct Inside {
    manager: Manager,
}

/// A manager that runs until it is dropped.
pub struct Running {
    scope: Scope,
}

impl Inside {
    /// A manager for this cluster. From now on the cluster asks its webhooks.
    pub fn new(sim: &Sim, seed: u64) -> Result<Self, String> {
        let options = Options::read(["kruise-manager"]).map_err(|error| error.to_string())?;
        let environment = Environment::read(|_| None)?;
        let clock = *sim.clock();
        let settings = Settings {
            options,
            environment,
            gates: gates(),
            clock: Clock::from_fn(move || clock.now()),
            random: Random::seeded(seed),
        };
        let version = kruise_apiserver::discovery::GIT_VERSION;
        let shared = Shared::new(sim.client(), settings, version, Fence::default(), Registry::default());
        let manager = Manager::new(shared);
        let server = sim.server();
        server.register_webhook_service(names::NAMESPACE, names::WEBHOOK_SERVICE, manager.webhooks());
        Ok(Self { manager })
    }

    /// What tells the cluster when to ask.
    pub fn configurations() -> [Value; 2] {
        webhooks::configurations(&gates(), &webhooks::Options::default())
    }

    /// Starts the caches and the controllers.
    pub fn start(self) -> Running {
        let mut scope = Scope::default();
        self.manager.start(&mut scope);
        let (manager, stop) = (self.manager, scope.stop());
        scope.spawn("controllers", async move { manager.lead(&stop).await.map_err(BoxError::from) });
        Running { scope }
    }
}

impl Running {
    /// Waits until a part of it ends, which should not happen.
    pub async fn ended(&mut self) -> scope::Error {
        loop {
            match self.scope.next_end().await {
                Some(Err(error)) => return error,
                Some(Ok(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// The gates that a newcomer wants to try: the defaults, and pulling images.
fn gates() -> Gates {
    Gates::default().with(kruise_api::gates::Gate::ImagePullJobGate)
}
