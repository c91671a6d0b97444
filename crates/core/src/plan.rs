//! A plan: what a reconcile does next, as one list of steps, each with what it is for and why it is taken.
//!
//! Every workload uses this type with its own purposes. Parts of a planner return the plan of what they add, and the plan of
//! the whole joins them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Duration,
};

use crate::{
    effect::{Effect, Event},
    object::{ObjectRef, POD, Resource},
    text::Text,
    waiting::Waits,
};

/// The part of a reconcile that a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Adding and removing pods.
    Scale,
    /// Updating pods.
    Update,
    /// What can wait: its failure does not delay the rest.
    Housekeeping,
}

/// What a step is for, in the terms of one kind.
pub trait Purpose: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The part that the step belongs to.
    fn part(&self) -> Part;

    /// The events to send after the step took place.
    fn done(&self, owner: &ObjectRef) -> Vec<Event>;

    /// The event to send when the server refused the step.
    fn failed(&self, owner: &ObjectRef, error: &str) -> Option<Event>;

    /// A step that no event reports.
    fn quiet(part: Part) -> Self;

    /// Whether the step makes the workload the owner of an object that had none. It is only taken after a live read has
    /// shown that the workload is not being deleted.
    fn adopts(&self) -> bool {
        false
    }

    /// The pod that the step begins to update. Its PodUnavailableBudget is asked before the step is taken.
    fn takes_down(&self) -> Option<&Text> {
        None
    }

    /// Whether the planner hears of a refusal of this step, so that it is no reason to delay the next reconcile.
    fn is_remembered(&self) -> bool {
        false
    }
}

/// One effect of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<P> {
    /// The effect.
    pub effect: Effect,
    /// What it is for.
    pub purpose: P,
    /// Why it is taken, in one short phrase.
    pub why: Cow<'static, str>,
}

/// Something that cannot be done as things stand, without a write that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What cannot go on.
    pub part: Part,
    /// Why.
    pub message: String,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<P> {
    /// The steps, which may be taken in any order.
    pub steps: Vec<Step<P>>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// Why something waits, with the numbers, for the log.
    pub reasons: Vec<String>,
    /// Why something waits, for conditions, events and metrics.
    pub waits: Waits,
    /// What cannot be done as things stand.
    pub failures: Vec<Failure>,
}

impl<P> Default for Plan<P> {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            wake_after: None,
            reasons: Vec::new(),
            waits: Waits::default(),
            failures: Vec::new(),
        }
    }
}

impl<P> Plan<P> {
    /// Adds a step.
    pub fn add(&mut self, effect: Effect, purpose: P, why: impl Into<Cow<'static, str>>) {
        self.steps.push(Step { effect, purpose, why: why.into() });
    }

    /// Adds what another part of the planner wants.
    pub fn join(&mut self, other: Self) {
        let Self { steps, wake_after, reasons, waits, failures } = other;
        self.steps.extend(steps);
        self.reasons.extend(reasons);
        self.waits.join(waits);
        self.failures.extend(failures);
        wake_after.into_iter().for_each(|after| self.wake(after));
    }

    /// Looks again after this time, or earlier.
    pub fn wake(&mut self, after: Duration) {
        self.wake_after = Some(self.wake_after.map_or(after, |known| known.min(after)));
    }

    /// Reports that something cannot be done.
    pub fn fail(&mut self, part: Part, message: impl Into<String>) {
        self.failures.push(Failure { part, message: message.into() });
    }

    /// The first failure of a part.
    pub fn failure(&self, part: Part) -> Option<&str> {
        let mut failures = self.failures.iter().filter(|failure| failure.part == part);
        failures.next().map(|failure| failure.message.as_str())
    }

    /// The effects of the steps, in order.
    pub fn effects(&self) -> Vec<&Effect> {
        self.steps.iter().map(|step| &step.effect).collect()
    }

    /// The names of the objects of a kind that steps change or delete. A second write in the same plan would find another
    /// version.
    pub fn written(&self, resource: Resource) -> BTreeSet<Text> {
        let name = |step: &Step<P>| match &step.effect {
            Effect::Patch { target, .. } | Effect::Delete { target, .. } if target.resource == resource => {
                Some(target.key.name.clone())
            }
            _ => None,
        };
        self.steps.iter().filter_map(name).collect()
    }

