//! The status: how far every subset is, and what could not be done.

use kruise_api::{
    labels::UNITED_DEPLOYMENT_RESERVED_POD,
    uniteddeployment::v1beta1::{Status, SubsetStatus},
};

use super::{
    Observed, Purpose, UnitedDeployment,
    allocation::Mode,
    reference,
    schedule::{SCHEDULABLE, UPDATED},
    view::{View, is_on},
};
use crate::{
    availability, conditions,
    effect::Effect,
    plan::{Failures, Plan},
    revision::Found,
    waiting::{self, Waits},
};

const PROVISIONED: &str = "SubsetProvisioned";
const WRITTEN: &str = "SubsetUpdated";
const FAILURE: &str = "SubsetFailure";
const ERROR: &str = "Error";
const IS_UPDATED: &str = "UnitedDeploymentRevisionUpdated";
const IS_UPDATING: &str = "UnitedDeploymentRevisionUpdating";

/// The numbers of a status, as a reconcile saw them; nothing of a spec that cannot be carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    counted: Option<Status>,
    /// How many names of revisions were taken, where a new one was found out.
    collisions: Option<i32>,
}

impl Standing {
    pub(super) fn new(view: &View<'_>) -> Self {
        Self { counted: Some(counted(view)), collisions: None }
    }

    /// While the revision of the template is written: only how many names were taken before it.
    pub(super) fn before(view: &View<'_>) -> Self {
        let known = view.status.collision_count.unwrap_or(0);
        let collisions = match &view.revisions.found {
            Found::Missing(new) => Some(new.collision_count).filter(|count| *count != known),
            _ => None,
        };
        Self { counted: None, collisions }
    }

    /// The status after the reconcile that saw this; nothing while there is nothing to say yet.
    pub fn status(
        &self,
        seen: &Observed,
        failures: &Failures,
        plan: &Plan<Purpose>,
        waits: &Waits,
    ) -> Option<Status> {
        let previous = seen.object.status.clone();
        let is_complete = self.counted.is_some();
        let mut status = match (&self.counted, previous) {
            (Some(status), _) => status.clone(),
            (None, Some(previous)) => previous,
            (None, None)
                if failures.update.is_none() && waits.main().is_none() && self.collisions.is_none() =>
            {
                return None;
            }
            (None, None) => Status::default(),
        };
        status.collision_count = self.collisions.or(status.collision_count);
        let all = &mut status.conditions;
        if is_complete {
            let (current, updated) =
                (&status.current_revision, status.updated_revision.clone().unwrap_or_default());
            let (state, reason, doing) = match *current == updated {
                true => ("True", IS_UPDATED, "updated"),
                false => ("False", IS_UPDATING, "updating"),
            };
            let message = format!("{doing} to revision {updated}");
            conditions::set(all, UPDATED, state, Some(reason), Some(&message), seen.now);
        }
        let provisions = plan.steps.iter().any(|step| step.purpose.provisions());
        let had_failed =
            conditions::get(all, PROVISIONED).is_some_and(|one| one.status.as_deref() == Some("False"));
        match &failures.scale {
            Some(problem) => conditions::set(all, PROVISIONED, "False", Some(ERROR), Some(problem), seen.now),
            None if is_complete && (provisions || had_failed) => {
                conditions::set(all, PROVISIONED, "True", None, None, seen.now);
            }
            None => {}
        }
        match &failures.update {
            Some(problem) => conditions::set(all, WRITTEN, "False", Some(ERROR), Some(problem), seen.now),
            None if is_complete && failures.scale.is_none() => {
                conditions::set(all, WRITTEN, "True", None, None, seen.now);
            }
            None => {}
        }
        conditions::remove(all, FAILURE);
        waiting::set_condition(all, waits, seen.now);
        if failures.update.is_some() {
            status.observed_generation = Some(seen.object.metadata.generation);
        }
        Some(status)
    }
}

