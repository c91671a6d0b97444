//! Which kinds of workloads are supported, and which workload an object is about.

use kruise_api::{
    names::APPS_GROUP, persistentpodstate::v1beta1::PersistentPodState, target::TargetReference,
};

use crate::{
    configuration::{self, Data, WorkloadWhiteList},
    pod::Owner,
    workload,
};

/// The kinds of workloads that are supported: StatefulSets of Kubernetes and of ours, and those of the white list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kinds {
    listed: WorkloadWhiteList,
    problem: Option<String>,
}

impl Kinds {
    /// Whether a kind is supported without being listed.
    pub fn is_built_in(group: &str, kind: &str) -> bool {
        kind == workload::STATEFUL_SET.kind && (group == workload::STATEFUL_SET.group || group == APPS_GROUP)
    }

    /// Reads the white list. One that cannot be read is empty.
    pub fn read(data: &Data) -> Self {
        match configuration::persistent_pod_state_workloads(data) {
            Ok(listed) => Self { listed, problem: None },
            Err(error) => Self { listed: WorkloadWhiteList::default(), problem: Some(error.to_string()) },
        }
    }

    /// Whether a kind is supported, in whatever version.
    pub fn supports(&self, group: &str, kind: &str) -> bool {
        Self::is_built_in(group, kind) || self.listed.find(group, kind).is_some()
    }

    /// The kinds of the white list that are not supported anyway.
    pub fn listed(&self) -> impl Iterator<Item = &configuration::Workload> {
        self.listed.workloads.iter().filter(|one| !Self::is_built_in(&one.group, &one.kind))
    }

    /// Why the white list cannot be read.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

/// A workload in the namespace of the object that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The name.
    pub name: &'a str,
}

impl<'a> Target<'a> {
    /// The workload that an object is about.
    pub fn of(state: &'a PersistentPodState) -> Self {
        Self::meant(&state.spec.target_ref)
    }

    /// The workload that a reference means. The version does not matter.
    pub fn meant(reference: &'a TargetReference) -> Self {
        let TargetReference { api_version, kind, name } = reference;
        Self { group: group(api_version), kind, name }
    }

    /// The workload that an owner reference means.
    pub fn owner(owner: &'a Owner) -> Self {
        Self { group: owner.group(), kind: &owner.kind, name: &owner.name }
    }
}

/// The group in an `apiVersion`; empty for the core group.
pub(super) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
