//! One webhook of a configuration, read once for each version of the configuration.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::call::Address;
use crate::admission::Operation;
use crate::admission::conditions::Conditions;
use crate::admission::scope::{self, Scope};
use crate::registry::Resource;
use crate::server::ApiServer;
use crate::store::Record;

/// One webhook.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) address: Option<Address>,
    pub(super) scope: Scope,
    /// Whether a call that fails counts as a yes.
    pub(super) ignores_failure: bool,
    pub(super) timeout: Duration,
    pub(super) side_effects: String,
    /// The first version of `AdmissionReview` in the hook's list that we speak.
    pub(super) review: Option<&'static str>,
    /// Whether it wants to see an object again that a later webhook changed.
    pub(super) reinvoked: bool,
    /// What else must hold for a request.
    pub(super) conditions: Conditions,
}

impl Hook {
    fn parse(webhook: &Value) -> Self {
        let text = |key: &str| webhook.get(key).and_then(Value::as_str).unwrap_or_default();
        let list =
            |key: &str| webhook.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let review = list("admissionReviewVersions").iter().find_map(|version| match version.as_str() {
            Some("v1") => Some("v1"),
            Some("v1beta1") => Some("v1beta1"),
            _ => None,
        });
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10);
        Self {
            name: text("name").to_owned(),
            address: webhook.get("clientConfig").and_then(Address::parse),
            scope: Scope::parse(webhook, "rules"),
            ignores_failure: text("failurePolicy") == "Ignore",
            timeout: Duration::from_secs(seconds),
            side_effects: text("sideEffects").to_owned(),
            review,
            reinvoked: text("reinvocationPolicy") == "IfNeeded",
            conditions: Conditions::compile(list("matchConditions"), false),
        }
    }
}

/// A webhook whose rules name a request, and the version in which it wants to see it.
#[derive(Clone, Debug)]
pub(super) struct Concerned {
    pub(super) hook: Arc<Hook>,
    pub(super) wanted: Arc<Resource>,
}

/// The webhooks of one kind of configuration, read again when a configuration changes.
pub(super) struct Hooks {
    table: &'static str,
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    from: Vec<Arc<Record>>,
    hooks: Vec<Arc<Hook>>,
    /// The edition of the registry that `matched` was made of.
    edition: u64,
    matched: Vec<Matched>,
}

/// Whom the rules name for requests of one sort. Most writes are of few sorts, and most of them concern nobody.
struct Matched {
    resource: Arc<Resource>,
    subresource: Option<Box<str>>,
    operation: Operation,
    concerned: Arc<[Concerned]>,
}

impl Hooks {
    pub(super) fn new(table: &'static str) -> Self {
        Self { table, read: Mutex::default() }
    }

    /// The webhooks whose rules name such a request, by the name of their configuration and then in its order.
    pub(super) fn concerned(
        &self,
        server: &ApiServer,
        operation: Operation,
        resource: &Arc<Resource>,
        subresource: Option<&str>,
    ) -> Arc<[Concerned]> {
        let (_, records) = server.store().list(self.table, None);
        let edition = server.registry().edition();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let same = read.from.len() == records.len()
            && read.from.iter().zip(&records).all(|(a, b)| Arc::ptr_eq(a, b));
        if !same {
            let mut hooks = Vec::new();
            for record in &records {
                let value = record.value();
                let list = value.get("webhooks").and_then(Value::as_array);
                hooks.extend(list.into_iter().flatten().map(|hook| Arc::new(Hook::parse(hook))));
            }
            *read = Read { from: records, hooks, edition, matched: Vec::new() };
        }
        if read.edition != edition {
            read.edition = edition;
            read.matched.clear();
        }
        let known = read.matched.iter().find(|known| {
            Arc::ptr_eq(&known.resource, resource)
                && known.operation == operation
                && known.subresource.as_deref() == subresource
        });
        if let Some(known) = known {
            return known.concerned.clone();
        }
        let find = |hook: &Arc<Hook>| {
            let Scope { rules, exact, .. } = &hook.scope;
            let registry = server.registry();
            let wanted = scope::by_rules(rules, *exact, registry, operation, resource, subresource, None)?;
            Some(Concerned { hook: hook.clone(), wanted })
        };
        let concerned: Arc<[Concerned]> = read.hooks.iter().filter_map(find).collect();
        read.matched.push(Matched {
            resource: resource.clone(),
            subresource: subresource.map(Into::into),
            operation,
            concerned: concerned.clone(),
        });
        concerned
    }
}
