//! ResourceDistributions: gathers what a pass may know, lets the planner decide, carries it out, sends events and writes the
//! status.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::resourcedistribution::v1beta1::ResourceDistribution;
use kruise_core::{
    effect::Effect,
    object::{ObjectKey, ObjectRef},
    resourcedistribution::{
        self, Affected, Kind, Memory, Observed, Plan, RESOURCE_DISTRIBUTION, Reading, Reports, Said, Source,
        Standing, Step, Targets, is_concerned, plan, settle, status, status_write, told, waits,
    },
    text::Text,
    waiting::{self, Reason, Waits},
};
use kruise_runtime::{
    cache::{Cache, Followed as _},
    controller::{Context, Controller, Error, Next},
    effects::{self, Failure, Why},
};

use super::{FIRST_LIST, environment, rest, tunable_queue, unreadable, workers};
use crate::{
    caches::BY_RESOURCE,
    distributions::{Distribution, resource_text},
    shared::Shared,
};

/// The name.
pub const NAME: &str = "resourcedistribution-controller";

/// A pass writes as much as can be written within this time, so that a change of the spec takes effect soon.
const PASS: Duration = Duration::from_secs(1);
/// How old a status may become while copies are written.
const STATUS_EVERY: SignedDuration = SignedDuration::from_secs(5);
/// When to look again whether copies can be read.
const READ_AGAIN: Duration = Duration::from_secs(5);

/// What is remembered of a ResourceDistribution between passes.
struct Known {
    memory: Memory,
    reports: Reports,
    written: Option<Timestamp>,
}

/// The same of all of them. Clones are the same.
#[derive(Clone, Default)]
struct Memories(Arc<Mutex<BTreeMap<ObjectKey, Known>>>);

impl Memories {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on what is remembered of an object; at first that is what its status says.
    fn with<T>(
        &self,
        object: &ResourceDistribution,
        now: Timestamp,
        work: impl FnOnce(&mut Known) -> T,
    ) -> T {
        let generation = object.metadata.generation.unwrap_or_default();
        let key = ObjectKey::cluster(object.metadata.name.as_deref().unwrap_or_default());
        let mut all = self.lock();
        let known = all.entry(key).or_insert_with(|| Known {
            memory: Memory::of(object.status.as_ref(), generation, now),
            reports: Reports::of(object.status.as_ref()),
            written: None,
        });
        work(known)
    }
}

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let (own, memories) = (shared.clone(), Memories::default());
    let (all, named) = (caches.distributions.clone(), caches.distributions.clone());
    let mut builder = Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.distributions)
        .wake(&caches.distributions, |change, wake| wake(change.key.clone()))
        .wake(&caches.namespaces, move |change, wake| {
            let (old, new) = (change.old.as_deref(), change.new.as_deref());
            for one in all.list() {
                let Ok(object) = &one.stored.object else { continue };
                let Ok(targets) = Targets::new(&object.spec.targets) else { continue };
                if targets.is_concerned(old.map(|old| &old.metadata), new.map(|new| &new.metadata)) {
                    wake(one.stored.metadata.key());
                }
            }
        })
        .wake_by(|waker| {
            shared.copies.subscribe(move |resource, change| {
                let (old, new) = (change.old.as_deref(), change.new.as_deref());
                let text = resource_text(resource.kind, &change.key.name);
                for one in named.by_index(BY_RESOURCE, &text) {
                    let own = reference(&one);
                    if is_concerned(old.map(|old| &old.metadata), new.map(|new| &new.metadata), &own) {
                        waker.wake(own.key, change.initial);
                    }
                }
            });
        });
    for kind in Kind::ALL {
        builder = builder.follow_all(shared.copies.of_kind(kind.resource()));
    }
    builder.reconcile(move |context, key| {
        let (shared, memories) = (own.clone(), memories.clone());
        async move { pass(&shared, &memories, &context, &key).await }
    })
}

fn reference(one: &Distribution) -> ObjectRef {
    let metadata = &one.stored.metadata;
    ObjectRef { resource: RESOURCE_DISTRIBUTION, key: metadata.key(), uid: metadata.uid.clone() }
}

