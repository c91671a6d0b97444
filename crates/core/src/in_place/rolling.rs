//! Updates in place of the pods of one workload: what begins, what goes on and what is taken back, one write for a pod in a
//! reconcile.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use kruise_api::{
    labels,
    lifecycle::{Hook, Lifecycle, State},
};
use serde_json::{Map, Value, json};

use super::{
    Error, Labels, Options, OtherImages, Refusals, Update, compare, completion, half_done, refresh, start,
    state, take_back,
};
use crate::{
    effect::Effect,
    lifecycle,
    pod::Pod,
    revision::{self, Revision, Revisions},
    text::Text,
};

/// What updates in place of a workload depend on.
#[derive(Clone, Copy)]
pub struct Rolling<'a> {
    /// The hooks.
    pub lifecycle: Option<&'a Lifecycle>,
    /// How updates in place work.
    pub options: &'a Options,
    /// What the server refused.
    pub refusals: &'a Refusals,
    /// The revisions of the workload.
    pub revisions: &'a Revisions<'a>,
    /// The images of all revisions.
    pub others: &'a OtherImages,
    /// The labels that name a revision on a pod.
    pub labels: &'a dyn Fn(&Revision) -> Map<String, Value>,
    /// What annotations and messages call a revision: its name, or only its hash.
    pub id: &'a dyn Fn(&Revision) -> Text,
    /// Whether a pod says in a label that it is being updated.
    pub has_state: &'a dyn Fn(&Pod) -> bool,
    /// The time.
    pub now: Timestamp,
}

/// The next write for a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Next {
    /// The write, and what it is.
    pub write: Option<(Effect, Write)>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
}

/// What a write is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// The one that changes the pod to this revision.
    Update(Text),
    /// A step before or after that one.
    Prepare(Text),
    /// The pod returns to the revision that it left, because the server refused the rest of its update.
    TakeBack,
    /// The pod moves to the next state of its hooks, or gets marks that it lacks.
    Settle,
}

/// What a pod is about to do in this reconcile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    #[default]
    Idle,
    /// It waits for its hook, but the workload does not want to update it any more: a higher partition keeps it as it is.
    NotWanted,
    /// It is chosen for an update and waits for its hook, or for its deletion. It may have been made not ready for that.
    Chosen,
    /// Its update in place begins. It may have been made not ready in the last reconcile, and must not be made ready again.
    Starting,
}

