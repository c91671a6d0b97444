//! A node as rules see it.

use jiff::Timestamp;
use kruise_api::{
    kubernetes::quantity::Quantity,
    labels::{NODE_TYPE, VIRTUAL_KUBELET},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    pod::{Condition, Metadata, boxed, or_default},
    text::{Pool, Text},
};

/// A node: its labels, what keeps pods away from it, how much it can hold, and since when it is ready.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Name, labels.
    pub metadata: Metadata,
    /// What keeps pods away.
    #[serde(deserialize_with = "or_default")]
    pub spec: Spec,
    /// How it is.
    #[serde(deserialize_with = "or_default")]
    pub status: Status,
}

/// What keeps pods away from a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// Taints.
    #[serde(deserialize_with = "boxed")]
    pub taints: Box<[Taint]>,
    /// Whether it is cordoned.
    #[serde(deserialize_with = "or_default")]
    pub unschedulable: bool,
}

/// A mark that keeps pods away that do not tolerate it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// The key.
    pub key: Text,
    /// The value, if any.
    #[serde(deserialize_with = "or_default")]
    pub value: Text,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: Text,
}

/// How a node is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "Stored")]
pub struct Status {
    /// Since when it is ready; nothing while it is not.
    pub ready_since: Option<Timestamp>,
    /// Since when it is not ready; nothing while it is, or if it does not say.
    pub unready_since: Option<Timestamp>,
    /// How much all pods of the node together may request.
    pub allocatable: Allocatable,
}

/// The same as it is stored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored {
    #[serde(deserialize_with = "boxed")]
    conditions: Box<[Condition]>,
    allocatable: Allocatable,
}

impl From<Stored> for Status {
    fn from(stored: Stored) -> Self {
        let Stored { conditions, allocatable } = stored;
        let ready = conditions.iter().find(|condition| condition.r#type == "Ready");
        let since = |is_ready: bool| ready.filter(|ready| ready.is_true() == is_ready);
        let ready_since =
            since(true).map(|ready| ready.last_transition_time.unwrap_or(Timestamp::UNIX_EPOCH));
        let unready_since = since(false).and_then(|ready| ready.last_transition_time);
        Self { ready_since, unready_since, allocatable }
    }
}

/// Amounts in billionths by the name of the resource, sorted by name. An amount that cannot be read is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocatable(Box<[(Text, i128)]>);

impl Allocatable {
    /// The amount of a resource, in billionths.
    pub fn get(&self, resource: &str) -> Option<i128> {
        let found = self.0.binary_search_by(|(name, _)| name.as_str().cmp(resource)).ok()?;
        self.0.get(found).map(|(_, amount)| *amount)
    }
}

impl<'de> Deserialize<'de> for Allocatable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amounts = match Value::deserialize(deserializer)? {
            Value::Object(amounts) => amounts,
            _ => return Ok(Self::default()),
        };
        let read = amounts.iter();
        let read = read.filter_map(|(name, amount)| {
            Some((name.as_str().into(), Quantity::from_json(amount).ok()?.nanos()))
        });
        let mut read: Vec<(Text, i128)> = read.collect();
        read.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(Self(read.into_boxed_slice()))
    }
}

impl Node {
    /// Whether it has no machine and so no daemon.
    pub fn is_virtual(&self) -> bool {
        self.metadata.labels.text(NODE_TYPE) == Some(VIRTUAL_KUBELET)
    }

    /// Whether a change of a node is one that NodeImages are about: most changes of nodes are not.
    pub fn differs(&self, other: &Self) -> bool {
        let facts =
            |node: &Self| (node.status.ready_since, node.metadata.is_deleting(), node.metadata.uid.clone());
        facts(self) != facts(other) || self.metadata.labels != other.metadata.labels
    }

    /// Whether a change of a node can change which pods fit it: most changes of nodes, such as heartbeats, cannot.
    pub fn fits_otherwise(&self, other: &Self) -> bool {
        self.metadata.labels != other.metadata.labels
            || self.spec != other.spec
            || self.status.allocatable != other.status.allocatable
    }

    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        let Self { metadata, spec, status } = self;
        metadata.share(pool);
        for Taint { key, value, effect } in spec.taints.iter_mut() {
            [key, value, effect].into_iter().for_each(|text| pool.share(text));
        }
        for (name, _) in status.allocatable.0.iter_mut() {
            pool.share(name);
        }
    }
}
