//! The ConfigMap that containers wait for.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};

use crate::{
    pod::{Metadata, Pod, or_default},
    text::Text,
};

/// A barrier as it is stored. Only the keys matter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Barrier {
    /// Name, uid, owners.
    pub metadata: Metadata,
    /// The keys of `data`.
    #[serde(default, rename = "data", deserialize_with = "keys")]
    pub keys: BTreeSet<Text>,
}

impl Barrier {
    /// Whether it belongs to this pod and not to an earlier one of its name.
    pub fn is_of(&self, pod: &Pod) -> bool {
        self.metadata.owner_references.iter().any(|owner| owner.uid == pod.metadata.uid)
    }
}

fn keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<Text>, D::Error> {
    let data: std::collections::BTreeMap<Text, serde::de::IgnoredAny> = or_default(deserializer)?;
    Ok(data.into_keys().collect())
}