async fn pass(
    shared: &Shared,
    memories: &Memories,
    context: &Context,
    key: &ObjectKey,
) -> Result<Next, Error> {
    let Some(one) = shared.caches.distributions.get(key) else {
        forget(shared, memories, key);
        return Ok(Next::Forget);
    };
    let object = match &one.stored.object {
        Ok(object) => object.clone(),
        Err(problem) => return Err(unreadable(context, reference(&one), problem).await),
    };
    if one.stored.metadata.is_deleting() {
        // The garbage collector deletes the copies. Nothing is made again behind it.
        forget(shared, memories, key);
        return Ok(Next::Done);
    }
    let now = context.clock().now();
    let (source, targets) = match read(&object) {
        Ok(read) => read,
        Err(problem) => return broken(shared, context, &object, problem, now).await,
    };
    let caches = &shared.caches;
    caches.namespaces.want();
    let copies = shared.copies.want(key, source.kind.resource(), &source.name);
    let Some(reading) = reading(&copies, &source).filter(|_| caches.namespaces.is_synced()) else {
        return Ok(Next::After(FIRST_LIST));
    };
    let namespaces = caches.namespaces.list();
    let generation = object.metadata.generation.unwrap_or_default();
    let seen = Observed {
        own: reference(&one),
        room: context.room((source.kind.resource(), None), PASS),
        source,
        hash: one.hash.clone(),
        namespaces: targets.sort(namespaces.iter().map(|namespace| &namespace.metadata)),
        reading,
        memory: memories.with(&object, now, |known| known.memory.clone().at(generation, now)),
        now,
    };
    let plan = plan(&seen);
    let (said, acted) = act(context, key, &plan).await;
    let (ledger, memory, again) = settle(&seen, &plan, &said);
    let (waits, affected) = waits(&seen.source, &ledger);
    let (waiting, lasts) = shared.waiting.note(&seen.own, &waits, told(&object), now);
    let (events, remind, written) = memories.with(&object, now, |known| {
        known.memory = memory;
        let (events, remind) = known.reports.news(&seen.own, &ledger, now);
        (events, remind, known.written)
    });
    let events: Vec<Effect> = events.into_iter().chain(waiting).map(Effect::Event).collect();
    // Events alone cannot fail.
    let _ = context.try_act(key, &events).await;

    // Who watches a long distribution sees it move, but not with each copy.
    let is_early = plan.is_cut && written.is_some_and(|written| now.duration_since(written) < STATUS_EVERY);
    let standing = Standing { ledger: Some(&ledger), waits: &waits, affected: &affected, now };
    let write = status_write(&object, &status(&object, standing)).filter(|_| !is_early);
    let written = context.act(key, write.as_slice()).await;
    if write.is_some() {
        memories.with(&object, now, |known| known.written = Some(now));
    }
    context.rest(key, rest(seen.namespaces.len()));
    let unread = matches!(seen.reading, Reading::Failed { .. }).then_some(READ_AGAIN);
    let more = (plan.is_cut || is_early).then_some(PASS);
    let next = [again, lasts, remind, unread, more].into_iter().flatten().min();
    // What rests after a refusal is tried on time, whatever else fails.
    next.into_iter().for_each(|after| context.again(key, after));
    acted?;
    written?;
    Ok(next.into())
}

fn forget(shared: &Shared, memories: &Memories, key: &ObjectKey) {
    memories.lock().remove(key);
    shared.waiting.forget(RESOURCE_DISTRIBUTION, key);
    shared.copies.release(key);
}

/// What is distributed and where to, or what of the spec cannot be carried out.
fn read(object: &ResourceDistribution) -> Result<(Source, Targets), String> {
    let source =
        Source::parse(&object.spec.resource.0).map_err(|problem| format!("spec.resource: {problem}"));
    let targets = Targets::new(&object.spec.targets)
        .map_err(|problem| format!("spec.targets.namespaceSelector: {problem}"));
    Ok((source?, targets?))
}

