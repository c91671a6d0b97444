//! The only place that writes to a cluster.
//!
//! A plan is a list of [effects](Effect). The [`Executor`] carries them out: with their preconditions, within a rate,
//! creates in growing batches (a mistake in a template then costs one refused pod, not thousands). It records each write
//! with [freshness](crate::freshness), so that the key that wrote waits until it can read it. It refuses to write when
//! the process does not lead any more.

mod call;
mod limit;
mod unread;

use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, future::join_all, stream};
use kruise_core::{
    effect::{Effect, Endpoint, Patch, Target},
    object::{ObjectKey, Resource},
    text::Text,
};
use serde_json::Value;
use tracing::{debug, info, warn};

use crate::{
    cache::UNREADABLE,
    events::Recorder,
    freshness::{Freshness, Want},
    lease::Fence,
    metrics::Framework,
};
use call::{ASK, Answer, Call, Written};
use limit::Limit;

/// Bounds of an executor.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Writes per second, for each kind.
    pub qps: f64,
    /// Writes that may come at once.
    pub burst: u32,
    /// Writes of one plan that may be under way at once.
    pub parallel: usize,
    /// How long one write may take.
    pub timeout: Duration,
    /// What becomes of a create without a clear answer.
    pub doubted_creates: DoubtedCreates,
}

/// What becomes of a create of which nobody knows whether it happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DoubtedCreates {
    /// It is sent again: its name may have been chosen by chance, and the next plan would choose another one.
    #[default]
    Repeat,
    /// It is looked for, and dropped if it is not there. For plans that give the same object the same name again: then what is not
    /// wanted any more is not created.
    LookFor,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            qps: 30.0,
            burst: 50,
            parallel: 16,
            timeout: Duration::from_secs(30),
            doubted_creates: DoubtedCreates::Repeat,
        }
    }
}

/// Why an effect did not happen, or may not have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Why {
    /// The object is not as it was seen: look again.
    #[error("the object has changed meanwhile")]
    Conflict,
    /// The server said no, and will say so again.
    #[error("the server refused: {message} ({reason})")]
    Refused {
        /// Its code.
        code: u16,
        /// One word.
        reason: String,
        /// A sentence.
        message: String,
    },
    /// The server wants to be left alone for a while.
    #[error("the server asks to wait {0:?}")]
    Throttled(Duration),
    /// A write of this key was refused, and the limit of writes has nothing left for it now.
    #[error("other writes come first, after one of this object was refused; tried again in {0:?}")]
    Waiting(Duration),
    /// Nobody knows whether it happened. It is tried again before anything else is done for its key.
    #[error("no clear answer: {0}")]
    Uncertain(String),
    /// This process does not lead any more.
    #[error("this process does not lead any more")]
    NotLeading,
    /// Others of the same plan failed before.
    #[error("left out because others failed before")]
    LeftOut,
}

/// An effect that did not happen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("failed to {verb} {resource} {object}: {why}")]
pub struct Failure {
    /// Which effect of the plan.
    pub index: usize,
    /// `create`, `patch`, `delete` or `dry-run`.
    pub verb: &'static str,
    /// Plural of the kind.
    pub resource: &'static str,
    /// The object.
    pub object: ObjectKey,
    /// Why not.
    pub why: Why,
}

/// How a plan went.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use]
pub struct Outcome {
    /// How many writes happened.
    pub done: usize,
    /// What did not happen, in the order of the plan.
    pub failed: Vec<Failure>,
}

impl Outcome {
    /// Nothing, or what went wrong.
    pub fn ok(self) -> Result<(), Error> {
        if self.failed.is_empty() { Ok(()) } else { Err(Error { failed: self.failed }) }
    }
}

/// Some effects of a plan did not happen.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// Which ones; never empty.
    pub failed: Vec<Failure>,
}

