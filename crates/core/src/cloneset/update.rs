//! Moving pods to another revision, and ending what was begun.

use std::collections::{BTreeMap, BTreeSet};

use kruise_api::lifecycle::State;

use super::{Numbers, Plan, Purpose, numbers, plan::is_preparing_delete, scale, view::View, waits};
use crate::{
    in_place::{self, Changes, Role, Rolling, Write},
    lifecycle,
    object::POD,
    plan::Part,
    pod::Pod,
    revision::{Revision, Revisions, is_on},
    specified_delete,
    strategy::Policy,
    text::Text,
    update_order::update_order,
    waiting::{self, Waits},
};

/// Plans the next step of updating. After a change of their number (`scaled`) no other update begins, but those that were
/// begun go on. Pods that `before` writes to are left alone.
pub(super) fn run(view: &View<'_>, revisions: &Revisions<'_>, scaled: bool, before: &Plan) -> Plan {
    let mut plan = Plan::default();
    let others = revisions.other_images();
    let labels = |revision: &Revision| view.revision_labels(revision);
    let rolling = Rolling {
        lifecycle: view.desired.lifecycle.as_ref(),
        options: &view.desired.in_place,
        refusals: &view.seen.refusals,
        revisions,
        others: &others,
        labels: &labels,
        id: &|revision| revision.metadata.name.clone(),
        has_state: &|_| true,
        now: view.now(),
    };
    let is_new = |pod: &Pod| is_on(pod, &revisions.update);
    let numbers = numbers(&view.limits(revisions), &view.counts(&is_new));
    let target = if numbers.update >= 0 { &revisions.update } else { &revisions.current };
    let chosen = if view.desired.paused || view.desired.policy.is_none() {
        Vec::new()
    } else {
        let (chosen, waits) = choose(view, &rolling, &numbers, target);
        plan.waits.join(waits);
        chosen
    };
    let changes = changes(view, &rolling, &chosen, target);
    let (chosen, asked) = rolling.split(chosen, &changes);
    let mut roles: BTreeMap<&Text, Role> =
        not_wanted(view, revisions, &numbers).map(|pod| (&pod.metadata.name, Role::NotWanted)).collect();
    roles.extend(chosen.iter().map(|pod| (&pod.metadata.name, rolling.role(pod, &changes))));
    let mut written = before.written(POD);
    plan.join(maintain(view, &rolling, &roles, &written));
    plan.waits.join(waits::of(view, &rolling, &numbers));
    if numbers.update != 0 {
        plan.join(refused(view, &rolling, target));
    }
    let Some(policy) = view.desired.policy.filter(|_| !scaled) else { return plan };
    written.append(&mut plan.written(POD));
    plan.join(ask(view, &changes, &asked, &written));
    let mut replaced = Vec::new();
    let mut budget = view.seen.write_budget.after(&before.steps).after(&plan.steps);
    for pod in chosen.into_iter().filter(|pod| !written.contains(&pod.metadata.name)) {
        if budget.is_used_up() {
            break;
        }
        match step(view, &rolling, &changes, pod, policy) {
            Ok(Stepped::Done(step)) => {
                budget = budget.after(&step.steps);
                plan.join(step);
            }
            Ok(Stepped::Replace) => replaced.push(pod),
            Err(error) => {
                plan.fail(Part::Update, error);
                break;
            }
        }
    }
    plan.join(scale::replace(view, &replaced, target));
    plan
}

/// How pods get to a revision in place, where the policy allows it.
fn changes<'t>(view: &View<'_>, rolling: &Rolling<'t>, pods: &[&Pod], target: &'t Revision) -> Changes<'t> {
    match view.desired.policy {
        None | Some(Policy::ReCreate) => Changes::none(target),
        Some(Policy::InPlaceIfPossible | Policy::InPlaceOnly) => rolling.changes(pods, target),
    }
}