    /// Leaves steps beyond a write budget to a later reconcile. Changes, deletions and new pods share the budget, so that
    /// those that the server refuses in every reconcile do not keep the others waiting. A step that follows another one
    /// stays or is left out with it; steps that `must_stay` says are never left out.
    pub fn keep_to(&mut self, budget: WriteBudget, must_stay: &dyn Fn(&Step<P>) -> bool) {
        let follows = |effect: &Effect| matches!(effect, Effect::Delete { follows: true, .. });
        let wanted = |verb: Verb| {
            let effects = self.steps.iter().map(|step| &step.effect);
            effects.filter(|effect| !follows(effect) && Verb::on_pod(effect) == Some(verb)).count()
        };
        let wanted = Verb::ALL.map(wanted);
        let mut left = Verb::ALL.into_iter().zip(shares(budget.pods, wanted)).collect::<BTreeMap<_, _>>();
        // Only the limit of the status is left to it: the other is handed out.
        let mut budget = WriteBudget { pods: usize::MAX, ..budget };
        let mut fits = true;
        self.steps.retain(|step| {
            if !follows(&step.effect) {
                fits = match Verb::on_pod(&step.effect).and_then(|verb| left.get_mut(&verb)) {
                    Some(left) => take_one(left),
                    None => budget.take(&step.effect),
                } || must_stay(step);
            }
            fits
        });
    }
}

/// What a write does to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    Change,
    Delete,
    Create,
}

impl Verb {
    /// All of them. The first ones get what cannot be shared equally: they end what was begun.
    const ALL: [Self; 3] = [Self::Change, Self::Delete, Self::Create];

    fn on_pod(effect: &Effect) -> Option<Self> {
        if !matches!(effect.endpoint(), Some((POD, None))) {
            return None;
        }
        match effect {
            Effect::Patch { .. } | Effect::Ask { .. } => Some(Self::Change),
            Effect::Delete { .. } => Some(Self::Delete),
            Effect::Create { .. } => Some(Self::Create),
            Effect::Event(_) => None,
        }
    }
}

/// Shares a budget among those who want this much of it: equally, at least one for each, and what one does not need goes to
/// the others.
fn shares<const N: usize>(budget: usize, wanted: [usize; N]) -> [usize; N] {
    let least = wanted.iter().filter(|wanted| **wanted > 0).count();
    let (mut shares, mut left) = ([0; N], budget.max(least));
    loop {
        let open = shares.iter().zip(&wanted).filter(|(share, wanted)| share < wanted).count();
        if open == 0 || left == 0 {
            return shares;
        }
        let part = (left / open).max(1);
        for (share, wanted) in shares.iter_mut().zip(&wanted) {
            let more = part.min(wanted.saturating_sub(*share)).min(left);
            *share += more;
            left -= more;
        }
    }
}

fn take_one(left: &mut usize) -> bool {
    let fits = *left > 0;
    *left = left.saturating_sub(1);
    fits
}

impl<P: Clone> Plan<P> {
    /// What the steps are for, in order.
    pub fn purposes(&self) -> Vec<P> {
        self.steps.iter().map(|step| step.purpose.clone()).collect()
    }
}

/// What failed in a reconcile, for the conditions of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Adding or removing pods.
    pub scale: Option<String>,
    /// Updating pods.
    pub update: Option<String>,
}

impl Failures {
    /// Those of a plan.
    pub fn of<P>(plan: &Plan<P>) -> Self {
        let first = |part| plan.failure(part).map(str::to_owned);
        Self { scale: first(Part::Scale), update: first(Part::Update) }
    }

    /// Both: those of the plan itself, and those of its effects.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { scale: self.scale.or(other.scale), update: self.update.or(other.update) }
    }
}

/// How many writes a reconcile may plan, for each endpoint that it writes to for each pod. Because of this, a spec change
/// during a large scale-up takes effect within a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBudget {
    /// To `pods`.
    pub pods: usize,
    /// To `pods/status`.
    pub status: usize,
}

