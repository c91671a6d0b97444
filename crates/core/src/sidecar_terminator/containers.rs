//! Which containers are main ones, which are sidecars, and what has ended.

use crate::pod::{Container, ContainerStatus, Pod, Terminated, Termination};

/// Whether something may have to be done for a pod: its main containers are done, and a sidecar is not.
pub fn is_interesting(pod: &Pod) -> bool {
    let policy = pod.spec.restart_policy.as_str();
    !pod.metadata.is_deleting()
        && pod.status.phase != "Pending"
        && matches!(policy, "Never" | "OnFailure")
        && main(pod).next().is_some()
        && main(pod).all(|container| {
            terminated(pod, container).is_some_and(|end| policy == "Never" || end.exit_code == 0)
        })
        && sidecars(pod).any(|(container, _)| terminated(pod, container).is_none())
}

/// The containers that do the work.
pub(super) fn main(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.containers.iter().filter(|container| termination(container).is_none())
}

/// The containers that are ended when the work is done.
pub(super) fn sidecars(pod: &Pod) -> impl Iterator<Item = (&Container, &Termination)> {
    pod.spec.containers.iter().filter_map(|container| Some((container, termination(container)?)))
}

/// To leave exit codes out alone marks nothing.
fn termination(container: &Container) -> Option<&Termination> {
    container.env.termination.as_deref().filter(|marks| marks.kill || !marks.image.is_empty())
}

pub(super) fn status<'a>(pod: &'a Pod, container: &Container) -> Option<&'a ContainerStatus> {
    pod.status.container_statuses.iter().find(|status| status.name == container.name)
}

/// How a container ended, if it did. A pod that does not tell of all its containers tells of none.
pub(super) fn terminated<'a>(pod: &'a Pod, container: &Container) -> Option<&'a Terminated> {
    if pod.status.container_statuses.len() != pod.spec.containers.len() {
        return None;
    }
    status(pod, container)?.state.terminated.as_ref()
}
