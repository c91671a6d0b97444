//! The status of a set.

use kruise_api::{
    condition::Condition,
    statefulset::v1beta1::{StatefulSet, Status},
    time::Time,
};

use super::{Observed, expansion, reference, view::View};
use crate::{
    availability::is_running_and_ready,
    conditions,
    effect::Effect,
    pod::Pod,
    revision::{self, Found, Revisions},
    waiting::{self, Waits},
};

const FAILED_CREATE: &str = "FailedCreatePod";
const FAILED_UPDATE: &str = "FailedUpdatePod";

/// What became of the operations that a condition is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Failure {
    /// They succeeded or were not needed.
    #[default]
    None,
    /// They were not tried to the end: the condition stays as it is.
    Unknown,
    /// One failed.
    Failed {
        /// One word for programs.
        reason: &'static str,
        /// What the server said.
        message: String,
    },
}

/// What failed in a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Creating pods and their claims.
    pub create: Failure,
    /// Changing existing pods.
    pub update: Failure,
}

/// How the pods of a set stand, as a pass saw them: what a status is made of, once it is known what failed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// Nothing of a spec that cannot be carried out.
    counted: Option<Status>,
    /// Claim templates whose volume running pods lack, each with the event that reports it.
    pub volume_news: Vec<(String, String)>,
}

impl Standing {
    pub(super) fn new(view: &View<'_>, revisions: &Revisions<'_>) -> Self {
        let counted = Some(counted(view, revisions));
        Self { counted, volume_news: super::waits::volume_news(view) }
    }

    /// The status after the pass that saw this, failed so and waits for this.
    pub fn status(&self, seen: &Observed, failures: &Failures, waits: &Waits) -> Status {
        let previous = seen.set.status.clone().unwrap_or_default();
        let mut status = self.counted.clone().unwrap_or_else(|| Status {
            observed_generation: seen.set.metadata.generation.max(previous.observed_generation),
            ..previous.clone()
        });
        status.conditions = previous.conditions;
        set_failure(&mut status, FAILED_CREATE, "create", &failures.create, seen);
        set_failure(&mut status, FAILED_UPDATE, "update", &failures.update, seen);
        waiting::set_condition(&mut status.conditions, waits, seen.now);
        status
    }
}

/// Whether the last pass failed to change existing pods.
pub fn has_failed_update(status: &Status) -> bool {
    status.conditions.iter().any(|condition| condition.kind == FAILED_UPDATE && condition.status == "True")
}

/// Whether the condition says already that pods cannot be changed because of this: then no event repeats it.
pub(super) fn is_reported(set: &StatefulSet, problem: &str) -> bool {
    let conditions = set.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let known = conditions::get(conditions, FAILED_UPDATE).filter(|known| known.status == "True");
    known.and_then(|known| known.message.as_deref()).is_some_and(|message| message.ends_with(problem))
}

/// The write that brings a status up to date, if one is needed. Nobody else writes it, so it needs no version.
pub fn status_write(set: &StatefulSet, status: &Status) -> Option<Effect> {
    conditions::status_write(&reference(set), set.status.as_ref(), status)
}

fn counted(view: &View<'_>, revisions: &Revisions<'_>) -> Status {
    let previous = view.seen.set.status.clone().unwrap_or_default();
    let name = |name: &str| Some(name.to_owned());
    let mut status = Status {
        observed_generation: view.seen.set.metadata.generation.max(previous.observed_generation),
        update_revision: name(revisions.update.name()),
        current_revision: name(revisions.current.name()),
        collision_count: Some(match &revisions.found {
            Found::Missing(new) => new.collision_count,
            _ => previous.collision_count.unwrap_or(0),
        }),
        label_selector: Some(view.desired.selector.text()),
        volume_claims: expansion::status(view),
        ..Status::default()
    };
    let (mut updated_ready, mut updated_available) = (0, 0);
    for pod in view.pods() {
        let exists = !pod.status.phase.is_empty() && !pod.metadata.is_deleting();
        let is_new = revision::is_on(pod, &revisions.update);
        let is_ready = is_ready(pod);
        let is_available = is_ready && view.is_available(pod);
        status.replicas += 1;
        status.ready_replicas += i32::from(is_ready);
        status.available_replicas += i32::from(is_available);
        status.current_replicas += i32::from(exists && revision::is_on(pod, &revisions.current));
        status.updated_replicas += i32::from(exists && is_new);
        updated_ready += i32::from(is_new && is_ready);
        updated_available += i32::from(is_new && is_available);
    }
    status.updated_ready_replicas = Some(updated_ready).filter(|count| *count != 0);
    status.updated_available_replicas = Some(updated_available).filter(|count| *count != 0);
    let all = [status.updated_replicas, status.ready_replicas];
    let is_complete = all.into_iter().all(|count| count == status.replicas)
        && i64::from(status.replicas) == view.desired.replicas;
    if is_complete && view.desired.policy.is_some() {
        status.current_revision = status.update_revision.clone();
        status.current_replicas = status.updated_replicas;
    }
    status
}

fn is_ready(pod: &Pod) -> bool {
    !pod.metadata.unreadable && is_running_and_ready(pod)
}

fn set_failure(status: &mut Status, kind: &str, verb: &str, failure: &Failure, seen: &Observed) {
    match failure {
        Failure::Unknown => {}
        Failure::None => status.conditions.retain(|condition| condition.kind != kind),
        Failure::Failed { reason, message } => {
            let message = format!("StatefulPodControl failed to {verb} Pod error: {message}");
            set(status, kind, ("True", reason, message), seen);
        }
    }
}

/// Sets a condition. Its time says since when status and reason are what they are.
fn set(status: &mut Status, kind: &str, (state, reason, message): (&str, &str, String), seen: &Observed) {
    let known = conditions::get(&status.conditions, kind);
    let is_same = |known: &&Condition| known.status == state && known.reason.as_deref() == Some(reason);
    let since = known.filter(is_same).and_then(|known| known.last_transition_time);
    let condition = Condition {
        kind: kind.to_owned(),
        status: state.to_owned(),
        last_transition_time: Some(since.unwrap_or(Time(seen.now))),
        reason: Some(reason.to_owned()),
        message: Some(message),
    };
    conditions::put(&mut status.conditions, condition);
}
