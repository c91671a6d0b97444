//! ResourceDistribution v1beta1, the hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{names::APPS_GROUP, raw::RawObject, selector::LabelSelector, time::Time};

crate::kind! {
    /// Keeps copies of one Secret or ConfigMap in many namespaces.
    ResourceDistribution { group: APPS_GROUP, version: "v1beta1", plural: "resourcedistributions", scope: Cluster,
        spec: Spec, status: Status }
}

/// What is copied, and where to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The whole Secret or ConfigMap that is copied. Its namespace is ignored; its kind and name never change.
    #[schemars(extend("x-kubernetes-embedded-resource" = true))]
    pub resource: RawObject,
    /// The namespaces that get a copy.
    pub targets: Targets,
}

/// Chooses namespaces: those that any rule adds, without the excluded ones. `kube-system` and `kube-public` are never
/// chosen.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Targets {
    /// Chooses all namespaces. Not chosen unless given.
    pub all_namespaces: Option<bool>,
    /// Namespaces that never get a copy, whatever the other rules say.
    pub excluded_namespaces: Option<Namespaces>,
    /// Namespaces that get a copy, by name.
    pub included_namespaces: Option<Namespaces>,
    /// Namespaces that get a copy, by their labels. An empty selector chooses none.
    pub namespace_selector: Option<LabelSelector>,
}

/// Namespaces by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespaces {
    /// The namespaces, in any order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<Namespace>,
}

/// One namespace.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    /// The name of the namespace.
    pub name: Option<String>,
}

/// How far the copies are.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Namespaces that should have a copy.
    pub desired: Option<i32>,
    /// Namespaces whose copy is up to date.
    pub succeeded: Option<i32>,
    /// Namespaces whose copy could not be written.
    pub failed: Option<i32>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// One entry for each way in which copying can fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<FailureCondition>,
}

/// Whether one step of copying failed, and where.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureCondition {
    /// Which step this is about, such as CreateResourceFailed.
    #[serde(rename = "type")]
    pub kind: String,
    /// True when the step failed in some namespace, False otherwise.
    pub status: String,
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
    /// Succeeded, or the text of the last error.
    pub reason: Option<String>,
    /// The namespaces in which the step failed, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_namespaces: Vec<String>,
}
