//! What to do next.

use std::collections::BTreeSet;

use super::{
    Desired, Error, Observed, Purpose, Standing, in_place_update, manage,
    manage::{Deletion, Why},
    pods, pre_download,
    purpose::warning,
    revisions::{self, hash_of},
    rollout::{self, Rollout},
    view::{Uids, View},
    waits,
};
use crate::{
    availability, causes,
    effect::Effect,
    ownership,
    plan::{Part, Plan as Shared},
    pod::Pod,
    pod_deletion::{self, Step},
    revision::{self, Revision},
    text::Text,
    waiting::Reason,
};

/// What to do next, as data.
pub(super) type Plan = Shared<Purpose>;

/// Decides one safe step for each node, and summarizes the pods: both from one look at them.
pub fn decide(seen: &Observed) -> (Shared<Purpose>, Standing) {
    let desired = match Desired::of(&seen.set, &seen.gates, seen.resize_subresource) {
        Ok(desired) => desired,
        Err(error) => return (refused(seen, &error), Standing::default()),
    };
    let view = View::new(seen, &desired);
    // The garbage collector deletes the pods.
    if seen.set.metadata.deletion_timestamp.is_some() {
        return (Plan::default(), Standing::default());
    }
    // A revision comes before everything that refers to it.
    if let Some(effect) = view.revisions.shared.write(&view.set.key.namespace) {
        let mut plan = Plan::default();
        plan.add(effect, Purpose::Quiet(Part::Update), "the revision of the template");
        return (plan, Standing::new(&view, false));
    }
    (next(&view), Standing::new(&view, true))
}

/// Decides one safe step for each node.
pub fn plan(seen: &Observed) -> Shared<Purpose> {
    decide(seen).0
}

/// A spec that cannot be carried out.
fn refused(seen: &Observed, error: &Error) -> Plan {
    let mut plan = Plan::default();
    let message = causes::told(error);
    if *error == Error::EmptySelector {
        let all = "This DaemonSet is selecting all pods. A non-empty selector is required.".to_owned();
        let event = Effect::Event(warning(&super::reference(&seen.set), "SelectingAll", all));
        plan.add(event, Purpose::Quiet(Part::Housekeeping), "the selector is empty");
    }
    plan.waits.add(Reason::SpecInvalid, format!("the spec cannot be carried out: {message}"));
    plan.fail(Part::Scale, message);
    plan
}

fn next(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    plan.join(claim(view));
    plan.join(pre_download::run(view));
    let managed = manage::run(view);
    let leaving: Uids<'_> = managed.delete.iter().map(|deletion| &deletion.pod.metadata.uid).collect();
    let mut burst = Burst::new(view);
    create(view, &managed.create, "the node has no pod", &mut burst, &mut plan);
    delete(view, &managed.delete, &mut burst, &mut plan);
    managed.wake_after.into_iter().for_each(|after| plan.wake(after));
    if managed.held_back > 0 {
        let partition = view.limits.partition;
        plan.reasons
            .push(format!("{} nodes get no pod: partition {partition} holds them back", managed.held_back));
    }
    let rolling = view.desired.rolling.as_ref().filter(|rolling| !rolling.paused);
    let rollout = rolling.map(|rolling| rollout::run(view, rolling, &leaving));
    plan.join(update(view, rollout.as_ref(), &leaving, &mut burst));
    plan.join(unify(view, &plan.written(crate::object::POD)));
    let is_needed = |one: &Revision| is_carried(view, one) || view.revisions.is_duplicate(one);
    for effect in view.revisions.shared.truncate(view.desired.history_limit, &is_needed) {
        plan.add(effect, Purpose::Quiet(Part::Housekeeping), "beyond revisionHistoryLimit");
    }
    let left = |pod: &&Pod| availability::time_until_available(pod, view.desired.min_ready, view.now());
    view.pods.iter().filter_map(left).min().into_iter().for_each(|after| plan.wake(after));
    plan.keep_to(view.seen.write_budget, &|_| false);
    plan.waits.join(waits::of(view, rollout.as_ref(), managed.held_back));
    plan
}

/// Takes pods and revisions without an owner, and lets pods go whose labels were changed.
fn claim(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    for pod in &view.released {
        plan.add(ownership::release(pod, &view.set), Purpose::Quiet(Part::Scale), "its labels were changed");
    }
    for pod in &view.orphans {
        plan.add(ownership::adopt(pod, &view.set), Purpose::Adopt(Part::Scale), "it has no owner");
    }
    for (effect, adopts) in view.revisions.tidy(&view.set) {
        let part = Part::Housekeeping;
        let purpose = if adopts { Purpose::Adopt(part) } else { Purpose::Quiet(part) };
        plan.add(effect, purpose, "it has no owner or no hash");
    }
    plan
}

