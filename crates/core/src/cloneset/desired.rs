//! The spec after defaulting: shares resolved, options decided.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use kruise_api::{
    annotations::CLONESET_VOLUME_CLAIM_TEMPLATE_HASH,
    cloneset::v1beta1::RollingUpdate,
    gates::Gate,
    int_or_percent::Rounding,
    lifecycle::Lifecycle,
    rollout::{InPlaceUpdateStrategy, UpdateType},
    selector::{LabelSelector, Matcher},
};
use serde_json::Value;

use super::Observed;
use crate::{
    in_place,
    strategy::{self, InvalidNumber, Policy, resolve, seconds, share, spelled, template},
    text::Text,
    update_order::Strategy,
};

/// How many pods may be unavailable unless the spec says something else.
const MAX_UNAVAILABLE: &str = "20%";
/// A deadline that means none.
const NO_DEADLINE: i32 = i32::MAX;

/// The spec after defaulting.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// How many pods.
    pub replicas: i64,
    /// How many of them stay on the old revision.
    pub partition: i64,
    /// How many more there may be during an update; none while it is paused.
    pub max_surge: i64,
    /// How many may be unavailable during an update.
    pub max_unavailable: i64,
    /// Limits as the spec spells them, for people.
    pub spelled: Spelled,
    /// How many may be unavailable while pods are added.
    pub scale_max_unavailable: i64,
    /// What happens to a pod that is updated; nothing when only deletions bring new pods.
    pub policy: Option<Policy>,
    /// Updates wait.
    pub paused: bool,
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
    /// The hooks.
    pub lifecycle: Option<Lifecycle>,
    /// How many revisions stay that nobody uses.
    pub history_limit: usize,
    /// A new pod takes the claims of one that is gone.
    pub reuse_claims: bool,
    /// Pods that wait for their deletion are not counted.
    pub exclude_preparing_delete: bool,
    /// Pods to delete, by name.
    pub pods_to_delete: BTreeSet<Text>,
    /// Which pods are updated first.
    pub order: Strategy,
    /// How updates in place go.
    pub in_place: in_place::Options,
    /// Over which kinds of places the template spreads its pods.
    pub topology_keys: Vec<String>,
    /// How long an update may take before it is reported.
    pub progress_deadline: Option<SignedDuration>,
}

/// Limits as the spec spells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelled {
    /// `spec.updateStrategy.rollingUpdate.partition`.
    pub partition: String,
    /// `spec.updateStrategy.rollingUpdate.maxUnavailable`.
    pub max_unavailable: String,
    /// `spec.scaleStrategy.maxUnavailable`.
    pub scale_max_unavailable: String,
}

