//! What to do next.

use std::collections::BTreeMap;

use kruise_api::{
    int_or_percent::IntOrString, labels::UNITED_DEPLOYMENT_RESERVED_POD, uniteddeployment::v1beta1::Subset,
};
use serde_json::json;

use super::{
    Child, Desired, Kind, Observed, Purpose, Standing,
    allocation::{self, Mode},
    desired::Error,
    purpose::{failed, not_created, not_updated, warning},
    render::{self, Wanted},
    view::{self, Shares, View, is_on, revision_of},
    waits,
};
use crate::{
    availability,
    effect::{Effect, Target},
    lifecycle,
    object::{ObjectRef, POD},
    plan::{Part, Plan as Shared},
    random_id::{Ids, mix},
    revision::Revision,
    statefulset,
    waiting::Reason,
};

pub(super) type Plan = Shared<Purpose>;

/// The reason of the event about numbers that do not fit.
const INEFFECTIVE: &str = "Failed SpecifySubsetReplicas";

/// Decides one safe step for each workload, and summarizes the subsets: both from one look at them.
pub fn decide(seen: &Observed) -> (Shared<Purpose>, Standing) {
    // The garbage collector deletes the workloads.
    if seen.object.metadata.is_deleting() {
        return (Plan::default(), Standing::default());
    }
    let desired = match Desired::of(&seen.object) {
        Ok(desired) => desired,
        Err(error) => return (refused(&error), Standing::default()),
    };
    let view = View::new(seen, &desired);
    // A revision comes before everything that refers to it.
    if let Some(effect) = view.revisions.write(&view.owner.key.namespace) {
        let mut plan = Plan::default();
        plan.add(effect, Purpose::Revision, "the revision of the template");
        return (plan, Standing::before(&view));
    }
    (next(&view), Standing::new(&view))
}

/// Decides one safe step for each workload.
pub fn plan(seen: &Observed) -> Shared<Purpose> {
    decide(seen).0
}

/// The workloads that the next plan changes: they are read whole before it is made, because a cache keeps only what decides
/// whether they are changed.
pub fn to_read(seen: &Observed) -> Vec<ObjectRef> {
    let Ok(desired) = Desired::of(&seen.object) else { return Vec::new() };
    if seen.object.metadata.is_deleting() {
        return Vec::new();
    }
    let view = View::new(seen, &desired);
    if view.revisions.write(&view.owner.key.namespace).is_some() {
        return Vec::new();
    }
    let Ok(shares) = view.shares() else { return Vec::new() };
    let reference = |(child, _): (&Child, Wanted<'_>)| ObjectRef {
        resource: child.kind.resource(),
        key: child.metadata.key(),
        uid: child.metadata.uid.clone(),
    };
    outdated(&view, shares).into_iter().map(reference).collect()
}

/// A spec that cannot be carried out.
fn refused(error: &Error) -> Plan {
    let mut plan = Plan::default();
    let message = error.to_string();
    plan.waits.add(Reason::SpecInvalid, format!("the spec cannot be carried out: {message}"));
    plan.fail(Part::Update, message);
    plan
}

fn next(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    plan.join(claim(view));
    match view.shares() {
        Err(error) => {
            let error = error.to_string();
            let message = format!("Specified subset replicas is ineffective: {error}");
            let event = Effect::Event(warning(&view.owner, INEFFECTIVE, message));
            plan.add(event, Purpose::Quiet(Part::Housekeeping), "the numbers of the subsets do not fit");
            plan.fail(Part::Update, error);
        }
        Ok(shares) => {
            plan.join(provision(view, shares));
            plan.join(update(view, shares));
            plan.join(unblock(view, shares));
            plan.join(label(view, shares));
            wake(view, shares, &mut plan);
        }
    }
    let is_used = |one: &Revision| {
        let names = |label: Option<&str>| label == Some(one.name());
        view.seen.children.iter().any(|child| {
            names(child.metadata.labels.text(kruise_api::labels::UNITED_DEPLOYMENT_REVISION))
                || view.pods(child).iter().any(|pod| names(revision_of(pod)))
        })
    };
    for effect in view.revisions.truncate(view.desired.history_limit, &is_used) {
        plan.add(effect, Purpose::Quiet(Part::Housekeeping), "beyond revisionHistoryLimit");
    }
    plan.waits.join(waits::of(view));
    plan
}

/// Takes workloads and revisions without an owner, and lets workloads go whose labels were changed.
fn claim(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    for child in &view.released {
        let effect = view::release(child, &view.owner);
        plan.add(effect, Purpose::Quiet(Part::Scale), "its labels were changed");
    }
    for child in &view.orphans {
        let effect = view::adopt(child.kind.resource(), &child.metadata, &view.owner);
        plan.add(effect, Purpose::Adopt(Part::Scale), "it has no owner");
    }
    for one in &view.free_revisions {
        let effect = view::adopt_revision(one, &view.owner);
        plan.add(effect, Purpose::Adopt(Part::Housekeeping), "it has no owner");
    }
    plan
}

