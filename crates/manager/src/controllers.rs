//! The controllers, and what each of them is given.

pub mod advancedcronjob;
pub mod broadcastjob;
pub mod cloneset;
pub mod container_recreate_request;
pub mod daemonset;
pub mod enhanced_liveness;
pub mod ephemeraljob;
pub mod imagelistpulljob;
pub mod imagepulljob;
pub mod launch_priority;
pub mod nodeimage;
pub mod nodepodprobe;
mod permission;
pub mod persistentpodstate;
pub mod pod_readiness;
pub mod podprobemarker;
pub mod podunavailablebudget;
pub mod resourcedistribution;
pub mod sidecar_terminator;
pub mod sidecarset;
pub mod statefulset;
pub mod uniteddeployment;
pub mod workload;
pub mod workloadspread;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_core::{
    admission::kinds::stored_problem,
    effect::{Effect, Event, Level},
    object::{ObjectKey, ObjectRef, Resource},
    pod::Metadata,
    refusal,
    waiting::{self, Waits},
};
use kruise_runtime::{
    cache::{Change, View},
    client,
    controller::{Context, Controller, Environment, Error},
    effects::{self, DoubtedCreates, Outcome, Why},
    queue,
};
use serde::Serialize;

use crate::shared::Shared;

/// The server's name in metrics of calls.
const HOST: &str = "kubernetes.default.svc";
/// How long an answer may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// When to look again while what a pass needs is being read for the first time.
const FIRST_LIST: Duration = Duration::from_secs(1);

/// How long a key rests after a pass, for each of its pods: changes of many pods are then answered by one pass.
const REST_PER_POD: Duration = Duration::from_micros(250);
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// A server that does not answer for so many times in a row is a reason to wait.
const TRIES: u32 = 3;

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
    Entry { name: statefulset::NAME, build: statefulset::controller },
    Entry { name: daemonset::NAME, build: daemonset::controller },
    Entry { name: sidecarset::NAME, build: sidecarset::controller },
    Entry { name: launch_priority::NAME, build: launch_priority::controller },
    Entry { name: sidecar_terminator::NAME, build: sidecar_terminator::controller },
    Entry { name: container_recreate_request::NAME, build: container_recreate_request::controller },
    Entry { name: podprobemarker::NAME, build: podprobemarker::controller },
    Entry { name: nodepodprobe::NAME, build: nodepodprobe::controller },
    Entry { name: podunavailablebudget::NAME, build: podunavailablebudget::controller },
    Entry { name: persistentpodstate::NAME, build: persistentpodstate::controller },
    Entry { name: workloadspread::NAME, build: workloadspread::controller },
    Entry { name: enhanced_liveness::NAME, build: enhanced_liveness::controller },
    Entry { name: ephemeraljob::NAME, build: ephemeraljob::controller },
    Entry { name: nodeimage::NAME, build: nodeimage::controller },
    Entry { name: imagepulljob::NAME, build: imagepulljob::controller },
    Entry { name: imagelistpulljob::NAME, build: imagelistpulljob::controller },
    Entry { name: broadcastjob::NAME, build: broadcastjob::controller },
    Entry { name: advancedcronjob::NAME, build: advancedcronjob::controller },
    Entry { name: uniteddeployment::NAME, build: uniteddeployment::controller },
    Entry { name: resourcedistribution::NAME, build: resourcedistribution::controller },
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

