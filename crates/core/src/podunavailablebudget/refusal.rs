//! Why a budget does not let a pod go, in the text that users match on, with the numbers beside it.

use jiff::Timestamp;
use kruise_api::podunavailablebudget::v1beta1::{Operation, Status};

use super::{Budget, Recount, records};
use crate::{admission::Cause, text::Text};

/// At most so many names stand in a sentence.
const NAMED: usize = 3;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The budget.
    pub budget: Text,
    /// The text that users match on.
    pub message: String,
    /// The limit as it is written.
    rule: String,
    /// How many more pods may become unavailable now.
    allowed: i64,
    available: i64,
    desired: i64,
    total: i64,
    /// Pods that were let go and did not go yet, with the time.
    waiting: Vec<(Text, Timestamp)>,
    /// The pod had a share and did not use it.
    is_out_of_turn: bool,
}

impl Refusal {
    /// The budget is used up.
    pub(super) fn used_up(budget: &Budget, status: &Status, available: i64, desired: i64) -> Self {
        Self::new(budget, status, available, desired, "pub unavailable allowed is negative")
    }

    /// What is left is for others first: the pod had a share and did not use it.
    pub(super) fn out_of_turn(budget: &Budget, status: &Status, available: i64, desired: i64) -> Self {
        Self { is_out_of_turn: true, ..Self::used_up(budget, status, available, desired) }
    }

    /// More records than a status should hold.
    pub(super) fn too_many(budget: &Budget, status: &Status, available: i64, desired: i64) -> Self {
        let why = "DisruptedPods and UnavailablePods map too big - too many unavailable not confirmed by PUB controller";
        Self::new(budget, status, available, desired, why)
    }

    /// Others wrote the status all the time.
    pub fn conflicts(budget: &Budget) -> Self {
        let status = budget.status();
        let (available, desired) = (status.current_available.into(), status.desired_available.into());
        let message = format!("couldn't update PodUnavailableBudget {} due to conflicts", budget.key.name);
        Self { message, ..Self::new(budget, &status, available, desired, "") }
    }

    /// What a budget would say now to somebody whom it refused.
    pub fn now(budget: &Budget, recount: Option<Recount>) -> Self {
        let status = budget.status();
        let told = i64::from(status.current_available);
        let seen = recount.map(|recount| i64::try_from(recount.available).unwrap_or(i64::MAX));
        Self::used_up(
            budget,
            &status,
            seen.map_or(told, |seen| seen.min(told)),
            status.desired_available.into(),
        )
    }

    fn new(budget: &Budget, status: &Status, available: i64, desired: i64, why: &str) -> Self {
        let name = &budget.key.name;
        let mut waiting: Vec<(Text, Timestamp)> =
            records::all(status).map(|(_, pod, at)| (pod.into(), at)).collect();
        waiting.sort();
        Self {
            budget: name.clone(),
            message: format!("podunavailablebudget.policy.kruise.io {:?} is forbidden: {why}", name.as_str()),
            rule: budget.rule(),
            allowed: i64::from(status.unavailable_allowed).min(available - desired).max(0),
            available,
            desired,
            total: status.total_replicas.into(),
            waiting,
            is_out_of_turn: false,
        }
    }

    /// The HTTP code: whoever drains a node tries again only after 429.
    pub fn code(&self, operation: &Operation) -> u16 {
        if *operation == Operation::Evict { 429 } else { 403 }
    }

    /// What people and programs read beside the message.
    pub fn causes(&self) -> Vec<Cause> {
        let Self { budget, rule, available, desired, total, allowed, .. } = self;
        let numbers = format!(
            "PodUnavailableBudget {budget} ({rule}) allows {allowed} more unavailable pods now: {available} of {total} are available and {desired} must be"
        );
        let mut causes = vec![Cause { reason: "PodUnavailableBudget", message: numbers }];
        if !self.waiting.is_empty() {
            let named = self.waiting.iter().take(NAMED);
            let named: Vec<String> =
                named.map(|(pod, at)| format!("{pod} (since {})", written(*at))).collect();
            let message = format!("admitted and not seen yet: {}", and_more(named, self.waiting.len()));
            causes.push(Cause { reason: "PodsBeingDisrupted", message });
        }
        if self.is_out_of_turn {
            let message =
                "an earlier permission for this pod ran out unused; other pods go first, try again later";
            causes.push(Cause { reason: "OtherPodsFirst", message: message.to_owned() });
        }
        causes
    }

    /// Why pods wait, as the reason `BudgetRefuses` says it.
    pub fn waits(&self, pods: &[Text]) -> String {
        let Self { budget, allowed, available, total, desired, .. } = self;
        let mut names: Vec<String> = pods.iter().map(ToString::to_string).collect();
        names.sort();
        let count = names.len();
        let who = if count == 1 { "1 pod waits".to_owned() } else { format!("{count} pods wait") };
        let names = and_more(names.into_iter().take(NAMED).collect(), count);
        format!(
            "{who} for PodUnavailableBudget {budget} ({names}): it allows {allowed} more unavailable pods now, {available} of {total} are available and {desired} must be"
        )
    }
}

/// Whether a refusal that the server passed on is one of a budget.
pub fn is_by_budget(message: &str) -> bool {
    message.contains("denied the request: podunavailablebudget.policy.kruise.io ")
        || message.contains("denied the request: couldn't update PodUnavailableBudget ")
}

fn written(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn and_more(named: Vec<String>, all: usize) -> String {
    let more = all.saturating_sub(named.len());
    let named = named.join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}
