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
