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

    /// What people are told when entries are missing that nobody adds.
    pub fn lacks(self, webhooks: &[String], why: &str) -> String {
        format!("{} {} lacks {}: {why}", self.kind(), self.name(), webhooks.join(", "))
    }
}

/// What belongs into the two configurations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// The paths of webhooks that open gates need, with their aliases.
    pub open: BTreeSet<String>,
    /// The paths of all webhooks of this program, whatever its gates: entries that point there are ours.
    pub known: BTreeSet<String>,
    /// The names of all webhooks of this program, whatever its gates.
    pub names: BTreeSet<String>,
    /// The mutating webhooks that open gates need.
    pub mutating: Vec<Needed>,
    /// The validating webhooks that open gates need.
    pub validating: Vec<Needed>,
}

/// A webhook that an open gate needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Needed {
    /// The entry as a new installation has it.
    pub entry: Value,
    /// The paths of its handler, aliases included.
    pub paths: Vec<String>,
}

impl Wanted {
    fn of(&self, kind: Kind) -> &[Needed] {
        match kind {
            Kind::Mutating => &self.mutating,
            Kind::Validating => &self.validating,
        }
    }

    /// Whether an entry of a configuration leads to us. Others are left as they are.
    fn is_ours(&self, webhook: &Value, environment: &Environment) -> bool {
        let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
        let is_known = path(client).is_some_and(|path| self.known.contains(&path));
        let text = |pointer: &str| client.pointer(pointer).and_then(Value::as_str);
        if client.get("service").is_some_and(Value::is_object) {
            let is_our_service = text("/service/namespace") == Some(&environment.namespace)
                && text("/service/name") == Some(&environment.service);
            return is_our_service || is_known;
        }
        // The host may be one of an earlier start, but a stranger may have the same path.
        is_known && webhook.get("name").and_then(Value::as_str).is_some_and(|name| self.names.contains(name))
    }

    fn is_open(&self, webhook: &Value) -> bool {
        webhook.get("clientConfig").and_then(path).is_some_and(|path| self.open.contains(&path))
    }

    /// The names of webhooks that open gates need and that a configuration does not have.
    pub fn missing(&self, kind: Kind, object: &Value) -> Vec<String> {
        let webhooks = entries(object);
        let missing =
            self.of(kind).iter().filter(|needed| !webhooks.iter().any(|one| needed.is_served_by(one)));
        missing.filter_map(|needed| Some(needed.entry.get("name")?.as_str()?.to_owned())).collect()
    }
}

impl Needed {
    /// Whether an entry does its work: the one of its name, or one of an older installation that leads to the same
    /// handler for the same requests.
    fn is_served_by(&self, webhook: &Value) -> bool {
        let name = |webhook: &Value| webhook.get("name").and_then(Value::as_str).map(str::to_owned);
        if name(webhook) == name(&self.entry) {
            return true;
        }
        let leads = webhook.get("clientConfig").and_then(path).is_some_and(|path| self.paths.contains(&path));
        let rules =
            |webhook: &Value| webhook.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
        let has = rules(webhook);
        leads && rules(&self.entry).iter().all(|wanted| has.iter().any(|rule| covers(rule, wanted)))
    }
}

/// Whether a rule is for every request that another one is for. Versions may differ: a server converts requests.
fn covers(rule: &Value, wanted: &Value) -> bool {
    ["apiGroups", "resources", "operations"].into_iter().all(|member| {
        let list = |rule: &Value| rule.get(member).and_then(Value::as_array).cloned().unwrap_or_default();
        let has = list(rule);
        has.contains(&json!("*")) || list(wanted).iter().all(|one| has.contains(one))
    })
}

