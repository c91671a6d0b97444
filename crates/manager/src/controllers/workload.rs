//! The reconcile of every workload: find the object, observe, decide, act, report, write the status, rest.
//!
//! A kind adds what differs: what it observes, what it decides, what its status is, and which changes wake it.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_core::{
    effect::{Effect, Event},
    object::{ObjectKey, ObjectRef, POD, Resource},
    plan::{Failures, Part, Plan, Purpose, Step, WriteBudget},
    podunavailablebudget::is_by_budget,
    waiting::{self, Reason, Waits},
};
use kruise_runtime::{
    cache::{Cache, Guarded, Plain},
    controller::{Context, Controller, Error, Next},
    effects::{Outcome, Why},
    live,
};
use serde::de::DeserializeOwned;

use super::{permission, rest, unreadable};
use crate::shared::Shared;

/// A reconcile plans as much as can be written within this time, and then looks again. Because of this, a spec change during
/// a large scale-up takes effect soon, and a pod does not wait long for its next step.
const WRITE_FOR: Duration = Duration::from_secs(1);
/// How old a status may become while pods are changed.
const STATUS_EVERY: SignedDuration = SignedDuration::from_secs(5);
/// How often a status is written because of a message alone.
const TEXT_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// When to look again after writes, if their results are not seen before.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// When to try again what can wait and was refused.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// What differs between kinds. Clones are the same.
pub trait Workload: Clone + Send + Sync + 'static {
    /// The object as it is stored.
    type Object: Clone + Debug + DeserializeOwned + Send + Sync + 'static;
    /// Everything a reconcile may know.
    type Observed: Send + Sync;
    /// What steps are for.
    type Purpose: Purpose;
    /// What was counted, until it is known what failed.
    type Standing: Send + Sync;

    /// The kind.
    const RESOURCE: Resource;

    /// What all controllers share.
    fn shared(&self) -> &Shared;

    /// The cache of the objects.
    fn objects(&self) -> &Cache<Guarded<Self::Object>>;

    /// When statuses were written.
    fn written(&self) -> &Written;

    /// Gathers everything from caches. Nothing while something is still read for the first time.
    fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self::Object>,
        budget: WriteBudget,
    ) -> Option<Self::Observed>;

    /// Reads what caches leave out and what the decision needs.
    fn prepare(&self, key: &ObjectKey, seen: &mut Self::Observed) -> impl Future<Output = ()> + Send {
        let _ = (key, seen);
        std::future::ready(())
    }

    /// How many pods were seen, and at which time.
    fn size(&self, seen: &Self::Observed) -> (usize, Timestamp);

    /// How many pods are missing, where the kind counts them: a plan creates only as many as can be written at once.
    fn missing(&self, standing: &Self::Standing) -> usize {
        let _ = standing;
        0
    }

    /// Decides one safe step, and counts.
    fn decide(&self, seen: &Self::Observed) -> (Plan<Self::Purpose>, Self::Standing);

    /// Remembers what the next reconcile has to know of how the steps went.
    fn acted(
        &self,
        context: &Context,
        key: &ObjectKey,
        seen: &Self::Observed,
        plan: &Plan<Self::Purpose>,
        acted: &Acted<Self::Purpose>,
    ) -> Aftermath {
        let _ = (context, key, seen, plan, acted);
        Aftermath::default()
    }

    /// The reason that the condition `Waiting` of the object has, if it has one.
    fn told(&self, seen: &Self::Observed) -> Option<String> {
        let _ = seen;
        None
    }

    /// The write that brings the status up to date, if one is needed.
    fn status(
        &self,
        seen: &Self::Observed,
        standing: &Self::Standing,
        failures: &Failures,
        plan: &Plan<Self::Purpose>,
    ) -> Option<StatusWrite>;

    /// Forgets an object that is gone.
    fn forget(&self, key: &ObjectKey) {
        let _ = key;
    }
}

/// The write of a status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusWrite {
    /// The write.
    pub effect: Effect,
    /// Only counts changed, which change again when the results of the writes before are seen.
    pub can_wait: bool,
    /// Only the message of the condition `Waiting` changed: it is written once in 10 s.
    pub only_text: bool,
}

/// What follows from how the steps went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aftermath {
    /// What failed, in place of the first error of an update.
    pub update_failure: Option<String>,
    /// When to look again.
    pub again: Option<Duration>,
    /// Events to send.
    pub events: Vec<Event>,
    /// Why trying again cannot help before someone edits the object.
    pub terminal: Option<String>,
}

/// The steps of a plan, each followed by the events that report it, and how they went.
#[derive(Clone, Debug)]
pub struct Acted<P> {
    owner: ObjectRef,
    steps: Vec<(Effect, P)>,
    /// Steps that budgets left out.
    pub held: Vec<P>,
    /// How it went.
    pub outcome: Outcome,
}