/// A stored spec that cannot be carried out. Someone has to edit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A selector that selects nothing meaningful.
    #[error("spec.selector is invalid")]
    Selector(#[source] kruise_api::selector::Error),
    /// A selector in the priorities.
    #[error("spec.updateStrategy.rollingUpdate.priorityStrategy has an invalid selector")]
    Priority(#[source] kruise_api::selector::Error),
    /// An empty selector would take every pod of the namespace.
    #[error("spec.selector is empty")]
    EmptySelector,
    /// A number that is none.
    #[error(transparent)]
    Number(#[from] InvalidNumber),
    /// A template without a pod.
    #[error("spec.template is no pod template")]
    Template,
    /// A template whose pods would not belong to the set.
    #[error("spec.selector does not match the labels of spec.template")]
    ForeignTemplate,
}

impl Desired {
    /// Reads the spec.
    pub fn of(seen: &Observed) -> Result<Self, Error> {
        let spec = &seen.set.spec;
        let replicas = u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        let strategy = spec.update_strategy.clone().unwrap_or_default();
        let rolling = strategy.rolling_update.unwrap_or_default();
        let scale = spec.scale_strategy.clone().unwrap_or_default();
        let on_delete = strategy.kind == Some(UpdateType::OnDelete);
        let paused = rolling.paused == Some(true);
        let RollingUpdate { partition, max_surge, max_unavailable, .. } = &rolling;
        let spelled = Spelled {
            partition: spelled(partition.as_ref(), "0"),
            max_unavailable: spelled(max_unavailable.as_ref(), MAX_UNAVAILABLE),
            scale_max_unavailable: spelled(scale.max_unavailable.as_ref(), "none"),
        };
        let partition = share(partition.as_ref(), 0, "spec.updateStrategy.rollingUpdate.partition")?;
        let max_surge = share(max_surge.as_ref(), 0, "spec.updateStrategy.rollingUpdate.maxSurge")?;
        let max_unavailable = share(
            max_unavailable.as_ref(),
            MAX_UNAVAILABLE,
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
        )?;
        let scale_max_unavailable =
            share(scale.max_unavailable.as_ref(), i64::from(i32::MAX), "spec.scaleStrategy.maxUnavailable")?;
        let surge = if paused { 0 } else { resolve(max_surge, replicas, Rounding::Up) };
        let unavailable_rounding = if surge == 0 { Rounding::Up } else { Rounding::Down };

        if spec.selector.is_empty() {
            return Err(Error::EmptySelector);
        }
        let matcher = spec.selector.matcher().map_err(Error::Selector)?;
        let template = template(&spec.template.0).ok_or(Error::Template)?;
        let labels =
            template.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
        let labels =
            labels.into_iter().filter_map(|(key, value)| Some((key, value.as_str()?.to_owned()))).collect();
        if !matcher.matches(&labels) {
            return Err(Error::ForeignTemplate);
        }
        let constraints = template.pointer("/spec/topologySpreadConstraints").and_then(Value::as_array);
        let topology_keys = constraints
            .into_iter()
            .flatten()
            .filter_map(|constraint| Some(constraint.get("topologyKey")?.as_str()?.to_owned()))
            .collect();
        let policy = Policy::from(rolling.pod_update_policy.as_ref());
        let claims = spec.volume_claim_templates.as_ref().and_then(|claims| claims.0.as_array().cloned());
        Ok(Self {
            replicas: i64::from(replicas),
            partition: i64::from(partition.kept_by_partition(replicas)),
            max_surge: surge,
            spelled,
            max_unavailable: resolve(max_unavailable, replicas, unavailable_rounding),
            scale_max_unavailable: resolve(scale_max_unavailable, replicas, Rounding::Up),
            policy: (!on_delete).then_some(policy),
            paused,
            min_ready: seconds(spec.min_ready_seconds),
            selector: spec.selector.clone(),
            matcher,
            template,
            claims: claims.unwrap_or_default(),
            lifecycle: spec.lifecycle.clone(),
            history_limit: usize::try_from(spec.revision_history_limit.unwrap_or(10)).unwrap_or(0),
            reuse_claims: scale.enable_pvc_reuse == Some(true),
            exclude_preparing_delete: seen.exclude_preparing_delete
                || scale.exclude_preparing_delete == Some(true),
            pods_to_delete: scale.pods_to_delete.iter().map(|name| Text::from(name.as_str())).collect(),
            order: Strategy::new(rolling.priority_strategy.as_ref(), &rolling.scatter_strategy)
                .map_err(Error::Priority)?,
            in_place: in_place_options(seen, policy, rolling.in_place_update_strategy.as_ref()),
            topology_keys,
            progress_deadline: spec
                .progress_deadline_seconds
                .filter(|deadline| *deadline != NO_DEADLINE)
                .map(|deadline| seconds(Some(deadline))),
        })
    }
}

fn in_place_options(
    seen: &Observed,
    policy: Policy,
    strategy: Option<&InPlaceUpdateStrategy>,
) -> in_place::Options {
    let heeds_claims = seen.gates.enabled(Gate::RecreatePodWhenChangeVCTInCloneSetGate);
    in_place::Options {
        fixed_annotation: (heeds_claims && policy != Policy::InPlaceOnly)
            .then_some(CLONESET_VOLUME_CLAIM_TEMPLATE_HASH),
        ..strategy::in_place_options(&seen.gates, seen.resize_subresource, strategy)
    }
}
