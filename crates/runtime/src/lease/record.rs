//! What a Lease says, and what the next one says.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DynamicObject, ObjectMeta, TypeMeta};
use serde_json::{Value, json};

use super::Settings;
use crate::clock::micros_text;

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
    pub(super) fn read(lease: &DynamicObject) -> Self {
        let spec = lease.data.get("spec").unwrap_or(&Value::Null);
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
            next.acquired = self.acquired.clone();
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

    pub(super) fn new_lease(&self, settings: &Settings) -> DynamicObject {
        let types = TypeMeta { api_version: "coordination.k8s.io/v1".to_owned(), kind: "Lease".to_owned() };
        let metadata = ObjectMeta { name: Some(settings.name.clone()), ..ObjectMeta::default() };
        self.onto(DynamicObject { types: Some(types), metadata, data: json!({}) })
    }

    /// The lease with this record in it. Fields that we do not know stay.
    pub(super) fn onto(&self, mut lease: DynamicObject) -> DynamicObject {
        if !lease.data.get("spec").is_some_and(Value::is_object) {
            lease.data = json!({"spec": {}});
        }
        if let Some(spec) = lease.data.get_mut("spec").and_then(Value::as_object_mut) {
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
