//! The controller as a process that can die.

use std::time::Duration;

use kruise_core::resourcedistribution::RESOURCE_DISTRIBUTION;
use kruise_manager::{controllers::resourcedistribution, shared::Shared};
use kruise_runtime::{cache, random::Random, scope::Stop};
use kruise_sim::Sim;
use tokio::task::JoinSet;

use crate::{classes::crash_soon, settings};

/// A running process; it ends when this is dropped.
pub(crate) struct Process {
    pub(crate) shared: Shared,
    _tasks: JoinSet<()>,
}

impl Process {
    pub(crate) fn start(sim: &Sim, random: &Random, resync: Option<Duration>) -> Self {
        let shared = settings::shared(sim, random, &[]);
        let controller = resourcedistribution::controller(&shared);
        let client = shared.client.clone();
        let options = cache::Options { resync, ..cache::Options::default() };
        let mut tasks = JoinSet::new();
        let following = shared.caches.follow(RESOURCE_DISTRIBUTION, client.clone(), options.clone());
        tasks.spawn(following.unwrap());
        let (namespaces, own_client, own_options) =
            (shared.caches.namespaces.clone(), client.clone(), options.clone());
        tasks.spawn(async move { namespaces.run_when_wanted(own_client, own_options).await });
        let copies = shared.copies.clone();
        tasks.spawn(async move { copies.run(client, options).await });
        let caches = shared.caches.clone();
        tasks.spawn(async move {
            caches.synced(RESOURCE_DISTRIBUTION, Duration::from_secs(36_000)).await;
            controller.run(Stop::default(), Duration::from_secs(5)).await;
        });
        Self { shared, _tasks: tasks }
    }
}

/// A process that is started again whenever it dies.
pub(crate) struct Kept {
    /// It ends when it is dropped.
    _process: Process,
    random: Random,
    resync: Option<Duration>,
    crashes: usize,
}

impl Kept {
    pub(crate) fn start(sim: &Sim, seed: u64, resync: Option<Duration>) -> Self {
        let random = Random::seeded(seed);
        Self { _process: Process::start(sim, &random, resync), random, resync, crashes: 0 }
    }

    /// Starts it again where it has died.
    pub(crate) fn look(&mut self, sim: &mut Sim) {
        if sim.faults().is_crashed() {
            sim.faults().revive();
            self.crashes += 1;
            if self.crashes < 12 {
                crash_soon(sim);
            }
            self.restart(sim);
        }
    }

    pub(crate) fn restart(&mut self, sim: &Sim) {
        self._process = Process::start(sim, &self.random, self.resync);
    }
}