/// The write that brings a status up to date, if one is needed.
pub fn status_write(object: &UnitedDeployment, status: &Status) -> Option<Effect> {
    conditions::status_write(&reference(object), object.status.as_ref(), status)
}

fn counted(view: &View<'_>) -> Status {
    let revision = view.revision();
    let mut status = Status {
        observed_generation: Some(view.seen.object.metadata.generation),
        updated_revision: Some(revision.to_owned()),
        current_revision: view.status.current_revision.clone(),
        collision_count: view.status.collision_count,
        label_selector: Some(selector(view)),
        conditions: view.status.conditions.clone(),
        subset_statuses: subsets(view),
        ..Status::default()
    };
    let (mut pods, mut ready, mut updated, mut updated_ready) = (0, 0, 0, 0);
    for child in view.workloads.values() {
        pods += child.pods;
        ready += child.ready;
        for pod in view.pods(child).into_iter().filter(|pod| is_on(pod, revision)) {
            updated += 1;
            updated_ready += i32::from(availability::is_ready(pod));
        }
    }
    let reserved: i32 = status.subset_statuses.iter().filter_map(|subset| subset.reserved_pods).sum();
    status.replicas = int(pods).saturating_sub(reserved).max(0);
    status.ready_replicas = Some(int(ready));
    status.updated_replicas = updated;
    status.updated_ready_replicas = Some(updated_ready);
    status.reserved_pods = (reserved > 0 || view.status.reserved_pods.is_some()).then_some(reserved);
    // Before the first pods there is nothing to update.
    if status.current_revision.is_empty() || updated_ready >= status.replicas {
        status.current_revision = revision.to_owned();
    }
    status
}

/// Autoscalers must not count pods that are kept while they wait.
fn selector(view: &View<'_>) -> String {
    let text = view.seen.object.spec.selector.text();
    match view.desired.mode {
        Mode::Reserving => format!("{text},{UNITED_DEPLOYMENT_RESERVED_POD}=false"),
        _ => text,
    }
}

fn subsets(view: &View<'_>) -> Vec<SubsetStatus> {
    let shares = view.shares().ok();
    let stored = |name: &str| {
        view.status.subset_statuses.iter().find(|one| one.name.as_deref() == Some(name)).cloned()
    };
    let some = |number: i64| (number != 0).then(|| int(number));
    let entry = |(index, subset): (usize, &kruise_api::uniteddeployment::v1beta1::Subset)| {
        let child = view.workload(&subset.name);
        let share = shares.and_then(|shares| shares.shares.get(index)).map(|share| share.replicas);
        let mark = shares.and_then(|shares| shares.marks.get(index));
        let replicas = share.or_else(|| child.map(|child| child.replicas)).unwrap_or(0);
        let mut conditions = stored(&subset.name).map(|entry| entry.conditions).unwrap_or_default();
        match mark.and_then(|mark| mark.condition.clone()) {
            Some(condition) => conditions::put(&mut conditions, condition),
            None => conditions::remove(&mut conditions, SCHEDULABLE),
        }
        SubsetStatus {
            name: Some(subset.name.clone()),
            replicas: some(replicas),
            ready_replicas: some(child.map_or(0, |child| child.ready)),
            partition: some(view.partition(&subset.name, replicas)),
            reserved_pods: some(mark.map_or(0, |mark| i64::try_from(mark.reserved.len()).unwrap_or(0))),
            conditions,
        }
    };
    let mut entries: Vec<SubsetStatus> = view.desired.subsets.iter().enumerate().map(entry).collect();
    // A subset that is not in the spec any more is shown until its workload is deleted.
    let leaving = view.surplus.iter().filter_map(|(child, _)| child.subset());
    for name in leaving.filter(|name| !view.desired.subsets.iter().any(|subset| subset.name == *name)) {
        let is_shown = entries.iter().any(|entry| entry.name.as_deref() == Some(name));
        entries.extend(stored(name).filter(|_| !is_shown));
    }
    entries
}

fn int(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
