//! The spec after defaulting: selectors parsed, options decided, percentages kept until the number of nodes is known.

use jiff::SignedDuration;
use kruise_api::{
    annotations::DAEMONSET_TEMPLATE_GENERATION,
    daemonset::v1beta1::{DaemonSet, RollingUpdate, RollingUpdateType},
    gates::Gates,
    int_or_percent::{IntOrPercent, Rounding},
    lifecycle::Hook,
    rollout::UpdateType,
    selector::{LabelSelector, Matcher},
};
use serde_json::Value;

use super::placement::Placement;
use crate::{
    in_place,
    strategy::{self, InvalidNumber, resolve, share},
};

/// How many pods are made, deleted or updated at once unless the spec says something else.
const BURST: i64 = 250;
/// How many old revisions are kept unless the spec says something else.
const HISTORY: i32 = 10;

/// The spec after defaulting.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Which pods belong to the set.
    pub selector: LabelSelector,
    /// The same, for matching.
    pub matcher: Matcher,
    /// The pod template.
    pub template: Value,
    /// Which nodes fit the template.
    pub placement: Placement,
    /// How pods move to a new template; nothing when only deletions bring new pods.
    pub rolling: Option<Rolling>,
    /// How long a pod must be ready before it is available.
    pub min_ready: SignedDuration,
    /// How many pods are made, deleted or updated at once.
    pub burst: IntOrPercent,
    /// How many revisions stay that no pod uses.
    pub history_limit: usize,
    /// What holds a pod before it is deleted.
    pub pre_delete: Option<Hook>,
    /// The partition holds back new pods too.
    pub partitioned_scaling: bool,
    /// The generation of the template that an exported native DaemonSet carries.
    pub template_generation: Option<String>,
    /// How updates in place go.
    pub in_place: in_place::Options,
}

/// How a rolling update goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rolling {
    /// Pods are changed in place where the change allows it.
    pub in_place: bool,
    /// On how many nodes the pod may be unavailable.
    pub max_unavailable: IntOrPercent,
    /// On how many nodes a new pod may run beside the old one.
    pub max_surge: IntOrPercent,
    /// How many pods stay on the old revision.
    pub partition: IntOrPercent,
    /// The nodes whose pods are updated; all when absent.
    pub selector: Option<Matcher>,
    /// The update stops where it is.
    pub paused: bool,
}

/// The limits of the spec for a number of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many nodes should run a pod.
    pub desired: usize,
    /// On how many nodes the pod may be unavailable.
    pub max_unavailable: usize,
    /// On how many nodes a new pod may run beside the old one.
    pub max_surge: usize,
    /// How many pods stay on the old revision.
    pub partition: usize,
    /// How many pods are made, deleted or updated at once.
    pub burst: usize,
}

/// A stored spec that cannot be carried out. Someone has to edit it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A selector that selects nothing meaningful.
    #[error("spec.selector is invalid")]
    Selector(#[source] kruise_api::selector::Error),
    /// The node selector of the update.
    #[error("spec.updateStrategy.rollingUpdate.selector is invalid")]
    NodeSelector(#[source] kruise_api::selector::Error),
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
    /// Reads the spec. `resize_subresource` says whether the server has `pods/resize`.
    pub fn of(set: &DaemonSet, gates: &Gates, resize_subresource: bool) -> Result<Self, Error> {
        let spec = &set.spec;
        if spec.selector.is_empty() {
            return Err(Error::EmptySelector);
        }
        let matcher = spec.selector.matcher().map_err(Error::Selector)?;
        let template = template(&spec.template.0, &matcher)?;
        let strategy = spec.update_strategy.clone().unwrap_or_default();
        let rolling = match strategy.kind {
            Some(UpdateType::OnDelete) => None,
            _ => Some(Rolling::of(&strategy.rolling_update.unwrap_or_default())?),
        };
        let annotation = |key: &str| set.metadata.annotations.as_ref()?.get(key).cloned();
        Ok(Self {
            placement: Placement::of(&template),
            burst: share(spec.burst_replicas.as_ref(), BURST, "spec.burstReplicas")?,
            rolling,
            min_ready: strategy::seconds(spec.min_ready_seconds),
            history_limit: usize::try_from(spec.revision_history_limit.unwrap_or(HISTORY)).unwrap_or(0),
            pre_delete: spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_delete.clone()),
            partitioned_scaling: spec
                .scale_strategy
                .as_ref()
                .is_some_and(|scale| scale.partitioned_scaling == Some(true)),
            template_generation: annotation(DAEMONSET_TEMPLATE_GENERATION),
            in_place: strategy::in_place_options(gates, resize_subresource, None),
            selector: spec.selector.clone(),
            matcher,
            template,
        })
    }

    /// The limits when so many nodes should run a pod.
    pub fn limits(&self, desired: usize) -> Limits {
        let total = u32::try_from(desired).unwrap_or(u32::MAX);
        let of = |share, rounding| usize::try_from(resolve(share, total, rounding)).unwrap_or(0);
        // A share of few nodes must not be none at all: then no pod would ever be made.
        let burst = match self.burst {
            IntOrPercent::Percent(percent) if percent.of(u32::MAX, Rounding::Up) > 0 => {
                of(self.burst, Rounding::Down).max(1)
            }
            burst => of(burst, Rounding::Down),
        };
        let Some(rolling) = &self.rolling else {
            return Limits { desired, burst, ..Limits::default() };
        };
        let max_surge = of(rolling.max_surge, Rounding::Up);
        let max_unavailable = of(rolling.max_unavailable, Rounding::Up);
        let none = max_surge == 0 && max_unavailable == 0 && desired > 0;
        Limits {
            desired,
            max_unavailable: if none { 1 } else { max_unavailable },
            max_surge,
            partition: of(rolling.partition, Rounding::Down),
            burst,
        }
    }
}