impl<P: Purpose> Acted<P> {
    fn prepare(plan: &Plan<P>, held: Vec<P>, owner: ObjectRef) -> Self {
        let mut steps = Vec::new();
        for Step { effect, purpose, why } in &plan.steps {
            tracing::debug!(purpose = ?purpose, %why, "next step");
            steps.push((effect.clone(), purpose.clone()));
            let events = purpose.done(&owner).into_iter().map(Effect::Event);
            steps.extend(events.map(|event| (event, P::quiet(Part::Housekeeping))));
        }
        Self { owner, steps, held, outcome: Outcome::default() }
    }

    /// All steps, each with why it did not happen, if it did not.
    pub fn steps(&self) -> impl Iterator<Item = (&Effect, &P, Option<&Why>)> {
        let failed: BTreeMap<usize, &Why> =
            self.outcome.failed.iter().map(|failure| (failure.index, &failure.why)).collect();
        self.steps
            .iter()
            .enumerate()
            .map(move |(index, (effect, purpose))| (effect, purpose, failed.get(&index).copied()))
    }

    /// The steps that the server refused, with its messages. Everything else that went wrong is settled by looking again.
    pub fn refused(&self) -> impl Iterator<Item = (&P, &str)> {
        self.steps().filter_map(|(_, purpose, why)| match why {
            Some(Why::Refused { message, .. }) => Some((purpose, message.as_str())),
            _ => None,
        })
    }

    fn failures(&self) -> Failures {
        let mut failures = Failures::default();
        for (purpose, message) in self.refused() {
            match purpose.part() {
                Part::Scale => failures.scale.get_or_insert_with(|| message.to_owned()),
                Part::Update => failures.update.get_or_insert_with(|| message.to_owned()),
                Part::Housekeeping => continue,
            };
        }
        failures
    }

    /// What the refusals mean for the object that misses at least so many pods.
    fn waits(&self, shared: &Shared, missing: usize) -> Waits {
        let is_pod = |effect: &Effect| matches!(effect, Effect::Create { resource: POD, .. });
        let refused_pods = self.steps().filter(|(effect, _, why)| why.is_some() && is_pod(effect)).count();
        let effect = |index: usize| self.steps.get(index).map(|(effect, _)| effect);
        refused(shared, &self.owner, &self.outcome, effect, missing.max(refused_pods))
    }

    fn failure_events(&self) -> Vec<Event> {
        self.refused().filter_map(|(purpose, message)| purpose.failed(&self.owner, message)).collect()
    }

    /// What went wrong, without what delays nothing, and whether something has to be tried again later: a job or an old
    /// revision that the server refuses must not delay the pods.
    fn serious(self) -> (Outcome, bool) {
        let Self { steps, mut outcome, .. } = self;
        let purpose = |index: usize| steps.get(index).map(|(_, purpose)| purpose);
        outcome.failed.retain(|failure| {
            let is_remembered = purpose(failure.index).is_some_and(Purpose::is_remembered);
            // One that a budget refuses is not remembered.
            let is_refused = matches!(&failure.why, Why::Refused { message, .. } if !is_by_budget(message));
            !(is_remembered && is_refused)
        });
        let all = outcome.failed.len();
        outcome.failed.retain(|failure| {
            let is_answered = matches!(failure.why, Why::Refused { .. } | Why::LeftOut);
            !(is_answered && purpose(failure.index).map(Purpose::part) == Some(Part::Housekeeping))
        });
        let can_wait = outcome.failed.len() < all;
        (outcome, can_wait)
    }
}

/// What refusals mean for the object that the writes follow from. `missing` is how many pods could not be created.
pub fn refused<'e>(
    shared: &Shared,
    owner: &ObjectRef,
    outcome: &Outcome,
    effect: impl Fn(usize) -> Option<&'e Effect>,
    missing: usize,
) -> Waits {
    let mut waits = Waits::default();
    for failure in &outcome.failed {
        let Why::Refused { code, message, .. } = &failure.why else { continue };
        let Some((resource, _)) = effect(failure.index).and_then(Effect::endpoint) else { continue };
        if resource == POD
            && let Some(sentence) = permission::refused(shared, owner, &failure.object, message)
        {
            waits.add(Reason::BudgetRefuses, sentence);
            continue;
        }
        let refused = waiting::refused(failure.verb, resource, &failure.object, *code, message, missing);
        if let Some((reason, sentence)) = refused {
            waits.add(reason, sentence);
        }
    }
    waits
}

/// When the status of each object was written last. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<Mutex<BTreeMap<ObjectKey, Timestamp>>>);

