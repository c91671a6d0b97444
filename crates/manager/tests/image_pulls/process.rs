//! The controllers as a process that can die.

use std::time::Duration;

use kruise_core::{
    imagelistpulljob::IMAGE_LIST_PULL_JOB, imagepulljob::IMAGE_PULL_JOB, nodeimage::NODE_IMAGE, object::POD,
};
use kruise_manager::{
    controllers::{imagelistpulljob, imagepulljob, nodeimage},
    shared::Shared,
};
use kruise_runtime::{cache, random::Random, scope::Stop};
use kruise_sim::Sim;
use tokio::task::JoinSet;

use crate::settings;

const NAMES: [&str; 3] = [nodeimage::NAME, imagepulljob::NAME, imagelistpulljob::NAME];

pub(crate) struct Process {
    shared: Shared,
    _tasks: JoinSet<()>,
}

impl Process {
    pub(crate) fn start(sim: &Sim, random: &Random, resync: Option<Duration>) -> Self {
        let shared = settings::shared(sim, random, &[]);
        let controllers = [
            nodeimage::controller(&shared),
            imagepulljob::controller(&shared),
            imagelistpulljob::controller(&shared),
        ];
        let client = shared.client.clone();
        let options = cache::Options { resync, ..cache::Options::default() };
        let mut tasks = JoinSet::new();
        let kinds = [POD, NODE_IMAGE, IMAGE_PULL_JOB, IMAGE_LIST_PULL_JOB];
        for kind in kinds {
            tasks.spawn(shared.caches.follow(kind, client.clone(), options.clone()).unwrap());
        }
        let (nodes, secrets) = (shared.caches.nodes.clone(), shared.caches.secrets.clone());
        let (own_client, own_options) = (client.clone(), options.clone());
        tasks.spawn(async move { nodes.run_when_wanted(own_client, own_options).await });
        tasks.spawn(async move { secrets.run_when_wanted(client, options).await });
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
        Self { shared, _tasks: tasks }
    }

    /// How many passes there were, of all three.
    pub(crate) fn passes(&self) -> f64 {
        NAMES.into_iter().map(|name| self.passes_of(name)).sum()
    }

    pub(crate) fn passes_of(&self, name: &str) -> f64 {
        let total = &self.shared.metrics.reconcile_total;
        let results = ["success", "error", "requeue", "requeue_after"];
        results.into_iter().map(|result| total.value(&[name, result])).sum()
    }
}
