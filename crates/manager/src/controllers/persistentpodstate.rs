//! PersistentPodStates: notes where pods are, and makes objects that annotations of workloads ask for.
//!
//! A generated object has the name of its workload, so one key stands for both.

mod observe;

use std::{sync::Arc, time::Duration};

use kruise_api::{
    gates::Gates, persistentpodstate::v1beta1::PersistentPodState, statefulset::v1beta1::StatefulSet,
};
use kruise_core::{
    effect::{Effect, Event},
    object::{ObjectKey, ObjectRef},
    persistentpodstate::{
        self, Generated, PERSISTENT_POD_STATE, Set, Target, decide, generate, injected_by, is_news, waits,
    },
    text::Text,
    waiting::{self, Waits},
};
use kruise_runtime::{
    cache::{Cache, Guarded},
    controller::{Context, Controller, Error, Next},
    effects::{Failure, Outcome, Why},
};

use super::{FIRST_LIST, Once, environment, rest, tunable_queue, unreadable, workers};
use crate::shared::Shared;
use observe::{Observer, Seen};

/// The name.
pub const NAME: &str = "persistentpodstate-controller";

/// When to look again after a write, if it is not seen before.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// When to look again after somebody else has written the object.
const AT_ONCE: Duration = Duration::from_millis(50);
/// When to ask again for a node that could not be read.
const NODE_AGAIN: Duration = Duration::from_secs(30);

type States = Cache<Guarded<PersistentPodState>>;

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    // Annotations of any StatefulSet may ask for an object.
    caches.native_statefulsets.want();
    caches.configuration.want();
    let (observer, told, gates) = (Observer::new(shared), Once::default(), shared.settings.gates.clone());
    let states = || caches.persistent_pod_states.clone();
    let (of_pods, of_own, of_native, of_listed) = (states(), states(), states(), states());
    let (listed, configured) = (shared.listed_workloads.clone(), states());
    Controller::new(NAME, &environment(shared, NAME))
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&caches.persistent_pod_states)
        .wake(&caches.persistent_pod_states, |change, wake| {
            wake(change.key.clone());
            // While it was there, a workload could not have an object of its own name.
            let gone = change.old.as_ref().filter(|_| change.new.is_none());
            if let Some(Ok(state)) = gone.map(|stored| &stored.object) {
                wake(ObjectKey::new(change.key.namespace.clone(), Target::of(state).name));
            }
        })
        .wake(&caches.pods, move |change, wake| {
            let (old, new) = (change.old.as_deref(), change.new.as_deref());
            if of_pods.is_empty() || !is_news(old, new) {
                return;
            }
            for pod in old.into_iter().chain(new) {
                let namespace = &change.key.namespace;
                if let Some(name) = injected_by(pod) {
                    wake(ObjectKey { namespace: namespace.clone(), name: name.clone() });
                }
                if let Some(owner) = pod.metadata.controller() {
                    about(&of_pods, namespace, Target::owner(owner), wake);
                }
            }
        })
        .wake(&caches.statefulsets, move |change, wake| {
            let set = |stored: &Guarded<StatefulSet>| own_set(stored, &gates);
            let (old, new) = (change.old.as_deref().and_then(set), change.new.as_deref().and_then(set));
            of_workload(&of_own, &change.key, old.as_ref(), new.as_ref(), wake);
        })
        .wake(&caches.native_statefulsets, move |change, wake| {
            let (old, new) =
                (change.old.as_deref().map(Set::of_native), change.new.as_deref().map(Set::of_native));
            of_workload(&of_native, &change.key, old.as_ref(), new.as_ref(), wake);
        })
        .wake(&caches.configuration, move |_, wake| {
            // Other kinds may be supported now.
            configured.list().iter().for_each(|stored| wake(stored.metadata.key()));
        })
        .wake_by(|waker| {
            listed.report_to(Arc::new(move |key: &ObjectKey, old: Option<&Set>, new: Option<&Set>| {
                of_workload(&of_listed, key, old, new, &mut |key| waker.wake(key, false));
            }));
        })
        .reconcile(move |context, key| {
            let (observer, told) = (observer.clone(), told.clone());
            async move { pass(&observer, &told, &context, &key).await }
        })
}

fn own_set(stored: &Guarded<StatefulSet>, gates: &Gates) -> Option<Set> {
    stored.object.as_ref().ok().map(|set| Set::of_own(&stored.metadata, set, gates))
}

/// Wakes the objects that a change of a workload is news for: the one of its name, and those about it.
fn of_workload(
    states: &States,
    key: &ObjectKey,
    old: Option<&Set>,
    new: Option<&Set>,
    wake: &mut dyn FnMut(ObjectKey),
) {
    if Set::asks_anew(old, new) {
        wake(key.clone());
    }
    if let Some(set) = new.or(old).filter(|_| Set::is_news(old, new)) {
        about(states, &key.namespace, set.target(), wake);
    }
}

/// Wakes the objects of a namespace that are about a workload.
fn about(states: &States, namespace: &str, target: Target<'_>, wake: &mut dyn FnMut(ObjectKey)) {
    for stored in states.in_namespace(namespace) {
        if stored.object.as_ref().is_ok_and(|state| Target::of(state) == target) {
            wake(stored.metadata.key());
        }
    }
}

