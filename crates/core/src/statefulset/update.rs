//! Moving pods to the newest revision, deleting those that somebody asked to delete, and ending what was begun.

use std::{borrow::Cow, collections::BTreeSet};

use kruise_api::lifecycle::State;

use super::{
    Plan, Purpose,
    choice::{Choices, choose, is_taken, is_to_delete, targets},
    pods,
    purpose::event,
    scale::Stop,
    status::is_reported,
    view::{View, has_ended, is_preparing_delete},
    waits,
};
use crate::{
    effect::{Effect, Level},
    in_place::{self, Changes, Role, Rolling, Write},
    lifecycle,
    object::POD,
    plan::Part,
    pod::Pod,
    pod_deletion,
    revision::{self, Revisions},
    strategy::Policy,
    text::Text,
    waiting::Waits,
};

/// Plans the next steps of updating. Where scaling stopped, no other pod is taken, but what was begun goes on.
pub(super) fn run(
    view: &View<'_>,
    revisions: &Revisions<'_>,
    stop: Stop,
    waits: &mut Waits,
    plan: &mut Plan,
) {
    let rolling = Rolling {
        lifecycle: view.desired.lifecycle.as_ref(),
        options: &view.desired.in_place,
        refusals: &view.seen.refusals,
        revisions,
        others: view.others(revisions),
        labels: &pods::revision_labels,
        id: &|revision| revision.metadata.name.clone(),
        has_state: &|pod| lifecycle::state(pod).is_some(),
        now: view.now(),
    };
    let wanted: BTreeSet<usize> = targets(view, revisions).into_iter().collect();
    let outdated: Vec<&Pod> = view
        .slots
        .iter()
        .filter_map(|slot| slot.pod)
        .filter(|pod| !revision::is_on(pod, &revisions.update))
        .collect();
    let changes = match view.desired.policy {
        None | Some(Policy::ReCreate) => Changes::none(&revisions.update),
        Some(Policy::InPlaceIfPossible | Policy::InPlaceOnly) => {
            rolling.changes(&outdated, &revisions.update)
        }
    };
    let updating = Updating { view, revisions, rolling, changes, wanted };
    let choices = match stop {
        _ if view.desired.paused => Choices::default(),
        Stop::No => choose(view, revisions, plan),
        Stop::Slot(place) => updating.carried_on(Some(place)),
        Stop::Condemned => updating.carried_on(None),
    };
    waits::of_choices(view, &choices, waits);
    let (begun, asked) = updating.split(&choices, plan);
    let roles: Vec<(&Text, Role)> =
        begun.iter().map(|pod| (&pod.metadata.name, updating.rolling.role(pod, &updating.changes))).collect();
    let deleted: Vec<&Pod> = choices.deleted.iter().filter_map(|place| view.slots.get(*place)?.pod).collect();
    updating.maintain(&roles, &deleted, plan);
    updating.delete(&deleted, &choices, plan);
    updating.ask(&asked, plan);
    updating.step(&begun, &choices, plan);
    updating.report_refusals(&outdated, plan);
}

struct Updating<'u> {
    view: &'u View<'u>,
    revisions: &'u Revisions<'u>,
    rolling: Rolling<'u>,
    changes: Changes<'u>,
    /// The slots that are to have the newest revision.
    wanted: BTreeSet<usize>,
}

impl<'u> Updating<'u> {
    /// What goes on although OrderedReady waits for a pod: the pods that were taken before, and the deletion of the pod that it
    /// waits for.
    fn carried_on(&self, stopped: Option<usize>) -> Choices {
        let mut choices = Choices::default();
        for (place, slot) in self.view.slots.iter().enumerate() {
            let Some(pod) = slot.pod.filter(|pod| !pod.metadata.is_deleting() && !pod.metadata.unreadable)
            else {
                continue;
            };
            choices.unavailable.insert(place);
            let is_taken = is_taken(pod);
            if has_ended(pod) {
                continue;
            }
            if is_to_delete(self.view, pod) {
                if stopped == Some(place) || is_preparing_delete(pod) {
                    choices.deleted.push(place);
                }
            } else if is_taken && self.is_outdated(place, pod) {
                choices.updated.push(place);
            }
        }
        choices
    }

    fn is_outdated(&self, place: usize, pod: &Pod) -> bool {
        self.wanted.contains(&place) && !revision::is_on(pod, &self.revisions.update)
    }