impl Default for WriteBudget {
    /// No limit.
    fn default() -> Self {
        Self { pods: usize::MAX, status: usize::MAX }
    }
}

impl WriteBudget {
    /// Takes an effect from the budget. False if nothing was left for it.
    pub fn take(&mut self, effect: &Effect) -> bool {
        let left = match effect.endpoint() {
            Some((POD, None)) => &mut self.pods,
            Some((POD, Some("status"))) => &mut self.status,
            _ => return true,
        };
        take_one(left)
    }

    /// What is left after these steps.
    #[must_use]
    pub fn after<P>(mut self, steps: &[Step<P>]) -> Self {
        for step in steps {
            self.take(&step.effect);
        }
        self
    }

    /// Whether nothing is left.
    pub fn is_used_up(self) -> bool {
        self == Self { pods: 0, status: 0 }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        effect::Target,
        object::{ObjectKey, PERSISTENT_VOLUME_CLAIM},
    };

    fn delete(resource: Resource, name: &str, follows: bool) -> Effect {
        let target = Target::with_uid(resource, ObjectKey::new("default", name), name.into());
        Effect::Delete { target, grace: None, follows }
    }

    fn names(plan: &Plan<&'static str>) -> Vec<&'static str> {
        plan.purposes()
    }

    fn example() -> Plan<&'static str> {
        let mut plan = Plan::default();
        plan.add(delete(POD, "a", false), "a", "surplus");
        plan.add(delete(PERSISTENT_VOLUME_CLAIM, "data-a", true), "data-a", "its pod is deleted");
        plan.add(delete(POD, "b", false), "b", "surplus");
        plan.add(delete(PERSISTENT_VOLUME_CLAIM, "data-b", true), "data-b", "its pod is deleted");
        let object = json!({});
        let create = Effect::Create { resource: POD, namespace: "default".into(), object };
        plan.add(create.clone(), "c", "missing");
        plan.add(create, "e", "missing");
        plan
    }

    #[test]
    fn claims_of_a_pod_that_is_left_to_a_later_reconcile_are_left_too() {
        let budget = WriteBudget { pods: 1, ..WriteBudget::default() };
        let mut plan = example();
        plan.keep_to(budget, &|_| false);
        assert_eq!(names(&plan), ["a", "data-a", "c"]);
        let mut plan = example();
        plan.keep_to(budget, &|step| matches!(step.effect, Effect::Create { .. }));
        assert_eq!(names(&plan), ["a", "data-a", "c", "e"]);
        assert_eq!(budget.after(&plan.steps), WriteBudget { pods: 0, status: usize::MAX });
    }

    #[test]
    fn changes_deletions_and_new_pods_share_a_write_budget() {
        for (budget, wanted, expected) in [
            (80, [20, 0, 250], [20, 0, 60]),
            (80, [0, 200, 250], [0, 40, 40]),
            (7, [9, 9, 9], [3, 2, 2]),
            (1, [0, 9, 9], [0, 1, 1]),
            (4, [1, 9, 0], [1, 3, 0]),
            (usize::MAX, [3, 4, 5], [3, 4, 5]),
        ] {
            assert_eq!(shares(budget, wanted), expected, "{budget} for {wanted:?}");
        }
        let mut plan = example();
        plan.keep_to(WriteBudget { pods: 3, ..WriteBudget::default() }, &|_| false);
        assert_eq!(names(&plan), ["a", "data-a", "b", "data-b", "c"]);
    }

    #[test]
    fn joined_plans_wake_at_the_earlier_time_and_keep_the_first_failure() {
        let mut plan = example();
        plan.wake(Duration::from_secs(5));
        plan.fail(Part::Update, "first");
        let mut other = Plan::default();
        other.wake(Duration::from_secs(3));
        other.fail(Part::Update, "second");
        other.add(delete(POD, "d", false), "d", "surplus");
        plan.join(other);
        assert_eq!(plan.wake_after, Some(Duration::from_secs(3)));
        assert_eq!((plan.failure(Part::Update), plan.failure(Part::Scale)), (Some("first"), None));
        assert_eq!(plan.written(POD), ["a", "b", "d"].map(Text::from).into());
    }
}
