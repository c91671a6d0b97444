//! A manager in the process of its cluster, for trying things and for tests: the cluster calls its webhooks directly,
//! and its controllers use the cluster's own client. Nothing of it listens, so it needs no certificates, and being alone
//! it needs no election.

use kruise_api::gates::{self, Gates};
use kruise_core::features::webhooks;
use kruise_runtime::{
    clock::Clock,
    lease::Fence,
    metrics::Registry,
    random::Random,
    scope::{self, BoxError, Scope},
};
use kruise_webhook::service::Webhooks;
use kube::Client;
use serde_json::Value;

use crate::{
    manager::Manager,
    options::{Environment, Options},
    shared::{Settings, Shared},
};

/// The cluster around a manager.
pub struct Surroundings {
    /// The way to its API.
    pub client: Client,
    /// What it calls its version.
    pub version: String,
    /// The time of day there.
    pub clock: Clock,
    /// Random names and jitter.
    pub random: Random,
}

/// A manager that is not running yet.
pub struct Inside {
    manager: Manager,
}

/// A manager that runs until it is dropped.
pub struct Running {
    manager: Manager,
    scope: Scope,
}

impl Inside {
    /// A manager that is started with these flags.
    pub fn new(surroundings: Surroundings, flags: &[&str]) -> Result<Self, String> {
        let Surroundings { client, version, clock, random } = surroundings;
        let words = std::iter::once("kruise-manager").chain(flags.iter().copied());
        let options = Options::read(words).map_err(|error| error.to_string())?;
        let environment = Environment::read(|_| None)?;
        let (gates, _) = Gates::parse(&options.feature_gates(), &gates::Options::default())
            .map_err(|error| error.to_string())?;
        let settings = Settings { options, environment, gates, clock, random };
        let shared = Shared::new(client, settings, &version, Fence::default(), Registry::default());
        Ok(Self { manager: Manager::new(shared) })
    }

    /// What the cluster shall call as the webhooks of our Service.
    pub fn webhooks(&self) -> Webhooks {
        self.manager.webhooks()
    }

    /// What tells the cluster when to call.
    pub fn configurations(&self) -> [Value; 2] {
        webhooks::configurations(&self.manager.shared().settings.gates, &webhooks::Options::default())
    }

    /// Starts the caches and the controllers.
    pub fn start(self) -> Running {
        let Self { manager } = self;
        let mut scope = Scope::default();
        manager.start(&mut scope);
        let (leading, stop) = (manager.clone(), scope.stop());
        scope.spawn("controllers", async move { leading.lead(&stop).await.map_err(BoxError::from) });
        Running { manager, scope }
    }
}

impl Running {
    /// The manager that runs.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

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
