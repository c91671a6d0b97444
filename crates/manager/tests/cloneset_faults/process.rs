//! The controller as a process that can die.

use std::time::Duration;

use kruise_core::{
    cloneset::CLONE_SET,
    object::{CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD},
};
use kruise_manager::{controllers::cloneset, shared::Shared};
use kruise_runtime::{cache, clock::Clock, controller::Controller, random::Random, scope::Stop};
use kruise_sim::Sim;
use tokio::task::JoinSet;

use crate::settings;

pub(crate) struct Process {
    _tasks: JoinSet<()>,
}

impl Process {
    pub(crate) fn start(sim: &Sim, random: &Random, resync: Option<Duration>) -> Self {
        Self::run(&settings::shared(sim, random, &[]), resync)
    }

    /// With a clock of its own.
    pub(crate) fn timed(sim: &Sim, random: &Random, clock: Clock, resync: Option<Duration>) -> Self {
        Self::run(&settings::timed(sim.faulty_client(), clock, random, &[]), resync)
    }

    pub(crate) fn run(shared: &Shared, resync: Option<Duration>) -> Self {
        Self::run_all(shared, vec![cloneset::controller(shared)], resync)
    }

    pub(crate) fn run_all(shared: &Shared, controllers: Vec<Controller>, resync: Option<Duration>) -> Self {
        let client = shared.client.clone();
        let options = cache::Options { resync, ..cache::Options::default() };
        let mut tasks = JoinSet::new();
        let kinds = [POD, CLONE_SET, CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM];
        for kind in kinds {
            tasks.spawn(shared.caches.follow(kind, client.clone(), options.clone()).unwrap());
        }
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
