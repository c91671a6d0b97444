//! The controllers, and what each of them is given.

pub mod cloneset;
pub mod container_recreate_request;
pub mod enhanced_liveness;
pub mod ephemeraljob;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod launch_priority;
pub mod nodeimage;
pub mod nodepodprobe;
pub mod pod_readiness;
pub mod podprobemarker;
pub mod sidecar_terminator;
pub mod sidecarset;

use std::time::Duration;

use kruise_core::{
    effect::{Effect, Event, Level},
    object::{ObjectKey, ObjectRef, Resource},
    pod::Metadata,
};
use kruise_runtime::{
    cache::{Change, View},
    client,
    controller::{Context, Controller, Environment, Error},
    effects, queue,
};

use crate::shared::Shared;

/// The server's name in metrics of calls.
const HOST: &str = "kubernetes.default.svc";
/// How long an answer may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a key rests after a pass, for each of its pods: changes of many pods are then answered by one pass.
const REST_PER_POD: Duration = Duration::from_micros(250);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(1);

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
    Entry { name: sidecarset::NAME, build: sidecarset::controller },
    Entry { name: launch_priority::NAME, build: launch_priority::controller },
    Entry { name: sidecar_terminator::NAME, build: sidecar_terminator::controller },
    Entry { name: container_recreate_request::NAME, build: container_recreate_request::controller },
    Entry { name: podprobemarker::NAME, build: podprobemarker::controller },
    Entry { name: nodepodprobe::NAME, build: nodepodprobe::controller },
    Entry { name: enhanced_liveness::NAME, build: enhanced_liveness::controller },
    Entry { name: ephemeraljob::NAME, build: ephemeraljob::controller },
    Entry { name: nodeimage::NAME, build: nodeimage::controller },
    Entry { name: imagepulljob::NAME, build: imagepulljob::controller },
    Entry { name: imagelistpulljob::NAME, build: imagelistpulljob::controller },
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

/// Tells people that a stored object cannot be read, and that trying again cannot help.
pub async fn unreadable(context: &Context, object: ObjectRef, problem: &str) -> Error {
    let ObjectRef { resource, key, .. } = &object;
    let (key, message) = (key.clone(), format!("this {} cannot be read: {problem}", resource.kind));
    let event = Event { regarding: object, level: Level::Warning, reason: "Unreadable".into(), message };
    match context.act(&key, &[Effect::Event(event)]).await {
        Ok(()) => Error::terminal(problem.to_owned()),
        Err(error) => error.into(),
    }
}

/// How long a key with this many pods rests after a pass.
pub fn rest(pods: usize) -> Duration {
    (REST_PER_POD * u32::try_from(pods).unwrap_or(u32::MAX)).min(LONGEST_REST)
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
