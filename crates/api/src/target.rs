//! A reference to the one workload that an object is about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A workload in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetReference {
    /// The API version of the workload, such as `apps/v1`. Only the group counts.
    pub api_version: String,
    /// The kind of the workload, such as `Deployment`.
    pub kind: String,
    /// The name of the workload.
    pub name: String,
}