impl Error {
    /// How long the server wants to be left alone, or the limit of writes has nothing left.
    pub fn retry_after(&self) -> Duration {
        let waits = self.failed.iter().map(|failure| match failure.why {
            Why::Throttled(wait) | Why::Waiting(wait) => wait,
            _ => Duration::ZERO,
        });
        waits.max().unwrap_or_default()
    }

    /// Whether the only thing wrong is that objects changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.failed.iter().all(|failure| matches!(failure.why, Why::Conflict | Why::LeftOut))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.failed.first() {
            write!(formatter, "{first}")?;
        }
        let more = self.failed.len().saturating_sub(1);
        if more > 0 { write!(formatter, " (and {more} more)") } else { Ok(()) }
    }
}

impl std::error::Error for Error {}

/// Makes one write outside of a plan, for an answer that depends on it: admission takes a share of a budget before it says
/// yes, on every replica, so no lease is asked and no rate is kept. Its preconditions keep it safe. Returns the version of
/// the object after the write, where the server said it; nothing is tried again.
pub async fn once(client: &kube::Client, effect: &Effect, timeout: Duration) -> Result<Option<Text>, Why> {
    let Some(call) = Call::of(effect) else { return Ok(None) };
    match call.send(client, timeout).await {
        Answer::Done(written) => Ok(written.map(|written| written.version)),
        Answer::Conflict => Err(Why::Conflict),
        Answer::Gone => {
            let message = format!("{} {} is not there", call.resource.kind, call.object);
            Err(Why::Refused { code: 404, reason: "NotFound".to_owned(), message })
        }
        Answer::Exists => {
            let message = format!("{} {} is there already", call.resource.kind, call.object);
            Err(Why::Refused { code: 409, reason: "AlreadyExists".to_owned(), message })
        }
        Answer::Throttled(wait) => Err(Why::Throttled(wait)),
        Answer::Refused { code, reason, message } => Err(Why::Refused { code, reason, message }),
        Answer::Unclear(why) => Err(Why::Uncertain(why)),
    }
}

/// Asks whether the server would create an object, without creating it: admission says so before it accepts what the object
/// is made from. One that is there already would have been taken.
pub async fn would_create(
    client: &kube::Client,
    resource: Resource,
    namespace: &str,
    object: Value,
    timeout: Duration,
) -> Result<(), Why> {
    let effect = Effect::Create { resource, namespace: namespace.into(), object };
    let Some(call) = Call::of(&effect).map(Call::into_trial) else { return Ok(()) };
    match call.send(client, timeout).await {
        Answer::Done(_) | Answer::Exists => Ok(()),
        Answer::Conflict | Answer::Gone => Err(Why::Conflict),
        Answer::Throttled(wait) => Err(Why::Throttled(wait)),
        Answer::Refused { code, reason, message } => Err(Why::Refused { code, reason, message }),
        Answer::Unclear(why) => Err(Why::Uncertain(why)),
    }
}

/// Carries out plans. Clones are the same executor.
#[derive(Clone)]
pub struct Executor(Arc<Inner>);

struct Inner {
    controller: &'static str,
    client: kube::Client,
    freshness: Freshness,
    recorder: Recorder,
    fence: Fence,
    options: Options,
    /// One for each resource as roles name it (`pods` and `pods/status` are two): the status of a workload must not wait
    /// behind its pods, nor the readiness of pods behind the making of others.
    limits: Mutex<BTreeMap<Option<Endpoint>, Arc<Limit>>>,
    /// What the server took last, for keys that create and the kinds that they create.
    proven: Mutex<BTreeMap<(ObjectKey, &'static str), Proven>>,
    metrics: Framework,
}

/// Creates that went well.
struct Proven {
    /// What was created, but for its name.
    kind: u64,
    /// How many come next at once.
    size: usize,
}

impl fmt::Debug for Executor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Executor").field("controller", &self.0.controller).finish_non_exhaustive()
    }
}

