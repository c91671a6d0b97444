//! How an update moves through the pods of a workload: order, spreading, in-place options.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{int_or_percent::IntOrString, selector::LabelSelector};

open_enum! {
    /// Who moves pods to a new template.
    pub enum UpdateType {
        /// The controller.
        RollingUpdate = "RollingUpdate",
        /// Whoever deletes the old pods.
        OnDelete = "OnDelete",
    }
}

open_enum! {
    /// What happens to a pod that is updated.
    pub enum PodUpdatePolicy {
        /// It is deleted and made again.
        ReCreate = "ReCreate",
        /// It is changed in place if the change allows that, and made again otherwise.
        InPlaceIfPossible = "InPlaceIfPossible",
        /// It is changed in place; other changes of the template are refused.
        InPlaceOnly = "InPlaceOnly",
    }
}

/// Which pods are updated first. Only one of the two lists may be given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriorityStrategy {
    /// Terms that give matching pods a weight. The pods with the largest sum go first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weight_priority: Vec<WeightTerm>,
    /// Label keys whose values, compared by the number at their end, order the pods. Larger numbers go first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order_priority: Vec<OrderTerm>,
}

/// Gives a weight to the pods that a selector chooses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WeightTerm {
    /// Added to the weight of each matching pod. Between 1 and 100.
    pub weight: i32,
    /// The pods that get this weight.
    pub match_selector: LabelSelector,
}

/// Orders pods by the value of one label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderTerm {
    /// The label key. Pods without this label go last.
    pub ordered_key: String,
}

/// Pods with this label and value are spread evenly over the whole update, never all at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScatterTerm {
    /// The label key.
    pub key: String,
    /// The label value.
    pub value: String,
}

/// Options for updates that change a pod without recreating it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdateStrategy {
    /// Seconds between making a pod not ready and changing its containers, so that traffic can move away first.
    pub grace_period_seconds: Option<i32>,
    /// On how many nodes the new images are pulled at once before the update reaches them. A whole number.
    pub image_pre_download_parallelism: Option<IntOrString>,
    /// Seconds after which one pull of a new image counts as failed.
    pub image_pre_download_timeout_seconds: Option<i32>,
    /// Pulling ahead starts when this many pods are updated and ready.
    pub image_pre_download_min_updated_ready_pods: Option<i32>,
}
