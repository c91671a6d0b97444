//! The controllers of UnitedDeployments and of CloneSets as one process that can die.

use std::time::Duration;

use kruise_core::{
    cloneset::CLONE_SET,
    object::{CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD},
    statefulset::STATEFUL_SET,
    uniteddeployment::UNITED_DEPLOYMENT,
};
use kruise_manager::{
    controllers::{cloneset, uniteddeployment},
    shared::Shared,
};
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

    fn run(shared: &Shared, resync: Option<Duration>) -> Self {
        let client = shared.client.clone();
        let options = cache::Options { resync, ..cache::Options::default() };
        let controllers = [uniteddeployment::controller(shared), cloneset::controller(shared)];
        let mut tasks = JoinSet::new();
        let kinds =
            [POD, UNITED_DEPLOYMENT, CLONE_SET, STATEFUL_SET, CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM];
        for kind in kinds {
            tasks.spawn(shared.caches.follow(kind, client.clone(), options.clone()).unwrap());
        }
        for cache in
            [&shared.caches.deployments, &shared.caches.native_statefulsets, &shared.caches.replica_sets]
        {
            let (cache, client, options) = (cache.clone(), client.clone(), options.clone());
            tasks.spawn(async move { cache.run_when_wanted(client, options).await });
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
