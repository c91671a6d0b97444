//! The next step of one request.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::containerrecreaterequest::v1beta1::{ContainerState, Phase};
use serde_json::Value;

use super::{GRACE, Instance, Known, completed, in_phase, states, with_states};

/// A bit more than what is left of the time before containers stop, so that one look is enough.
const MARGIN: Duration = Duration::from_millis(100);

/// Whether a request may begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Begin {
    /// Look at its containers.
    Look,
    /// First its status is changed; the news of that brings the next pass.
    Write(Value),
    /// Not yet.
    Wait {
        /// Why.
        why: String,
        /// How long, if nothing else happens.
        after: Option<Duration>,
    },
}

/// Whether the request whose turn it is may begin. `seen` is how long we know that its pod is held: clocks may be set back
/// meanwhile, or be behind that of the manager, and nobody waits for longer than was asked for.
pub fn begin(known: &Known, seen: Duration, now: Timestamp) -> Begin {
    if known.phase() != Some(&Phase::Recreating) {
        return Begin::Write(in_phase(&Phase::Recreating));
    }
    let Some(grace) = known.strategy().unready_grace_period_seconds else { return Begin::Look };
    let Some(held) = held_since(known) else {
        let why = "the pod is not held not ready yet".to_owned();
        return Begin::Wait { why, after: None };
    };
    let elapsed = now.duration_since(held).max(SignedDuration::try_from(seen).unwrap_or(SignedDuration::MAX));
    let left = SignedDuration::from_secs(grace).saturating_sub(elapsed);
    match Duration::try_from(left) {
        Ok(left) if !left.is_zero() => {
            let why = format!("the pod stays not ready for {grace} s before its containers stop");
            Begin::Wait { why, after: Some(left + MARGIN) }
        }
        _ => Begin::Look,
    }
}

/// When the pod of a request was held not ready, as the manager tells it.
pub fn held_since(known: &Known) -> Option<Timestamp> {
    let status = known.status();
    let held =
        status.conditions.iter().find(|condition| condition.kind == GRACE && condition.status == "True");
    held.map(|held| held.last_transition_time.0)
}

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Change the status; the news of that brings the next pass.
    Write(Value),
    /// The same, for a request that ends: whoever ended it first wins.
    Complete(Value),
    /// Stop this container of the request, then tell [`killed`] how it went.
    Kill {
        /// Which one of the request.
        index: usize,
        /// How far all of them are.
        states: Vec<ContainerState>,
    },
    /// Nothing.
    Wait {
        /// Why.
        why: String,
        /// How long, if nothing else happens.
        after: Option<Duration>,
    },
}

/// The next step of a request, given the newest instances of the containers of its pod.
pub fn step(known: &Known, instances: &[Instance], now: Timestamp) -> Step {
    let mut states = states::states(known, instances, now);
    if states != known.states() {
        return Step::Write(with_states(&states));
    }
    let strategy = known.strategy();
    let ordered = strategy.ordered_recreate == Some(true);
    let mut done = 0;
    let mut waits_for = Vec::new();
    for index in 0..states.len() {
        let Some(state) = states.get_mut(index) else { break };
        match state.phase {
            Phase::Succeeded => done += 1,
            Phase::Failed if known.fails_at_once() => return Step::Complete(completed(None, now)),
            Phase::Failed => done += 1,
            Phase::Recreating => {
                state.is_killed = Some(true);
                waits_for.push(state.name.clone());
                if ordered {
                    break;
                }
            }
            _ if states::instance(instances, &state.name).is_none() => {
                waits_for.push(state.name.clone());
                break;
            }
            _ => return Step::Kill { index, states },
        }
    }
    if states != known.states() {
        return Step::Write(with_states(&states));
    }
    if done == states.len() {
        return Step::Complete(completed(None, now));
    }
    let least = u64::try_from(strategy.min_started_seconds.unwrap_or(0)).unwrap_or(0);
    let why = format!("waits until containers run and are ready: {}", waits_for.join(", "));
    Step::Wait { why, after: (least > 0).then(|| Duration::from_secs(least)) }
}

/// The change of the status after a container was stopped, or could not be.
pub fn killed(mut states: Vec<ContainerState>, index: usize, problem: Option<String>) -> Value {
    if let Some(state) = states.get_mut(index) {
        match problem {
            None => {
                state.phase = Phase::Recreating;
                state.is_killed = Some(true);
                state.message = None;
            }
            Some(problem) => {
                state.phase = Phase::Failed;
                state.message = Some(format!("kill container error: {problem}"));
            }
        }
    }
    with_states(&states)
}