/// What is left of `burstReplicas` in this reconcile, and the names of its new pods.
struct Burst {
    creations: usize,
    deletions: usize,
    names: pods::Names,
}

impl Burst {
    fn new(view: &View<'_>) -> Self {
        let burst = view.limits.burst;
        Self { creations: burst, deletions: burst, names: pods::Names::new(view) }
    }
}

fn create(view: &View<'_>, nodes: &[&str], why: &'static str, burst: &mut Burst, plan: &mut Plan) {
    // A pod that the server refuses leaves those out that come after it: they must not be left out every time.
    let nodes = view.seen.refused.order(nodes, &view.set.uid);
    let planned = nodes.len().min(burst.creations);
    burst.creations -= planned;
    for node in nodes.into_iter().take(planned) {
        let name = burst.names.next(node);
        let purpose = Purpose::CreatePod { pod: name.clone(), node: node.into() };
        plan.add(pods::create(view, node, &name), purpose, why);
    }
}

/// Deletes pods, or asks their hook first. Those that a hook holds do not count against the burst.
fn delete(view: &View<'_>, deletions: &[Deletion<'_>], burst: &mut Burst, plan: &mut Plan) {
    let (refused, others): (Vec<&Deletion<'_>>, Vec<&Deletion<'_>>) =
        deletions.iter().partition(|deletion| view.seen.refused.has_pod(deletion.pod));
    for Deletion { pod, why } in others.into_iter().chain(refused) {
        let step = pod_deletion::next(pod, view.desired.pre_delete.as_ref(), view.now());
        let (name, node) = (pod.metadata.name.clone(), pod.node().clone());
        let ended = |deleted| Purpose::DeleteEnded {
            pod: name.clone(),
            node,
            succeeded: *why == Why::Succeeded,
            deleted,
        };
        let has_ended = matches!(why, Why::Failed | Why::Succeeded);
        match step {
            Step::Wait(None) => {}
            Step::Wait(Some(effect)) if has_ended => plan.add(effect, ended(false), why.phrase()),
            Step::Wait(Some(effect)) => plan.add(effect, Purpose::HoldPod(name.clone()), why.phrase()),
            Step::Delete(_) if burst.deletions == 0 => {}
            Step::Delete(effect) => {
                burst.deletions -= 1;
                let purpose = if has_ended { ended(true) } else { Purpose::DeletePod(name.clone()) };
                plan.add(effect, purpose, why.phrase());
            }
        }
    }
}

/// Updates pods, and carries on what was begun: that also while the update is paused.
fn update<'a>(view: &View<'a>, rollout: Option<&Rollout<'a>>, leaving: &Uids<'_>, burst: &mut Burst) -> Plan {
    let mut plan = Plan::default();
    let (beside, mut old, replace) = match rollout {
        Some(Rollout { create, delete, replace, .. }) => {
            (create.as_slice(), delete.clone(), replace.as_slice())
        }
        None => Default::default(),
    };
    create(view, beside, "a successor beside the old pod", burst, &mut plan);
    old.extend(in_place_update::run(view, replace, leaving, &mut plan));
    let deletions: Vec<Deletion<'_>> =
        old.into_iter().map(|pod| Deletion { pod, why: Why::Outdated }).collect();
    delete(view, &deletions, burst, &mut plan);
    plan
}

/// Brings pods together that carry the hashes of equal revisions, and deletes all of these revisions but one.
fn unify(view: &View<'_>, written: &BTreeSet<Text>) -> Plan {
    let mut plan = Plan::default();
    for duplicate in view.revisions.duplicates.iter().copied() {
        let mut carried = view.pods.iter().filter(|pod| revision::is_on(pod, duplicate)).peekable();
        if carried.peek().is_none() {
            let why = "another revision has the same content";
            plan.add(revisions::delete(duplicate), Purpose::Quiet(Part::Housekeeping), why);
        }
        let free = |pod: &&&Pod| {
            !pod.metadata.unreadable && !pod.metadata.is_deleting() && !written.contains(&pod.metadata.name)
        };
        for pod in carried.filter(free) {
            let effect = revisions::relabel(pod, &view.revisions.shared.update);
            plan.add(effect, Purpose::Quiet(Part::Housekeeping), "its revision is a duplicate");
        }
    }
    plan
}

/// Whether a pod carries the hash of a revision.
fn is_carried(view: &View<'_>, one: &Revision) -> bool {
    let hash = hash_of(one);
    view.pods
        .iter()
        .any(|pod| revision::is_on(pod, one) || revision::label_of(pod).is_some_and(|label| *label == *hash))
}
