//! What people are told of a pass.

use kruise_core::{
    effect::{Effect, Event, Level},
    object::{ObjectKey, ObjectRef},
    sidecarset::control::{Plan, Purpose},
    text::Text,
};
use kruise_runtime::effects::{Outcome, Why};

/// The effects of a plan, each followed by the event that tells of it.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) effects: Vec<Effect>,
    /// What each of them is for.
    purposes: Vec<Purpose>,
}

pub(super) fn told(plan: &Plan) -> Told {
    let mut told = Told::default();
    for (effect, purpose) in plan.effects.iter().zip(&plan.purposes) {
        told.effects.push(effect.clone());
        told.purposes.push(purpose.clone());
        if let Some(event) = purpose.done() {
            told.effects.push(Effect::Event(event));
            told.purposes.push(Purpose::Quiet);
        }
    }
    told
}

/// The pods whose update the server refused, and why.
pub(super) fn refused(told: &Told, outcome: &Outcome) -> Vec<(ObjectKey, Text)> {
    let refused = refusals(told, outcome);
    let pods = refused.filter_map(|(purpose, message)| match purpose {
        Purpose::Update { pod } | Purpose::Reset { pod } => Some((pod.key.clone(), message.into())),
        Purpose::Quiet => None,
    });
    pods.collect()
}

/// Tells of effects that were refused.
pub(super) fn failures(told: &Told, outcome: &Outcome) -> Vec<Event> {
    refusals(told, outcome).filter_map(|(purpose, message)| purpose.failed(message)).collect()
}

fn refusals<'t>(told: &'t Told, outcome: &'t Outcome) -> impl Iterator<Item = (&'t Purpose, &'t str)> {
    outcome.failed.iter().filter_map(|failure| match &failure.why {
        Why::Refused { message, .. } => Some((told.purposes.get(failure.index)?, message.as_str())),
        // Everything else is settled by looking again.
        _ => None,
    })
}

/// That a stored set cannot be carried out.
pub(super) fn unusable(set: &ObjectRef, problem: &str) -> Event {
    Event {
        regarding: set.clone(),
        level: Level::Warning,
        reason: "Unusable".into(),
        message: format!("this SidecarSet cannot be used: {problem}"),
    }
}
