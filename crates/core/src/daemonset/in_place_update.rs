//! Pods that are changed in place: which ones, and how those go on that were begun.

use std::collections::BTreeSet;

use kruise_api::{conditions::IN_PLACE_UPDATE_READY, lifecycle::State};

use super::{
    Purpose,
    plan::Plan,
    revisions::{hash_of, labels},
    view::{Uids, View},
};
use crate::{
    in_place::{Changes, Next, Role, Rolling, Write, questions},
    lifecycle,
    object::POD,
    plan::Part,
    pod::Pod,
    revision::Revision,
    text::Text,
};

/// Adds the steps of updates in place: of `replace` those begin that can, and of all pods those go on that were begun. The
/// others of `replace` come back: they have to be deleted.
pub(super) fn run<'a>(
    view: &View<'_>,
    replace: &[&'a Pod],
    leaving: &Uids<'_>,
    plan: &mut Plan,
) -> Vec<&'a Pod> {
    let revisions = &view.revisions.shared;
    let others = revisions.other_images();
    let rolling = Rolling {
        lifecycle: None,
        options: &view.desired.in_place,
        refusals: &view.seen.refusals,
        revisions,
        others: &others,
        labels: &labels,
        id: &hash_of,
        has_state: &|_| false,
        now: view.now(),
    };
    let target = &revisions.update;
    let is_in_place = view.desired.rolling.as_ref().is_some_and(|rolling| rolling.in_place);
    let changes = if is_in_place { rolling.changes(replace, target) } else { Changes::none(target) };
    let (in_place, deleted): (Vec<&Pod>, Vec<&Pod>) = replace.iter().partition(|pod| {
        // Nobody knows what a state means that is none of ours.
        let is_known = !matches!(lifecycle::state(pod), Some(State::Other(_)));
        pod.has_readiness_gate(IN_PLACE_UPDATE_READY) && is_known && changes.of(pod).is_some()
    });
    let (mut starting, asked) = rolling.split(in_place, &changes);
    starting.truncate(view.limits.burst);
    let mut written = plan.written(POD);
    written.extend(deleted.iter().map(|pod| pod.metadata.name.clone()));
    maintain(view, &rolling, &starting, leaving, &written, plan);
    plan.join(refused(view, &rolling, target));
    written.append(&mut plan.written(POD));
    for pod in asked.into_iter().filter(|pod| !written.contains(&pod.metadata.name)) {
        let Some(change) = changes.of(pod) else { continue };
        for effect in questions(pod, change, &view.desired.in_place) {
            let purpose = Purpose::AskInPlace { pod: pod.metadata.name.clone(), revision: hash_of(target) };
            plan.add(effect, purpose, "the server refused an update before");
        }
    }
    for pod in starting.into_iter().filter(|pod| !written.contains(&pod.metadata.name)) {
        let Some(change) = changes.of(pod) else { continue };
        match rolling.start(pod, target, change) {
            Ok(next) => add(pod, next, "it has an older revision", plan),
            Err(error) => plan.fail(Part::Update, error),
        }
    }
    deleted
}

/// The next step of every pod whose update runs or has ended, and the first condition of new pods.
fn maintain(
    view: &View<'_>,
    rolling: &Rolling<'_>,
    starting: &[&Pod],
    leaving: &Uids<'_>,
    written: &BTreeSet<Text>,
    plan: &mut Plan,
) {
    let starting: BTreeSet<&Text> = starting.iter().map(|pod| &pod.metadata.uid).collect();
    let stays = |pod: &&&Pod| {
        let metadata = &pod.metadata;
        pod.is_active()
            && !metadata.unreadable
            && !leaving.contains(&metadata.uid)
            && !written.contains(&metadata.name)
    };
    for pod in view.pods.iter().filter(stays) {
        let role = if starting.contains(&pod.metadata.uid) { Role::Starting } else { Role::Idle };
        match rolling.maintain(pod, role) {
            Ok(next) => add(pod, next, "its update in place goes on", plan),
            Err(error) => plan.fail(Part::Update, error.to_string()),
        }
    }
}

/// What the server refused stays a failure until it is taken, and the pods are tried again.
fn refused(view: &View<'_>, rolling: &Rolling<'_>, target: &Revision) -> Plan {
    let mut plan = Plan::default();
    let outdated: Vec<&Pod> = view.pods.iter().copied().filter(|pod| !view.is_updated(pod)).collect();
    let (message, pause) = rolling.refused(&outdated, target);
    message.into_iter().for_each(|message| plan.fail(Part::Update, message));
    pause.into_iter().for_each(|pause| plan.wake(pause));
    plan
}

fn add(pod: &Pod, next: Next, why: &'static str, plan: &mut Plan) {
    let Next { write, wake_after } = next;
    wake_after.into_iter().for_each(|after| plan.wake(after));
    let Some((effect, write)) = write else { return };
    let pod = pod.metadata.name.clone();
    let purpose = match write {
        Write::Update(revision) => Purpose::UpdateInPlace { pod, revision },
        Write::Prepare(revision) => Purpose::PrepareInPlace { pod, revision },
        Write::TakeBack => Purpose::TakeBackInPlace(pod),
        Write::Settle => Purpose::Quiet(Part::Update),
    };
    plan.add(effect, purpose, why);
}
