//! The spec after defaulting: shares resolved, options decided.

use jiff::SignedDuration;
use kruise_api::{
    gates::{Gate, Gates},
    int_or_percent::{IntOrString, Rounding},
    lifecycle::Lifecycle,
    rollout::UpdateType,
    selector::{LabelSelector, Matcher},
    statefulset::v1beta1::{ClaimRetention, PodManagementPolicy, StatefulSet, VolumeClaimUpdateType},
};
use serde_json::Value;

use super::{
    Observed,
    ordinals::{self, Ordinals},
};
use crate::{
    in_place,
    strategy::{self, InvalidNumber, Policy, in_place_options},
    update_order::Strategy,
};

/// The spec after defaulting.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// How many pods.
    pub replicas: i64,
    /// Their ordinals.
    pub ordinals: Ordinals,
    /// Whether pods wait for each other when they are created and deleted.
    pub ordered: bool,
    /// How many pods stay on the old revision.
    pub partition: i64,
    /// How many may be unavailable during an update, at least one.
    pub max_unavailable: i64,
    /// The same as the spec spells it.
    pub max_unavailable_text: String,
    /// How many may be unavailable while pods are created; nothing means any number.
    pub scale_max_unavailable: Option<i64>,
    /// The same as the spec spells it.
    pub scale_max_unavailable_text: String,
    /// What happens to a pod that is updated; nothing when only deletions bring new pods.
    pub policy: Option<Policy>,
    /// Updates wait.
    pub paused: bool,
    /// The order of an update that does not go by ordinal.
    pub unordered: Option<Strategy>,
    /// How long a pod must be ready before it is available.
    pub min_ready: SignedDuration,
    /// Which pods belong to the set.
    pub selector: LabelSelector,
    /// The same, for matching.
    pub matcher: Matcher,
    /// The pod template.
    pub template: Value,
    /// The volume claim templates.
    pub claims: Vec<Value>,
    /// Who owns claims, so that they are deleted with their owner.
    pub retention: Retention,
    /// Claims grow with their templates.
    pub expands: bool,
    /// The headless service that gives the pods their names in DNS.
    pub service: String,
    /// The hooks.
    pub lifecycle: Option<Lifecycle>,
    /// How many revisions stay that nobody uses.
    pub history_limit: usize,
    /// How updates in place go.
    pub in_place: in_place::Options,
}

/// Which claims are deleted with their owner. Nothing is written to claims while the feature is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Whether owners of claims are managed at all.
    pub is_managed: bool,
    /// All claims are deleted with the set.
    pub delete_with_set: bool,
    /// The claims of a pod that is removed by scaling are deleted with it.
    pub delete_with_pod: bool,
}

