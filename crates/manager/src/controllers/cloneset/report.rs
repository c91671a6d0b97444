//! What people are told of a pass.

use kruise_core::{
    cloneset::{Failures, Part, Plan, Purpose},
    effect::Effect,
    object::{ObjectKey, ObjectRef},
};
use kruise_runtime::{
    controller::Context,
    effects::{Outcome, Why},
};

/// The effects of a plan, each followed by the event that tells of it.
#[derive(Debug)]
pub(super) struct Told {
    set: ObjectRef,
    pub(super) effects: Vec<Effect>,
    /// What each of them is for.
    pub(super) purposes: Vec<Purpose>,
}

pub(super) fn told(plan: &Plan, set: &ObjectRef) -> Told {
    let mut told = Told { set: set.clone(), effects: Vec::new(), purposes: Vec::new() };
    for (effect, purpose) in plan.effects.iter().zip(&plan.purposes) {
        told.effects.push(effect.clone());
        told.purposes.push(purpose.clone());
        for event in purpose.done(set) {
            told.effects.push(Effect::Event(event));
            told.purposes.push(Purpose::Quiet(Part::Housekeeping));
        }
    }
    told
}

/// What went wrong, without what can wait: a job or an old revision that the server refuses must not put off the pods. And
/// whether there was such.
pub(super) fn serious(told: &Told, mut outcome: Outcome) -> (Outcome, bool) {
    let all = outcome.failed.len();
    outcome.failed.retain(|failure| {
        let part = told.purposes.get(failure.index).map(Purpose::part);
        let is_answered = matches!(failure.why, Why::Refused { .. } | Why::LeftOut);
        !(is_answered && part == Some(Part::Housekeeping))
    });
    let can_wait = outcome.failed.len() < all;
    (outcome, can_wait)
}

/// Tells of effects that did not happen, and what that means for the set.
pub(super) async fn failures(told: &Told, outcome: &Outcome, context: &Context, key: &ObjectKey) -> Failures {
    let mut failures = Failures::default();
    let mut events = Vec::new();
    for failure in &outcome.failed {
        // Everything else is settled by looking again.
        let Why::Refused { message, .. } = &failure.why else { continue };
        let Some(purpose) = told.purposes.get(failure.index) else { continue };
        events.extend(purpose.failed(&told.set, message).map(Effect::Event));
        match purpose.part() {
            Part::Scale => failures.scale.get_or_insert_with(|| message.clone()),
            Part::Update => failures.update.get_or_insert_with(|| message.clone()),
            Part::Housekeeping => continue,
        };
    }
    // Events alone cannot fail.
    let _ = context.try_act(key, &events).await;
    failures
}