    /// Parts the pods to update into those that begin now, and those about which the server is asked first: others were
    /// refused, and no further pod pays for that with its availability. A pod that was refused a moment ago waits.
    fn split(&self, choices: &Choices, plan: &mut Plan) -> (Vec<&'u Pod>, Vec<&'u Pod>) {
        let (refusals, revision) = (&self.view.seen.refusals, self.revisions.update.name());
        let (mut begun, mut asked): (Vec<&Pod>, Vec<&Pod>) = (Vec::new(), Vec::new());
        for pod in choices.updated.iter().filter_map(|place| self.view.slots.get(*place)?.pod) {
            let name = &pod.metadata.name;
            if self.changes.of(pod).is_none() || !refusals.asks_first(revision, name) {
                begun.push(pod);
            } else if let Some(pause) = refusals.pause(revision, name, self.view.now()) {
                plan.wake(pause);
            } else {
                asked.push(pod);
            }
        }
        asked.sort_by_key(|pod| refusals.tries(revision, &pod.metadata.name));
        if refusals.is_doubtful(revision) {
            asked.truncate(1);
        }
        (begun, asked)
    }

    /// Ends updates that are complete and moves pods through their states.
    fn maintain(&self, roles: &[(&Text, Role)], deleted: &[&Pod], plan: &mut Plan) {
        let written = plan.written(POD);
        for pod in self.view.pods() {
            let name = &pod.metadata.name;
            let is_left = pod.metadata.is_deleting() || pod.metadata.unreadable || has_ended(pod);
            if is_left || written.contains(name) || deleted.iter().any(|one| one.metadata.name == *name) {
                continue;
            }
            if self.keeps(pod, plan) {
                continue;
            }
            let role = roles.iter().find(|(known, _)| *known == name).map(|(_, role)| *role);
            if let Some(effect) = self.called_off(pod, role.unwrap_or_default()) {
                plan.add(effect, Purpose::Quiet(Part::Update), "its update is not wanted any more");
                continue;
            }
            match self.rolling.maintain(pod, role.unwrap_or_default()) {
                Ok(next) => self.add(pod, next, "its update or its hook goes on", plan),
                Err(error) => plan.fail(Part::Update, error.to_string()),
            }
        }
    }

    /// The write that returns a pod to service whose hook was asked for an update, or which was made not ready for its
    /// deletion, although neither is wanted any more.
    fn called_off(&self, pod: &Pod, role: Role) -> Option<Effect> {
        let place = self.view.slots.iter().position(|slot| slot.name == pod.metadata.name);
        if lifecycle::is(pod, &State::PreparingUpdate) {
            let is_wanted =
                self.view.desired.paused || place.is_some_and(|place| self.wanted.contains(&place));
            let hooks = self.view.desired.lifecycle.as_ref();
            return (!is_wanted)
                .then(|| lifecycle::settle(pod, hooks, true, &|| true, self.view.now()))
                .flatten();
        }
        let stays = place.is_some() && role == Role::Idle && !self.view.is_specified(pod);
        stays.then(|| lifecycle::release_from_deletion(pod, self.view.now())).flatten()
    }

    /// Returns a pod to service whose deletion is not wanted any more. One that was made not ready for it is deleted all the
    /// same. True if the pod is such a one.
    fn keeps(&self, pod: &Pod, plan: &mut Plan) -> bool {
        let place = self.view.slots.iter().position(|slot| slot.name == pod.metadata.name);
        let Some(place) = place.filter(|_| is_preparing_delete(pod)) else { return false };
        let is_replaced = self.is_outdated(place, pod) && self.changes.of(pod).is_none();
        if self.view.is_specified(pod) || is_replaced {
            return false;
        }
        if lifecycle::can_cancel(self.view.desired.lifecycle.as_ref()) {
            if let Some(effect) = lifecycle::cancel_delete(pod, self.view.now()) {
                plan.add(effect, Purpose::Quiet(Part::Scale), "its deletion is not wanted any more");
            }
        } else {
            self.remove(pod, false, "it was made not ready for its deletion", plan);
        }
        true
    }

    fn delete(&self, pods: &[&Pod], choices: &Choices, plan: &mut Plan) {
        let written = plan.written(POD);
        for pod in pods.iter().filter(|pod| !written.contains(&pod.metadata.name)) {
            self.remove(pod, self.was_unavailable(pod, choices), "somebody asked for its deletion", plan);
        }
    }