impl Written {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The status is written now.
    pub fn note(&self, key: &ObjectKey, now: Timestamp) {
        self.lock().insert(key.clone(), now);
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    /// How long a new message has to wait.
    pub fn left(&self, key: &ObjectKey, now: Timestamp) -> Option<Duration> {
        let written = *self.lock().get(key)?;
        let left = Duration::try_from(TEXT_EVERY.saturating_sub(now.duration_since(written)).min(TEXT_EVERY));
        left.ok().filter(|left| !left.is_zero())
    }

    fn is_recent(&self, key: &ObjectKey, now: Timestamp) -> bool {
        self.lock().get(key).is_some_and(|written| now.duration_since(*written) < STATUS_EVERY)
    }
}

/// Completes a controller: every key is reconciled so.
pub fn reconcile<W: Workload>(builder: kruise_runtime::controller::Builder, workload: W) -> Controller {
    builder.reconcile(move |context, key| {
        let workload = workload.clone();
        async move { once(&workload, &context, &key).await }
    })
}

async fn once<W: Workload>(workload: &W, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let Some(stored) = workload.objects().get(key) else {
        workload.written().forget(key);
        workload.shared().waiting.forget(W::RESOURCE, key);
        workload.shared().budgets.waiters(W::RESOURCE).forget(key);
        workload.forget(key);
        return Ok(Next::Forget);
    };
    let owner = ObjectRef { resource: W::RESOURCE, key: key.clone(), uid: stored.metadata.uid.clone() };
    let object = match &stored.object {
        Ok(object) => object.clone(),
        Err(problem) => return Err(unreadable(context, owner, problem).await),
    };
    let budget = WriteBudget {
        pods: context.room((POD, None), WRITE_FOR),
        status: context.room((POD, Some("status")), WRITE_FOR),
    };
    let Some(mut seen) = workload.observe(context, key, object, budget) else {
        return Ok(Next::After(LOOK_AGAIN));
    };
    workload.prepare(key, &mut seen).await;
    let (mut plan, standing) = workload.decide(&seen);
    adopt_only_for_living(workload, &owner, &mut plan).await?;
    let held = permission::ask(workload.shared(), &owner, &mut plan).await;
    for reason in &plan.reasons {
        tracing::debug!(reason, "waits");
    }
    for failure in &plan.failures {
        tracing::warn!(problem = failure.message, "cannot go on with all pods");
    }
    let mut acted = Acted::prepare(&plan, held, owner.clone());
    let effects: Vec<Effect> = acted.steps.iter().map(|(effect, _)| effect.clone()).collect();
    acted.outcome = context.try_act(key, &effects).await;
    let Aftermath { update_failure, again, events, terminal } =
        workload.acted(context, key, &seen, &plan, &acted);
    plan.waits.join(acted.waits(workload.shared(), workload.missing(&standing)));
    let (size, now) = workload.size(&seen);
    let told = workload.told(&seen);
    let (waiting, lasts) = workload.shared().waiting.note(&owner, &plan.waits, told.as_deref(), now);
    let events = acted.failure_events().into_iter().chain(events).chain(waiting).map(Effect::Event);
    // Events alone cannot fail.
    let _ = context.try_act(key, &events.collect::<Vec<_>>()).await;
    let mut failures = acted.failures().or(Failures::of(&plan));
    failures.update = update_failure.or(failures.update);

    let status = workload.status(&seen, &standing, &failures, &plan);
    // What was changed is counted when it is seen, a moment later. Who watches a long rollout still sees it move.
    let is_early = acted.outcome.done > 0 && workload.written().is_recent(key, now);
    let counts_later = is_early && status.as_ref().is_none_or(|status| status.can_wait);
    let text_later =
        status.as_ref().filter(|status| status.only_text).and_then(|_| workload.written().left(key, now));
    let mut written = Ok(());
    if let Some(status) = status.filter(|_| !counts_later && text_later.is_none()) {
        written = context.act(key, &[status.effect]).await;
        workload.written().note(key, now);
    }
    context.rest(key, rest(size));
    // A grace period ends on time, whatever else fails.
    let lasts = lasts.into_iter().chain(plan.waits.wake_after()).min();
    plan.wake_after.into_iter().chain(lasts).for_each(|after| context.again(key, after));
    let (serious, can_wait) = acted.serious();
    serious.ok()?;
    written?;
    if let Some(problem) = terminal {
        return Err(Error::terminal(problem));
    }
    let count = counts_later.then_some(LOOK_AGAIN);
    let later = can_wait.then_some(TRY_AGAIN);
    Ok([plan.wake_after, lasts, count, later, again, text_later].into_iter().flatten().min().into())
}

/// Leaves out adoptions unless the server itself says that the owner exists, with the same uid, and is not being deleted:
/// the garbage collector would delete what is adopted for an owner that is gone.
async fn adopt_only_for_living<W: Workload>(
    workload: &W,
    owner: &ObjectRef,
    plan: &mut Plan<W::Purpose>,
) -> Result<(), Error> {
    if !plan.steps.iter().any(|step| step.purpose.adopts()) {
        return Ok(());
    }
    let stored = live::get::<Plain>(&workload.shared().client, owner.resource, &owner.key).await;
    let stored = stored.map_err(Error::other)?;
    let lives =
        stored.is_some_and(|stored| stored.metadata.uid == owner.uid && !stored.metadata.is_deleting());
    if !lives {
        plan.steps.retain(|step| !step.purpose.adopts());
    }
    Ok(())
}
