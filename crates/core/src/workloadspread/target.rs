//! Which kinds of workloads can be spread, and what differs between them.

use crate::{
    cloneset::CLONE_SET,
    configuration::WorkloadWhiteList,
    object::{JOB, Resource},
    statefulset,
    workload::{self, DEPLOYMENT, REPLICA_SET},
};

/// The kinds that are known without configuration. A version never matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// CloneSet of OpenKruise.
    CloneSet,
    /// Deployment of Kubernetes.
    Deployment,
    /// ReplicaSet of Kubernetes.
    ReplicaSet,
    /// StatefulSet of Kubernetes.
    StatefulSet,
    /// StatefulSet of OpenKruise.
    AdvancedStatefulSet,
    /// Job of Kubernetes.
    Job,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::CloneSet,
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::AdvancedStatefulSet,
        Self::Job,
    ];

    /// The kind as the API addresses it.
    pub fn resource(self) -> Resource {
        match self {
            Self::CloneSet => CLONE_SET,
            Self::Deployment => DEPLOYMENT,
            Self::ReplicaSet => REPLICA_SET,
            Self::StatefulSet => workload::STATEFUL_SET,
            Self::AdvancedStatefulSet => statefulset::STATEFUL_SET,
            Self::Job => JOB,
        }
    }

    /// Whether the workload asks the deletion cost which pods go first.
    pub fn has_cost(self) -> bool {
        matches!(self, Self::CloneSet | Self::Deployment | Self::ReplicaSet)
    }

    /// Whether the ordinal of a pod alone says in which subset it is.
    pub fn is_by_ordinal(self) -> bool {
        matches!(self, Self::StatefulSet | Self::AdvancedStatefulSet)
    }

    /// Where the number of wanted pods stands.
    pub fn replicas_path(self) -> [&'static str; 2] {
        ["spec", if self == Self::Job { "parallelism" } else { "replicas" }]
    }
}

/// The known kind of this group and name.
pub fn family(group: &str, kind: &str) -> Option<Family> {
    Family::ALL.into_iter().find(|family| {
        let resource = family.resource();
        resource.group == group && resource.kind == kind
    })
}

/// Whether pods of a kind never belong to a workload above it: then nobody has to look further up.
pub fn has_pods_of_its_own(family: Option<Family>) -> bool {
    matches!(family, Some(family) if family != Family::Deployment)
}

/// How the white list knows a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// It may be spread.
    Target,
    /// It stands between a workload and its pods.
    Between,
}

/// How the white list knows a kind, if it does.
pub fn listed(list: &WorkloadWhiteList, group: &str, kind: &str) -> Option<Listed> {
    if list.find(group, kind).is_some() {
        return Some(Listed::Target);
    }
    let mut between = list.workloads.iter().flat_map(|workload| &workload.sub_resources);
    between.any(|one| one.group == group && one.kind == kind).then_some(Listed::Between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{SubResource, Workload};

    #[test]
    fn kinds_are_known_by_group_and_name() {
        assert_eq!(family("apps", "StatefulSet"), Some(Family::StatefulSet));
        assert_eq!(family("apps.kruise.io", "StatefulSet"), Some(Family::AdvancedStatefulSet));
        assert_eq!(family("batch", "Job"), Some(Family::Job));
        assert_eq!(family("apps", "DaemonSet"), None);
        assert_eq!(family("apps", "CloneSet"), None);
        let between = SubResource { group: "x.io".into(), kind: "Part".into(), ..SubResource::default() };
        let whole = Workload {
            group: "x.io".into(),
            kind: "Whole".into(),
            sub_resources: vec![between],
            ..Workload::default()
        };
        let list = WorkloadWhiteList { workloads: vec![whole] };
        assert_eq!(listed(&list, "x.io", "Whole"), Some(Listed::Target));
        assert_eq!(listed(&list, "x.io", "Part"), Some(Listed::Between));
        assert_eq!(listed(&list, "y.io", "Part"), None);
    }
}
