//! PodUnavailableBudget v1alpha1: protected operations and the total are annotations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::v1beta1::{Status, TargetReference};
use crate::{int_or_percent::IntOrString, names::POLICY_GROUP, selector::LabelSelector};

crate::kind! {
    /// Limits how many pods of an application may be unavailable at the same time.
    PodUnavailableBudget { group: POLICY_GROUP, version: "v1alpha1", plural: "podunavailablebudgets",
        scope: Namespaced, spec: Spec, status: Status }
}

/// Which pods are protected, and how much.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Chooses the protected pods by their labels. Either this or `targetRef` is given.
    pub selector: Option<LabelSelector>,
    /// The workload whose pods are protected. Either this or `selector` is given.
    pub target_ref: Option<TargetReference>,
    /// How many pods may be unavailable at most: a number or a percentage. Either this or `minAvailable` is given.
    pub max_unavailable: Option<IntOrString>,
    /// How many pods stay available at least: a number or a percentage. Either this or `maxUnavailable` is given.
    pub min_available: Option<IntOrString>,
}