/// Asks the server whether it would take the updates of pods.
fn ask(view: &View<'_>, changes: &Changes<'_>, pods: &[&Pod], written: &BTreeSet<Text>) -> Plan {
    let mut plan = Plan::default();
    for pod in pods.iter().filter(|pod| !written.contains(&pod.metadata.name)) {
        let Some(change) = changes.of(pod) else { continue };
        for effect in in_place::questions(pod, change, &view.desired.in_place) {
            let (pod, revision) = (pod.metadata.name.clone(), changes.target.metadata.name.clone());
            plan.add(effect, Purpose::AskInPlace { pod, revision }, "the server refused an update before");
        }
    }
    plan
}

/// What the server refused stays a failure until it is taken, and the pods are tried again.
fn refused(view: &View<'_>, rolling: &Rolling<'_>, target: &Revision) -> Plan {
    let mut plan = Plan::default();
    let pods: Vec<&Pod> = view.pods.iter().copied().filter(|pod| !is_on(pod, target)).collect();
    let (message, pause) = rolling.refused(&pods, target);
    message.into_iter().for_each(|message| plan.fail(Part::Update, message));
    pause.into_iter().for_each(|pause| plan.wake(pause));
    plan
}

/// What became of a pod that is to be updated.
enum Stepped {
    Done(Plan),
    /// It can be deleted at once.
    Replace,
}

/// Ends updates that are done and moves pods through their states.
fn maintain(
    view: &View<'_>,
    rolling: &Rolling<'_>,
    roles: &BTreeMap<&Text, Role>,
    written: &BTreeSet<Text>,
) -> Plan {
    let mut plan = Plan::default();
    let is_idle = |pod: &&&Pod| !written.contains(&pod.metadata.name) && !pod.metadata.unreadable;
    for pod in view.pods.iter().filter(is_idle) {
        let role = roles.get(&pod.metadata.name).copied().unwrap_or_default();
        match rolling.maintain(pod, role) {
            Ok(next) => plan.join(written_by(pod, next)),
            Err(error) => plan.fail(Part::Update, error.to_string()),
        }
    }
    plan
}

/// The plan of one write of an update in place. Users see an event for the one that changes the pod, and for any that is
/// refused.
fn written_by(pod: &Pod, next: in_place::Next) -> Plan {
    let mut plan = Plan { wake_after: next.wake_after, ..Plan::default() };
    let Some((effect, write)) = next.write else { return plan };
    let pod = pod.metadata.name.clone();
    let (purpose, why) = match write {
        Write::Update(revision) => (Purpose::UpdateInPlace { pod, revision }, "it has an older revision"),
        Write::Prepare(revision) => {
            (Purpose::PrepareInPlace { pod, revision }, "its update in place goes on step by step")
        }
        Write::TakeBack => (Purpose::TakeBackInPlace(pod), "the server refused the rest of its update"),
        Write::Settle => (Purpose::Quiet(Part::Update), "its lifecycle state follows from what it is"),
    };
    plan.add(effect, purpose, why);
    plan
}

/// The pods to update now, in order, as many as may be unavailable, and why there are no more.
fn choose<'a>(
    view: &View<'a>,
    rolling: &Rolling<'_>,
    numbers: &Numbers,
    target: &Revision,
) -> (Vec<&'a Pod>, Waits) {
    let wanted = usize::try_from(numbers.update.unsigned_abs()).unwrap_or(usize::MAX);
    let must_move = |pod: &&&Pod| {
        let is_new = is_on(pod, &rolling.revisions.update);
        let wrong_side = if numbers.update > 0 { !is_new } else { is_new };
        wrong_side && !is_preparing_delete(pod) && !in_place::is_in_grace(pod) && !pod.metadata.unreadable
    };
    if wanted == 0 {
        return (Vec::new(), Waits::default());
    }
    let waiting: Vec<&Pod> = view.pods.iter().filter(must_move).copied().collect();
    let waiting = without_refused(view, rolling, waiting, target);
    let ordered = update_order(&waiting, &view.pods, &view.desired.order);
    let unavailable = |pod: &&&Pod| is_preparing_delete(pod) || !view.is_available(pod);
    let count = |pods: usize| i64::try_from(pods).unwrap_or(i64::MAX);
    let on_target = count(view.pods.iter().filter(unavailable).filter(|pod| is_on(pod, target)).count());
    let mut down = count(view.pods.iter().filter(unavailable).count());
    let mut chosen = Vec::new();
    for pod in ordered.into_iter().take(wanted) {
        let is_available = view.is_available(pod);
        if on_target + count(chosen.len()) >= numbers.update_max
            || (is_available && down >= numbers.update_max)
        {
            let mut waits = Waits::default();
            let down = view.down(down);
            let most = usize::try_from(view.desired.max_unavailable).unwrap_or(0);
            let value = &view.desired.spelled.max_unavailable;
            waiting::max_unavailable(down, most, value, &pod.metadata.name, &mut waits);
            return (chosen, waits);
        }
        down += i64::from(is_available);
        chosen.push(pod);
    }
    (chosen, Waits::default())
}

