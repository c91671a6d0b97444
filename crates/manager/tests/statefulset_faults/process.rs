//! The controller as a process that can die.

use std::time::Duration;

use kruise_core::{
    object::{CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD},
    statefulset::STATEFUL_SET,
};
use kruise_manager::controllers::statefulset;
use kruise_runtime::{cache, clock::Clock, random::Random, scope::Stop};
use kruise_sim::Sim;
use tokio::task::JoinSet;

use crate::settings;

pub(crate) struct Process {
    _tasks: JoinSet<()>,
}

impl Process {
    pub(crate) fn start(sim: &Sim, random: &Random, clock: Clock, resync: Option<Duration>) -> Self {
        let shared = settings::timed(sim.faulty_client(), clock, random, &[]);
        let controller = statefulset::controller(&shared);
        let options = cache::Options { resync, ..cache::Options::default() };
        let mut tasks = JoinSet::new();
        let kinds = [POD, STATEFUL_SET, CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM];
        for kind in kinds {
            tasks.spawn(shared.caches.follow(kind, shared.client.clone(), options.clone()).unwrap());
        }
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