/// A spec that was stored past the rules: nothing is written but that, and the next try comes when it changes.
async fn broken(
    shared: &Shared,
    context: &Context,
    object: &ResourceDistribution,
    problem: String,
    now: Timestamp,
) -> Result<Next, Error> {
    let own = resourcedistribution::reference(object);
    let (mut waits, affected) = (Waits::default(), Affected::new());
    waits.add(Reason::SpecInvalid, format!("the spec cannot be carried out: {problem}"));
    let (events, lasts) = shared.waiting.note(&own, &waits, told(object), now);
    let events: Vec<Effect> = events.into_iter().map(Effect::Event).collect();
    // Events alone cannot fail.
    let _ = context.try_act(&own.key, &events).await;
    let standing = Standing { ledger: None, waits: &waits, affected: &affected, now };
    context.act(&own.key, status_write(object, &status(object, standing)).as_slice()).await?;
    match lasts {
        Some(lasts) => Ok(Next::After(lasts)),
        None => Err(Error::terminal(problem)),
    }
}

/// The objects of the distributed name; nothing while they are read for the first time.
fn reading(copies: &Cache<resourcedistribution::Found>, source: &Source) -> Option<Reading> {
    if copies.is_synced() {
        let found = copies.list().into_iter().map(|found| (found.metadata.namespace.clone(), found));
        return Some(Reading::Found(found.collect()));
    }
    let trouble = copies.trouble()?;
    let (resource, key) =
        (source.kind.resource(), ObjectKey { namespace: Text::default(), name: source.name.clone() });
    let code = if trouble.reason == kruise_runtime::cache::Reason::Forbidden { 403 } else { 500 };
    let reason = waiting::refused(trouble.verb, resource, &key, code, &trouble.message, 0).or_else(|| {
        let (verb, plural) = (trouble.verb, resource.plural);
        let text = waiting::text::foreign(&trouble.message);
        let sentence = format!("the API server cannot {verb} {plural}: {text}; it is tried again");
        Some((Reason::ServerUnavailable, sentence))
    });
    Some(Reading::Failed { text: trouble.message, reason })
}

/// Carries out the steps. What is refused in one namespace holds up no other; a server that is away ends the pass.
async fn act(context: &Context, key: &ObjectKey, plan: &Plan) -> (Vec<Said>, Result<(), effects::Error>) {
    let mut said = vec![Said::Unclear; plan.steps.len()];
    let mut unclear: Vec<Failure> = Vec::new();
    for Step { namespace, deed, why, .. } in &plan.steps {
        tracing::debug!(%namespace, ?deed, why, "next step");
    }
    let mut left: Vec<(usize, Effect)> =
        plan.steps.iter().map(|step| step.effect.clone()).enumerate().collect();
    while !left.is_empty() {
        let (places, effects): (Vec<usize>, Vec<Effect>) = left.drain(..).unzip();
        let outcome = context.try_act(key, &effects).await;
        let mut failed: BTreeMap<usize, Failure> =
            outcome.failed.into_iter().map(|failure| (failure.index, failure)).collect();
        let all = effects.len();
        let mut ends = false;
        for (index, (place, effect)) in places.into_iter().zip(effects).enumerate() {
            let failure = failed.remove(&index);
            let answer = match failure.as_ref().map(|failure| &failure.why) {
                None => Said::Done,
                Some(Why::Refused { code, message, .. }) => {
                    Said::Refused { code: *code, message: message.clone() }
                }
                Some(Why::LeftOut) => {
                    left.push((place, effect));
                    continue;
                }
                Some(why) => {
                    ends |= !matches!(why, Why::Conflict);
                    unclear.extend(failure);
                    continue;
                }
            };
            if let Some(slot) = said.get_mut(place) {
                *slot = answer;
            }
        }
        if ends || left.len() == all {
            break;
        }
    }
    let acted = if unclear.is_empty() { Ok(()) } else { Err(effects::Error { failed: unclear }) };
    (said, acted)
}