/// The same for a controller whose plans give the same object the same name again.
pub fn named(mut environment: Environment) -> Environment {
    environment.writes.doubted_creates = DoubtedCreates::LookFor;
    environment
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

/// Why trying again cannot help: a write was refused as invalid, and the object that it follows from breaks our own rules. Such an
/// object was stored before the rules, or past them. People are told; the next try comes when it changes. What others refuse, such
/// as a quota or a webhook that is not ours, may be allowed later.
pub async fn hopeless<T: Serialize>(
    shared: &Shared,
    context: &Context,
    regarding: ObjectRef,
    object: &T,
    outcome: &Outcome,
) -> Option<Error> {
    let is_refusal = |why: &Why| match why {
        Why::Refused { code: 400 | 403 | 422, message, .. } if is_of_ours(message) => true,
        Why::Refused { code: 400 | 422, message, .. } => refusal::reason(422, message) == "RevisionBroken",
        _ => false,
    };
    if !outcome.failed.iter().any(|failure| is_refusal(&failure.why)) {
        return None;
    }
    let object = serde_json::to_value(object).ok()?;
    let settings = &shared.settings;
    let allow_privileged = settings.options.allow_privileged;
    let message =
        stored_problem(regarding.resource, &object, &settings.gates, allow_privileged, settings.clock.now())?;
    let key = regarding.key.clone();
    let event =
        Event { regarding, level: Level::Warning, reason: "Invalid".into(), message: message.clone() };
    // An event alone cannot fail.
    let _ = context.try_act(&key, &[Effect::Event(event)]).await;
    Some(Error::terminal(message))
}

/// Whether one of our own webhooks refused a write.
fn is_of_ours(message: &str) -> bool {
    message.contains(".kb.io\" denied the request")
}

/// Why a job waits because of writes that did not happen: who refused, or that the server does not answer.
pub fn job_waits(
    shared: &Shared,
    owner: &ObjectRef,
    effects: &[Effect],
    outcome: &Outcome,
    missing: usize,
) -> Waits {
    let mut waits = workload::refused(shared, owner, outcome, |index| effects.get(index), missing);
    for failure in &outcome.failed {
        let Why::Refused { code, message, .. } = &failure.why else { continue };
        let Some(Effect::Create { resource, .. }) = effects.get(failure.index) else { continue };
        let invalid = waiting::invalid_template(*resource, &failure.object, *code, message);
        invalid.into_iter().for_each(|(reason, sentence)| waits.add(reason, sentence));
    }
    waits
}

/// How often in a row writes of a key were not answered. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Unanswered(Arc<Mutex<BTreeMap<ObjectKey, u32>>>);

impl Unanswered {
    /// Counts a pass. From the third on that could not write, that is a reason to wait.
    pub fn waits(&self, key: &ObjectKey, outcome: &Outcome) -> Waits {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |why: &Why| matches!(why, Why::Uncertain(_) | Why::Throttled(_));
        let mut waits = Waits::default();
        let Some(failure) = outcome.failed.iter().find(|failure| is_open(&failure.why)) else {
            counts.remove(key);
            return waits;
        };
        let count = counts.entry(key.clone()).or_insert(0);
        *count = count.saturating_add(1);
        if *count >= TRIES {
            let (reason, sentence) =
                waiting::unavailable(failure.verb, failure.resource, &failure.why.to_string());
            waits.add(reason, sentence);
        }
        waits
    }

    /// Forgets a key whose object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// What people were told last about each key, so that they hear it once. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Once(Arc<Mutex<BTreeMap<ObjectKey, BTreeSet<String>>>>);

impl Once {
    /// Those of the events of a key that were not among its last ones.
    pub fn news(&self, key: &ObjectKey, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        let line = |event: &Event| format!("{} {}", event.regarding.key, event.message);
        self.news_of(key, events.into_iter().map(|event| (line(&event), event)))
    }

    /// The same for events with marks: an event whose mark has changed is told again.
    pub fn news_of(&self, key: &ObjectKey, events: impl IntoIterator<Item = (String, Event)>) -> Vec<Effect> {
        let events: Vec<(String, Event)> = events.into_iter().collect();
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now: BTreeSet<String> = events.iter().map(|(mark, _)| mark.clone()).collect();
        let before = match now.is_empty() {
            true => told.remove(key),
            false => told.insert(key.clone(), now),
        };
        let before = before.unwrap_or_default();
        let news = events.into_iter().filter(|(mark, _)| !before.contains(mark));
        news.map(|(_, event)| Effect::Event(event)).collect()
    }

    /// Forgets a key whose object is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
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