/// A stored spec that cannot be carried out. Someone has to edit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A selector that selects nothing meaningful.
    #[error("spec.selector")]
    Selector(#[source] kruise_api::selector::Error),
    /// An empty selector would take every pod of the namespace.
    #[error("spec.selector: it is empty")]
    EmptySelector,
    /// A selector in the priorities.
    #[error("spec.updateStrategy.rollingUpdate.unorderedUpdate.priorityStrategy")]
    Priority(#[source] kruise_api::selector::Error),
    /// A number that is none.
    #[error(transparent)]
    Number(InvalidNumber),
    /// A reserved ordinal that is none.
    #[error("spec.reserveOrdinals: entry {index} {problem}")]
    Ordinal {
        /// Which entry.
        index: usize,
        /// What is wrong with it.
        problem: ordinals::Error,
    },
    /// A template without a pod.
    #[error("spec.template: it has no containers")]
    Template,
    /// A template whose pods would not belong to the set.
    #[error("spec.selector: it does not match the labels of spec.template")]
    ForeignTemplate,
}

impl Desired {
    /// Reads the spec.
    pub fn of(seen: &Observed) -> Result<Self, Error> {
        let spec = &seen.set.spec;
        let gate = |gate| seen.gates.enabled(gate);
        let replicas = u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        let update = spec.update_strategy.clone().unwrap_or_default();
        let on_delete = update.kind == Some(UpdateType::OnDelete);
        let rolling = update.rolling_update.unwrap_or_default();
        let scale = spec.scale_strategy.clone().unwrap_or_default();
        let max_unavailable = rolling.max_unavailable.clone().unwrap_or(1.into());
        let unordered = rolling.unordered_update.as_ref();
        let unordered = unordered.map(|unordered| Strategy::new(unordered.priority_strategy.as_ref(), &[]));

        if spec.selector.is_empty() {
            return Err(Error::EmptySelector);
        }
        let matcher = spec.selector.matcher().map_err(Error::Selector)?;
        let template = template(&spec.template.0, &matcher)?;
        let policy = Policy::from(rolling.pod_update_policy.as_ref());
        let claims = spec.volume_claim_templates.as_ref().and_then(|claims| claims.0.as_array().cloned());
        let retention = spec.persistent_volume_claim_retention_policy.clone().unwrap_or_default();
        let is_delete = |retention: Option<ClaimRetention>| retention == Some(ClaimRetention::Delete);
        let resize = spec.volume_claim_update_strategy.as_ref().and_then(|strategy| strategy.kind.clone());
        Ok(Self {
            replicas: i64::from(replicas),
            ordinals: ordinals_of(&seen.set, &seen.gates)?,
            ordered: spec.pod_management_policy != Some(PodManagementPolicy::Parallel),
            partition: i64::from(rolling.partition.unwrap_or(0)).clamp(0, i64::from(replicas)),
            max_unavailable: at_least_one(
                &max_unavailable,
                replicas,
                "spec.updateStrategy.rollingUpdate.maxUnavailable",
            )?,
            max_unavailable_text: max_unavailable.to_string(),
            scale_max_unavailable: scale
                .max_unavailable
                .as_ref()
                .map(|value| at_least_one(value, replicas, "spec.scaleStrategy.maxUnavailable"))
                .transpose()?,
            scale_max_unavailable_text: scale
                .max_unavailable
                .map(|value| value.to_string())
                .unwrap_or_default(),
            policy: (!on_delete).then_some(policy),
            paused: rolling.paused == Some(true),
            unordered: unordered.transpose().map_err(Error::Priority)?.filter(|_| !on_delete),
            min_ready: strategy::seconds(rolling.min_ready_seconds),
            selector: spec.selector.clone(),
            matcher,
            template,
            claims: claims.unwrap_or_default(),
            retention: Retention {
                is_managed: gate(Gate::StatefulSetAutoDeletePVC),
                delete_with_set: is_delete(retention.when_deleted),
                delete_with_pod: is_delete(retention.when_scaled),
            },
            expands: gate(Gate::StatefulSetAutoResizePVCGate)
                && resize == Some(VolumeClaimUpdateType::OnPodRollingUpdate),
            service: spec.service_name.clone().unwrap_or_default(),
            lifecycle: spec.lifecycle.clone(),
            history_limit: usize::try_from(spec.revision_history_limit.unwrap_or(10)).unwrap_or(0),
            in_place: in_place_options(
                &seen.gates,
                seen.resize_subresource,
                rolling.in_place_update_strategy.as_ref(),
            ),
        })
    }
}

/// The ordinals of a set.
pub fn ordinals_of(set: &StatefulSet, gates: &Gates) -> Result<Ordinals, Error> {
    let spec = &set.spec;
    let replicas = u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start);
    let start = start.filter(|_| gates.enabled(Gate::StatefulSetStartOrdinal)).unwrap_or(0);
    let entries = spec.reserve_ordinals.iter().enumerate();
    let intervals = entries
        .map(|(index, entry)| ordinals::reserved(entry).map_err(|problem| Error::Ordinal { index, problem }))
        .collect::<Result<_, _>>()?;
    Ok(Ordinals::new(i64::from(start).max(0), intervals, i64::from(replicas)))
}

/// A share of the replicas, rounded down, at least one.
fn at_least_one(value: &IntOrString, replicas: u32, field: &'static str) -> Result<i64, Error> {
    let share = strategy::share(Some(value), 1, field).map_err(Error::Number)?;
    Ok(strategy::resolve(share, replicas, Rounding::Down).max(1))
}

fn template(raw: &Value, matcher: &Matcher) -> Result<Value, Error> {
    let template = strategy::template(raw).ok_or(Error::Template)?;
    let labels = template.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    if matcher.matches(&labels) { Ok(template) } else { Err(Error::ForeignTemplate) }
}
