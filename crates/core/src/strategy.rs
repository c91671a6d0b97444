//! What the update strategy of a workload means: limits as numbers, the policy, how updates in place work.

use std::time::Duration;

use jiff::SignedDuration;
use kruise_api::{
    gates::{Gate, Gates},
    int_or_percent::{self, IntOrPercent, IntOrString, Problem, Rounding},
    rollout::{InPlaceUpdateStrategy, PodUpdatePolicy},
};
use serde_json::Value;

use crate::in_place;

/// What happens to a pod that is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It is replaced.
    ReCreate,
    /// It is changed in place where that is possible, else replaced.
    InPlaceIfPossible,
    /// It is changed in place or stays.
    InPlaceOnly,
}

impl From<Option<&PodUpdatePolicy>> for Policy {
    fn from(policy: Option<&PodUpdatePolicy>) -> Self {
        match policy {
            Some(PodUpdatePolicy::InPlaceIfPossible) => Self::InPlaceIfPossible,
            Some(PodUpdatePolicy::InPlaceOnly) => Self::InPlaceOnly,
            None | Some(PodUpdatePolicy::ReCreate | PodUpdatePolicy::Other(_)) => Self::ReCreate,
        }
    }
}

/// A number in a stored spec that is none. Someone has to edit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is invalid")]
pub struct InvalidNumber {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub source: int_or_percent::Error,
}

/// A number or percentage of a spec, or its default. One below zero counts as zero: the API accepts a percentage below zero
/// where it rounds to zero.
pub fn share(
    value: Option<&IntOrString>,
    default: impl Into<IntOrString>,
    field: &'static str,
) -> Result<IntOrPercent, InvalidNumber> {
    match value.cloned().unwrap_or_else(|| default.into()).parse() {
        Err(error) if error.problem == Problem::Negative => Ok(IntOrPercent::Int(0)),
        parsed => parsed.map_err(|source| InvalidNumber { field, source }),
    }
}

/// A number or percentage as the spec spells it.
pub fn spelled(value: Option<&IntOrString>, default: &str) -> String {
    match value {
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(text)) => text.clone(),
        None => default.to_owned(),
    }
}

/// A share of the replicas, never below zero.
pub fn resolve(share: IntOrPercent, replicas: u32, rounding: Rounding) -> i64 {
    share.of(replicas, rounding).max(0)
}

/// Seconds of a spec. Absent or negative is zero.
pub fn seconds(number: Option<i32>) -> SignedDuration {
    SignedDuration::from_secs(i64::from(number.unwrap_or(0)).max(0))
}

/// How updates in place work for a workload.
pub fn in_place_options(
    gates: &Gates,
    resize_subresource: bool,
    strategy: Option<&InPlaceUpdateStrategy>,
) -> in_place::Options {
    let grace = strategy.and_then(|strategy| strategy.grace_period_seconds).unwrap_or(0);
    in_place::Options {
        env_from_metadata: gates.enabled(Gate::InPlaceUpdateEnvFromMetadata),
        resize: gates.enabled(Gate::InPlaceWorkloadVerticalScaling),
        resize_subresource,
        fixed_annotation: None,
        grace: Duration::from_secs(u64::try_from(grace).unwrap_or(0)),
    }
}

/// The pod template of a stored spec, without `$patch`. Nothing if it has no containers.
pub fn template(raw: &Value) -> Option<Value> {
    let mut template = raw.clone();
    template.as_object_mut()?.remove("$patch");
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    containers.is_some_and(|containers| !containers.is_empty()).then_some(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_below_zero_are_zero_and_texts_are_errors() {
        let of =
            |text: &str| share(Some(&text.into()), 0, "spec.x").map(|share| resolve(share, 10, Rounding::Up));
        assert_eq!(of("25%"), Ok(3));
        assert_eq!(of("-5%"), Ok(0));
        assert_eq!(of("many").unwrap_err().to_string(), "spec.x is invalid");
        assert_eq!(share(None, "20%", "spec.x").map(|share| resolve(share, 10, Rounding::Down)), Ok(2));
    }
}
