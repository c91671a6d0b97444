//! The controllers as a process that can die.

use std::time::Duration;

use kruise_core::{
    advancedcronjob::ADVANCED_CRON_JOB, broadcastjob::BROADCAST_JOB, imagelistpulljob::IMAGE_LIST_PULL_JOB,
    object::POD,
};
use kruise_manager::{
    controllers::{advancedcronjob, broadcastjob},
    shared::Shared,
};
use kruise_runtime::{cache, clock::Clock, random::Random, scope::Stop};
use kruise_sim::Sim;
use tokio::task::JoinSet;

use crate::{classes::crash_soon, settings};

/// A running process; it ends when this is dropped.
pub(crate) struct Process {
    _tasks: JoinSet<()>,
}

impl Process {
    pub(crate) fn start(sim: &Sim, random: &Random, resync: Option<Duration>) -> Self {
        Self::of(settings::shared(sim, random, &[]), resync)
    }

    /// The same with a clock of its own.
    pub(crate) fn timed(sim: &Sim, clock: Clock, random: &Random) -> Self {
        Self::of(settings::timed(sim.faulty_client(), clock, random, &[]), None)
    }

    fn of(shared: Shared, resync: Option<Duration>) -> Self {
        let controllers = [broadcastjob::controller(&shared), advancedcronjob::controller(&shared)];
        let client = shared.client.clone();
        let options = cache::Options { resync, ..cache::Options::default() };
        let mut tasks = JoinSet::new();
        let kinds = [POD, BROADCAST_JOB, ADVANCED_CRON_JOB, IMAGE_LIST_PULL_JOB];
        for kind in kinds {
            tasks.spawn(shared.caches.follow(kind, client.clone(), options.clone()).unwrap());
        }
        let (nodes, jobs) = (shared.caches.nodes.clone(), shared.caches.jobs.clone());
        let (own_client, own_options) = (client.clone(), options.clone());
        tasks.spawn(async move { nodes.run_when_wanted(own_client, own_options).await });
        tasks.spawn(async move { jobs.run_when_wanted(client, options).await });
        let caches = shared.caches.clone();
        tasks.spawn(async move {
            for kind in kinds {
                caches.synced(kind, Duration::from_secs(36_000)).await;
            }
            let runs = controllers
                .into_iter()
                .map(|controller| controller.run(Stop::default(), Duration::from_secs(5)));
            futures::future::join_all(runs).await;
        });
        Self { _tasks: tasks }
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
