//! Checks an object against a schema, with the real server's messages.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::node::{Additional, Kind, Limits, List, Node};
use super::unchanged::{OldItems, unchanged};
use crate::field::{Error, ErrorKind, Path, float_text, quote};

/// All checks. `old` is the object before a change: what was wrong before and did not change is let pass.
pub(super) fn validate(root: &Node, object: &Value, old: Option<&Value>, base: &Path<'_>) -> Vec<Error> {
    let mut errors = values(root, object, old, base);
    embedded(root, object, base, true, &mut errors);
    let mut before = Vec::new();
    if let Some(old) = old {
        lists(root, old, base, &mut before);
    }
    if before.is_empty() {
        lists(root, object, base, &mut errors);
    }
    errors
}

/// The checks on single values. Messages name places from `base` on.
pub(super) fn values(node: &Node, value: &Value, old: Option<&Value>, base: &Path<'_>) -> Vec<Error> {
    let mut found = Found::default();
    found.node(node, value, old, &Path::root());
    let base = base.to_string();
    for error in &mut found.errors {
        error.path = match (base.as_str(), error.path.as_str()) {
            // What has no path of its own: the real server prints the missing path so.
            ("", "") => "<nil>".to_owned(),
            ("", _) => continue,
            (base, "") => base.to_owned(),
            (base, path) => format!("{base}.{path}"),
        };
    }
    found.errors
}

#[derive(Default)]
struct Found {
    errors: Vec<Error>,
    /// How many checks held; the alternative that came closest is the one that is reported.
    held: usize,
}

impl Found {
    fn merge(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.held += other.held;
    }

    /// An error whose message repeats the path.
    fn add(&mut self, kind: ErrorKind, path: &Path<'_>, value: impl Into<Value>, rule: &str) {
        self.errors.push(Error::new(kind, path, value, format!("{path} in body {rule}")));
    }

    /// An error that names the path only inside its message.
    fn add_nameless(&mut self, message: String) {
        self.errors.push(Error::invalid("", "", message));
    }

    fn node(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        let before = self.errors.len();
        self.checks(node, value, old, path);
        if self.errors.len() > before && old.is_some_and(|old| unchanged(node, value, old)) {
            self.errors.truncate(before);
        }
    }

    fn checks(&mut self, node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        self.kind(node, value, path);
        let limits = node.limits.as_deref();
        if value.is_null() {
            if let Some(limits) = limits {
                self.allowed(limits, value, path);
            }
            return;
        }
        if let Some(limits) = limits {
            self.combinations(limits, value, old, path);
            match value {
                Value::String(text) => self.text(limits, text, path),
                Value::Number(_) => self.number(node, limits, value, path),
                _ => {}
            }
        }
        if let Value::Array(items) = value {
            self.items(node, items, old, path);
        }
        if let Some(limits) = limits {
            self.allowed(limits, value, path);
        }
        if let Value::Object(fields) = value {
            self.fields(node, fields, old, path);
        }
        self.held += 1;
    }