impl Executor {
    /// An executor. The client must not retry by itself: retries belong to the queue.
    pub fn new(
        controller: &'static str,
        client: kube::Client,
        freshness: Freshness,
        recorder: Recorder,
        fence: Fence,
        options: Options,
        metrics: Framework,
    ) -> Self {
        let (limits, proven) = (Mutex::default(), Mutex::default());
        let inner =
            Inner { controller, client, freshness, recorder, fence, options, limits, proven, metrics };
        Self(Arc::new(inner))
    }

    /// How many writes to a resource have room within this time, at least one. Others that write there share it.
    pub fn room(&self, endpoint: Endpoint, within: Duration) -> usize {
        self.limit(Some(endpoint)).room(within)
    }

    fn limit(&self, endpoint: Option<Endpoint>) -> Arc<Limit> {
        let mut limits = self.0.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let Options { qps, burst, .. } = self.0.options;
        limits.entry(endpoint).or_insert_with(|| Arc::new(Limit::new(qps, burst))).clone()
    }

    /// Forgets what was accepted and refused of this key.
    pub fn forget(&self, key: &ObjectKey) {
        self.proven().retain(|(known, _), _| known != key);
        let limits = self.0.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.values().for_each(|limit| limit.accepted(key));
    }

    fn proven(&self) -> MutexGuard<'_, BTreeMap<(ObjectKey, &'static str), Proven>> {
        self.0.proven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out the effects of one plan for `key`. What goes to different resources goes at the same time. For each,
    /// changes and deletions come first, then creates in batches of one, two, four and so on; a batch with a failure is the
    /// last. An event is told when the effect before it happened.
    pub async fn act(&self, key: &ObjectKey, effects: &[Effect]) -> Outcome {
        let mut by_endpoint: BTreeMap<Endpoint, Vec<Numbered<'_>>> = BTreeMap::new();
        let mut last = None;
        for (index, effect) in effects.iter().enumerate() {
            let Some(own) = effect.endpoint() else { continue };
            // What follows another write stays with it.
            let place = if follows(effect) { last.unwrap_or(own) } else { own };
            by_endpoint.entry(place).or_default().push((index, effect));
            last = Some(place);
        }
        let calls = by_endpoint.into_values().map(|effects| self.act_on_one(key, effects).boxed());
        let mut results: Vec<Option<Result<(), Why>>> = vec![None; effects.len()];
        for (index, result) in join_all(calls).await.into_iter().flatten() {
            if let Some(slot) = results.get_mut(index) {
                *slot = Some(result);
            }
        }
        self.tell(effects, &results);
        outcome(effects, results)
    }

    /// The effects of a plan on one resource.
    async fn act_on_one(&self, key: &ObjectKey, effects: Vec<Numbered<'_>>) -> Vec<Ended> {
        let (creates, changes): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|(_, effect)| matches!(effect, Effect::Create { .. }));
        let mut ended = self.run(key, &changes).await;
        ended.extend(self.create(key, creates).await);
        ended
    }

    /// Creates in growing batches. Where the server took such objects just before, they go on with that size.
    async fn create(&self, key: &ObjectKey, mut creates: Vec<Numbered<'_>>) -> Vec<Ended> {
        let Some((_, first)) = creates.first() else { return Vec::new() };
        let kind = fingerprint(first);
        let place = (key.clone(), first.endpoint().map_or("", |(resource, _)| resource.plural));
        let proven = self.proven().remove(&place).filter(|proven| proven.kind == kind);
        let mut size = proven.map_or(1, |proven| proven.size);
        let mut ended = Vec::new();
        let mut well = true;
        while !creates.is_empty() {
            let rest = creates.split_off(size.min(creates.len()));
            let batch = self.run(key, &creates).await;
            well = batch.iter().all(|(_, result)| result.is_ok());
            size = size.max(creates.len().saturating_mul(2));
            ended.extend(batch);
            creates = rest;
            if !well {
                ended.extend(creates.drain(..).map(|(index, _)| (index, Err(Why::LeftOut))));
            }
        }
        if well {
            self.proven().insert(place, Proven { kind, size });
        }
        ended
    }

    /// Sends again the writes of `key` of which nobody knows whether they happened, or [looks](DoubtedCreates) for what they
    /// created. Where one of them stays without an answer,
    /// the rest waits for the next time: each may take as long, and others want to be served meanwhile.
    pub async fn clear_doubts(&self, key: &ObjectKey) -> Outcome {
        let doubts = self.0.freshness.take_doubts(key);
        if doubts.is_empty() {
            return Outcome::default();
        }
        let mut results: Vec<Option<Result<(), Why>>> = Vec::with_capacity(doubts.len());
        let mut before = Before::Happened;
        let mut is_answered = true;
        for effect in &doubts {
            if !is_answered {
                self.0.freshness.doubt(key, effect.clone());
                results.push(Some(Err(Why::LeftOut)));
                continue;
            }
            match before {
                Before::Refused if follows(effect) => {
                    results.push(Some(Ok(())));
                    continue;
                }
                Before::Open if follows(effect) => {
                    self.0.freshness.doubt(key, effect.clone());
                    results.push(Some(Err(Why::LeftOut)));
                    continue;
                }
                _ => {}
            }
            if self.is_moot(effect) {
                before = Before::Happened;
                results.push(Some(Ok(())));
                continue;
            }
            let looks = self.0.options.doubted_creates == DoubtedCreates::LookFor;
            let result = match effect {
                Effect::Create { .. } if looks => self.look_for(key, effect).await,
                _ => self.write(key, effect, true).await,
            };
            if matches!(result, Err(Why::Throttled(_) | Why::Waiting(_)))
                || (result == Err(Why::Conflict) && self.is_open(effect))
            {
                before = Before::Open;
                self.0.freshness.doubt(key, unchained(effect));
                results.push(Some(result));
                continue;
            }
            is_answered = !matches!(result, Err(Why::Uncertain(_)));
            before = if result.is_ok() { Before::Happened } else { Before::Refused };
            // A clear no is an answer too: the next plan starts from what is.
            results.push(Some(match result {
                Err(Why::Refused { .. } | Why::Conflict) => Ok(()),
                other => other,
            }));
        }
        outcome(&doubts, results)
    }

    /// Asks whether a create took effect. If it did, the cache has to show it before the key may act again.
    async fn look_for(&self, key: &ObjectKey, effect: &Effect) -> Result<(), Why> {
        let (Effect::Create { object: wanted, .. }, Some(call)) = (effect, Call::of(effect)) else {
            return Ok(());
        };
        match call::get(&self.0.client, call.resource, &call.object, self.0.options.timeout).await {
            Ok(Some(found)) if found.has_controller_of(wanted) => {
                let want = Want::Made { uid: Some(found.uid), version: Some(found.version) };
                self.0.freshness.expect(key, call.resource, call.object, want);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(message) => {
                self.0.freshness.doubt(key, effect.clone());
                Err(Why::Uncertain(message))
            }
        }
    }

    /// Whether the object of a write is gone or another one by now, so that the write does not matter any more.
    fn is_moot(&self, effect: &Effect) -> bool {
        let (Effect::Patch { target, .. } | Effect::Delete { target, .. }) = effect else { return false };
        self.is_shown(target) == Some(false)
    }

    /// Whether a conflict leaves open what became of an earlier try: without a version it says nothing about that.
    fn is_open(&self, effect: &Effect) -> bool {
        let (Effect::Patch { target, .. } | Effect::Delete { target, .. }) = effect else { return false };
        target.resource_version.is_none() && self.is_shown(target) == Some(true)
    }

    /// Whether the object is known to have changed since the plan was made, so that the server would only say no.
    fn is_overtaken(&self, effect: &Effect) -> bool {
        let (Effect::Patch { target, .. } | Effect::Delete { target, .. }) = effect else { return false };
        let version = target.resource_version.as_deref();
        version.is_some_and(|version| self.0.freshness.has_passed(target.resource, &target.key, version))
    }

    fn is_shown(&self, target: &Target) -> Option<bool> {
        self.0.freshness.shows(target.resource, &target.key, target.uid.as_ref()?)
    }

    async fn run(&self, key: &ObjectKey, effects: &[Numbered<'_>]) -> Vec<Ended> {
        let chains = effects.chunk_by(|_, (_, next)| follows(next));
        let calls: Vec<_> = chains.map(|chain| self.write_in_order(key, chain).boxed()).collect();
        let ended: Vec<Vec<Ended>> =
            stream::iter(calls).buffered(self.0.options.parallel.max(1)).collect().await;
        ended.into_iter().flatten().collect()
    }

    /// Writes one after the other. After a failure the rest is left out; behind a write that will be sent again it is sent
    /// then, because the next plan may not know any more that it belongs there.
    async fn write_in_order(&self, key: &ObjectKey, chain: &[Numbered<'_>]) -> Vec<Ended> {
        let mut ended = Vec::with_capacity(chain.len());
        let (mut well, mut comes_again) = (true, false);
        for &(index, effect) in chain {
            let result = if well { self.write(key, effect, false).await } else { Err(Why::LeftOut) };
            match &result {
                Err(Why::Uncertain(_)) => comes_again = true,
                Err(Why::Throttled(_) | Why::Waiting(_)) if follows(effect) => {
                    self.0.freshness.doubt(key, unchained(effect));
                    comes_again = true;
                }
                Err(Why::LeftOut) if comes_again => self.0.freshness.doubt(key, effect.clone()),
                _ => {}
            }
            well = result.is_ok();
            ended.push((index, result));
        }
        ended
    }

    async fn write(&self, key: &ObjectKey, effect: &Effect, again: bool) -> Result<(), Why> {
        let known = |target: &Target| self.0.freshness.unread(target.resource, &target.key);
        let narrowed = unread::narrowed(effect, known).map_err(|message| Why::Refused {
            code: 0,
            reason: UNREADABLE.to_owned(),
            message,
        })?;
        let Some(effect) = narrowed.as_deref() else { return Ok(()) };
        let Some(call) = Call::of(effect) else { return Ok(()) };
        let (verb, resource, object) = (call.verb, call.resource, call.object.clone());
        let limit = self.limit(effect.endpoint());
        let result = match limit.take(key).await {
            Err(wait) => Err(Why::Waiting(wait)),
            Ok(()) if !again && self.is_overtaken(effect) => {
                limit.give_back();
                Err(Why::Conflict)
            }
            Ok(()) if self.0.fence.is_open() => {
                let answer = self.send(&call).await;
                self.judge(key, effect, again, answer).await
            }
            Ok(()) => Err(Why::NotLeading),
        };
        match &result {
            Ok(()) => limit.accepted(key),
            Err(Why::Refused { .. }) => limit.refused(key),
            Err(_) => {}
        }
        let word = match &result {
            Ok(()) => "success",
            Err(Why::Conflict) => "conflict",
            Err(Why::Refused { .. }) => "refused",
            Err(Why::Throttled(_)) => "throttled",
            Err(Why::Waiting(_)) => "waiting",
            Err(Why::Uncertain(_)) => "uncertain",
            Err(Why::NotLeading) => "not_leading",
            Err(Why::LeftOut) => "left_out",
        };
        let Inner { controller, metrics, .. } = &*self.0;
        metrics.effects.inc(&[controller, verb, resource.plural, word]);
        match &result {
            Ok(()) if verb == ASK => {
                debug!(controller, resource = resource.plural, %object, "the server would take a change");
            }
            Ok(()) => info!(controller, verb, resource = resource.plural, %object, "changed the cluster"),
            Err(Why::Conflict) => {
                debug!(controller, verb, resource = resource.plural, %object, "the object has changed meanwhile");
            }
            Err(why @ Why::Waiting(_)) => {
                debug!(controller, verb, resource = resource.plural, %object, %why, "left a change for later");
            }
            Err(why) => {
                warn!(controller, verb, resource = resource.plural, %object, %why, "failed to change the cluster");
            }
        }
        result
    }

    /// Makes a call. One without an answer when this process stops leading is abandoned: dropping it closes its connection,
    /// so that it is not sent later, when somebody else leads. A request that has arrived already cannot be recalled.
    async fn send(&self, call: &Call<'_>) -> Answer {
        tokio::select! {
            biased;
            answer = call.send(&self.0.client, self.0.options.timeout) => answer,
            () = self.0.fence.closed() => {
                Answer::Unclear("this process stopped leading before the server answered".to_owned())
            }
        }
    }

    /// What an answer means, and what must be read before the key may act again.
    async fn judge(&self, key: &ObjectKey, effect: &Effect, again: bool, answer: Answer) -> Result<(), Why> {
        let doubt = |message: String| {
            if is_repeatable(effect) {
                self.0.freshness.doubt(key, unchained(effect));
            }
            Err(Why::Uncertain(message))
        };
        let expect = |resource: Resource, object: &ObjectKey, want: Want| {
            self.0.freshness.expect(key, resource, object.clone(), want);
        };
        let Some(Call { resource, object, .. }) = Call::of(effect) else { return Ok(()) };
        match (effect, answer) {
            (_, Answer::Unclear(message)) => doubt(message),
            (_, Answer::Throttled(wait)) => Err(Why::Throttled(wait)),
            (_, Answer::Refused { code, reason, message }) => Err(Why::Refused { code, reason, message }),
            (Effect::Event(_), _) | (Effect::Ask { .. }, Answer::Done(_)) => Ok(()),
            (Effect::Ask { .. }, Answer::Conflict | Answer::Exists | Answer::Gone) => Err(Why::Conflict),
            (Effect::Create { .. }, Answer::Done(written)) => {
                let made =
                    |written: Written| Want::Made { uid: Some(written.uid), version: Some(written.version) };
                expect(resource, &object, written.map_or(Want::List, made));
                Ok(())
            }
            (Effect::Create { object: wanted, .. }, Answer::Exists) => {
                let found = call::get(&self.0.client, resource, &object, self.0.options.timeout).await;
                match found {
                    Ok(Some(found)) if found.has_controller_of(wanted) => {
                        expect(
                            resource,
                            &object,
                            Want::Made { uid: Some(found.uid), version: Some(found.version) },
                        );
                        Ok(())
                    }
                    Ok(Some(_)) => Err(Why::Refused {
                        code: 409,
                        reason: "AlreadyExists".to_owned(),
                        message: "an object of this name exists and belongs to somebody else".to_owned(),
                    }),
                    // The answer may be old, while the refusal was not: the cache will tell.
                    Ok(None) => {
                        expect(resource, &object, Want::Made { uid: None, version: None });
                        Ok(())
                    }
                    Err(message) => doubt(message),
                }
            }
            // A create has no version to conflict with; something behind it did, and may have done so too late.
            (Effect::Create { .. }, Answer::Conflict | Answer::Gone) => {
                doubt("a conflict behind the create".to_owned())
            }
            (Effect::Patch { .. }, Answer::Done(written)) => {
                expect(
                    resource,
                    &object,
                    written.map_or(Want::List, |written| Want::Version(written.version)),
                );
                Ok(())
            }
            (Effect::Patch { target, .. }, Answer::Conflict | Answer::Exists) => {
                if let (true, Some(version)) = (again, &target.resource_version) {
                    expect(resource, &object, Want::NewerThan(version.clone()));
                }
                Err(Why::Conflict)
            }
            (Effect::Delete { target, .. }, Answer::Done(_)) => {
                expect(resource, &object, Want::Deleting(target.uid.clone()));
                Ok(())
            }
            (Effect::Patch { target, .. } | Effect::Delete { target, .. }, Answer::Gone) => {
                expect(resource, &object, Want::Gone(target.uid.clone()));
                Ok(())
            }
            // The first try may have been what changed the version.
            (Effect::Delete { target, .. }, Answer::Conflict)
                if again && target.resource_version.is_some() =>
            {
                match call::get(&self.0.client, resource, &object, self.0.options.timeout).await {
                    Ok(Some(found)) if found.stays(target.uid.as_ref()) => Err(Why::Conflict),
                    Ok(_) => {
                        expect(resource, &object, Want::Deleting(target.uid.clone()));
                        Ok(())
                    }
                    Err(message) => doubt(message),
                }
            }
            (Effect::Delete { .. }, Answer::Conflict | Answer::Exists) => Err(Why::Conflict),
        }
    }

    fn tell(&self, effects: &[Effect], results: &[Option<Result<(), Why>>]) {
        let mut happened = true;
        for (effect, result) in effects.iter().zip(results) {
            match (effect, result) {
                (Effect::Event(event), _) if happened => self.0.recorder.record(event.clone()),
                (Effect::Event(_), _) => {}
                (_, result) => happened = matches!(result, Some(Ok(()))),
            }
        }
    }
}

/// Whether an effect that happened twice is as if it happened once.
fn is_repeatable(effect: &Effect) -> bool {
    match effect {
        Effect::Create { .. } | Effect::Delete { .. } => true,
        Effect::Patch { patch: Patch::Merge(_) | Patch::Strategic(_), .. } => true,
        Effect::Patch { patch: Patch::Json(_), target, .. } => target.resource_version.is_some(),
        Effect::Ask { .. } | Effect::Event(_) => false,
    }
}

/// An effect with its place in the plan.
type Numbered<'e> = (usize, &'e Effect);
/// How the effect of that place went.
type Ended = (usize, Result<(), Why>);

/// Tells objects apart that a server may take or refuse for different reasons: their spec, not their names, and of pods not
/// where they run.
fn fingerprint(effect: &Effect) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Effect::Create { object, .. } = effect else { return hasher.finish() };
    match object.get("spec") {
        Some(Value::Object(spec)) => {
            let members = spec.iter().filter(|(name, _)| !matches!(name.as_str(), "affinity" | "nodeName"));
            for (name, value) in members {
                name.hash(&mut hasher);
                value.to_string().hash(&mut hasher);
            }
        }
        spec => spec.map(Value::to_string).hash(&mut hasher),
    }
    hasher.finish()
}

fn follows(effect: &Effect) -> bool {
    matches!(effect, Effect::Delete { follows: true, .. })
}

/// The same write on its own: what it followed has happened.
fn unchained(effect: &Effect) -> Effect {
    match effect.clone() {
        Effect::Delete { target, grace, .. } => Effect::Delete { target, grace, follows: false },
        other => other,
    }
}

/// What became of the last write that was sent again, for those that follow it.
#[derive(Clone, Copy)]
enum Before {
    Happened,
    Refused,
    /// It is sent once more.
    Open,
}

fn outcome(effects: &[Effect], results: Vec<Option<Result<(), Why>>>) -> Outcome {
    let mut outcome = Outcome::default();
    for (index, (effect, result)) in effects.iter().zip(results).enumerate() {
        match (result, Call::of(effect)) {
            (Some(Ok(())), Some(Call { verb: ASK, .. })) => {}
            (Some(Ok(())), _) => outcome.done += 1,
            (Some(Err(why)), Some(Call { verb, resource, object, .. })) => {
                outcome.failed.push(Failure { index, verb, resource: resource.plural, object, why });
            }
            _ => {}
        }
    }
    outcome
}
