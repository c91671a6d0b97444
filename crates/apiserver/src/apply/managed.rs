//! Who manages which fields of an object: `metadata.managedFields`.
//!
//! Objects are stored without it and with this instead: most objects of a kind have the same managers and the same fields,
//! which are then shared ([`super::share`]).

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::set::Set;
use super::wire;
use crate::field;

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else.
    Update,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Who writes, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The name that it gave itself.
    pub name: Arc<str>,
    /// How it writes.
    pub operation: Operation,
    /// The version in which it writes.
    pub api_version: Arc<str>,
    /// Where it writes; empty for the object itself.
    pub subresource: Arc<str>,
}

impl Manager {
    /// Whether both are one manager. Who applies may change the version.
    pub fn is(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// How conflicts name it.
    fn shown(&self) -> String {
        let mut text = field::quote(&self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", field::quote(&self.subresource)));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Who.
    pub manager: Arc<Manager>,
    /// When it last changed something, in seconds.
    pub time: Option<i64>,
    /// What.
    pub fields: Arc<Set>,
}

/// The managers of an object, in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Managed {
    entries: Box<[Entry]>,
}

impl Managed {
    /// Entries in any order. Those without fields go.
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.retain(|entry| !entry.fields.is_empty());
        entries.sort_by(|a, b| {
            let key = |entry: &Entry| (entry.manager.operation, entry.time.unwrap_or_default());
            let names = |entry: &Entry| {
                let Manager { name, api_version, subresource, .. } = entry.manager.as_ref();
                (name.clone(), api_version.clone(), subresource.clone())
            };
            key(a).cmp(&key(b)).then_with(|| names(a).cmp(&names(b)))
        });
        Self { entries: entries.into() }
    }

    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether nobody manages anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether both are the same but for the times.
    pub fn is_like(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.entries.iter().all(|entry| {
                let found = other.entries.iter().find(|other| other.manager == entry.manager);
                found.is_some_and(|other| {
                    Arc::ptr_eq(&other.fields, &entry.fields) || other.fields == entry.fields
                })
            })
    }

    /// Writes `metadata.managedFields`.
    pub fn write(&self, out: &mut String) {
        out.push('[');
        for (i, entry) in self.entries.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            let manager = &entry.manager;
            for (before, text) in [
                ("{\"manager\":", manager.name.as_ref()),
                (",\"operation\":", manager.operation.name()),
                (",\"apiVersion\":", &manager.api_version),
            ] {
                out.push_str(before);
                out.push_str(&Value::from(text).to_string());
            }
            if let Some(time) = entry.time.and_then(|time| Timestamp::from_second(time).ok()) {
                out.push_str(&format!(",\"time\":\"{time}\""));
            }
            out.push_str(",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
            wire::write(&entry.fields, out);
            if !manager.subresource.is_empty() {
                out.push_str(",\"subresource\":");
                out.push_str(&Value::from(manager.subresource.as_ref()).to_string());
            }
            out.push('}');
        }
        out.push(']');
    }

    /// `metadata.managedFields` as JSON.
    pub fn to_json(&self) -> Value {
        let mut text = String::new();
        self.write(&mut text);
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Reads `metadata.managedFields`. The error is a server's.
    pub fn read(list: &[Value]) -> Result<Self, String> {
        let mut entries: Vec<Entry> = Vec::new();
        for (i, item) in list.iter().enumerate() {
            let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            if text("apiVersion").is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
                other => {
                    let other = field::quote(other);
                    return Err(format!("invalid fieldsType {other} in managed fields entry {i}"));
                }
            }
            let nothing = Map::new();
            let fields = item.get("fieldsV1").and_then(Value::as_object).unwrap_or(&nothing);
            let manager = Manager {
                name: text("manager").into(),
                operation,
                api_version: text("apiVersion").into(),
                subresource: text("subresource").into(),
            };
            let time = text("time").parse::<Timestamp>().ok().map(Timestamp::as_second);
            let entry = Entry { manager: Arc::new(manager), time, fields: Arc::new(wire::read(fields)?) };
            // The last one of a manager counts.
            entries.retain(|known| !known.manager.is(&entry.manager));
            entries.push(entry);
        }
        Ok(Self::new(entries))
    }
}

/// Whether a client asks to forget all managers: an empty list, or a list of one empty entry.
pub fn is_reset(list: &[Value]) -> bool {
    match list {
        [] => true,
        [one] => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Fields that an applied object would change although others own them.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflicts(pub Vec<(Arc<Manager>, Set)>);

impl Conflicts {
    /// The message, and for each field the manager and the way to it.
    pub fn told(&self) -> (String, Vec<(String, String)>) {
        let mut by_name: Vec<(String, Vec<String>)> = self
            .0
            .iter()
            .map(|(manager, set)| {
                (manager.shown(), set.paths().iter().map(|path| super::element::path_text(path)).collect())
            })
            .collect();
        by_name.sort();
        let causes: Vec<(String, String)> = by_name
            .iter()
            .flat_map(|(manager, paths)| {
                paths.iter().map(move |path| (format!("conflict with {manager}"), path.clone()))
            })
            .collect();
        if let [(cause, path)] = causes.as_slice() {
            return (format!("Apply failed with 1 conflict: {cause}: {path}"), causes);
        }
        let mut lines = Vec::new();
        for (manager, paths) in &by_name {
            lines.push(format!("conflicts with {manager}:"));
            lines.extend(paths.iter().map(|path| format!("- {path}")));
        }
        (format!("Apply failed with {} conflicts: {}", causes.len(), lines.join("\n")), causes)
    }

    /// All fields.
    pub fn fields(&self) -> Set {
        self.0.iter().fold(Set::default(), |all, (_, set)| all.union(set))
    }

    /// The conflicts that are not about these fields.
    #[must_use]
    pub fn without(&self, fields: &Set) -> Self {
        let left = self.0.iter().map(|(manager, set)| (manager.clone(), set.difference(fields)));
        Self(left.filter(|(_, set)| !set.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managers_are_written_in_the_order_and_form_of_a_server() {
        let list = json!([
            {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:01Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale"},
            {"manager": "b", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": "nothing", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"},
            {"manager": "z", "operation": "Apply", "apiVersion": "apps/v1",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}},
        ]);
        let managed = Managed::read(list.as_array().unwrap()).unwrap();
        let names: Vec<&str> = managed.entries().iter().map(|entry| entry.manager.name.as_ref()).collect();
        assert_eq!(names, ["z", "b", "kubectl"]);
        let mut text = String::new();
        managed.write(&mut text);
        assert!(text.ends_with(
            "{\"manager\":\"kubectl\",\"operation\":\"Update\",\"apiVersion\":\"apps/v1\",\"time\":\"2026-01-01T00:00:01Z\",\
             \"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:replicas\":{}}},\"subresource\":\"scale\"}]"
        ), "{text}");
        assert_eq!(Managed::read(managed.to_json().as_array().unwrap()), Ok(managed));
    }

    #[test]
    fn broken_entries_are_refused() {
        for (entry, why) in [
            (json!({}), "operation must be `Apply` or `Update`"),
            (json!({"operation": "Update"}), "apiVersion must not be empty"),
            (
                json!({"operation": "Update", "apiVersion": "v1"}),
                "missing fieldsType in managed fields entry 0",
            ),
            (
                json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "V2"}),
                "invalid fieldsType \"V2\" in managed fields entry 0",
            ),
        ] {
            assert_eq!(Managed::read(&[entry]), Err(why.to_owned()));
        }
    }
}
