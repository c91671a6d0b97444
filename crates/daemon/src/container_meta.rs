//! What the kubelet started, told in an annotation of the pod.
//!
//! The manager judges updates in place by it: the hash that the kubelet gave to each container, and the values that its
//! process got from labels and annotations. A container that runs with old values while its pod is updated in place is
//! [restarted](outdated).

mod meta;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kruise_api::{annotations, conditions::IN_PLACE_UPDATE_READY, names::APPS_GROUP};
use kruise_core::pod::{ContainerStatus, Pod};

pub use kruise_core::in_place::env_hash::{current, expected};
pub use meta::{Entry, Hashes, Meta};

use crate::cri::{self, Container};

/// Whether anybody needs to know what the kubelet started of this pod.
pub fn is_considered(pod: &Pod) -> bool {
    let controlled = pod.metadata.controller().is_some_and(|owner| owner.group() == APPS_GROUP);
    controlled || pod.metadata.annotations.contains(annotations::SIDECARSET_HASH)
}

/// Whether a change of a pod is worth a look. `with_env` is the gate InPlaceUpdateEnvFromMetadata.
pub fn is_worth_a_look(old: Option<&Pod>, new: &Pod, with_env: bool) -> bool {
    if !is_considered(new) || new.metadata.is_deleting() || new.status.container_statuses.is_empty() {
        return false;
    }
    let told = Meta::read(new);
    let Some(old) = old else {
        // At the start of the daemon: pods that were never told of are left alone until something happens to them.
        return told.is_some_and(|told| differs(new, &told, with_env));
    };
    if old.spec.containers.len() != new.spec.containers.len() {
        return true;
    }
    let Some(told) = told else {
        return new.status.container_statuses.iter().any(|status| !status.container_id.is_empty());
    };
    let env_changed = with_env
        && new.spec.containers.iter().any(|container| {
            let before = old.spec.containers.iter().find(|old| old.name == container.name);
            before.is_some_and(|before| expected(old, before) != expected(new, container))
        });
    env_changed || differs(new, &told, with_env)
}

/// Whether what is told is not what the status of the pod says.
fn differs(pod: &Pod, told: &Meta, with_env: bool) -> bool {
    let started = pod.status.container_statuses.iter().filter(|status| !status.container_id.is_empty());
    if started.clone().count() != told.containers.len() {
        return true;
    }
    started.into_iter().any(|status| {
        let Some(entry) = told.of(&status.name) else { return true };
        let expected =
            pod.spec.containers.iter().find(|one| one.name == status.name).map(|one| expected(pod, one));
        entry.container_id != status.container_id.as_str()
            || (with_env && expected.is_some_and(|expected| entry.hashes.env != expected))
    })
}

/// What there is to tell, and whom to ask for more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// One entry for each container, in the order of the status.
    pub meta: Meta,
    /// Ids, without the name of the runtime, of containers whose environment must be asked for, by their names.
    pub ask: BTreeMap<String, String>,
}

/// What there is to tell of a pod whose containers are these.
pub fn draft(pod: &Pod, containers: &[Container], with_env: bool) -> Draft {
    let told = Meta::read(pod).unwrap_or_default();
    let mut ask = BTreeMap::new();
    let mut entries = Vec::new();
    for status in &pod.status.container_statuses {
        let Some(spec) = pod.spec.containers.iter().find(|spec| spec.name == status.name) else { continue };
        let Some((runtime, container)) = instance(status, containers) else { continue };
        let container_id = format!("{runtime}://{}", container.id);
        let kept = told.of(&status.name).filter(|entry| entry.container_id == container_id).cloned();
        let mut entry = kept.unwrap_or_else(|| Entry {
            name: status.name.to_string(),
            container_id,
            restart_count: container.restart_count(),
            hashes: Hashes { plain: container.hash().unwrap_or(0), env: 0 },
        });
        if with_env && entry.hashes.env == 0 && container.state == cri::State::Running {
            match spec.env.from_metadata.is_empty() {
                true => entry.hashes.env = expected(pod, spec),
                false => {
                    ask.insert(entry.name.clone(), container.id.clone());
                }
            }
        }
        entries.push(entry);
    }
    Draft { meta: Meta { containers: entries }, ask }
}

/// The container that the status is about, or the newest of its name; with the name of its runtime.
fn instance<'a>(
    status: &'a ContainerStatus,
    containers: &'a [Container],
) -> Option<(&'a str, &'a Container)> {
    let (runtime, id) = cri::split_id(&status.container_id)?;
    let exact = containers.iter().find(|container| container.id == id);
    Some((runtime, exact.or_else(|| cri::newest(containers, &status.name))?))
}

impl Draft {
    /// Fills in the environment of a container.
    pub fn answer(&mut self, pod: &Pod, name: &str, environment: &BTreeMap<String, String>) {
        let spec = pod.spec.containers.iter().find(|spec| spec.name == *name);
        let entry = self.meta.containers.iter_mut().find(|entry| entry.name == name);
        if let (Some(spec), Some(entry)) = (spec, entry) {
            entry.hashes.env = current(spec, environment);
            self.ask.remove(name);
        }
    }

    /// Whether it says something new about the pod.
    pub fn is_news(&self, pod: &Pod) -> bool {
        !self.meta.containers.is_empty() && Meta::read(pod).as_ref() != Some(&self.meta)
    }
}

/// The containers of a pod that run with old values of labels and annotations and must be restarted.
pub fn outdated(pod: &Pod, meta: &Meta) -> Vec<Entry> {
    let is_updating =
        pod.condition(IN_PLACE_UPDATE_READY).is_some_and(|condition| condition.status == "False");
    if !is_updating || pod.metadata.is_deleting() {
        return Vec::new();
    }
    let is_outdated = |entry: &&Entry| {
        let spec = pod.spec.containers.iter().find(|spec| spec.name == entry.name.as_str());
        spec.is_some_and(|spec| entry.hashes.env > 0 && entry.hashes.env != expected(pod, spec))
    };
    meta.containers.iter().filter(is_outdated).cloned().collect()
}
