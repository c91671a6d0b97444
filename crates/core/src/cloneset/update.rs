//! Moving pods to another revision, and ending what was begun.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kruise_api::{
    gates::Gate,
    labels,
    lifecycle::{Hook, State},
};
use serde_json::json;

use super::{
    Numbers, Part, Plan, Policy, Purpose, Room, numbers,
    plan::is_preparing_delete,
    pods, scale,
    view::{Revisions, View, is_on, revision_label},
    waits,
};
use crate::{
    effect::Effect,
    in_place::{self, OtherImages},
    lifecycle,
    object::POD,
    pod::Pod,
    revision::{self, Revision},
    specified_delete,
    text::Text,
    update_order::update_order,
};

/// How long to wait when a budget does not let a pod go.
const BUDGET_RETRY: Duration = Duration::from_secs(1);

/// Plans the next step of updating. After a change of their number no other pod is started, but what was begun goes on.
pub(super) fn run(view: &View<'_>, revisions: &Revisions<'_>, scaled: bool, plan: &mut Plan) {
    let others = revisions.other_images();
    let is_new = |pod: &Pod| is_on(pod, &revisions.update);
    let numbers = numbers(&view.limits(revisions), &view.counts(&is_new));
    let target = if numbers.update >= 0 { &revisions.update } else { &revisions.current };
    let chosen = if view.desired.paused || view.desired.policy.is_none() {
        Vec::new()
    } else {
        choose(view, revisions, &numbers, target, plan)
    };
    let changes = Changes::new(view, revisions, &chosen, target);
    let roles: BTreeMap<&Text, Role> =
        chosen.iter().map(|pod| (&pod.metadata.name, role(view, &changes, pod))).collect();
    maintain(view, revisions, &others, &roles, plan);
    waits::tell(view, &others, plan);
    if scaled {
        return;
    }
    let Some(policy) = view.desired.policy else { return };
    let written = written_pods(plan);
    let mut replaced = Vec::new();
    let mut room = view.seen.room.after(&plan.effects);
    for pod in chosen.into_iter().filter(|pod| !written.contains(&pod.metadata.name)) {
        if view.gate(Gate::PodUnavailableBudgetUpdateGate) && view.seen.protected.contains(&pod.metadata.name)
        {
            plan.reasons.push(format!("a budget does not let pod {} be updated now", pod.metadata.name));
            plan.wake(BUDGET_RETRY);
            break;
        }
        if room == (Room { pods: 0, status: 0 }) {
            break;
        }
        let before = plan.effects.len();
        let stepped = step(view, &changes, pod, policy, plan);
        room = room.after(plan.effects.get(before..).unwrap_or_default());
        match stepped {
            Ok(Stepped::Done) => {}
            Ok(Stepped::Replace) => replaced.push(pod),
            Err(error) => {
                plan.failures.update.get_or_insert(error);
                break;
            }
        }
    }
    scale::replace(view, &replaced, target, plan);
}

/// What became of a pod that is to be updated.
enum Stepped {
    Done,
    /// It can be deleted at once.
    Replace,
}

/// What a pod is about to do in this pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    /// Nothing.
    #[default]
    Idle,
    /// It is chosen for an update and waits for its hook, or for its end. It may have been made not ready for that.
    Chosen,
    /// Its update in place begins. It may have been made not ready in the last pass, and must not be made ready again.
    Starting,
}

/// How pods get from their revisions to another one in place: found out once for all pods of a revision.
struct Changes<'a> {
    target: &'a Revision,
    /// From a revision by its name; nothing where it cannot be done in place.
    from: Vec<(&'a str, Option<in_place::Update>)>,
}

impl<'a> Changes<'a> {
    fn new(view: &View<'_>, revisions: &'a Revisions<'_>, chosen: &[&Pod], target: &'a Revision) -> Self {
        let compare = |from: &Revision| in_place::compare(from, target, &view.desired.in_place);
        let from = match view.desired.policy {
            None | Some(Policy::ReCreate) => Vec::new(),
            Some(Policy::InPlaceIfPossible | Policy::InPlaceOnly) => {
                let named: BTreeSet<&str> = chosen.iter().filter_map(|pod| revision_label(pod)).collect();
                let is_used = |from: &&&'a Revision| {
                    named.iter().any(|label| revision::is_label_of(label, from.name()))
                };
                revisions.all.iter().filter(is_used).map(|from| (from.name(), compare(from))).collect()
            }
        };
        Self { target, from }
    }

    /// The change of one pod, if it can be made in place.
    fn of(&self, pod: &Pod) -> Option<&in_place::Update> {
        let label = revision_label(pod)?;
        self.from.iter().find(|(name, _)| revision::is_label_of(label, name))?.1.as_ref()
    }
}