/// Gives every subset its workload, and deletes the workloads that are no subset's.
fn provision(view: &View<'_>, shares: &Shares) -> Plan {
    let mut plan = Plan::default();
    for (subset, wanted) in last_if_refused(view, wanted(view, shares)) {
        if view.workload(&subset.name).is_some() || view.has_orphan(&subset.name) {
            continue;
        }
        let (kind, name) = (view.desired.kind, &subset.name);
        let id = Ids::new(mix(view.seen.seed, name)).next_id();
        match render::creation(&view.owner, &view.seen.object, view.desired, &wanted, &id) {
            Ok(effect) => {
                let purpose = Purpose::CreateSubset { kind, subset: name.clone() };
                plan.add(effect, purpose, "the subset has no workload");
            }
            Err(error) => {
                let message = not_created(kind, name, &error.to_string());
                let event = Effect::Event(failed(&view.owner, &message));
                plan.add(event, Purpose::Quiet(Part::Housekeeping), "the patch does not apply");
                plan.fail(Part::Scale, message);
            }
        }
    }
    for (child, why) in &view.surplus {
        let metadata = &child.metadata;
        // Somebody may have taken it away from the object since: only the workload that was seen is deleted.
        let target = Target::with_uid(child.kind.resource(), metadata.key(), metadata.uid.clone())
            .at_version(metadata.resource_version.clone());
        let purpose = Purpose::DeleteSubset { kind: child.kind, name: metadata.name.clone() };
        plan.add(Effect::Delete { target, grace: None, follows: false }, purpose, *why);
    }
    plan
}

/// Changes the workloads that are not as wanted.
fn update(view: &View<'_>, shares: &Shares) -> Plan {
    let mut plan = Plan::default();
    for (child, wanted) in outdated(view, shares) {
        let Child { kind, metadata, .. } = child;
        let uid = &metadata.uid;
        let problem = match view.seen.live.get(uid) {
            // It is gone, or could not be read. The next reconcile sees which.
            None => match view.seen.unread.get(uid) {
                None => continue,
                Some(problem) => problem.clone(),
            },
            Some(live) => match render::change(child, live, &view.seen.object, view.desired, &wanted) {
                Ok(None) => continue,
                Ok(Some(effect)) => {
                    let subset = wanted.subset.name.clone();
                    let purpose = Purpose::UpdateSubset { kind: *kind, name: metadata.name.clone(), subset };
                    plan.add(effect, purpose, "the workload is not as its subset should have it");
                    continue;
                }
                Err(error) => error.to_string(),
            },
        };
        let message = not_updated(*kind, &metadata.name, &problem);
        let event = Effect::Event(failed(&view.owner, &message));
        plan.add(event, Purpose::Quiet(Part::Housekeeping), "the workload cannot be changed");
        plan.fail(Part::Update, message);
        plan.wake(view.desired.critical.min(std::time::Duration::from_secs(10)));
    }
    plan
}

/// What each subset should have.
fn wanted<'v>(view: &'v View<'_>, shares: &'v Shares) -> Vec<(&'v Subset, Wanted<'v>)> {
    let each = view.desired.subsets.iter().zip(&shares.shares).zip(&shares.marks);
    each.map(|((subset, share), mark)| {
        let ready = view.workload(&subset.name).map_or(0, |child| child.ready);
        let outdated = i64::try_from(mark.outdated).unwrap_or(0);
        let hanging = (share.replicas - ready + outdated).max(0);
        let is_hanging = view.desired.mode == Mode::Reserving && mark.unschedulable.is_some() && hanging > 0;
        let wanted = Wanted {
            subset,
            revision: view.revision(),
            replicas: share.replicas,
            partition: view.partition(&subset.name, share.replicas),
            max_unavailable: is_hanging.then_some(hanging),
        };
        (subset, wanted)
    })
    .collect()
}

/// Subsets whose workload the server refused come last: a refusal leaves out what comes after it.
fn last_if_refused<'v>(
    view: &View<'_>,
    mut wanted: Vec<(&'v Subset, Wanted<'v>)>,
) -> Vec<(&'v Subset, Wanted<'v>)> {
    wanted.sort_by_key(|(subset, _)| view.seen.refused.contains(&subset.name));
    wanted
}

/// The workloads that are not as wanted.
fn outdated<'v>(view: &'v View<'_>, shares: &'v Shares) -> Vec<(&'v Child, Wanted<'v>)> {
    let each = last_if_refused(view, wanted(view, shares)).into_iter();
    let of = |(subset, wanted): (&'v Subset, Wanted<'v>)| {
        let child = view
            .workload(&subset.name)
            .filter(|child| !child.metadata.is_deleting() && !child.metadata.unreadable)?;
        is_outdated(view, child, &wanted).then_some((child, wanted))
    };
    each.filter_map(of).collect()
}

