//! The pods of a set, sorted and judged once for a pass.

use std::collections::BTreeMap;

use kruise_api::{
    annotations::{
        SIDECARSET_HASH, SIDECARSET_HASH_WITHOUT_IMAGE, SIDECARSET_INJECTED_LIST,
        SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER,
    },
    labels::NAMESPACE_NAME,
};

use super::{Desired, Observed, hot, state};
use crate::{
    availability::is_running_and_ready,
    object::{ObjectKey, ObjectRef},
    pod::{Container, Pod},
    sidecarset::record::{self, Entry},
    update_order::by_name,
};

/// What a pass works with: the spec, and the pods it is about.
pub(super) struct View<'a> {
    pub(super) seen: &'a Observed,
    pub(super) desired: &'a Desired<'a>,
    pub(super) set: ObjectRef,
    /// The pods under control, by namespace and name.
    pub(super) pods: Vec<Member<'a>>,
}

/// A pod under control, and what was found about it.
pub(super) struct Member<'a> {
    pub(super) pod: &'a Pod,
    /// What it records about the set.
    pub(super) entry: Option<Entry>,
    /// Which twin works, by sidecar.
    pub(super) working: BTreeMap<String, String>,
    /// What ran before the last update of the set; nothing when that cannot be read.
    pub(super) state: Option<state::State>,
    /// Whether it was ever updated by the set.
    pub(super) was_updated: bool,
    /// Whether it has the sidecars that the set has now.
    pub(super) is_updated: bool,
    /// Whether only images differ from what the set has now.
    pub(super) is_upgradable: bool,
    /// Whether its sidecars run what its spec says.
    pub(super) is_consistent: bool,
    /// Whether it serves, and no hot upgrade is under way.
    pub(super) is_ready: bool,
}

impl<'a> View<'a> {
    pub(super) fn new(seen: &'a Observed, desired: &'a Desired<'a>) -> Self {
        let mut pods: Vec<&Pod> = seen.pods.iter().map(AsRef::as_ref).collect();
        pods.sort_by(|left, right| by_name(left, right));
        let pods = pods.into_iter().filter_map(|pod| Member::of(pod, seen, desired)).collect();
        Self { seen, desired, set: crate::sidecarset::reference(&seen.set), pods }
    }

    /// The pods alone.
    pub(super) fn all(&self) -> Vec<&'a Pod> {
        self.pods.iter().map(|member| member.pod).collect()
    }
}

impl<'a> Member<'a> {
    /// The pod, if it is under control.
    fn of(pod: &'a Pod, seen: &Observed, desired: &Desired<'_>) -> Option<Self> {
        let working = pod.metadata.annotations.text(SIDECARSET_WORKING_HOT_UPGRADE_CONTAINER);
        let working = working.map(record::working).unwrap_or_default();
        if !pod.is_active() || !is_meant(pod, seen, desired) || !has_sidecars(pod, desired, &working) {
            return None;
        }
        let entry = recorded(pod, SIDECARSET_HASH, desired.name);
        let without_image = recorded(pod, SIDECARSET_HASH_WITHOUT_IMAGE, desired.name);
        let mut states = state::read(pod);
        let was_updated = states.as_ref().is_some_and(|states| states.contains_key(desired.name));
        let state = states.as_mut().map(|states| states.remove(desired.name).unwrap_or_default());
        let mut member = Self {
            is_updated: entry.as_ref().is_some_and(|entry| entry.hash == desired.hashes.full),
            is_upgradable: without_image.is_some_and(|entry| entry.hash == desired.hashes.without_image),
            pod,
            entry,
            working,
            state,
            was_updated,
            is_consistent: false,
            is_ready: false,
        };
        let names: Vec<&str> = desired.names.iter().map(String::as_str).collect();
        member.is_consistent = member.runs(&names);
        member.is_ready =
            !pod.metadata.unreadable && is_running_and_ready(pod) && !hot::is_under_way(&member, desired);
        Some(member)
    }

    pub(super) fn container(&self, name: &str) -> Option<&'a Container> {
        self.pod.spec.containers.iter().find(|container| container.name == name)
    }

    pub(super) fn image(&self, name: &str) -> &'a str {
        self.container(name).map(|container| container.image.as_str()).unwrap_or_default()
    }

    /// Whether containers run what the spec of the pod says.
    pub(super) fn runs(&self, names: &[&str]) -> bool {
        state::is_consistent(self.pod, self.state.as_ref(), names)
    }

    pub(super) fn is_container_ready(&self, name: &str) -> bool {
        state::status(self.pod, name).is_some_and(|status| status.ready)
    }

    /// Whether a container is ready, and that with the image of the spec.
    pub(super) fn is_healthy(&self, name: &str) -> bool {
        self.is_container_ready(name) && self.runs(&[name])
    }

    /// Whether no earlier update is still on its way: a container that is ready has the image of the spec. One that is not
    /// ready may always be mended.
    pub(super) fn is_settled(&self, desired: &Desired<'_>) -> bool {
        desired.names.iter().all(|name| !self.is_container_ready(name) || self.runs(&[name.as_str()]))
    }

    /// Whether a container that the set updated has not come back since.
    pub(super) fn is_down_by_update(&self) -> bool {
        let mut updated = self.state.iter().flat_map(|state| state.last_container_statuses.keys());
        updated.any(|name| self.container(name).is_some() && !self.is_container_ready(name))
    }

    pub(super) fn key(&self) -> ObjectKey {
        self.pod.metadata.key()
    }
}

/// Whether the set is about the pod, and was injected into it.
fn is_meant(pod: &Pod, seen: &Observed, desired: &Desired<'_>) -> bool {
    let namespace = &pod.metadata.namespace;
    let labels = seen.namespaces.get(namespace);
    // Every namespace carries its name; more is not known of one that was not found.
    let label = |key: &str| match labels {
        Some(labels) => labels.text(key),
        None => (key == NAMESPACE_NAME).then_some(namespace.as_str()),
    };
    let list = pod.metadata.annotations.text(SIDECARSET_INJECTED_LIST).unwrap_or_default();
    record::injected(list).any(|name| name == desired.name)
        && desired.matching.selects(|key| pod.metadata.labels.text(key))
        && desired.matching.covers(label)
}

/// Whether all containers of the set are in the pod.
fn has_sidecars(pod: &Pod, desired: &Desired<'_>, working: &BTreeMap<String, String>) -> bool {
    let is_there =
        |name: &String| pod.spec.containers.iter().any(|container| container.name == name.as_str());
    desired.names.iter().all(is_there)
        && desired.sidecars.iter().all(|sidecar| !sidecar.is_hot() || working.contains_key(sidecar.name))
}

/// What a pod records about a set. An annotation that cannot be read says nothing.
fn recorded(pod: &Pod, annotation: &str, set: &str) -> Option<Entry> {
    record::read(pod.metadata.annotations.text(annotation)?).ok()?.remove(set)
}
