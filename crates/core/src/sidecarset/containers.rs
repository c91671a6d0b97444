//! The containers of a set, and what they are called in pods.

use kruise_api::sidecarset::{
    container::{SidecarContainer, UpgradeType},
    v1beta1::{SidecarSet, Spec},
};
use serde_json::Value;

/// One container of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sidecar<'a> {
    /// Its name in the set.
    pub name: &'a str,
    /// Its image in the set.
    pub image: &'a str,
    /// How a new image reaches pods that exist.
    pub upgrade: Upgrade<'a>,
    /// Whether it is an init container that keeps running. Such a one is never updated.
    pub is_native: bool,
}

/// How a new image reaches pods that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade<'a> {
    /// The container restarts.
    Cold,
    /// Two containers take turns.
    Hot {
        /// The image of the one that has nothing to do.
        empty_image: &'a str,
    },
}

impl<'a> Sidecar<'a> {
    /// Reads a container of a set.
    pub fn of(container: &'a SidecarContainer) -> Self {
        let text = |member: &str| container.container.get(member).and_then(Value::as_str).unwrap_or_default();
        let strategy = container.upgrade_strategy.as_ref();
        let is_hot = strategy.and_then(|one| one.upgrade_type.as_ref()) == Some(&UpgradeType::HotUpgrade);
        let empty_image = strategy.and_then(|one| one.hot_upgrade_empty_image.as_deref()).unwrap_or_default();
        Self {
            name: text("name"),
            image: text("image"),
            upgrade: if is_hot { Upgrade::Hot { empty_image } } else { Upgrade::Cold },
            is_native: text("restartPolicy") == "Always",
        }
    }

    /// Whether two containers take turns.
    pub fn is_hot(&self) -> bool {
        matches!(self.upgrade, Upgrade::Hot { .. })
    }

    /// What it is called in pods: its name, or the names of both twins.
    pub fn names_in_pods(&self) -> Vec<String> {
        if self.is_hot() { twins(self.name).into() } else { vec![self.name.to_owned()] }
    }
}

/// The containers of a set that are updated in place, in the order of the spec.
pub fn containers(set: &SidecarSet) -> impl Iterator<Item = Sidecar<'_>> {
    set.spec.containers.iter().map(Sidecar::of)
}

/// The init containers of a set, in the order of the spec.
pub fn init_containers(set: &SidecarSet) -> impl Iterator<Item = Sidecar<'_>> {
    set.spec.init_containers.iter().map(Sidecar::of)
}

/// The containers that take turns for a sidecar of this name.
pub fn twins(name: &str) -> [String; 2] {
    [format!("{name}-1"), format!("{name}-2")]
}

/// What `spec.containers` of a set are called in pods, in the order of the spec.
pub fn names_in_pods(set: &SidecarSet) -> Vec<String> {
    containers(set).flat_map(|sidecar| sidecar.names_in_pods()).collect()
}

/// The names that pods record for a set (`sidecarList`): native sidecars and containers as the set calls them, sorted.
pub fn recorded(set: &SidecarSet) -> Vec<String> {
    recorded_of(&set.spec)
}

pub(super) fn recorded_of(spec: &Spec) -> Vec<String> {
    let native = spec.init_containers.iter().map(Sidecar::of).filter(|sidecar| sidecar.is_native);
    let all = native.chain(spec.containers.iter().map(Sidecar::of));
    let mut names: Vec<String> = all.map(|sidecar| sidecar.name.to_owned()).collect();
    names.sort();
    names.dedup();
    names
}
