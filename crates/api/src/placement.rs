//! Where pods may run: terms about nodes, and the taints that a pod accepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Chooses nodes. Everything stated must hold; a term that states nothing chooses no node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct NodeSelectorTerm {
    /// Demands on the labels of a node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<NodeRequirement>,
    /// Demands on the fields of a node, such as `metadata.name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_fields: Vec<NodeRequirement>,
}

/// One demand on one label or field of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRequirement {
    /// The label or field that is looked at.
    pub key: String,
    /// How it is compared: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: String,
    /// The values to compare with. Empty for `Exists` and `DoesNotExist`, one number for `Gt` and `Lt`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

/// A wish about nodes: the scheduler adds the weight to the score of every node that the term chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferredNodes {
    /// The nodes that are preferred.
    pub preference: NodeSelectorTerm,
    /// How much the wish counts. Between 1 and 100.
    pub weight: i32,
}

/// A taint of nodes that the pods accept.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The key of the taint. Without a key and with operator `Exists`, every taint is accepted.
    pub key: Option<String>,
    /// How the value is compared: `Equal` or `Exists`. `Equal` unless given.
    pub operator: Option<String>,
    /// The value of the taint, for operator `Equal`.
    pub value: Option<String>,
    /// The effect that is accepted: `NoSchedule`, `PreferNoSchedule` or `NoExecute`. All of them unless given.
    pub effect: Option<String>,
    /// Seconds that a pod stays after a `NoExecute` taint appears. For ever unless given.
    pub toleration_seconds: Option<i64>,
}
