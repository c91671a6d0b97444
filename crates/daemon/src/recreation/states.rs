//! How far each container of a request is.

use jiff::{SignedDuration, Timestamp};
use kruise_api::containerrecreaterequest::v1beta1::{ContainerState, Phase, Strategy};

use super::{Instance, Known, Target};
use crate::cri::State;

/// A start that lies so far in the future says that the clock was set back, and nothing about the container.
const CLOCK_JUMP: SignedDuration = SignedDuration::from_secs(60);

/// The states of all containers, in the order of the request.
pub(super) fn states(known: &Known, instances: &[Instance], now: Timestamp) -> Vec<ContainerState> {
    let strategy = known.strategy();
    known.request.spec.containers.iter().map(|target| one(known, &strategy, target, instances, now)).collect()
}

/// The newest instance of a container.
pub(super) fn instance<'a>(instances: &'a [Instance], name: &str) -> Option<&'a Instance> {
    instances.iter().find(|instance| instance.name == name)
}

fn one(
    known: &Known,
    strategy: &Strategy,
    target: &Target,
    instances: &[Instance],
    now: Timestamp,
) -> ContainerState {
    let before = known.states().iter().find(|state| state.name == target.name).cloned();
    let before = before.unwrap_or_else(|| ContainerState { name: target.name.clone(), ..Default::default() });
    if matches!(before.phase, Phase::Succeeded | Phase::Failed) {
        return before;
    }
    let is_killed = before.is_killed;
    let state = |phase, message: Option<&str>| ContainerState {
        name: target.name.clone(),
        phase,
        message: message.map(ToOwned::to_owned),
        is_killed,
    };
    let Some(instance) = instance(instances, &target.name) else {
        return state(Phase::Pending, Some("not found container on Node"));
    };
    if instance.state == State::Exited {
        return state(Phase::Recreating, None);
    }
    if strategy.force_recreate == Some(true) && is_killed != Some(true) {
        return state(Phase::Pending, None);
    }
    // Also one that somebody else restarted: an update in place, or a crash.
    let is_new = target.status_context.as_ref().is_some_and(|context| {
        context.container_id != instance.id || instance.restart_count > context.restart_count
    });
    match is_new {
        true if lasts(known, strategy, instance, now) => state(Phase::Succeeded, None),
        true => state(Phase::Recreating, None),
        false => state(Phase::Pending, None),
    }
}

/// Whether a new instance is ready, as the manager saw it, and has run for long enough.
fn lasts(known: &Known, strategy: &Strategy, instance: &Instance, now: Timestamp) -> bool {
    let seen_ready = known.status().container_status_snapshot.iter().any(|seen| {
        seen.name == instance.name && seen.ready && seen.container_id.as_deref() == Some(&instance.id)
    });
    let least = i64::from(strategy.min_started_seconds.unwrap_or(0).max(0));
    // Nothing to wait for: also while a clock that was set back shows a time before the start.
    if least == 0 {
        return seen_ready;
    }
    let age = instance.started_at.map(|started| now.duration_since(started));
    seen_ready && age.is_some_and(|age| age > SignedDuration::from_secs(least) || age < -CLOCK_JUMP)
}