fn is_outdated(view: &View<'_>, child: &Child, wanted: &Wanted<'_>) -> bool {
    let revision = child.metadata.labels.text(kruise_api::labels::UNITED_DEPLOYMENT_REVISION);
    revision != Some(wanted.revision)
        || child.replicas != wanted.replicas
        || child.partition.is_some_and(|partition| partition != wanted.partition)
        || !render::has_patch(child, wanted.subset)
        || is_blocked(view, child, wanted)
}

/// Whether pods that hang block an update of the workload.
fn is_blocked(view: &View<'_>, child: &Child, wanted: &Wanted<'_>) -> bool {
    let Some(number) = wanted.max_unavailable.filter(|_| child.rolls) else { return false };
    child.max_unavailable != Some(IntOrString::Int(number))
        && view.pods(child).iter().any(|pod| !is_on(pod, wanted.revision))
}

/// Deletes pods of StatefulSets that block their update: Kubernetes waits for a pod of an older revision that is never ready.
fn unblock(view: &View<'_>, shares: &Shares) -> Plan {
    let mut plan = Plan::default();
    for (subset, wanted) in wanted(view, shares) {
        let Some(child) = view.workload(&subset.name).filter(|child| child.kind == Kind::StatefulSet) else {
            continue;
        };
        // Before its controller has seen the revision, a new pod would be as old as the one that is deleted.
        let is_settled = child.is_observed && !is_outdated(view, child, &wanted);
        let Some(partition) = child.partition.filter(|_| is_settled) else { continue };
        for pod in view.pods(child) {
            let ordinal = statefulset::parts(&pod.metadata.name).map(|(_, ordinal)| ordinal);
            let is_reached = ordinal.is_some_and(|ordinal| ordinal >= partition);
            if is_reached && !is_on(pod, wanted.revision) && !availability::is_running_and_ready(pod) {
                let target = Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone());
                let delete = Effect::Delete { target, grace: None, follows: false };
                plan.add(delete, Purpose::Quiet(Part::Update), "it is not ready and blocks the update");
            }
        }
    }
    plan
}

/// Marks every pod as one that is kept while it waits, or as one that counts.
fn label(view: &View<'_>, shares: &Shares) -> Plan {
    let mut plan = Plan::default();
    if view.desired.mode != Mode::Reserving {
        return plan;
    }
    for (subset, mark) in view.desired.subsets.iter().zip(&shares.marks) {
        let Some(child) = view.workload(&subset.name) else { continue };
        for pod in view.pods(child) {
            let wanted = if mark.reserved.contains(&pod.metadata.name) { "true" } else { "false" };
            if pod.metadata.labels.text(UNITED_DEPLOYMENT_RESERVED_POD) == Some(wanted) {
                continue;
            }
            let change = json!({"metadata": {"labels": {UNITED_DEPLOYMENT_RESERVED_POD: wanted}}});
            let effect = lifecycle::patch(pod, change);
            plan.add(effect, Purpose::Quiet(Part::Update), "whether it is kept while it waits");
        }
    }
    plan
}

/// Looks again when something changes by time alone.
fn wake(view: &View<'_>, shares: &Shares, plan: &mut Plan) {
    for mark in &shares.marks {
        mark.wake.into_iter().for_each(|after| plan.wake(after));
    }
    if view.desired.mode == Mode::Fixed {
        return;
    }
    let grows = shares.subsets.iter().zip(&shares.shares).any(|(subset, share)| {
        share.replicas > subset.workload.as_ref().map_or(0, |workload| workload.replicas)
    });
    if grows {
        plan.wake(view.desired.critical);
    }
}

/// What is worth remembering of how the replicas are divided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct News {
    /// Why they are divided so, if a subset gets another number than it has: the text of an event.
    pub sentence: Option<String>,
    /// How many pods of each subset were not scheduled in time, where any were.
    pub timed_out: BTreeMap<String, usize>,
}

/// What is worth remembering of how the replicas are divided.
pub fn news(seen: &Observed) -> Option<News> {
    let desired = Desired::of(&seen.object).ok()?;
    let view = View::new(seen, &desired);
    let Shares { subsets, shares, marks } = view.shares().ok()?;
    let sentence =
        allocation::changes(subsets, shares).then(|| allocation::sentence(desired.total, subsets, shares));
    let timed_out = desired.subsets.iter().zip(marks).filter(|(_, mark)| mark.timed_out > 0);
    let timed_out = timed_out.map(|(subset, mark)| (subset.name.clone(), mark.timed_out)).collect();
    Some(News { sentence, timed_out })
}
