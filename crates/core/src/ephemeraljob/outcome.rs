//! The pods of a job, and how far each of them is.

use std::collections::BTreeSet;

use kruise_api::ephemeraljob::v1alpha1::EphemeralJob;
use serde_json::Value;

use super::Observed;
use crate::pod::{ContainerStatus, Pod};

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It has not got the containers.
    Untouched,
    /// It has them, and none of them runs yet.
    Waiting,
    /// One of them runs.
    Running,
    /// All of them ended well.
    Succeeded,
    /// One of them did not.
    Failed,
}

/// A pod of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) pod: &'a Pod,
    pub(super) outcome: Outcome,
}

/// The containers of the template.
pub(super) fn template(job: &EphemeralJob) -> &[Value] {
    job.spec.template.ephemeral_containers.0.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The pods that the job works on, oldest first: those that have its containers, and others up to the number that is wanted.
pub(super) fn targets(seen: &Observed) -> Vec<Target<'_>> {
    let job = seen.job.as_ref();
    let selector = &job.spec.selector;
    let Some(matcher) = selector.matcher().ok().filter(|_| !selector.is_empty()) else { return Vec::new() };
    let names: BTreeSet<&str> =
        template(job).iter().filter_map(|container| container.get("name")?.as_str()).collect();
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    let mut found: Vec<Target<'_>> = seen
        .pods
        .iter()
        .map(AsRef::as_ref)
        .filter(|pod: &&Pod| {
            pod.metadata.namespace == *namespace
                && pod.is_active()
                && matcher.accepts(|key| pod.metadata.labels.text(key))
        })
        .map(|pod| Target { pod, outcome: outcome(pod, uid) })
        // A name can be given once in a pod, so such a pod can never get the containers.
        .filter(|target| target.outcome != Outcome::Untouched || !has_one_of(target.pod, &names))
        .collect();
    found.sort_by_key(|target| (target.pod.metadata.creation_timestamp, target.pod.metadata.name.clone()));
    let served = found.iter().filter(|target| target.outcome != Outcome::Untouched).count();
    let wanted = job.spec.replicas.map_or(usize::MAX, |replicas| usize::try_from(replicas).unwrap_or(0));
    let mut room = wanted.saturating_sub(served);
    found.retain(|target| {
        target.outcome != Outcome::Untouched || {
            let fits = room > 0;
            room = room.saturating_sub(1);
            fits
        }
    });
    found
}

fn has_one_of(pod: &Pod, names: &BTreeSet<&str>) -> bool {
    pod.spec.ephemeral_containers.iter().any(|container| names.contains(container.name.as_str()))
}

fn outcome(pod: &Pod, job: &str) -> Outcome {
    let own = pod.spec.ephemeral_containers.iter().filter(|container| container.job == *job);
    let statuses = &pod.status.ephemeral_container_statuses;
    let states: Vec<Outcome> = own
        .map(|container| {
            statuses.iter().find(|status| status.name == container.name).map_or(Outcome::Waiting, of_one)
        })
        .collect();
    let any = |wanted: Outcome| states.contains(&wanted);
    match () {
        () if states.is_empty() => Outcome::Untouched,
        () if any(Outcome::Failed) => Outcome::Failed,
        () if any(Outcome::Running) => Outcome::Running,
        () if any(Outcome::Waiting) => Outcome::Waiting,
        () => Outcome::Succeeded,
    }
}

/// How far one container is. Images that cannot be pulled may come yet, until the deadline of the job.
fn of_one(status: &ContainerStatus) -> Outcome {
    let state = &status.state;
    match (&state.terminated, &state.running, &state.waiting) {
        (Some(end), ..) if end.exit_code == 0 => Outcome::Succeeded,
        (Some(_), ..) => Outcome::Failed,
        (None, Some(_), _) => Outcome::Running,
        (None, None, Some(waiting))
            if matches!(waiting.reason.as_str(), "RunContainerError" | "CreateContainerError") =>
        {
            Outcome::Failed
        }
        (None, None, _) => Outcome::Waiting,
    }
}