impl Rolling<'_> {
    /// The next write for a pod whose update runs or has ended, or which waits for a hook. Every active pod is asked in every
    /// reconcile, also while the workload is paused. Others may start in the same reconcile: a pod counts as updated, or as
    /// available, only when it is seen to be.
    pub fn maintain(&self, pod: &Pod, role: Role) -> Result<Next, Error> {
        if let Some(effect) = self.take_back(pod) {
            return Ok(Next { write: Some((effect, Write::TakeBack)), wake_after: None });
        }
        let is_complete = || completion(pod, self.options, self.others).is_complete();
        let settle = || {
            // A pod that is chosen has to move, be it back to the current revision.
            // One whose update was refused gives its hook back too.
            let is_refused =
                |revision: &Revision| self.refusals.of(&(self.id)(revision), &pod.metadata.name).is_some();
            let is_refused = is_refused(&self.revisions.update) || is_refused(&self.revisions.current);
            let is_on_target = match role {
                Role::Idle => is_refused || revision::is_on(pod, &self.revisions.update),
                Role::NotWanted => true,
                Role::Chosen | Role::Starting => false,
            };
            lifecycle::settle(pod, self.lifecycle, is_on_target, &is_complete, self.now)
        };
        let mut next = Next::default();
        // Without a node nothing can become ready: once there is one, a single write says both.
        if role != Role::Starting && !self.waits_for_node(pod) {
            let progress = refresh(pod, self.options, self.others, self.now)?;
            next.wake_after = progress.wake_after;
            if let Some(effect) = progress.effect {
                let write = write(progress.towards, progress.starts);
                next.write = Some((lifecycle::joined(effect, settle), write));
                return Ok(next);
            }
        }
        let is_status = |effect: &Effect| matches!(effect, Effect::Patch { subresource: Some(_), .. });
        let is_chosen = matches!(role, Role::Chosen | Role::Starting);
        let settled = settle().filter(|effect| !is_chosen || !is_status(effect));
        next.write = settled.or_else(|| self.hash_label(pod)).map(|effect| (effect, Write::Settle));
        Ok(next)
    }

    /// The next write that begins the update of a pod, or asks its hook first. A pod in a state from which it cannot be
    /// updated is an error.
    pub fn start(&self, pod: &Pod, target: &Revision, change: &Update) -> Result<Next, String> {
        let hook = self.hook();
        if self.asks_hook(pod)? {
            let effect = lifecycle::prepare_update(pod, hook, self.now);
            return Ok(Next { write: effect.map(|effect| (effect, Write::Settle)), wake_after: None });
        }
        let mut labels = (self.labels)(target);
        let mut annotations = json!({});
        if (self.has_state)(pod) {
            let (state, since) = lifecycle::marks(&State::Updating, self.now);
            labels.extend(state.as_object().cloned().unwrap_or_default());
            annotations = since;
        }
        let marks = Labels { labels: labels.into(), annotations };
        let progress = start(pod, change, &marks, self.options, self.now);
        Ok(Next {
            write: progress.effect.map(|effect| (effect, write(progress.towards, progress.starts))),
            wake_after: progress.wake_after,
        })
    }

    /// What a pod that is chosen for an update is about to do.
    pub fn role(&self, pod: &Pod, changes: &Changes<'_>) -> Role {
        if self.asks_hook(pod) == Ok(false) && changes.of(pod).is_some() {
            Role::Starting
        } else {
            Role::Chosen
        }
    }

    /// The change of each revision that pods are on to the target.
    pub fn changes<'t>(&self, pods: &[&Pod], target: &'t Revision) -> Changes<'t>
    where
        Self: 't,
    {
        let labels: BTreeSet<&str> = pods.iter().filter_map(|pod| revision::label_of(pod)).collect();
        let is_used =
            |from: &&&Revision| labels.iter().any(|label| revision::is_label_of(label, from.name()));
        let compared = self.revisions.all.iter().filter(is_used);
        let from = compared.map(|from| {
            let change = compare(from, target, self.options);
            let named = |change| Update { revision: (self.id)(target), previous: (self.id)(from), ..change };
            (from.metadata.name.clone(), change.map(named))
        });
        Changes { target, from: from.collect() }
    }

    /// Parts the chosen pods into those that are updated now, and the one that the server is asked about first: others were
    /// refused, and no further pod pays for that with its service. One that was tried less often comes first.
    pub fn split<'p>(&self, chosen: Vec<&'p Pod>, changes: &Changes<'_>) -> (Vec<&'p Pod>, Vec<&'p Pod>) {
        let revision = (self.id)(changes.target);
        let is_asked =
            |pod: &&Pod| self.refusals.asks_first(&revision, &pod.metadata.name) && changes.of(pod).is_some();
        let (mut asked, chosen): (Vec<&Pod>, Vec<&Pod>) = chosen.into_iter().partition(is_asked);
        asked.sort_by_key(|pod| self.refusals.tries(&revision, &pod.metadata.name));
        if self.refusals.is_doubtful(&revision) {
            asked.truncate(1);
        }
        (chosen, asked)
    }

    /// What the server refused to pods that are not on the target yet: the message stays until it is taken, and the pods are
    /// tried again after the pause.
    pub fn refused(&self, pods: &[&Pod], target: &Revision) -> (Option<String>, Option<Duration>) {
        let revision = (self.id)(target);
        let is_refused = |pod: &&Pod| self.refusals.of(&revision, &pod.metadata.name).is_some();
        let message = if pods.iter().any(is_refused) { self.refusals.told() } else { None };
        let pauses =
            pods.iter().filter_map(|pod| self.refusals.pause(&revision, &pod.metadata.name, self.now));
        (message, pauses.min())
    }

    fn hook(&self) -> Option<&Hook> {
        self.lifecycle?.in_place_update.as_ref()
    }

    /// Whether a pod has to wait for its hook before it is updated in place.
    fn asks_hook(&self, pod: &Pod) -> Result<bool, String> {
        let hook = self.hook();
        Ok(match lifecycle::state(pod) {
            None | Some(State::PreparingNormal | State::Normal | State::PreparingUpdate) => {
                lifecycle::is_hooked(hook, pod)
            }
            Some(State::Updated) => hook.is_some(),
            Some(State::Updating) => false,
            Some(state @ (State::PreparingDelete | State::Other(_))) => {
                let name = &pod.metadata.name;
                return Err(format!("not allowed to in-place update pod {name} in state {state}"));
            }
        })
    }

    /// Brings a pod back into service whose update was refused half-way.
    fn take_back(&self, pod: &Pod) -> Option<Effect> {
        let state = state::read(pod).ok().flatten()?;
        let refusal = self.refusals.of(&state.revision, &pod.metadata.name)?;
        let left = self.revisions.named(&half_done(pod, &state.revision)?)?;
        let back = compare(self.revisions.named(&state.revision)?, left, self.options)?;
        let marks = Labels { labels: (self.labels)(left).into(), annotations: json!({}) };
        Some(take_back(pod, &back, &marks, self.options, refusal.is_stuck(), self.now))
    }

    /// Pods of old releases lack the label with the hash alone.
    fn hash_label(&self, pod: &Pod) -> Option<Effect> {
        let label =
            revision::label_of(pod).filter(|_| !pod.metadata.labels.contains(labels::POD_TEMPLATE_HASH))?;
        if !(self.labels)(&self.revisions.update).contains_key(labels::POD_TEMPLATE_HASH) {
            return None;
        }
        let hash = revision::short_hash(label);
        Some(lifecycle::patch(pod, json!({"metadata": {"labels": {labels::POD_TEMPLATE_HASH: hash}}})))
    }

    /// Whether a new pod has no node yet and will be taken into service when it has one.
    fn waits_for_node(&self, pod: &Pod) -> bool {
        let hook = self.lifecycle.and_then(|lifecycle| lifecycle.pre_normal.as_ref());
        lifecycle::is(pod, &State::PreparingNormal) && hook.is_none() && pod.spec.node_name.is_empty()
    }
}

/// How pods get from their revisions to another one in place, found out once for all pods of a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes<'t> {
    /// The revision that they get to.
    pub target: &'t Revision,
    /// From a revision by its name; nothing where it cannot be done in place.
    from: Vec<(Text, Option<Update>)>,
}

impl<'t> Changes<'t> {
    /// No pod can be changed in place.
    pub fn none(target: &'t Revision) -> Self {
        Self { target, from: Vec::new() }
    }

    /// The change of one pod, if it can be made in place.
    pub fn of(&self, pod: &Pod) -> Option<&Update> {
        let label = revision::label_of(pod)?;
        self.from.iter().find(|(name, _)| revision::is_label_of(label, name))?.1.as_ref()
    }
}

fn write(towards: Option<Text>, starts: bool) -> Write {
    match towards {
        Some(revision) if starts => Write::Update(revision),
        Some(revision) => Write::Prepare(revision),
        None => Write::Settle,
    }
}