    fn kind(&mut self, node: &Node, value: &Value, path: &Path<'_>) {
        let Some(kind) = node.kind else { return };
        let found = kind_name(value);
        let fits = match (kind, value) {
            (_, Value::Null) => node.nullable,
            (Kind::Object, Value::Object(_))
            | (Kind::Array, Value::Array(_))
            | (Kind::String | Kind::IntOrString, Value::String(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::Boolean, Value::Bool(_)) => true,
            (Kind::Integer | Kind::IntOrString, Value::Number(_)) => is_whole(value),
            _ => false,
        };
        if fits {
            self.held += 1;
        } else {
            let rule = format!("must be of type {}: {}", kind.name(), quote(found));
            self.add(ErrorKind::TypeInvalid, path, found, &rule);
        }
    }

    fn allowed(&mut self, limits: &Limits, value: &Value, path: &Path<'_>) {
        let Some(allowed) = &limits.allowed else { return };
        if allowed.iter().any(|allowed| same(allowed, value)) {
            self.held += 1;
            return;
        }
        let texts: Vec<String> = allowed
            .iter()
            .map(|allowed| allowed.as_str().map_or_else(|| allowed.to_string(), str::to_owned))
            .collect();
        self.errors.push(Error::not_supported(path, value.clone(), &texts));
    }

    fn text(&mut self, limits: &Limits, text: &str, path: &Path<'_>) {
        let length = text.chars().count() as u64;
        if let Some(max) = limits.max_length.filter(|max| length > *max) {
            self.errors.push(Error::too_long(path, max));
        } else if let Some(min) = limits.min_length.filter(|min| length < *min) {
            let rule = format!("should be at least {min} chars long");
            self.add(ErrorKind::Invalid, path, text, &rule);
        } else if let Some((pattern, regex)) = &limits.pattern
            && !regex.is_match(text)
        {
            self.add(ErrorKind::Invalid, path, text, &format!("should match '{pattern}'"));
        } else {
            self.held += 1;
        }
        if let Some(format) = limits.format
            && !format.accepts(text)
        {
            let rule = format!("must be of type {}: {}", format.name(), quote(text));
            self.add(ErrorKind::TypeInvalid, path, text, &rule);
        }
    }

    fn number(&mut self, node: &Node, limits: &Limits, value: &Value, path: &Path<'_>) {
        let Some(number) = value.as_f64() else { return };
        let before = self.errors.len();
        if node.kind == Some(Kind::Integer) && !is_whole(value) {
            self.add_nameless(format!("Checked value must be of type integer (default format) in {path}"));
        }
        if let Some(factor) = limits.multiple_of.filter(|factor| *factor > 0.0)
            && !is_multiple(number, factor)
        {
            let rule = format!("should be a multiple of {}", float_text(factor));
            self.add(ErrorKind::Invalid, path, value.clone(), &rule);
        }
        if let Some((bound, exclusive)) = limits.minimum
            && (number < bound || (exclusive && number <= bound))
        {
            let words = if exclusive { "greater than" } else { "greater than or equal to" };
            let rule = format!("should be {words} {}", float_text(bound));
            self.add(ErrorKind::Invalid, path, value.clone(), &rule);
        }
        if let Some((bound, exclusive)) = limits.maximum
            && (number > bound || (exclusive && number >= bound))
        {
            let words = if exclusive { "less than" } else { "less than or equal to" };
            let rule = format!("should be {words} {}", float_text(bound));
            self.add(ErrorKind::Invalid, path, value.clone(), &rule);
        }
        self.held += usize::from(self.errors.len() == before);
    }

    fn items(&mut self, node: &Node, items: &[Value], old: Option<&Value>, path: &Path<'_>) {
        if let Some(inner) = &node.items {
            let before = OldItems::of(&node.list, old);
            for (i, item) in items.iter().enumerate() {
                self.node(inner, item, before.get(item), &path.index(i));
            }
        }
        let Some(limits) = node.limits.as_deref() else { return };
        let count = items.len() as u64;
        if let Some(min) = limits.min_items.filter(|min| count < *min) {
            self.add(ErrorKind::Invalid, path, count, &format!("should have at least {min} items"));
        }
        if let Some(max) = limits.max_items.filter(|max| count > *max) {
            self.errors.push(Error::too_many(path, count, max));
        }
        let mut seen = BTreeSet::new();
        if limits.unique_items && !items.iter().all(|item| seen.insert(item.to_string())) {
            self.add(ErrorKind::Invalid, path, "", "shouldn't contain duplicates");
        }
    }

    fn fields(&mut self, node: &Node, fields: &Map<String, Value>, old: Option<&Value>, path: &Path<'_>) {
        let limits = node.limits.as_deref();
        let count = fields.len() as u64;
        if let Some(min) = limits.and_then(|limits| limits.min_properties).filter(|min| count < *min) {
            self.add(ErrorKind::Invalid, path, count, &format!("should have at least {min} properties"));
        }
        if let Some(max) = limits.and_then(|limits| limits.max_properties).filter(|max| count > *max) {
            self.errors.push(Error::too_many(path, count, max));
        }
        for (name, value) in fields {
            let own = path.child(name);
            let old = old.and_then(|old| old.get(name));
            match (node.properties.get(name), &node.additional) {
                (Some(inner), _) => self.node(inner, value, old, &own),
                (None, Additional::Schema(inner)) => self.node(inner, value, old, &own),
                (None, Additional::Forbidden) => {
                    self.add(ErrorKind::Invalid, &own, "", "is a forbidden property");
                }
                (None, Additional::Unspecified | Additional::Any) => {}
            }
        }
        for name in limits.map(|limits| limits.required.as_slice()).unwrap_or_default() {
            if fields.contains_key(name) {
                self.held += 1;
            } else {
                self.errors.push(Error::required(path.child(name), ""));
            }
        }
    }

    fn combinations(&mut self, limits: &Limits, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        let try_one = |node: &Node| {
            let mut found = Self::default();
            found.checks(node, value, old, path);
            found
        };
        let mut merged = Self::default();
        let name = quote(&path.to_string());
        if !limits.any_of.is_empty() {
            match first_or_closest(limits.any_of.iter().map(try_one)) {
                Ok(success) => merged.held += success.held,
                Err(closest) => {
                    merged.add_nameless(format!("{name} must validate at least one schema (anyOf)"));
                    merged.merge(closest);
                }
            }
        }
        if !limits.one_of.is_empty() {
            let tried: Vec<Found> = limits.one_of.iter().map(try_one).collect();
            let valid = tried.iter().filter(|found| found.errors.is_empty()).count();
            if valid != 1 {
                let why = if valid == 0 {
                    "Found none valid".to_owned()
                } else {
                    format!("Found {valid} valid alternatives")
                };
                merged.add_nameless(format!("{name} must validate one and only one schema (oneOf). {why}"));
            }
            if let Err(closest) = first_or_closest(tried.into_iter()) {
                merged.merge(closest);
            }
        }
        if !limits.all_of.is_empty() {
            let tried: Vec<Found> = limits.all_of.iter().map(try_one).collect();
            let valid = tried.iter().filter(|found| found.errors.is_empty()).count();
            let all = tried.len();
            tried.into_iter().for_each(|found| merged.merge(found));
            if valid != all {
                let why = if valid == 0 { ". None validated" } else { "" };
                merged.add_nameless(format!("{name} must validate all the schemas (allOf){why}"));
            }
        }
        if let Some(not) = &limits.not
            && try_one(not).errors.is_empty()
        {
            merged.add_nameless(format!("{name} must not validate the schema (not)"));
        }
        self.merge(merged);
    }
}

/// The first alternative that holds, else the one in which most checks held.
fn first_or_closest(tried: impl Iterator<Item = Found>) -> Result<Found, Found> {
    let mut closest: Option<Found> = None;
    for found in tried {
        if found.errors.is_empty() {
            return Ok(found);
        }
        if closest.as_ref().is_none_or(|closest| found.held > closest.held) {
            closest = Some(found);
        }
    }
    Err(closest.unwrap_or_default())
}

/// Objects inside the object must say what they are.
fn embedded(node: &Node, value: &Value, path: &Path<'_>, is_root: bool, errors: &mut Vec<Error>) {
    if let Value::Object(fields) = value
        && node.embedded
        && !is_root
    {
        for name in ["apiVersion", "kind"] {
            if fields.get(name).and_then(Value::as_str).unwrap_or_default().is_empty() {
                errors.push(Error::required(path.child(name), "must not be empty"));
            }
        }
    }
    below(node, value, path, &mut |inner, value, path| embedded(inner, value, path, false, errors));
}

/// Lists that are sets or maps must not repeat items.
fn lists(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    if let Value::Array(items) = value {
        match &node.list {
            List::Atomic => {}
            List::Set => repeated(items.iter().cloned(), path, errors),
            List::Map(keys) => {
                let key = |item: &Value| -> Value {
                    let pairs = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                    Value::Object(pairs.collect())
                };
                repeated(items.iter().map(key), path, errors);
            }
        }
    }
    below(node, value, path, &mut |inner, value, path| lists(inner, value, path, errors));
}

/// Calls `visit` for every value right below this one that has a schema.
fn below(node: &Node, value: &Value, path: &Path<'_>, visit: &mut dyn FnMut(&Node, &Value, &Path<'_>)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (node.properties.get(name), &node.additional) {
                    (Some(inner), _) => visit(inner, value, &path.child(name)),
                    (None, Additional::Schema(inner)) => visit(inner, value, &path.key(name)),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &node.items {
                for (i, item) in items.iter().enumerate() {
                    visit(inner, item, &path.index(i));
                }
            }
        }
        _ => {}
    }
}

fn repeated(keys: impl Iterator<Item = Value>, path: &Path<'_>, errors: &mut Vec<Error>) {
    let mut seen = BTreeSet::new();
    for (i, key) in keys.enumerate() {
        if !seen.insert(key.to_string()) {
            errors.push(Error::duplicate(path.index(i), key));
        }
    }
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What does not fit is read as a float, and floats count as integers only as far as they can tell all of them apart.
fn is_whole(value: &Value) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() <= MOST)
}

fn is_multiple(number: f64, factor: f64) -> bool {
    let ratio = number / factor;
    (ratio - ratio.round()).abs() < 1e-9 * ratio.abs().max(1.0)
}

fn same(a: &Value, b: &Value) -> bool {
    a == b || (a.is_number() && a.as_f64() == b.as_f64())
}
