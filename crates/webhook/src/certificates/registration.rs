//! How API servers learn where the webhooks are and whom to trust: webhook configurations and conversion of CRDs.

use std::collections::BTreeSet;

use kruise_api::{annotations::WEBHOOK_TEMPLATE, names};
use serde_json::{Map, Value, json};

use super::Environment;
use super::bundle::{self, Authority};
use crate::service::CONVERT;

/// The port of the Service unless the configuration says another.
const SERVICE_PORT: u64 = 443;

/// The two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Webhooks that change objects.
    Mutating,
    /// Webhooks that refuse objects.
    Validating,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Mutating, Self::Validating];

    /// The kind of the object.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// The name in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        }
    }

    /// The name of our object.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutating => names::MUTATING_WEBHOOK_CONFIGURATION,
            Self::Validating => names::VALIDATING_WEBHOOK_CONFIGURATION,
        }
    }

    /// What people are told when the object is missing.
    pub fn missing(self) -> String {
        format!("not found {} {}", self.kind(), self.name())
    }
}

/// The configuration as it should be, or nothing when it is so already.
///
/// The list of webhooks as the installation ships it is kept in an annotation. From it come those whose path has a
/// handler, with our address and bundle. An annotation that is there but empty asks to take the list anew.
pub fn register(
    kind: Kind,
    object: &Value,
    environment: &Environment,
    bundle: &str,
    paths: &BTreeSet<String>,
) -> Result<Option<Value>, String> {
    let current = object.get("webhooks").cloned().unwrap_or_else(|| json!([]));
    let (template, fresh) = template(kind, object, &current)?;
    let mut webhooks = Vec::new();
    for mut webhook in template {
        let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
        let Some(path) = path(client).filter(|path| paths.contains(path)) else { continue };
        let port = client.pointer("/service/port").and_then(Value::as_u64).unwrap_or(SERVICE_PORT);
        let client = environment.client_config(&path, port, bundle);
        fill_defaults(kind, &mut webhook);
        if let Some(webhook) = webhook.as_object_mut() {
            webhook.insert("clientConfig".to_owned(), client);
        }
        webhooks.push(webhook);
    }
    let webhooks = Value::Array(webhooks);
    if webhooks == current && fresh.is_none() {
        return Ok(None);
    }
    let mut changed = object.clone();
    kruise_api::json::set(&mut changed, &["webhooks"], webhooks);
    if let Some(template) = fresh {
        kruise_api::json::set(&mut changed, &["metadata", "annotations", WEBHOOK_TEMPLATE], template);
    }
    Ok(Some(changed))
}

/// The webhooks to start from, and the text of the annotation when it has to be written.
fn template(kind: Kind, object: &Value, current: &Value) -> Result<(Vec<Value>, Option<String>), String> {
    let kept = object.pointer(&format!("/metadata/annotations/{WEBHOOK_TEMPLATE}")).and_then(Value::as_str);
    if let Some(kept) = kept.filter(|kept| !kept.is_empty()) {
        let webhooks = serde_json::from_str(kept).map_err(|error| {
            format!(
                "annotation {WEBHOOK_TEMPLATE} of {} {} is no list of webhooks: {error}",
                kind.kind(),
                kind.name()
            )
        })?;
        return Ok((webhooks, None));
    }
    let mut webhooks = current.as_array().cloned().unwrap_or_default();
    for webhook in &mut webhooks {
        // A bundle belongs to a time, not to the installation.
        if let Some(client) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) {
            client.remove("caBundle");
        }
    }
    let text = Value::Array(webhooks.clone()).to_string();
    Ok((webhooks, Some(text)))
}

/// The path of a webhook.
fn path(client: &Value) -> Option<String> {
    if let Some(service) = client.get("service").and_then(Value::as_object) {
        return Some(service.get("path").and_then(Value::as_str).unwrap_or("/").to_owned());
    }
    let url: http::Uri = client.get("url")?.as_str()?.parse().ok()?;
    Some(url.path().to_owned())
}

/// What a server fills in. Without this, a template that was written by hand would differ for ever from what is stored.
fn fill_defaults(kind: Kind, webhook: &mut Value) {
    let Some(webhook) = webhook.as_object_mut() else { return };
    let mut default = |field: &str, value: Value| {
        if webhook.get(field).is_none_or(Value::is_null) {
            webhook.insert(field.to_owned(), value);
        }
    };
    default("failurePolicy", json!("Fail"));
    default("matchPolicy", json!("Equivalent"));
    default("namespaceSelector", json!({}));
    default("objectSelector", json!({}));
    default("timeoutSeconds", json!(10));
    if kind == Kind::Mutating {
        default("reinvocationPolicy", json!("Never"));
    }
    for rule in webhook.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(rule) = rule.as_object_mut() {
            rule.entry("scope").or_insert_with(|| json!("*"));
        }
    }
}

/// The authorities that each webhook of a configuration trusts, with the path of the webhook.
pub fn trusted(object: &Value) -> Vec<(Option<String>, Vec<Authority>)> {
    let webhooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    webhooks
        .map(|webhook| {
            let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
            (path(client), trusted_by(client))
        })
        .collect()
}

fn trusted_by(client: &Value) -> Vec<Authority> {
    client.get("caBundle").and_then(Value::as_str).map(bundle::parse_base64).unwrap_or_default()
}

/// A CRD, as far as it concerns us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crd {
    /// Its name.
    pub name: String,
    /// The version that was read.
    pub resource_version: String,
    /// `spec.conversion`.
    pub conversion: Value,
}

impl Crd {
    /// Whether its versions are converted by a webhook. Others are left alone.
    pub fn is_converted(&self) -> bool {
        self.conversion.get("strategy").and_then(Value::as_str) == Some("Webhook")
    }

    /// The authorities that are trusted with conversion.
    pub fn trusted(&self) -> Vec<Authority> {
        self.conversion.pointer("/webhook/clientConfig").map(trusted_by).unwrap_or_default()
    }

    /// `spec.conversion` as it should be, or nothing when it is so already.
    pub fn register(&self, environment: &Environment, bundle: &str) -> Option<Value> {
        if !self.is_converted() {
            return None;
        }
        let mut wanted = Map::new();
        wanted.insert("strategy".to_owned(), json!("Webhook"));
        let client = environment.client_config(CONVERT, SERVICE_PORT, bundle);
        let webhook = json!({ "clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"] });
        wanted.insert("webhook".to_owned(), webhook);
        let wanted = Value::Object(wanted);
        (wanted != self.conversion).then_some(wanted)
    }
}
