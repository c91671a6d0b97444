//! Whether a pod serves: it is ready, and runs what its spec says.

use kruise_api::{annotations::SIDECARSET_INJECTED_LIST, labels::UNAVAILABLE_POD_PREFIX};

use crate::{
    in_place,
    pod::{Condition, Container, Pod},
    sidecarset,
};

/// Whether the pod counts as available, as far as the pod itself tells. Of one that cannot be read nobody knows.
pub fn is_available(pod: &Pod) -> bool {
    !pod.metadata.unreadable && pod.is_active() && is_ready(pod) && is_consistent(pod)
}

/// Whether somebody took the pod out of service by a label.
pub fn is_marked(pod: &Pod) -> bool {
    pod.metadata.labels.iter().any(|(key, _)| key.starts_with(UNAVAILABLE_POD_PREFIX))
}

/// Whether the pod takes traffic.
pub fn is_ready(pod: &Pod) -> bool {
    pod.status.phase == "Running"
        && pod.condition("Ready").is_some_and(Condition::is_true)
        && !pod.metadata.is_deleting()
        && !is_marked(pod)
}

/// Whether the pod runs what its spec says: images by digest, sidecars, and the update in place of its workload.
pub fn is_consistent(pod: &Pod) -> bool {
    let by_digest = || pod.spec.containers.iter().filter(|container| container.image.contains('@'));
    if !by_digest().all(|container| runs_digest(pod, container)) {
        return false;
    }
    if by_digest().count() == pod.spec.containers.len() {
        return true;
    }
    if pod.metadata.annotations.text(SIDECARSET_INJECTED_LIST).is_some_and(|list| !list.is_empty())
        && !sidecarset::control::is_settled(pod)
    {
        return false;
    }
    let options = in_place::Options { resize: true, ..in_place::Options::default() };
    in_place::completion(pod, &options, &in_place::OtherImages::new()).is_complete()
}

fn runs_digest(pod: &Pod, container: &Container) -> bool {
    let status = pod.status.container_statuses.iter().find(|status| status.name == container.name);
    status.is_some_and(|status| {
        let id = status.image_id.split_once("://").map_or(status.image_id.as_str(), |(_, id)| id);
        in_place::is_same_image(&container.image, id)
    })
}