async fn pass(observer: &Observer, told: &Once, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let state = match observer.find(key) {
        None => None,
        Some(stored) => match &stored.object {
            Ok(state) => Some(state.clone()),
            Err(problem) => {
                let uid = stored.metadata.uid.clone();
                let object = ObjectRef { resource: PERSISTENT_POD_STATE, key: key.clone(), uid };
                return Err(unreadable(context, object, problem).await);
            }
        },
    };
    let Some(sets) = observer.sets_named(key) else { return Ok(Next::After(FIRST_LIST)) };
    let generated = generate(state.as_deref(), &sets);
    let made = make(told, context, key, &generated).await;
    // What was written now has another version: where pods are is noted when that is seen.
    let is_made = made.done > 0;
    let noted = match state.as_ref().filter(|state| !is_made && state.metadata.deletion_timestamp.is_none()) {
        Some(state) => note(observer, context, key, state).await?,
        None => Noted { next: is_made.then_some(LOOK_AGAIN), ..Noted::default() },
    };
    let conflicts = generated.conflicts.iter().map(|conflict| conflict.wait.clone());
    let mut waits = waits(state.as_deref(), &observer.kinds(), conflicts);
    for Failure { verb, object, why, .. } in made.failed.iter().chain(&noted.outcome.failed) {
        if let Why::Refused { code, message, .. } = why {
            let found = waiting::refused(verb, PERSISTENT_POD_STATE, object, *code, message, 0);
            found.into_iter().for_each(|(reason, sentence)| waits.add(reason, sentence));
        }
    }
    let owner = sets.first().map(Set::reference);
    let lasts = report(observer.shared(), context, key, state.as_deref(), owner, &waits).await;
    context.rest(key, rest(noted.pods));
    // An event about something that lasts is due on time, whatever else fails.
    lasts.into_iter().for_each(|after| context.again(key, after));
    made.ok()?;
    match noted.outcome.ok() {
        // Somebody has changed the object meanwhile.
        Err(error) if error.is_conflict() => return Ok(Next::After(AT_ONCE)),
        outcome => outcome?,
    }
    if state.is_none() && !is_made && waits.main().is_none() {
        told.forget(key);
        return Ok(Next::Forget);
    }
    Ok([noted.next, lasts].into_iter().flatten().min().into())
}

/// Makes, changes or deletes the object that annotations ask for, and reports what stands in the way.
async fn make(told: &Once, context: &Context, key: &ObjectKey, generated: &Generated) -> Outcome {
    for workload in &generated.incomplete {
        tracing::info!(
            kind = workload.resource.kind,
            "asks for a PersistentPodState and names no topology; nothing is changed"
        );
    }
    let conflicts = generated.conflicts.iter().map(|found| (found.mark.clone(), found.event.clone()));
    // Events alone cannot fail.
    let _ = context.try_act(key, &told.news_of(key, conflicts)).await;
    context.try_act(key, generated.effect.as_slice()).await
}

/// How noting went.
#[derive(Default)]
struct Noted {
    outcome: Outcome,
    next: Option<Duration>,
    pods: usize,
}

/// Notes where the pods are.
async fn note(
    observer: &Observer,
    context: &Context,
    key: &ObjectKey,
    state: &Arc<PersistentPodState>,
) -> Result<Noted, Error> {
    let seen = match observer.observe(state).await {
        Seen::All(seen) => seen,
        Seen::Nothing => return Ok(Noted::default()),
        Seen::NotRead(again) => return Ok(Noted { next: Some(again), ..Noted::default() }),
    };
    let pods = seen.observed.members.as_ref().map_or(0, |members| members.pods.len());
    let mut plan = decide(&seen.observed);
    if plan.forgets {
        // What is forgotten does not come back, so the server has the last word.
        let Some(confirmed) = observer.confirm(*seen).await? else {
            return Ok(Noted { next: Some(LOOK_AGAIN), ..Noted::default() });
        };
        plan = decide(&confirmed);
    }
    for node in &plan.unread {
        tracing::warn!(%node, "a node cannot be read; its pods keep their records");
    }
    if !plan.nameless.is_empty() {
        tracing::debug!(pods = ?plan.nameless, "names without a number are kept");
    }
    let next = (!plan.unread.is_empty()).then_some(NODE_AGAIN);
    Ok(Noted { outcome: context.try_act(key, plan.status.as_slice()).await, next, pods })
}

/// Reports why the object makes no progress. Returns when to look again.
async fn report(
    shared: &Shared,
    context: &Context,
    key: &ObjectKey,
    state: Option<&PersistentPodState>,
    owner: Option<ObjectRef>,
    waits: &Waits,
) -> Option<Duration> {
    if state.is_none() && waits.main().is_none() {
        shared.waiting.forget(PERSISTENT_POD_STATE, key);
        return None;
    }
    for (reason, sentence) in waits.all() {
        tracing::debug!(reason = reason.as_str(), sentence, "waits");
    }
    let missing = || ObjectRef { resource: PERSISTENT_POD_STATE, key: key.clone(), uid: Text::default() };
    let object = state.map_or_else(missing, persistentpodstate::reference);
    let (events, lasts) = shared.waiting.note(&object, waits, None, context.clock().now());
    // People look at the workload while its object is not there.
    let regarding = owner.filter(|_| state.is_none()).unwrap_or(object);
    let events: Vec<Effect> = events
        .into_iter()
        .map(|event| Effect::Event(Event { regarding: regarding.clone(), ..event }))
        .collect();
    // Events alone cannot fail.
    let _ = context.try_act(key, &events).await;
    lasts
}
