//! Sets that would get in each other's way in a pod that both are about.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::{
    kubernetes::validation::Violation,
    sidecarset::v1beta1::{PatchPolicy, SidecarSet},
};
use serde_json::Value;

use super::{
    super::{
        compiled::name_of,
        containers::{Sidecar, containers, init_containers, twins},
        matching::{base_of, can_meet},
        name,
    },
    Violations,
};

pub(super) fn check(
    found: &mut Violations,
    set: &SidecarSet,
    stored: Option<&SidecarSet>,
    others: &[Arc<SidecarSet>],
) {
    let clashes: Vec<(Clash, Violation)> = others
        .iter()
        .flat_map(|other| {
            // What was let pass once stays: an older version of the rules saw fewer conflicts.
            let before = stored.map(|stored| between(stored, other)).unwrap_or_default();
            let mut clashes = between(set, other);
            clashes.retain(|clash| !before.contains(clash));
            clashes
        })
        .collect();
    // Grouped by what clashes, each thing told once with the first set that has it.
    for kind in [Kind::InitContainer, Kind::Container, Kind::Volume, Kind::Annotation] {
        let mut told = BTreeSet::new();
        for (clash, violation) in clashes.iter().filter(|(clash, _)| clash.kind == kind) {
            if told.insert(&clash.name) {
                found.push(violation.clone());
            }
        }
    }
}

/// What two sets both claim.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Clash {
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    InitContainer,
    Container,
    Volume,
    Annotation,
}

fn between(set: &SidecarSet, other: &SidecarSet) -> Vec<(Clash, Violation)> {
    let is_pair = |one: &SidecarSet, two: &SidecarSet| base_of(one) == Some(name(two));
    let is_itself = name(set) == name(other);
    if is_itself || is_pair(set, other) || is_pair(other, set) || !can_meet(&set.spec, &other.spec) {
        return Vec::new();
    }
    let mut clashes = Vec::new();
    let mut clash = |kind: Kind, path: &str, name: &str, detail: String| {
        let clash = Clash { kind, name: name.to_owned() };
        clashes.push((clash, Violation::invalid(path, name, detail)));
    };
    let theirs: BTreeSet<String> =
        init_containers(other).chain(containers(other)).flat_map(|one| claimed(&one)).collect();
    let own = [
        (Kind::InitContainer, init_containers(set).collect::<Vec<_>>()),
        (Kind::Container, containers(set).collect()),
    ];
    for (kind, sidecars) in own {
        for sidecar in sidecars.iter().filter(|one| claimed(one).iter().any(|name| theirs.contains(name))) {
            let detail = format!("container {} already exist in {}", sidecar.name, name(other));
            clash(kind, "spec.containers", sidecar.name, detail);
        }
    }
    for volume in volumes(set) {
        let Some(volume_name) = name_of(volume) else { continue };
        let same = volumes(other).iter().find(|theirs| name_of(theirs) == Some(volume_name));
        if same.is_some_and(|theirs| theirs != volume) {
            let detail = format!("volume {volume_name} is in conflict with sidecarset {}", name(other));
            clash(Kind::Volume, "spec.volumes", volume_name, detail);
        }
    }
    for (key, policy) in patches(set) {
        let overwrites = |policy: &PatchPolicy| *policy == PatchPolicy::Overwrite;
        let theirs = patches(other).find(|(theirs, _)| *theirs == key);
        if theirs.is_some_and(|(_, theirs)| overwrites(policy) || overwrites(theirs)) {
            let detail = format!("annotation {key} is in conflict with sidecarset {}", name(other));
            clash(Kind::Annotation, "spec.patchPodMetadata", key, detail);
        }
    }
    clashes
}

/// The names that nobody else may use: the one in the set, by which pods record it, and those in pods.
fn claimed(sidecar: &Sidecar<'_>) -> Vec<String> {
    let mut names = vec![sidecar.name.to_owned()];
    if sidecar.is_hot() {
        names.extend(twins(sidecar.name));
    }
    names
}

fn volumes(set: &SidecarSet) -> &[Value] {
    let volumes = set.spec.volumes.as_ref().and_then(|volumes| volumes.0.as_array());
    volumes.map_or(&[], Vec::as_slice)
}

/// The annotations that a set puts on pods whatever they have.
fn patches(set: &SidecarSet) -> impl Iterator<Item = (&str, &PatchPolicy)> {
    set.spec.patch_pod_metadata.iter().flat_map(|patch| {
        let policy = patch.patch_policy.as_ref().filter(|policy| **policy != PatchPolicy::Retain);
        policy.into_iter().flat_map(|policy| patch.annotations.keys().map(move |key| (key.as_str(), policy)))
    })
}
