//! Which subsets cannot take pods, and which pods are kept while they wait for a node.

use std::{collections::BTreeSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{condition::Condition, labels::UNITED_DEPLOYMENT_RESERVED_POD, time::Time};

use super::{
    Child,
    allocation::{Mode, Share, Subset, Workload},
    view::{View, is_on},
};
use crate::{availability, conditions, pod::Pod, text::Text};

/// The condition of a subset that says whether it takes pods.
pub(super) const SCHEDULABLE: &str = "Schedulable";
/// The condition of the object that says whether all pods are updated.
pub(super) const UPDATED: &str = "UnitedDeploymentUpdated";

const RESCHEDULE: &str = "reschedule";

/// What is known of a subset.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mark {
    /// The condition, if it has one.
    pub(super) condition: Option<Condition>,
    /// Since when the subset cannot take pods.
    pub(super) unschedulable: Option<Timestamp>,
    /// It was marked before this reconcile.
    pub(super) marked: bool,
    /// Pods that were not scheduled in time.
    pub(super) timed_out: usize,
    /// Pods that are kept while they wait.
    pub(super) reserved: BTreeSet<Text>,
    /// Pods that the workload has not made yet, of a subset that is known to be full: they begin as reserved ones.
    pub(super) missing: usize,
    /// Those of them that are ready, but on an older revision.
    pub(super) outdated: usize,
    /// When to look again.
    pub(super) wake: Option<Duration>,
}

impl Mark {
    fn wake_in(&mut self, after: SignedDuration) {
        let after = Duration::try_from(after.max(SignedDuration::ZERO)).unwrap_or_default();
        // Exactly at the end would be too early for facts that are written in whole seconds.
        let after = after + Duration::from_millis(10);
        self.wake = Some(self.wake.map_or(after, |known| known.min(after)));
    }

    /// Sets the condition. Its time changes with the status or the reason.
    fn set(&mut self, is_schedulable: bool, reason: &str, message: &str, now: Timestamp) {
        let status = if is_schedulable { "True" } else { "False" };
        let same = |one: &&Condition| one.status == status && one.reason.as_deref() == Some(reason);
        let since = self.condition.as_ref().filter(same).and_then(|one| one.last_transition_time);
        self.condition = Some(Condition {
            kind: SCHEDULABLE.to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(since.unwrap_or(Time(now))),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
        });
    }

    fn is_false(&self) -> bool {
        self.condition.as_ref().is_some_and(|one| one.status == "False")
    }

    fn since(&self) -> Option<Timestamp> {
        Some(self.condition.as_ref()?.last_transition_time?.0)
    }
}

/// Marks the subsets of the spec, in their order.
pub(super) fn marks(view: &View<'_>) -> Vec<Mark> {
    view.desired.subsets.iter().map(|subset| mark(view, &subset.name)).collect()
}

fn mark(view: &View<'_>, subset: &str) -> Mark {
    let stored = view.status.subset_statuses.iter().find(|one| one.name.as_deref() == Some(subset));
    let condition = stored.and_then(|one| conditions::get(&one.conditions, SCHEDULABLE)).cloned();
    let mut mark = Mark { condition, ..Mark::default() };
    mark.marked = mark.is_false();
    match (view.desired.mode, view.workload(subset)) {
        (Mode::Fixed, _) | (Mode::Adaptive, None) => {}
        (Mode::Adaptive, Some(child)) => reschedule(view, child, &mut mark),
        (Mode::Reserving, Some(child)) => reserve(view, child, subset, &mut mark),
        (Mode::Reserving, None) => {
            let is_added = stored.is_none() && !view.status.subset_statuses.is_empty();
            if is_added && !view.has_orphan(subset) {
                let message = "newly-created subsets in reservation strategy";
                mark.set(false, "created", message, view.seen.now);
            }
        }
    }
    mark
}

/// A subset whose pods are not scheduled in time gets no more for a while.
fn reschedule(view: &View<'_>, child: &Child, mark: &mut Mark) {
    let (now, retry) = (view.seen.now, signed(view.desired.retry));
    if let Some(since) = mark.since().filter(|_| mark.marked) {
        let left = retry.saturating_sub(now.duration_since(since));
        if left > SignedDuration::ZERO {
            mark.unschedulable = Some(since);
            mark.wake_in(left);
            return;
        }
        let seconds = view.desired.retry.as_secs();
        let message = format!("unschedulable subset recovered after {seconds}.000000 seconds");
        mark.set(true, "recover", &message, now);
    }
    if child.ready >= child.replicas {
        return;
    }
    for pod in view.pods(child) {
        match left_to_schedule(pod, view.desired.critical, now) {
            Some(left) if left > SignedDuration::ZERO => mark.wake_in(left),
            Some(_) => mark.timed_out += 1,
            None => {}
        }
    }
    if mark.timed_out > 0 {
        mark.set(false, RESCHEDULE, "timeout pending pods found", now);
        mark.unschedulable = mark.since();
        mark.wake_in(retry);
    }
}

