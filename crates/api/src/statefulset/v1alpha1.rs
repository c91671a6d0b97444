//! StatefulSet v1alpha1: the older form, without reserved numbers, hooks, scaling limits and care for claims.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::v1beta1::{PodManagementPolicy, RollingUpdate, UnorderedUpdate, UpdateStrategy};
use crate::{condition::Condition, names::APPS_GROUP, raw::Raw, selector::LabelSelector};

crate::kind! {
    /// Keeps numbered pods with storage of their own and updates them one by one, in parallel or in place.
    StatefulSet { group: APPS_GROUP, version: "v1alpha1", plural: "statefulsets", scope: Namespaced,
        spec: Spec, status: Status }
}

/// Which pods are wanted and how they are updated.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// How many pods are wanted. One unless given.
    pub replicas: Option<i32>,
    /// Chooses the pods that belong to this StatefulSet. It must match the labels of the template and never changes.
    pub selector: LabelSelector,
    /// The pod that is made. A change of it starts an update.
    pub template: Raw,
    /// Volume claims that each pod gets for itself and finds again after it was made anew.
    pub volume_claim_templates: Option<Raw>,
    /// The headless service that gives the pods their names in DNS. It never changes.
    pub service_name: Option<String>,
    /// OrderedReady makes pods one after the other and waits for each; Parallel does not wait. It never changes.
    /// OrderedReady unless given.
    pub pod_management_policy: Option<PodManagementPolicy>,
    /// How pods move to a new template.
    pub update_strategy: Option<UpdateStrategy>,
    /// How many old revisions are kept for going back. Ten unless given.
    pub revision_history_limit: Option<i32>,
}

/// What the controller last saw of the pods.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Pods that exist, ending ones included.
    pub replicas: i32,
    /// Pods that are ready.
    pub ready_replicas: i32,
    /// Pods that have been ready for minReadySeconds.
    pub available_replicas: i32,
    /// Pods on the revision from before the running update.
    pub current_replicas: i32,
    /// Pods on the newest revision.
    pub updated_replicas: i32,
    /// The revision that all pods had before the running update.
    pub current_revision: Option<String>,
    /// The newest revision.
    pub update_revision: Option<String>,
    /// How often the name of a revision was taken already. Part of the hash of revision names.
    pub collision_count: Option<i32>,
    /// Facts about making and updating pods, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The selector as text, for autoscalers.
    pub label_selector: Option<String>,
}
