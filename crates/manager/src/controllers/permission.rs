//! PodUnavailableBudgets are asked before a workload takes pods out of service by itself.

use std::{collections::BTreeMap, time::Duration};

use kruise_core::{
    effect::Effect,
    object::{ObjectKey, ObjectRef},
    plan::{Plan, Purpose, Step},
    podunavailablebudget::{Disruption, Refusal, disruption, is_by_budget, is_exempt, is_on, related},
    text::Text,
    waiting::Reason,
};
use tokio::time::Instant;

use crate::{
    budgets::{Answered, Wish},
    shared::Shared,
};

/// How long budgets are asked in one reconcile.
const ASK_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait when a budget does not let a pod go.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What budgets said in one reconcile.
#[derive(Default)]
struct Answers {
    /// Those that let no more pods go, with the pods that wait for them.
    refused: BTreeMap<ObjectKey, (Box<Refusal>, Vec<Text>)>,
    has_failed: bool,
}

/// Asks for each step that takes a serving pod out of service. What is granted is recorded in the budget, so that admission
/// lets the write pass. Steps that are refused are left out of the plan, and returned; the object is woken when the budget
/// allows more.
pub(super) async fn ask<P: Purpose>(shared: &Shared, owner: &ObjectRef, plan: &mut Plan<P>) -> Vec<P> {
    if !is_on(&shared.settings.gates) {
        return Vec::new();
    }
    let until = Instant::now() + ASK_WITHIN;
    let mut answers = Answers::default();
    let mut is_left_out = false;
    let (mut kept, mut left_out) = (Vec::with_capacity(plan.steps.len()), Vec::new());
    for step in std::mem::take(&mut plan.steps) {
        // Claims that are deleted with a pod stay as long as the pod.
        if !matches!(step.effect, Effect::Delete { follows: true, .. }) {
            is_left_out = !answers.allow(shared, &step, until).await;
        }
        if is_left_out {
            left_out.push(step.purpose);
        } else {
            kept.push(step);
        }
    }
    plan.steps = kept;
    if answers.has_failed || !answers.refused.is_empty() {
        plan.wake(ASK_AGAIN);
    }
    let waiters = shared.budgets.waiters(owner.resource);
    for (budget, (refusal, pods)) in answers.refused {
        waiters.add(&budget, &owner.key);
        plan.waits.add(Reason::BudgetRefuses, refusal.waits(&pods));
    }
    left_out
}

/// Why a write of a pod was refused, if its budget did that: the object is woken when the budget allows more.
pub(super) fn refused(shared: &Shared, owner: &ObjectRef, pod: &ObjectKey, answer: &str) -> Option<String> {
    if !is_by_budget(answer) {
        return None;
    }
    let pod = shared.caches.pods.get(pod)?;
    let (budget, sentence) = shared.budgets.reason(shared, &pod)?;
    shared.budgets.waiters(owner.resource).add(&budget, &owner.key);
    Some(sentence)
}

impl Answers {
    /// Whether a step may be taken.
    async fn allow<P: Purpose>(&mut self, shared: &Shared, step: &Step<P>, until: Instant) -> bool {
        let Some(Disruption { pod: key, operation, record }) = disruption(step, &shared.settings.gates)
        else {
            return true;
        };
        let Some(pod) = shared.caches.pods.get(key) else { return true };
        let Some(name) = related(&pod.metadata.annotations) else { return true };
        if is_exempt(&pod) {
            return true;
        }
        let budget = ObjectKey { namespace: key.namespace.clone(), name: name.into() };
        if let Some((_, pods)) = self.refused.get_mut(&budget) {
            pods.push(key.name.clone());
            return false;
        }
        let wish = Wish { budget: name, pod: &pod, operation: &operation, record, dry_run: false, until };
        match shared.budgets.ask(shared, &wish).await {
            Answered::Go { .. } => return true,
            Answered::Refused(refusal) => {
                self.refused.insert(budget, (refusal, vec![key.name.clone()]));
            }
            Answered::Failed(problem) | Answered::Late(problem) => {
                tracing::warn!(%problem, pod = %key, "a pod waits because its budget cannot be asked");
                self.has_failed = true;
            }
        }
        false
    }
}
