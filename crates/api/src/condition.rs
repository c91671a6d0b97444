//! One fact about an object, with the time and the reason of its last change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// One fact about a workload, with the time and the reason of its last change.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which fact this is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds: True, False or Unknown.
    pub status: String,
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
    /// A short word for why, made for programs.
    pub reason: Option<String>,
    /// Why, made for people.
    pub message: Option<String>,
}

/// One fact about a workload, with the times of its last change and its last confirmation.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressCondition {
    /// Which fact this is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds: True, False or Unknown.
    pub status: String,
    /// When the fact was last confirmed. Deadlines count from here.
    pub last_update_time: Option<Time>,
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
    /// A short word for why, made for programs.
    pub reason: Option<String>,
    /// Why, made for people.
    pub message: Option<String>,
}

/// One fact about an object, in the form that all newer Kubernetes kinds share.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StandardCondition {
    /// Which fact this is about.
    #[serde(rename = "type")]
    #[schemars(extend(
        "maxLength" = 316,
        "pattern" = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
    ))]
    pub kind: String,
    /// Whether it holds: True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// The generation of the object that this fact was seen for.
    #[schemars(extend("minimum" = 0))]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    pub last_transition_time: Time,
    /// A short word for why, made for programs. Never empty.
    #[schemars(extend(
        "minLength" = 1,
        "maxLength" = 1024,
        "pattern" = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
    ))]
    pub reason: String,
    /// Why, made for people. May be empty.
    #[schemars(extend("maxLength" = 32768))]
    pub message: String,
}
