//! A workload as far as others need to know it: who owns it, how many pods it wants, and which labels they have.

use kruise_api::{
    cloneset::v1beta1::CloneSet, int_or_percent::IntOrString, raw::Raw, selector::LabelSelector,
    statefulset::v1beta1::StatefulSet,
};
use serde::{Deserialize, Deserializer};

use crate::{
    cloneset::CLONE_SET,
    object::Resource,
    pod::{Metadata, Owner, Pairs, or_default},
    statefulset,
    text::{Pool, Text},
    uniteddeployment::UnitedDeployment,
};

/// Deployments.
pub const DEPLOYMENT: Resource = Resource::namespaced("apps", "v1", "Deployment", "deployments");
/// ReplicaSets.
pub const REPLICA_SET: Resource = Resource::namespaced("apps", "v1", "ReplicaSet", "replicasets");
/// StatefulSets of Kubernetes.
pub const STATEFUL_SET: Resource = Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets");
/// UnitedDeployments, in the version that is stored.
pub const UNITED_DEPLOYMENT: Resource =
    Resource::namespaced("apps.kruise.io", "v1beta1", "UnitedDeployment", "uniteddeployments");

/// The kinds of workloads whose objects are kept in caches.
pub const KNOWN: [Resource; 6] =
    [DEPLOYMENT, REPLICA_SET, STATEFUL_SET, CLONE_SET, statefulset::STATEFUL_SET, UNITED_DEPLOYMENT];

/// The kind among [`KNOWN`] of this group and name, in whatever version.
pub fn known(group: &str, kind: &str) -> Option<Resource> {
    KNOWN.into_iter().find(|resource| resource.group == group && resource.kind == kind)
}

/// A workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Workload {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// What is wanted.
    #[serde(deserialize_with = "or_default")]
    pub spec: Spec,
    /// What its controller says.
    #[serde(deserialize_with = "or_default")]
    pub status: Status,
}

/// What the controller of a workload says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The generation of the spec that it has acted on.
    pub observed_generation: Option<i64>,
    /// How many pods there are.
    pub replicas: i64,
    /// How many of them are ready.
    pub ready_replicas: i64,
}

/// How a workload updates its pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Strategy {
    /// The type.
    #[serde(rename = "type")]
    pub kind: Text,
    /// The settings of a rolling update.
    #[serde(deserialize_with = "or_default")]
    pub rolling_update: Rolling,
}

/// The settings of a rolling update.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rolling {
    /// How many pods stay on the old revision.
    pub partition: Option<IntOrString>,
    /// How many pods may be unavailable.
    pub max_unavailable: Option<IntOrString>,
}

/// What is wanted of a workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// How many pods; the server fills in 1 where the author says nothing.
    pub replicas: Option<i64>,
    /// The number of its first pod, where its pods have numbers.
    #[serde(rename = "ordinals", deserialize_with = "start")]
    pub start: i64,
    /// The labels of its pods.
    #[serde(rename = "template", deserialize_with = "template_labels")]
    pub pod_labels: Pairs,
    /// What chooses its pods.
    pub selector: Option<LabelSelector>,
    /// How it updates them.
    #[serde(alias = "strategy", deserialize_with = "or_default")]
    pub update_strategy: Strategy,
}

impl Workload {
    /// A CloneSet as a workload.
    pub fn of_clone_set(metadata: &Metadata, set: &CloneSet) -> Self {
        Self::of(metadata, set.spec.replicas, &set.spec.selector, &set.spec.template)
    }

    /// An Advanced StatefulSet as a workload.
    pub fn of_stateful_set(metadata: &Metadata, set: &StatefulSet) -> Self {
        Self::of(metadata, set.spec.replicas, &set.spec.selector, &set.spec.template)
    }

    fn of(metadata: &Metadata, replicas: Option<i32>, selector: &LabelSelector, template: &Raw) -> Self {
        let labels = template.at(&["metadata", "labels"]).and_then(serde_json::Value::as_object);
        let labels = labels.into_iter().flatten();
        let pod_labels = labels
            .filter_map(|(key, value)| Some((Text::from(key.as_str()), Text::from(value.as_str()?))))
            .collect();
        let selector = Some(selector.clone());
        let replicas = replicas.map(i64::from);
        let spec = Spec { replicas, pod_labels, selector, ..Spec::default() };
        Self { metadata: metadata.clone(), spec, status: Status::default() }
    }

    /// A UnitedDeployment as a workload.
    pub fn of_united_deployment(metadata: &Metadata, object: &UnitedDeployment) -> Self {
        Self::of(metadata, object.spec.replicas, &object.spec.selector, &Raw::default())
    }

    /// How many pods it wants.
    pub fn replicas(&self) -> i64 {
        self.spec.replicas.unwrap_or(1)
    }

    /// Makes equal texts one, over all workloads of a cache.
    pub fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }
}

/// Whether an owner is this object, in whatever version.
pub fn is_owner(owner: &Owner, group: &str, kind: &str, name: &str) -> bool {
    owner.group() == group && owner.kind == kind && owner.name == name
}

fn start<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Ordinals {
        #[serde(deserialize_with = "or_default")]
        start: i64,
    }
    Ok(Option::<Ordinals>::deserialize(deserializer)?.unwrap_or_default().start)
}

fn template_labels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Template {
        #[serde(deserialize_with = "or_default")]
        metadata: Labels,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Labels {
        #[serde(deserialize_with = "or_default")]
        labels: std::collections::BTreeMap<Text, Text>,
    }
    let template = Option::<Template>::deserialize(deserializer)?.unwrap_or_default();
    Ok(template.metadata.labels.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_budgets_need_of_any_kind() {
        let object = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
            "spec": {"replicas": 3, "ordinals": {"start": 10}, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}}});
        let workload: Workload = serde_json::from_value(object).unwrap();
        assert_eq!((workload.replicas(), workload.spec.pod_labels.text("app")), (3, Some("web")));
        let bare: Workload =
            serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": null})).unwrap();
        assert_eq!((workload.spec.start, bare.spec.start, bare.replicas()), (10, 0, 1));
    }

    #[test]
    fn a_kind_is_known_by_its_group_in_any_version() {
        assert_eq!(known("apps", "StatefulSet"), Some(STATEFUL_SET));
        assert_eq!(known("apps.kruise.io", "StatefulSet"), Some(statefulset::STATEFUL_SET));
        assert_eq!(known("batch", "Job"), None);
    }
}