    fn was_unavailable(&self, pod: &Pod, choices: &Choices) -> bool {
        let place = self.view.slots.iter().position(|slot| slot.name == pod.metadata.name);
        place.is_some_and(|place| choices.unavailable.contains(&place))
    }

    /// Deletes a pod, or asks its hook first. With `as_seen`, only if it has not changed: it may have become available.
    fn remove(&self, pod: &Pod, as_seen: bool, why: impl Into<Cow<'static, str>>, plan: &mut Plan) {
        match pod_deletion::next(pod, self.view.pre_delete(), self.view.now()) {
            pod_deletion::Step::Wait(None) => {}
            pod_deletion::Step::Wait(Some(effect)) => plan.add(effect, Purpose::Quiet(Part::Scale), why),
            pod_deletion::Step::Delete(effect) => {
                let effect = if as_seen { pod_deletion::delete_as_seen(pod) } else { effect };
                plan.add(effect, Purpose::DeletePod(pod.metadata.name.clone()), why);
            }
        }
    }

    /// Asks the server whether it would accept the updates of pods.
    fn ask(&self, pods: &[&Pod], plan: &mut Plan) {
        let written = plan.written(POD);
        for pod in pods.iter().filter(|pod| !written.contains(&pod.metadata.name)) {
            let Some(change) = self.changes.of(pod) else { continue };
            for effect in in_place::questions(pod, change, &self.view.desired.in_place) {
                let (pod, revision) =
                    (pod.metadata.name.clone(), self.revisions.update.metadata.name.clone());
                plan.add(effect, Purpose::AskInPlace { pod, revision }, "others were refused");
            }
        }
    }

    /// The next step of each pod towards the newest revision.
    fn step(&self, pods: &[&Pod], choices: &Choices, plan: &mut Plan) {
        let written = plan.written(POD);
        for pod in pods.iter().filter(|pod| !written.contains(&pod.metadata.name)) {
            let change = self.changes.of(pod).filter(|_| !is_preparing_delete(pod));
            match (change, self.view.desired.policy) {
                (Some(change), _) => match self.rolling.start(pod, &self.revisions.update, change) {
                    Ok(next) => self.add(pod, next, "its revision is outdated", plan),
                    Err(problem) => return plan.fail(Part::Update, problem),
                },
                (None, Some(Policy::InPlaceOnly)) if !is_preparing_delete(pod) => {
                    return self.cannot(pod, plan);
                }
                (None, _) => {
                    let as_seen = self.was_unavailable(pod, choices);
                    self.remove(pod, as_seen, "its revision is outdated", plan);
                }
            }
        }
    }

    fn cannot(&self, pod: &Pod, plan: &mut Plan) {
        let name = &pod.metadata.name;
        let problem = format!("find strategy is InPlaceOnly but Pod {name} can not update in-place");
        if !is_reported(&self.view.seen.set, &problem) {
            let told = event(&self.view.set, Level::Warning, "FailedUpdatePodInPlace", problem.clone());
            plan.add(Effect::Event(told), Purpose::Quiet(Part::Housekeeping), "podUpdatePolicy: InPlaceOnly");
        }
        plan.fail(Part::Update, problem);
    }

    fn add(&self, pod: &Pod, next: in_place::Next, why: &'static str, plan: &mut Plan) {
        next.wake_after.into_iter().for_each(|after| plan.wake(after));
        let Some((effect, write)) = next.write else { return };
        let pod = pod.metadata.name.clone();
        let purpose = match write {
            Write::Update(revision) => Purpose::UpdateInPlace { pod, revision },
            Write::Prepare(revision) => Purpose::PrepareInPlace { pod, revision },
            Write::TakeBack => Purpose::TakeBackInPlace(pod),
            Write::Settle => Purpose::Quiet(Part::Update),
        };
        plan.add(effect, purpose, why);
    }

    /// What the server refused stays a failure until it is accepted, and the pods are tried again.
    fn report_refusals(&self, outdated: &[&Pod], plan: &mut Plan) {
        let (refusals, target) = (&self.view.seen.refusals, self.revisions.update.name());
        if outdated.iter().any(|pod| refusals.of(target, &pod.metadata.name).is_some())
            && let Some(told) = refusals.told()
        {
            plan.fail(Part::Update, told);
        }
        let pauses =
            outdated.iter().filter_map(|pod| refusals.pause(target, &pod.metadata.name, self.view.now()));
        pauses.min().into_iter().for_each(|pause| plan.wake(pause));
    }
}