/// How much time a pod has left that the scheduler cannot place; nothing for other pods.
fn left_to_schedule(pod: &Pod, critical: Duration, now: Timestamp) -> Option<SignedDuration> {
    let scheduled = pod.condition("PodScheduled")?;
    let waits = pod.status.phase == "Pending"
        && pod.spec.node_name.is_empty()
        && scheduled.status == "False"
        && scheduled.reason == "Unschedulable";
    let age = now.duration_since(pod.metadata.creation_timestamp.unwrap_or(now));
    waits.then(|| signed(critical).saturating_sub(age))
}

/// Pods that cannot be scheduled are kept; others run in their place until they can.
fn reserve(view: &View<'_>, child: &Child, subset: &str, mark: &mut Mark) {
    let now = view.seen.now;
    let replicas = child.replicas;
    // Pods that the author keeps on the old revision are no pods that an update does not reach.
    let mut kept = match child.kind {
        super::Kind::Deployment => 0,
        _ => view.partition(subset, replicas),
    };
    let pods = view.pods(child);
    if mark.marked {
        // While pods are replaced or made, the subset has not recovered, and stand-ins must not go.
        mark.missing = usize::try_from(replicas).unwrap_or(0).saturating_sub(pods.len());
    }
    for pod in pods {
        let is_updated = is_on(pod, view.revision());
        let is_ready = availability::is_ready(pod);
        let is_reserved = match pod.metadata.labels.text(UNITED_DEPLOYMENT_RESERVED_POD) {
            None if mark.marked => {
                mark.wake_in(signed(view.desired.retry));
                true
            }
            Some("true") if is_ready && is_updated => {
                let ready = availability::ready_for(pod, now).unwrap_or_default();
                let left = signed(view.desired.retry).saturating_sub(ready);
                if left >= SignedDuration::ZERO {
                    mark.wake_in(left);
                }
                left >= SignedDuration::ZERO
            }
            Some("true") => {
                mark.wake_in(signed(view.desired.retry));
                true
            }
            _ if is_updated => match left_to_schedule(pod, view.desired.critical, now) {
                Some(left) if left > SignedDuration::ZERO => {
                    mark.wake_in(left);
                    false
                }
                left => left.is_some(),
            },
            _ if is_ready && kept > 0 => {
                kept -= 1;
                false
            }
            _ => is_out_of_reach(view, mark),
        };
        if is_reserved {
            mark.reserved.insert(pod.metadata.name.clone());
            mark.outdated += usize::from(is_ready && !is_updated);
        }
    }
    if mark.reserved.is_empty() && mark.missing == 0 {
        mark.set(true, RESCHEDULE, "no reserved pods", now);
    } else {
        mark.set(false, RESCHEDULE, "reserved pods found", now);
        mark.unschedulable = mark.since();
    }
}

/// Whether an update has run for too long for a pod that is still on an older revision.
fn is_out_of_reach(view: &View<'_>, mark: &mut Mark) -> bool {
    let updated = conditions::get(&view.status.conditions, UPDATED);
    let since = updated.filter(|one| one.status.as_deref() == Some("False"));
    let Some(since) = since.and_then(|one| one.last_transition_time) else { return false };
    let left = signed(view.desired.critical).saturating_sub(view.seen.now.duration_since(since.0));
    if left >= SignedDuration::ZERO {
        mark.wake_in(left);
    }
    left < SignedDuration::ZERO
}

/// The subsets as the division sees them.
pub(super) fn subsets(view: &View<'_>, marks: &[Mark]) -> Vec<Subset> {
    let subset = |(subset, mark): (&kruise_api::uniteddeployment::v1beta1::Subset, &Mark)| {
        let workload = view.workload(&subset.name).map(|child| Workload {
            replicas: child.replicas,
            ready: child.ready,
            unschedulable: mark.unschedulable,
            reserved: i64::try_from(mark.reserved.len() + mark.missing).unwrap_or(i64::MAX),
            marked: mark.marked,
        });
        Subset {
            name: subset.name.clone(),
            replicas: subset.replicas.clone(),
            min: subset.min_replicas.clone(),
            max: subset.max_replicas.clone(),
            workload,
        }
    };
    view.desired.subsets.iter().zip(marks).map(subset).collect()
}

/// A subset that has just recovered and gets more pods is not trusted yet: its new pods begin as reserved ones, so that
/// stand-ins stay until they run.
pub(super) fn after(
    mut marks: Vec<Mark>,
    subsets: &[Subset],
    shares: &[Share],
    mode: Mode,
    now: Timestamp,
) -> Vec<Mark> {
    if mode != Mode::Reserving {
        return marks;
    }
    for ((mark, subset), share) in marks.iter_mut().zip(subsets).zip(shares) {
        let Some(workload) = &subset.workload else { continue };
        if mark.marked && mark.unschedulable.is_none() && share.replicas > workload.replicas {
            mark.set(false, RESCHEDULE, "subset just recovered scaled up", now);
        }
    }
    marks
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
