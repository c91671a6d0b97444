//! What the status says.

use jiff::Timestamp;
use kruise_api::{
    resourcedistribution::{
        conditions::SUCCEEDED,
        v1beta1::{FailureCondition, ResourceDistribution, Status},
    },
    time::Time,
};

use super::{
    failures::{Failure, Fault},
    plan::{Ledger, Side, State},
    reference,
    waits::Affected,
};
use crate::{
    conditions,
    effect::Effect,
    text::Text,
    waiting::{CONDITION, Waits},
};

/// What a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'s> {
    /// How far namespaces are; nothing where the spec cannot be carried out, so that nobody knows.
    pub ledger: Option<&'s Ledger>,
    /// Why the object waits.
    pub waits: &'s Waits,
    /// Where.
    pub affected: &'s Affected,
    /// The time.
    pub now: Timestamp,
}

/// The status that says so.
pub fn status(object: &ResourceDistribution, standing: Standing<'_>) -> Status {
    let before = object.status.clone().unwrap_or_default();
    let mut status = Status {
        observed_generation: object.metadata.generation,
        conditions: Fault::ALL.map(|fault| failing(&before, fault, standing)).into(),
        ..before.clone()
    };
    if let Some(ledger) = standing.ledger {
        let targets = || ledger.values().filter(|(side, _)| *side == Side::Target);
        let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let (desired, succeeded) =
            (count(targets().count()), count(targets().filter(|(_, state)| *state == State::Synced).count()));
        status.desired = Some(desired);
        status.succeeded = Some(succeeded);
        status.failed = Some(desired - succeeded);
    }
    status.conditions.extend(waiting(&before, standing));
    status
}

fn known<'b>(before: &'b Status, kind: &str) -> Option<&'b FailureCondition> {
    before.conditions.iter().find(|condition| condition.kind == kind)
}

/// The condition of one way of failing. Its time changes with its status only.
fn failing(before: &Status, fault: Fault, standing: Standing<'_>) -> FailureCondition {
    let kind = fault.as_str();
    let old = known(before, kind);
    let Some(ledger) = standing.ledger else {
        return old
            .cloned()
            .unwrap_or_else(|| condition(kind, "False", SUCCEEDED, Vec::new(), None, standing));
    };
    let failures = of(ledger, fault);
    let is = if failures.is_empty() { "False" } else { "True" };
    let old = old.filter(|old| old.status == is);
    // Of several texts the one stays that was there: namespaces that differ must not make the status change for ever.
    let stays = |text: &str| failures.iter().any(|(_, failure)| failure.text == text);
    let text = old.and_then(|old| old.reason.as_deref()).filter(|text| stays(text));
    let last = || failures.last().map(|(_, failure)| failure.text.as_str());
    let reason = text.or_else(last).unwrap_or(SUCCEEDED).to_owned();
    let namespaces = failures.iter().map(|(namespace, _)| namespace.as_str().to_owned()).collect();
    condition(kind, is, &reason, namespaces, old, standing)
}

fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    failed_namespaces: Vec<String>,
    old: Option<&FailureCondition>,
    standing: Standing<'_>,
) -> FailureCondition {
    FailureCondition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        last_transition_time: old.and_then(|old| old.last_transition_time).or(Some(Time(standing.now))),
        reason: Some(reason.to_owned()),
        failed_namespaces,
    }
}

/// The namespaces in which something failed in this way, sorted by name.
pub(super) fn of(ledger: &Ledger, fault: Fault) -> Vec<(&Text, &Failure)> {
    let failed = ledger.iter().filter_map(|(namespace, (_, state))| match state {
        State::Failed(failure) if failure.fault == fault => Some((namespace, failure)),
        _ => None,
    });
    failed.collect()
}

/// The seventh condition, which is there only while the object waits. Its time changes with the reason too.
fn waiting(before: &Status, standing: Standing<'_>) -> Option<FailureCondition> {
    let main = standing.waits.main()?;
    let old = known(before, CONDITION);
    let old = old.filter(|old| old.status == "True" && old.reason.as_deref() == Some(main.as_str()));
    let namespaces = standing.affected.get(&main).into_iter().flatten();
    let namespaces = namespaces.map(|name| name.as_str().to_owned()).collect();
    Some(condition(CONDITION, "True", main.as_str(), namespaces, old, standing))
}

/// The reason that the condition `Waiting` has already.
pub fn told(object: &ResourceDistribution) -> Option<&str> {
    known(object.status.as_ref()?, CONDITION)?.reason.as_deref()
}

/// The write that brings the status up to date, if one is needed.
pub fn status_write(object: &ResourceDistribution, status: &Status) -> Option<Effect> {
    conditions::status_write(&reference(object), object.status.as_ref(), status)
}