/// Pods that wait for their hook although no update of them is wanted any more, because the partition was raised. They
/// return to service: otherwise they count as unavailable for as long as the partition stays.
fn not_wanted<'a>(
    view: &View<'a>,
    revisions: &Revisions<'_>,
    numbers: &Numbers,
) -> impl Iterator<Item = &'a Pod> {
    let is_preparing = |pod: &&&Pod| lifecycle::is(pod, &State::PreparingUpdate) && !view.is_specified(pod);
    // A paused set leaves everything as it is.
    let may_change = !view.desired.paused && view.desired.policy.is_some();
    let preparing = view.pods.iter().filter(is_preparing).filter(move |_| may_change).copied();
    let moves = |pod: &&Pod| (numbers.update > 0) != is_on(pod, &revisions.update);
    let (wanted, others): (Vec<&Pod>, Vec<&Pod>) = preparing.partition(moves);
    let most = usize::try_from(numbers.update.unsigned_abs()).unwrap_or(usize::MAX);
    let beyond = update_order(&wanted, &view.pods, &view.desired.order).into_iter().skip(most);
    others.into_iter().chain(beyond).collect::<Vec<_>>().into_iter()
}

/// Leaves out the pods whose update in place was refused a moment ago: others take their place.
fn without_refused<'a>(
    view: &View<'_>,
    rolling: &Rolling<'_>,
    mut pods: Vec<&'a Pod>,
    target: &Revision,
) -> Vec<&'a Pod> {
    let refusals = &view.seen.refusals;
    if !refusals.is_about(target.name()) {
        return pods;
    }
    let changes = changes(view, rolling, &pods, target);
    pods.retain(|pod| {
        let pause = refusals.pause(target.name(), &pod.metadata.name, view.now());
        pause.is_none() || changes.of(pod).is_none()
    });
    pods
}

/// The next step of one pod towards a revision.
fn step(
    view: &View<'_>,
    rolling: &Rolling<'_>,
    changes: &Changes<'_>,
    pod: &Pod,
    policy: Policy,
) -> Result<Stepped, String> {
    let name = &pod.metadata.name;
    match changes.of(pod) {
        Some(change) => Ok(Stepped::Done(written_by(pod, rolling.start(pod, changes.target, change)?))),
        None if policy == Policy::InPlaceOnly => {
            Err(format!("find Pod {name} update strategy is InPlaceOnly but can not update in-place"))
        }
        None if goes_at_once(view, pod) => Ok(Stepped::Replace),
        None => {
            let mut plan = Plan::default();
            if let Some(effect) = specified_delete::specify(pod) {
                let revision = changes.target.metadata.name.clone();
                plan.add(
                    effect,
                    Purpose::ReCreate { pod: name.clone(), revision },
                    "it has an older revision",
                );
            }
            Ok(Stepped::Done(plan))
        }
    }
}

/// Whether a pod need not be asked to go first: no other comes before it goes, and nobody holds it.
fn goes_at_once(view: &View<'_>, pod: &Pod) -> bool {
    let hook = view.desired.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_delete.as_ref());
    view.desired.max_surge == 0 && !lifecycle::is_hooked(hook, pod) && !view.is_specified(pod)
}