impl Rolling {
    fn of(rolling: &RollingUpdate) -> Result<Self, Error> {
        let RollingUpdate { rolling_update_type, max_unavailable, max_surge, selector, partition, paused } =
            rolling;
        let path = |field| match field {
            "maxUnavailable" => "spec.updateStrategy.rollingUpdate.maxUnavailable",
            "maxSurge" => "spec.updateStrategy.rollingUpdate.maxSurge",
            _ => "spec.updateStrategy.rollingUpdate.partition",
        };
        // Only an object that passed no admission has neither.
        let is_bare = max_unavailable.is_none() && max_surge.is_none();
        Ok(Self {
            in_place: *rolling_update_type == Some(RollingUpdateType::InPlaceIfPossible),
            max_unavailable: share(max_unavailable.as_ref(), i64::from(is_bare), path("maxUnavailable"))?,
            max_surge: share(max_surge.as_ref(), 0, path("maxSurge"))?,
            partition: share(partition.as_ref(), 0, path("partition"))?,
            selector: selector
                .as_ref()
                .map(LabelSelector::matcher)
                .transpose()
                .map_err(Error::NodeSelector)?,
            paused: *paused == Some(true),
        })
    }
}

/// The template, whose pods must belong to the set.
fn template(stored: &Value, matcher: &Matcher) -> Result<Value, Error> {
    let template = strategy::template(stored).ok_or(Error::Template)?;
    let labels = template.pointer("/metadata/labels").and_then(Value::as_object);
    let label = |key: &str| labels?.get(key)?.as_str();
    if matcher.accepts(label) { Ok(template) } else { Err(Error::ForeignTemplate) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `desired unavailable surge partition burst` for so many nodes.
    #[track_caller]
    fn check(spec: Value, nodes: usize, expected: [usize; 4]) {
        let mut set = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": {"name": "agent"},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {"metadata": {"labels": {"app": "agent"}},
                    "spec": {"containers": [{"name": "main", "image": "app:v1"}]}},
            },
        });
        crate::patch_model::merge(&mut set["spec"], &spec);
        let set: DaemonSet = serde_json::from_value(set).unwrap();
        let limits = Desired::of(&set, &Gates::default(), true).unwrap().limits(nodes);
        let Limits { max_unavailable, max_surge, partition, burst, .. } = limits;
        assert_eq!([max_unavailable, max_surge, partition, burst], expected, "{spec} for {nodes} nodes");
    }

    fn rolling(rolling: Value) -> Value {
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})
    }

    /// DAEMONSET-14
    #[test]
    fn percentages_of_the_nodes_are_rounded_up_for_limits_and_down_for_the_partition() {
        check(json!({}), 4, [1, 0, 0, 250]);
        check(rolling(json!({"maxUnavailable": "30%", "partition": "30%"})), 4, [2, 0, 1, 250]);
        check(rolling(json!({"maxUnavailable": "100%"})), 4, [4, 0, 0, 250]);
        check(rolling(json!({"maxUnavailable": 0, "maxSurge": "10%"})), 4, [0, 1, 0, 250]);
        check(rolling(json!({"maxUnavailable": 0, "maxSurge": 0})), 4, [1, 0, 0, 250]);
        check(rolling(json!({"maxUnavailable": "10%", "maxSurge": 0})), 0, [0, 0, 0, 250]);
        check(
            json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxSurge": 3}}}),
            4,
            [0, 0, 0, 250],
        );
    }

    /// DAEMONSET-11
    #[test]
    fn a_burst_above_zero_percent_makes_at_least_one_pod() {
        check(json!({"burstReplicas": "1%"}), 3, [1, 0, 0, 1]);
        check(json!({"burstReplicas": "0%"}), 3, [1, 0, 0, 0]);
        check(json!({"burstReplicas": 0}), 3, [1, 0, 0, 0]);
        check(json!({"burstReplicas": "50%"}), 5, [1, 0, 0, 2]);
    }
}