fn role(view: &View<'_>, changes: &Changes<'_>, pod: &Pod) -> Role {
    if asks_first(view, pod) == Ok(false) && changes.of(pod).is_some() {
        Role::Starting
    } else {
        Role::Chosen
    }
}

/// Ends updates that are done and moves pods through their states. Others may start in the same pass: a pod counts as
/// updated, or as serving, only when it is seen to be.
fn maintain(
    view: &View<'_>,
    revisions: &Revisions<'_>,
    others: &OtherImages,
    roles: &BTreeMap<&Text, Role>,
    plan: &mut Plan,
) {
    let written = written_pods(plan);
    for pod in view.pods.iter().filter(|pod| !written.contains(&pod.metadata.name)) {
        let role = roles.get(&pod.metadata.name).copied().unwrap_or_default();
        let effect = match next(view, revisions, pod, others, role, plan) {
            Ok(effect) => effect,
            Err(error) => {
                plan.failures.update.get_or_insert(error.to_string());
                continue;
            }
        };
        if let Some(effect) = effect {
            plan.add(effect, Purpose::Quiet(Part::Update));
        }
    }
}

/// One write for a pod in a pass: a second one would find another version.
fn written_pods(plan: &Plan) -> BTreeSet<Text> {
    let pod = |effect: &Effect| match effect {
        Effect::Patch { target, .. } | Effect::Delete { target, .. } if target.resource == POD => {
            Some(target.key.name.clone())
        }
        _ => None,
    };
    plan.effects.iter().filter_map(pod).collect()
}

fn next(
    view: &View<'_>,
    revisions: &Revisions<'_>,
    pod: &Pod,
    others: &OtherImages,
    role: Role,
    plan: &mut Plan,
) -> Result<Option<Effect>, in_place::Error> {
    let options = &view.desired.in_place;
    let is_complete = || in_place::completion(pod, options, others).is_complete();
    let settle = || {
        // Whoever is chosen has to move, be it back to the current revision.
        let is_on_target = role == Role::Idle && is_on(pod, &revisions.update);
        lifecycle::settle(pod, view.desired.lifecycle.as_ref(), is_on_target, &is_complete, view.now())
    };
    // Without a node nothing can become ready: once there is one, a single write says both.
    if role != Role::Starting && !waits_for_node(view, pod) {
        let progress = in_place::refresh(pod, options, others, view.now())?;
        progress.wake_after.into_iter().for_each(|after| plan.wake(after));
        if let Some(effect) = progress.effect {
            return Ok(Some(lifecycle::joined(effect, settle)));
        }
    }
    let is_status = |effect: &Effect| matches!(effect, Effect::Patch { subresource: Some(_), .. });
    let settled = settle().filter(|effect| role == Role::Idle || !is_status(effect));
    Ok(settled.or_else(|| hash_label(pod)))
}

/// Whether a new pod has no node yet and will be taken into service when it has one.
fn waits_for_node(view: &View<'_>, pod: &Pod) -> bool {
    let hook = view.desired.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_normal.as_ref());
    lifecycle::is(pod, &State::PreparingNormal) && hook.is_none() && pod.spec.node_name.is_empty()
}

/// Pods of old releases lack the label with the hash alone.
fn hash_label(pod: &Pod) -> Option<Effect> {
    let label = revision_label(pod).filter(|_| !pod.metadata.labels.contains(labels::POD_TEMPLATE_HASH))?;
    let hash = revision::short_hash(label);
    Some(lifecycle::patch(pod, json!({"metadata": {"labels": {labels::POD_TEMPLATE_HASH: hash}}})))
}

