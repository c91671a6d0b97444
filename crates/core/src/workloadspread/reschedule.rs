//! Pods that find no node in their subset: when a subset is closed, when it is tried again, and which pods are moved.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{condition::StandardCondition, time::Time, workloadspread::v1beta1::SubsetStatus};

use crate::pod::Pod;

/// The type of the condition of a subset.
pub(super) const SCHEDULABLE: &str = "Schedulable";
/// How long a subset stays closed after pods found no node in it.
pub(super) const CLOSED_FOR: SignedDuration = SignedDuration::from_secs(300);

const SUFFICIENT: &str = "Sufficient";
const POD_UNSCHEDULABLE: &str = "PodUnschedulable";

/// The condition of a subset, if it has one.
pub(super) fn condition(account: &SubsetStatus) -> Option<&StandardCondition> {
    account.conditions.iter().find(|condition| condition.kind == SCHEDULABLE)
}

/// Whether no pods are sent into a subset.
pub(super) fn is_closed(account: &SubsetStatus) -> bool {
    condition(account).is_some_and(|condition| condition.status == "False")
}

/// How a pod waits for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It does not.
    No,
    /// It does, and may do so for this long.
    For(SignedDuration),
    /// It has waited for too long.
    Over,
}

/// How a pod waits for a node, where it may do so for this long after it was made.
pub(super) fn wait(pod: &Pod, within: SignedDuration, now: Timestamp) -> Wait {
    let is_refused = pod
        .condition("PodScheduled")
        .is_some_and(|condition| condition.status == "False" && condition.reason == "Unschedulable");
    let waits = pod.status.phase == "Pending"
        && !pod.metadata.is_deleting()
        && pod.spec.node_name.is_empty()
        && is_refused;
    let Some(made) = pod.metadata.creation_timestamp.filter(|_| waits) else { return Wait::No };
    let left = within.saturating_sub(now.duration_since(made));
    if left.is_negative() { Wait::Over } else { Wait::For(left) }
}

/// What becomes of a subset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Whether pods are sent into it.
    pub(super) is_open: bool,
    /// Since when.
    pub(super) since: Time,
    /// It was closed until now.
    pub(super) is_recovered: bool,
    /// When a closed subset is tried again.
    pub(super) again: Option<Timestamp>,
}

/// Whether pods are sent into a subset from now on.
pub(super) fn judge(
    old: Option<&StandardCondition>,
    is_last: bool,
    has_timed_out: bool,
    now: Timestamp,
) -> Verdict {
    let closed = old.filter(|condition| condition.status == "False").map(|old| old.last_transition_time);
    let open = old.filter(|condition| condition.status == "True").map(|old| old.last_transition_time);
    let verdict = |is_open: bool, since: Option<Time>| {
        let since = since.unwrap_or(Time(now));
        let again = (!is_open).then(|| since.0.saturating_add(CLOSED_FOR).unwrap_or(Timestamp::MAX));
        Verdict { is_open, since, is_recovered: false, again }
    };
    if is_last {
        return verdict(true, open);
    }
    match closed {
        _ if has_timed_out => verdict(false, closed),
        Some(since) if now.duration_since(since.0) < CLOSED_FOR => verdict(false, closed),
        Some(_) => Verdict { is_recovered: true, ..verdict(true, None) },
        None => verdict(true, open),
    }
}

/// The condition of an account. One that says the same already stays as it is.
pub(super) fn written(old: Option<&StandardCondition>, verdict: &Verdict) -> StandardCondition {
    let (status, reason) = if verdict.is_open { ("True", SUFFICIENT) } else { ("False", POD_UNSCHEDULABLE) };
    if let Some(old) = old.filter(|old| old.status == status) {
        return old.clone();
    }
    StandardCondition {
        kind: SCHEDULABLE.to_owned(),
        status: status.to_owned(),
        observed_generation: None,
        last_transition_time: verdict.since,
        reason: reason.to_owned(),
        message: String::new(),
    }
}
