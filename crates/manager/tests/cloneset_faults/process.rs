//! The controller as a process that can die.

use std::time::Duration;

use kruise_core::{
    cloneset::CLONE_SET,
    object::{CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD},
};
use kruise_manager::{controllers::cloneset, shared::Shared};
use kruise_runtime::{cache, random::Random, scope::Stop};
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

    pub(crate) fn run(shared: &Shared, resync: Option<Duration>) -> Self {
        let client = shared.client.clone();
        let controller = cloneset::controller(shared);
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
            controller.run(Stop::default(), Duration::from_secs(5)).await;
        });
        Self { _tasks: tasks }
    }
}
