//! What a Lease says, and what the next one says.

use std::{borrow::Cow, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kruise_core::{object::Resource, time};
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::Settings;
use crate::{clock::micros_text, decode};

/// Leases.
pub(super) const LEASE: Resource = Resource::namespaced("coordination.k8s.io", "v1", "Lease", "leases");

/// A whole Lease, as JSON: nothing in it can keep us from reading it, and what we do not know of it stays when we write it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    meta: ObjectMeta,
    object: Value,
}

impl Stored {
    fn new(object: Value) -> Self {
        let text = |name: &str| {
            object
                .get("metadata")
                .and_then(|metadata| metadata.get(name))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let meta = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        Self { meta, object }
    }

    /// The version that it had when it was read.
    pub(super) fn version(&self) -> &str {
        self.meta.resource_version.as_deref().unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Stored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (object, _) = decode::tree(&decode::Raw::deserialize(deserializer)?.0);
        Ok(Self::new(object))
    }
}

impl Serialize for Stored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

impl kube::Resource for Stored {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        LEASE.kind.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        LEASE.group.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        LEASE.version.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        LEASE.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

/// What stands in a lease as a time, if a server takes it as one.
fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| time::saturating(text).is_some())
}

/// What a Lease says about its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) holder: String,
    pub(super) duration: Duration,
    acquired: Value,
    renewed: Value,
    transitions: i64,
}

impl Record {
    /// Reads a lease; what is missing or odd reads as nothing, as in client-go.
    pub(super) fn read(lease: &Stored) -> Self {
        let spec = lease.object.get("spec").unwrap_or(&Value::Null);
        let get = |name: &str| spec.get(name).cloned().unwrap_or_default();
        Self {
            holder: get("holderIdentity").as_str().unwrap_or_default().to_owned(),
            duration: Duration::from_secs(get("leaseDurationSeconds").as_u64().unwrap_or_default()),
            acquired: get("acquireTime"),
            renewed: get("renewTime"),
            transitions: get("leaseTransitions").as_i64().unwrap_or_default(),
        }
    }

    /// What the first holder writes.
    pub(super) fn first(settings: &Settings, now: Timestamp) -> Self {
        let now = Value::from(micros_text(now));
        Self {
            holder: settings.identity.clone(),
            duration: settings.lease,
            acquired: now.clone(),
            renewed: now,
            transitions: 0,
        }
    }

    /// What we write over this record: a renewal when it is ours, else a change of holders.
    pub(super) fn taken_by(&self, settings: &Settings, now: Timestamp) -> Self {
        let mut next = Self::first(settings, now);
        if self.holder == settings.identity {
            // What is no time cannot be written back: the server would refuse the whole renewal.
            if is_time(&self.acquired) {
                next.acquired = self.acquired.clone();
            }
            next.transitions = self.transitions;
        } else {
            next.transitions = self.transitions.saturating_add(1);
        }
        next
    }

    /// Nobody holds it, and nobody has to wait.
    pub(super) fn released(&self, now: Timestamp) -> Self {
        let now = Value::from(micros_text(now));
        Self {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired: now.clone(),
            renewed: now,
            transitions: self.transitions,
        }
    }

    pub(super) fn new_lease(&self, settings: &Settings) -> Stored {
        let lease = json!({
            "apiVersion": LEASE.api_version(), "kind": LEASE.kind, "metadata": {"name": settings.name},
        });
        self.onto(Stored::new(lease))
    }

    /// The lease with this record in it. Fields that we do not know stay.
    pub(super) fn onto(&self, mut lease: Stored) -> Stored {
        if let Some(members) =
            lease.object.as_object_mut().filter(|lease| !lease.get("spec").is_some_and(Value::is_object))
        {
            members.insert("spec".to_owned(), json!({}));
        }
        if let Some(spec) = lease.object.get_mut("spec").and_then(Value::as_object_mut) {
            let Self { holder, duration, acquired, renewed, transitions } = self;
            spec.insert("holderIdentity".to_owned(), json!(holder));
            // The server takes no lease of zero seconds.
            spec.insert("leaseDurationSeconds".to_owned(), json!(duration.as_secs().max(1)));
            spec.insert("acquireTime".to_owned(), acquired.clone());
            spec.insert("renewTime".to_owned(), renewed.clone());
            spec.insert("leaseTransitions".to_owned(), json!(transitions));
        }
        lease
    }
}
