//! A node as rules see it.

use jiff::Timestamp;
use kruise_api::labels::{NODE_TYPE, VIRTUAL_KUBELET};
use serde::{Deserialize, Deserializer};

use crate::{
    pod::{Condition, Metadata, boxed},
    text::Pool,
};

/// A node: its labels, and since when it is ready.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Name, labels.
    pub metadata: Metadata,
    /// Since when it is ready; nothing while it is not. Read from `status`.
    #[serde(rename = "status", deserialize_with = "readiness")]
    pub ready_since: Option<Timestamp>,
}

impl Node {
    /// Whether it has no machine and so no daemon.
    pub fn is_virtual(&self) -> bool {
        self.metadata.labels.text(NODE_TYPE) == Some(VIRTUAL_KUBELET)
    }

    /// Whether a change of a node is one that NodeImages are about: most changes of nodes are not.
    pub fn differs(&self, other: &Self) -> bool {
        let facts = |node: &Self| (node.ready_since, node.metadata.is_deleting(), node.metadata.uid.clone());
        facts(self) != facts(other) || self.metadata.labels != other.metadata.labels
    }

    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }
}

fn readiness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        #[serde(deserialize_with = "boxed")]
        conditions: Box<[Condition]>,
    }
    let status = Option::<Status>::deserialize(deserializer)?.unwrap_or_default();
    let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready" && condition.is_true());
    Ok(ready.map(|condition| condition.last_transition_time.unwrap_or(Timestamp::UNIX_EPOCH)))
}