/// The pods to update now, in order, as many as may be unavailable.
fn choose<'a>(
    view: &View<'a>,
    revisions: &Revisions<'_>,
    numbers: &Numbers,
    target: &Revision,
    plan: &mut Plan,
) -> Vec<&'a Pod> {
    let wanted = usize::try_from(numbers.update.unsigned_abs()).unwrap_or(usize::MAX);
    let must_move = |pod: &&&Pod| {
        let is_new = is_on(pod, &revisions.update);
        let wrong_side = if numbers.update > 0 { !is_new } else { is_new };
        wrong_side && !is_preparing_delete(pod) && !in_place::is_in_grace(pod)
    };
    if wanted == 0 {
        return Vec::new();
    }
    let waiting: Vec<&Pod> = view.pods.iter().filter(must_move).copied().collect();
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
            plan.reasons.push(format!(
                "pod {} waits for its update: {down} pods are unavailable, {} may be",
                pod.metadata.name, numbers.update_max
            ));
            break;
        }
        down += i64::from(is_available);
        chosen.push(pod);
    }
    chosen
}

/// The next step of one pod towards a revision.
fn step(
    view: &View<'_>,
    changes: &Changes<'_>,
    pod: &Pod,
    policy: Policy,
    plan: &mut Plan,
) -> Result<Stepped, String> {
    let name = &pod.metadata.name;
    let target = changes.target;
    match changes.of(pod) {
        Some(change) => update_in_place(view, pod, target, change, plan).map(|()| Stepped::Done),
        None if policy == Policy::InPlaceOnly => {
            Err(format!("find Pod {name} update strategy is InPlaceOnly but can not update in-place"))
        }
        None if goes_at_once(view, pod) => Ok(Stepped::Replace),
        None => {
            if let Some(effect) = specified_delete::specify(pod) {
                let revision = target.metadata.name.clone();
                plan.add(effect, Purpose::ReCreate { pod: name.clone(), revision });
            }
            Ok(Stepped::Done)
        }
    }
}

/// Whether a pod need not be asked to go first: no other comes before it goes, and nobody holds it.
fn goes_at_once(view: &View<'_>, pod: &Pod) -> bool {
    let hook = view.desired.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_delete.as_ref());
    view.desired.max_surge == 0 && !lifecycle::is_hooked(hook, pod) && !view.is_specified(pod)
}

fn update_in_place(
    view: &View<'_>,
    pod: &Pod,
    target: &Revision,
    change: &in_place::Update,
    plan: &mut Plan,
) -> Result<(), String> {
    let hook = update_hook(view);
    if asks_first(view, pod)? {
        if let Some(effect) = lifecycle::prepare_update(pod, hook, view.now()) {
            plan.add(effect, Purpose::Quiet(Part::Update));
        }
        return Ok(());
    }
    let (state_labels, annotations) = lifecycle::marks(&State::Updating, view.now());
    let mut labels = pods::revision_labels(view, target);
    labels.extend(state_labels.as_object().cloned().unwrap_or_default());
    let marks = in_place::Labels { labels: labels.into(), annotations };
    let progress = in_place::start(pod, change, &marks, &view.desired.in_place, view.now());
    progress.wake_after.into_iter().for_each(|after| plan.wake(after));
    if let Some(effect) = progress.effect {
        let purpose = if progress.starts {
            Purpose::UpdateInPlace { pod: pod.metadata.name.clone(), revision: target.metadata.name.clone() }
        } else {
            Purpose::Quiet(Part::Update)
        };
        plan.add(effect, purpose);
    }
    Ok(())
}

fn update_hook<'a>(view: &'a View<'_>) -> Option<&'a Hook> {
    view.desired.lifecycle.as_ref()?.in_place_update.as_ref()
}

/// Whether a pod has to wait for its hook before it is updated in place.
fn asks_first(view: &View<'_>, pod: &Pod) -> Result<bool, String> {
    let hook = update_hook(view);
    Ok(match lifecycle::state(pod) {
        None | Some(State::PreparingNormal | State::Normal | State::PreparingUpdate) => {
            lifecycle::is_hooked(hook, pod)
        }
        Some(State::Updated) => hook.is_some(),
        Some(State::Updating) => false,
        Some(state @ (State::PreparingDelete | State::Other(_))) => {
            return Err(format!("not allowed to in-place update pod {} in state {state}", pod.metadata.name));
        }
    })
}
