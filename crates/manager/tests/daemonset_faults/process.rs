//! The controller as a process that can die.

use std::time::Duration;

use kruise_core::{
    daemonset::DAEMON_SET,
    object::{CONTROLLER_REVISION, POD},
};
use kruise_manager::{controllers::daemonset, shared::Shared};
use kruise_runtime::{cache, clock::Clock, random::Random, scope::Stop};
use kruise_sim::Sim;
use tokio::task::JoinSet;

use crate::settings;

pub(crate) struct Process {
    _tasks: JoinSet<()>,
}

impl Process {
    /// With a clock of its own.
    pub(crate) fn timed(sim: &Sim, random: &Random, clock: Clock, resync: Option<Duration>) -> Self {
        Self::run(&settings::timed(sim.faulty_client(), clock, random, &[]), resync)
    }

    pub(crate) fn run(shared: &Shared, resync: Option<Duration>) -> Self {
        let client = shared.client.clone();
        let options = cache::Options { resync, ..cache::Options::default() };
        let controller = daemonset::controller(shared);
        let mut tasks = JoinSet::new();
        let kinds = [POD, DAEMON_SET, CONTROLLER_REVISION];
        for kind in kinds {
            tasks.spawn(shared.caches.follow(kind, client.clone(), options.clone()).unwrap());
        }
        let nodes = shared.caches.nodes.clone();
        tasks.spawn(async move { nodes.run(client, options).await });
        let caches = shared.caches.clone();
        tasks.spawn(async move {
            for kind in kinds {
                caches.synced(kind, Duration::from_secs(36_000)).await;
            }
            controller.run(Stop::default(), Duration::from_secs(5)).await;
        });
        Self { _tasks: tasks }
    }
}
