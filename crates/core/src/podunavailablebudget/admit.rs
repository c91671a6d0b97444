//! Whether a pod may become unavailable now, and what that takes from the budget.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    annotations::PUB_NO_PROTECT,
    gates::Gates,
    podunavailablebudget::v1beta1::{Operation, Status},
    time::Time,
};

use super::{Budget, Refusal, availability, records};
use crate::pod::{Pairs, Pod};

/// What somebody wants to do to a pod, and what is known besides the budget.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The pod as it is now.
    pub pod: &'a Pod,
    /// What is done to it.
    pub operation: &'a Operation,
    /// Where it is recorded.
    pub record: records::Kind,
    /// Nothing will happen.
    pub dry_run: bool,
    /// The open gates.
    pub gates: &'a Gates,
    /// How the pods of the budget look to this process, if it can tell: the status may be old.
    pub recount: Option<Recount>,
    /// The pod had a share and did not use it: the last one is for others ([`Turns`](super::Turns)).
    pub others_first: bool,
    /// The time.
    pub now: Timestamp,
}

/// What this process sees of the pods of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recount {
    /// Available pods without a record.
    pub available: usize,
    /// How many pods the workloads want, if that is known.
    pub expected: Option<u32>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Go on, nothing is taken.
    Free,
    /// The same because of what the budget says: that it keeps no pod, or does not limit this. Whoever read it a while ago reads
    /// it again first.
    Open,
    /// Go on once this status is written.
    Take(Box<Status>),
    /// Not now.
    Refuse(Box<Refusal>),
}

/// Whether the pod passes whatever its budget says: it is exempt, or does not count as available anyway.
pub fn is_exempt(pod: &Pod) -> bool {
    is_unprotected(&pod.metadata.annotations) || !availability::is_available(pod)
}

/// Whether the pod is exempt from every budget by its annotation.
fn is_unprotected(annotations: &Pairs) -> bool {
    let words = ["1", "t", "T", "TRUE", "true", "True"];
    annotations.text(PUB_NO_PROTECT).is_some_and(|text| words.contains(&text))
}

/// Decides. The order is part of the contract: what passes without being counted comes first.
pub fn admit(budget: &Budget, asked: &Asked<'_>) -> Verdict {
    let Asked { pod, operation, now, .. } = *asked;
    if is_exempt(pod) {
        return Verdict::Free;
    }
    if budget.ignores(&pod.metadata.labels) {
        return Verdict::Open;
    }
    let status = budget.status();
    let (desired, is_counted) = desired(budget, &status, asked.recount);
    if desired == 0 || !budget.protects(operation, asked.gates) {
        return Verdict::Open;
    }
    let paid = records::paid(&status, pod);
    if let Some((kind, at)) = paid
        && now.duration_since(at) < half(kind.window())
    {
        return Verdict::Free;
    }
    let recount = asked.recount.map(|recount| i64::try_from(recount.available).unwrap_or(i64::MAX));
    let available = match (recount, is_counted) {
        (Some(seen), true) => seen.min(status.current_available.into()),
        (Some(seen), false) => seen,
        (None, _) => status.current_available.into(),
    };
    let mut allowed = i64::from(status.unavailable_allowed);
    if let Some(seen) = recount {
        allowed = if is_counted { allowed.min(seen - desired) } else { seen - desired };
    }
    // Nobody counts the pod as gone after the record ran out, so who tries again shortly before waits until then. Were the
    // record renewed, one that something else refuses all the time would hold its share for ever.
    if allowed <= 0 || paid.is_some() {
        return Verdict::Refuse(Box::new(Refusal::used_up(budget, &status, available, desired)));
    }
    if asked.others_first && allowed == 1 {
        return Verdict::Refuse(Box::new(Refusal::out_of_turn(budget, &status, available, desired)));
    }
    if status.disrupted_pods.len() + status.unavailable_pods.len() > records::MOST {
        return Verdict::Refuse(Box::new(Refusal::too_many(budget, &status, available, desired)));
    }
    if asked.dry_run {
        return Verdict::Free;
    }
    let mut taken = status;
    taken.unavailable_allowed = i32::try_from(allowed - 1).unwrap_or(i32::MAX);
    asked.record.of_mut(&mut taken).insert(pod.metadata.name.to_string(), Time(now));
    Verdict::Take(Box::new(taken))
}

/// How many pods must stay available, and whether the controller has counted for the present spec. Until it has, the count
/// of this process stands in for it.
fn desired(budget: &Budget, status: &Status, recount: Option<Recount>) -> (i64, bool) {
    let told = i64::from(status.desired_available);
    let is_observed = status.observed_generation >= Some(budget.object.metadata.generation.unwrap_or(0));
    if is_observed {
        return (told, true);
    }
    let expected = recount.and_then(|recount| budget.total.or(recount.expected));
    let own = expected.and_then(|expected| budget.desired(expected).ok()).unwrap_or(0);
    (told.max(own), status.observed_generation.is_some())
}

fn half(window: SignedDuration) -> SignedDuration {
    SignedDuration::from_millis_i128(window.as_millis() / 2)
}
