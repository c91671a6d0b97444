//! A volume claim as rules see it: the fields that decide something.

use kruise_api::kubernetes::quantity::Quantity;
use serde::Deserialize;

use crate::{
    pod::{Condition, Metadata, boxed, or_default},
    text::{Pool, Text},
};

/// A volume claim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeClaim {
    /// Name, labels, owners.
    pub metadata: Metadata,
    /// What is wanted.
    #[serde(deserialize_with = "or_default")]
    pub spec: Spec,
    /// What is.
    #[serde(deserialize_with = "or_default")]
    pub status: Status,
}

/// What is wanted of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// How the volume may be mounted.
    #[serde(deserialize_with = "boxed")]
    pub access_modes: Box<[Text]>,
    /// The storage class; nothing means the default one.
    pub storage_class_name: Option<Text>,
    /// How much is asked for.
    #[serde(deserialize_with = "or_default")]
    pub resources: Resources,
}

/// How much is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// At least.
    #[serde(deserialize_with = "or_default")]
    pub requests: Amount,
}

/// An amount of storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Amount {
    /// As it was written.
    pub storage: Option<Text>,
}

/// What a claim is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `Pending`, `Bound` or `Lost`.
    #[serde(deserialize_with = "or_default")]
    pub phase: Text,
    /// How large the volume is.
    #[serde(deserialize_with = "or_default")]
    pub capacity: Amount,
    /// The conditions.
    #[serde(deserialize_with = "boxed")]
    pub conditions: Box<[Condition]>,
}

impl Amount {
    /// The size in billionths of a byte; nothing where there is none or it is no quantity.
    pub fn size(&self) -> Option<i128> {
        Quantity::parse(self.storage.as_deref()?).ok().map(|quantity| quantity.nanos())
    }
}

impl VolumeClaim {
    /// Whether a condition is True.
    pub fn is(&self, condition: &str) -> bool {
        self.status.conditions.iter().any(|one| one.r#type == condition && one.is_true())
    }

    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        let Self { metadata, spec, status } = self;
        metadata.share(pool);
        let Spec { access_modes, storage_class_name, resources: Resources { requests } } = spec;
        access_modes
            .iter_mut()
            .chain(storage_class_name)
            .chain(&mut requests.storage)
            .for_each(|text| pool.share(text));
        let Status { phase, capacity, conditions } = status;
        pool.share(phase);
        capacity.storage.iter_mut().for_each(|text| pool.share(text));
        for Condition { r#type, status, reason, message, last_transition_time: _ } in conditions.iter_mut() {
            [r#type, status, reason, message].into_iter().for_each(|text| pool.share(text));
        }
    }
}

/// A storage class, as far as growing claims is concerned.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    /// Its name, and whether it is the default.
    pub metadata: Metadata,
    /// Whether claims can grow. Unset means no.
    pub allow_volume_expansion: Option<bool>,
}

impl StorageClass {
    /// Whether claims that name no class are of this one.
    pub fn is_default(&self) -> bool {
        self.metadata.annotations.text("storageclass.kubernetes.io/is-default-class") == Some("true")
    }

    /// Makes equal texts one.
    pub fn share(&mut self, pool: &mut Pool) {
        self.metadata.share(pool);
    }
}
