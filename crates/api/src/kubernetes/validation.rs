//! What a Kubernetes API server refuses in pods and pod templates, in its own words.
//!
//! Objects are expected to have their [`defaults`](super::defaults): a missing `restartPolicy` is an error here. All
//! rules run; the result lists every violation in the order a server lists them.

mod container;
mod environment;
pub mod names;
mod pod;
mod resources;
mod scheduling;
mod update;
mod volume;

pub use pod::{Options, pod, pod_spec, pod_template_spec};
pub use resources::{is_qos_kept, quality as qos_class, resource_requirements};
pub use update::{ephemeral_containers_update, pod_update, resize};

use serde_json::Value;
use std::fmt;

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The value is missing.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value is not one of those allowed.
    NotSupported,
    /// The value must be unique and is not.
    Duplicate,
    /// The value may not be set or changed here.
    Forbidden,
    /// The value names something that is not there.
    NotFound,
    /// The value could not be checked.
    Internal,
}

/// One broken rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// What is wrong.
    pub kind: Kind,
    /// Which field: `spec.containers[0].name`.
    pub path: String,
    /// The offending value.
    pub value: Value,
    /// The rule; may be empty.
    pub detail: String,
}

impl Violation {
    fn new(kind: Kind, path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { kind, path: path.into(), value: value.into(), detail: detail.into() }
    }

    /// The value is missing.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Required, path, Value::Null, detail)
    }

    /// The value breaks a rule.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, path, value, detail)
    }

    /// The value is not one of those allowed.
    pub fn not_supported(path: impl Into<String>, value: impl Into<Value>, allowed: &[&str]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|text| format!("{text:?}")).collect();
        Self::new(Kind::NotSupported, path, value, format!("supported values: {}", allowed.join(", ")))
    }

    /// The value must be unique and is not.
    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Kind::Duplicate, path, value, "")
    }

    /// The value may not be set or changed here.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, path, Value::Null, detail)
    }

    /// The value could not be checked.
    pub fn internal(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Internal, path, Value::Null, detail)
    }

    /// The value names something that is not there.
    pub fn not_found(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Kind::NotFound, path, value, "")
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, shows_value) = match self.kind {
            Kind::Required => ("Required value", false),
            Kind::Invalid => ("Invalid value", true),
            Kind::NotSupported => ("Unsupported value", true),
            Kind::Duplicate => ("Duplicate value", true),
            Kind::Forbidden => ("Forbidden", false),
            Kind::NotFound => ("Not found", true),
            Kind::Internal => ("Internal error", false),
        };
        write!(f, "{}: {words}", self.path)?;
        if shows_value {
            match &self.value {
                Value::String(text) => write!(f, ": {text:?}")?,
                other => write!(f, ": {other}")?,
            }
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

type Violations = Vec<Violation>;

/// Checks a term that prefers nodes. Paths start with `path`.
pub fn preferred_scheduling_term(term: &Value, path: &str) -> Vec<Violation> {
    let mut found = Violations::new();
    scheduling::preferred_term(&mut found, term, path);
    found
}

/// What is wrong with a label selector at `path`.
pub fn label_selector(selector: &Value, path: &str) -> Vec<Violation> {
    let mut found = Violations::new();
    scheduling::label_selector(&mut found, selector, path);
    found
}

/// Checks a term about nodes. Paths start with `path`.
pub fn node_selector_term(term: &Value, path: &str) -> Vec<Violation> {
    let mut found = Violations::new();
    scheduling::node_term(&mut found, term, path);
    found
}

/// Checks the `tolerations` of an object. Paths start with `path`.
pub fn tolerations(holder: &Value, path: &str) -> Vec<Violation> {
    let mut found = Violations::new();
    scheduling::tolerations(&mut found, holder, path);
    found
}

/// A member that is there and not `null`.
fn get<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|value| !value.is_null())
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, key: &str) -> i64 {
    value.get(key).and_then(Value::as_i64).unwrap_or_default()
}

fn is_true(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool) == Some(true)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// One `Invalid` for each broken rule of a text.
fn each(found: &mut Violations, path: &str, value: &str, rules: Vec<String>) {
    found.extend(rules.into_iter().map(|rule| Violation::invalid(path, value, rule)));
}

fn not_negative(found: &mut Violations, path: String, value: i64) {
    if value < 0 {
        found.push(Violation::invalid(path, value, "must be greater than or equal to 0"));
    }
}

/// A text that must be one of `allowed`.
fn one_of(found: &mut Violations, path: String, value: &str, allowed: &[&str]) {
    if value.is_empty() {
        found.push(Violation::required(path, ""));
    } else if !allowed.contains(&value) {
        found.push(Violation::not_supported(path, value, allowed));
    }
}

#[cfg(test)]
mod tests;
