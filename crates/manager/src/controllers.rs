//! The controllers, and what each of them is given.

pub mod cloneset;
pub mod pod_readiness;

use std::time::Duration;

use kruise_core::{
    object::{ObjectKey, Resource},
    pod::Metadata,
};
use kruise_runtime::{
    cache::{Change, View},
    client,
    controller::{Controller, Environment},
    effects, queue,
};

use crate::shared::Shared;

/// The server's name in metrics of calls.
const HOST: &str = "kubernetes.default.svc";
/// How long an answer may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// A controller of the manager.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in metrics, events and user agents.
    pub name: &'static str,
    /// Makes it.
    pub build: fn(&Shared) -> Controller,
}

/// All of them.
pub const ALL: &[Entry] = &[
    Entry { name: pod_readiness::NAME, build: pod_readiness::controller },
    Entry { name: cloneset::NAME, build: cloneset::controller },
];

/// The keys of all owners of a kind that an object has, or had before a change.
pub fn owners<V: View>(kind: Resource, change: &Change<V>, wake: &mut dyn FnMut(ObjectKey)) {
    for object in change.old.iter().chain(&change.new) {
        let Metadata { namespace, owner_references, .. } = object.metadata();
        for owner in
            owner_references.iter().filter(|owner| owner.kind == kind.kind && owner.group() == kind.group)
        {
            wake(ObjectKey { namespace: namespace.clone(), name: owner.name.clone() });
        }
    }
}

/// What the controller of this name works with: a client under its own name, and the rates of the flags.
pub fn environment(shared: &Shared, name: &str) -> Environment {
    let options = &shared.settings.options;
    let (qps, burst) = options.client_limits();
    let client = client::dressed(
        shared.client.clone(),
        client::Options {
            user_agent: format!("kruise-manager/{name}"),
            host: HOST.to_owned(),
            rate: None,
            timeout: PATIENCE,
            metrics: shared.metrics.clone(),
        },
    );
    Environment {
        client,
        clock: shared.settings.clock.clone(),
        random: shared.settings.random.clone(),
        metrics: shared.metrics.clone(),
        events: shared.events.clone(),
        fence: shared.fence.clone(),
        patience: options.expectation_timeout,
        writes: effects::Options { qps: qps.into(), burst, ..effects::Options::default() },
    }
}

/// How far failures push keys back, by the flags `--rate-limiter-*`.
pub fn tunable_queue(shared: &Shared) -> queue::Options {
    let options = &shared.settings.options;
    queue::Options {
        base: options.retry.rate_limiter_base_delay,
        max: options.retry.rate_limiter_max_delay,
        qps: options.retry.rate_limiter_qps,
        burst: options.retry.rate_limiter_bucket_size,
    }
}

/// How many keys the controller of this name works on at once.
pub fn workers(shared: &Shared, name: &str) -> usize {
    shared.settings.options.workers.of(name).unwrap_or(3)
}