fn entries(object: &Value) -> &[Value] {
    object.get("webhooks").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The configuration as it should be, or nothing when it is so already.
///
/// Every replica gives the entries that lead to us our address and bundle. Only the one that `leads` adds entries that open
/// gates need and takes out those of closed gates: while two builds or two sets of gates run side by side, they must not
/// undo each other. All else of an entry is its owner's: failure policy, selectors, timeout, match conditions, rules.
///
/// An annotation keeps the entries without address and bundle, also those of closed gates, so that what users changed
/// comes back when the gate opens again. The original starts from the same annotation. One that is there but empty asks to
/// take the list anew.
pub fn register(
    kind: Kind,
    object: &Value,
    environment: &Environment,
    bundle: &str,
    wanted: &Wanted,
    leads: bool,
) -> Result<Option<Value>, String> {
    let current = entries(object);
    let template = template(kind, object)?;
    let kept = template.as_deref().unwrap_or_default();
    let mut webhooks: Vec<Value> = Vec::new();
    for webhook in current {
        if !wanted.is_ours(webhook, environment) {
            webhooks.push(webhook.clone());
        } else if wanted.is_open(webhook) || !leads {
            webhooks.push(addressed(kind, webhook, environment, bundle));
        }
    }
    if leads {
        let back = kept.iter().filter(|one| wanted.is_ours(one, environment) && wanted.is_open(one));
        for webhook in back.chain(wanted.of(kind).iter().map(|needed| &needed.entry)) {
            let needed = wanted.of(kind).iter().filter(|needed| needed.is_served_by(webhook));
            let is_there = webhooks.iter().any(|one| one.get("name") == webhook.get("name"))
                || needed.clone().next().is_some()
                    && needed.clone().all(|needed| webhooks.iter().any(|one| needed.is_served_by(one)));
            if !is_there {
                let index = place(kept, &webhooks, webhook);
                webhooks.insert(index, addressed(kind, webhook, environment, bundle));
            }
        }
    }
    let ours = |webhook: &&Value| wanted.is_ours(webhook, environment);
    let as_registered = |shipped| {
        let named = |one: &&Value| one.get("name") == Value::get(shipped, "name");
        webhooks.iter().find(named).unwrap_or(shipped)
    };
    let fresh = folded(kept, current.iter().map(as_registered).chain(&webhooks).filter(ours));
    let is_kept = template.as_ref() == Some(&fresh);
    if webhooks == current && is_kept {
        return Ok(None);
    }
    let mut changed = object.clone();
    kruise_api::json::set(&mut changed, &["webhooks"], webhooks);
    if !is_kept {
        let text = Value::Array(fresh).to_string();
        kruise_api::json::set(&mut changed, &["metadata", "annotations", WEBHOOK_TEMPLATE], text);
    }
    Ok(Some(changed))
}

/// An entry with our address and bundle, and with what a server fills in.
fn addressed(kind: Kind, webhook: &Value, environment: &Environment, bundle: &str) -> Value {
    let mut webhook = webhook.clone();
    let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
    let port = client.pointer("/service/port").and_then(Value::as_u64).unwrap_or(SERVICE_PORT);
    let client = environment.client_config(&path(client).unwrap_or_default(), port, bundle);
    fill_defaults(kind, &mut webhook);
    kruise_api::json::set(&mut webhook, &["clientConfig"], client);
    webhook
}

/// Where an entry is inserted: before those that come after it in the annotation.
fn place(kept: &[Value], webhooks: &[Value], webhook: &Value) -> usize {
    let rank = |one: &Value| kept.iter().position(|known| known.get("name") == one.get("name"));
    let Some(own) = rank(webhook) else { return webhooks.len() };
    webhooks.iter().position(|one| rank(one).is_some_and(|rank| rank > own)).unwrap_or(webhooks.len())
}

/// The entries to keep: those that were kept, as they are now, and new ones. An address is kept as it was shipped.
fn folded<'v>(kept: &[Value], present: impl Iterator<Item = &'v Value>) -> Vec<Value> {
    let mut folded: Vec<Value> = kept.to_vec();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for webhook in present {
        let Some(name) = webhook.get("name").and_then(Value::as_str) else { continue };
        if !seen.insert(name.to_owned()) {
            continue;
        }
        let mut entry = webhook.clone();
        match folded.iter_mut().find(|known| known.get("name").and_then(Value::as_str) == Some(name)) {
            Some(known) => {
                let client = known.get("clientConfig").cloned().unwrap_or(Value::Null);
                kruise_api::json::set(&mut entry, &["clientConfig"], client);
                *known = entry;
            }
            None => {
                // A bundle belongs to a time, not to the installation.
                if let Some(client) = entry.get_mut("clientConfig").and_then(Value::as_object_mut) {
                    client.remove("caBundle");
                }
                folded.push(entry);
            }
        }
    }
    folded
}

/// The entries in the annotation; nothing where it asks to take the list as it is.
fn template(kind: Kind, object: &Value) -> Result<Option<Vec<Value>>, String> {
    let kept = object.pointer(&format!("/metadata/annotations/{WEBHOOK_TEMPLATE}")).and_then(Value::as_str);
    let Some(kept) = kept.filter(|kept| !kept.is_empty()) else { return Ok(None) };
    serde_json::from_str(kept).map(Some).map_err(|error| {
        format!(
            "annotation {WEBHOOK_TEMPLATE} of {} {} is no list of webhooks: {error}",
            kind.kind(),
            kind.name()
        )
    })
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

/// The authorities that each of our webhooks of a configuration trusts.
pub fn trusted(object: &Value, wanted: &Wanted, environment: &Environment) -> Vec<Vec<Authority>> {
    let ours = entries(object).iter().filter(|webhook| wanted.is_ours(webhook, environment));
    ours.map(|webhook| trusted_by(webhook.get("clientConfig").unwrap_or(&Value::Null))).collect()
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
