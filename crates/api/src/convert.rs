//! Conversion between the versions of a kind, without loss.
//!
//! The newest version is the hub. Each kind brings two plain functions on JSON, `up` to the hub and `down` from it.
//! What the older version cannot hold is found here by going down and up again and comparing: the differences
//! travel in one annotation of the older form and are put back on the way up, unless the writer of the older
//! version changed the same field. The hub form never carries that annotation.
//!
//! Conversion reads nothing but its argument. It works while the rest of the manager does not.

use serde_json::{Value, json};

use crate::{catalogue, crd::Conversion, json::Object};

/// Annotation of the older form that holds what only the hub can say.
pub const HUB_FIELDS: &str = "conversion.kruise.io/hub-fields";

/// Rewrites an object of one version into another. Fields it does not know stay.
pub type Step = fn(&mut Value) -> Result<(), Error>;

/// The two directions of one kind.
#[derive(Clone, Copy)]
pub struct Steps {
    /// From the older version to the hub.
    pub up: Step,
    /// From the hub to the older version.
    pub down: Step,
}

/// Why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The object does not say what it is.
    #[error("the object has no {field}")]
    Untyped {
        /// `apiVersion` or `kind`.
        field: &'static str,
    },
    /// Not one of our kinds.
    #[error("kind {kind:?} of {api_version:?} is not known here")]
    UnknownKind {
        /// What the object says it is.
        kind: String,
        /// And in which version.
        api_version: String,
    },
    /// The kind has no such version.
    #[error("{kind} has no version {version:?}; it has {}", known.join(", "))]
    UnknownVersion {
        /// The kind.
        kind: &'static str,
        /// What was asked for.
        version: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// A value that the other version has no room for and no meaning of.
    #[error("{path}: {problem}")]
    Value {
        /// Where it stands.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// The object in the wanted version (`apps.kruise.io/v1beta1`).
pub fn convert(mut object: Value, to: &str) -> Result<Value, Error> {
    let from = field(&object, "apiVersion")?.to_owned();
    let kind = field(&object, "kind")?.to_owned();
    let unknown = || Error::UnknownKind { kind: kind.clone(), api_version: from.clone() };
    let crd = catalogue::by_kind(&kind).ok_or_else(unknown)?;
    let version = |api_version: &str| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if group != crd.group {
            return Err(unknown());
        }
        let known: Vec<&'static str> = crd.versions.iter().map(|version| version.name).collect();
        known.iter().position(|name| *name == version).ok_or_else(|| Error::UnknownVersion {
            kind: crd.kind,
            version: version.to_owned(),
            known,
        })
    };
    let (old, new) = (version(&from)?, version(to)?);
    if old != new {
        match crd.conversion {
            Conversion::None => {}
            Conversion::Webhook(steps) if old < new => go_up(&mut object, steps)?,
            Conversion::Webhook(steps) => go_down(&mut object, steps)?,
        }
    }
    crate::json::set(&mut object, &["apiVersion"], to);
    Ok(object)
}

fn field<'a>(object: &'a Value, field: &'static str) -> Result<&'a str, Error> {
    crate::json::text(object, &[field]).ok_or(Error::Untyped { field })
}

fn go_up(object: &mut Value, steps: Steps) -> Result<(), Error> {
    let kept = take_annotation(object, HUB_FIELDS);
    (steps.up)(object)?;
    if let Some(kept) = kept {
        restore(object, &kept);
    }
    Ok(())
}

fn go_down(object: &mut Value, steps: Steps) -> Result<(), Error> {
    take_annotation(object, HUB_FIELDS);
    let hub = object.clone();
    (steps.down)(object)?;
    let mut again = object.clone();
    (steps.up)(&mut again)?;
    let mut losses = Vec::new();
    find_losses(&again, &hub, &mut Vec::new(), &mut losses);
    if !losses.is_empty() {
        set_annotation(object, HUB_FIELDS, Value::Array(losses).to_string());
    }
    Ok(())
}

/// Lists where the way down and up again differs from the hub. Lists are one value: their elements have no identity.
fn find_losses(again: &Value, hub: &Value, path: &mut Vec<String>, losses: &mut Vec<Value>) {
    let (Value::Object(again_fields), Value::Object(hub_fields)) = (again, hub) else {
        if again != hub {
            losses.push(json!({ "path": path, "was": fingerprint(Some(again)), "is": hub }));
        }
        return;
    };
    let keys = again_fields.keys().chain(hub_fields.keys().filter(|key| !again_fields.contains_key(*key)));
    for key in keys {
        path.push(key.clone());
        match (again_fields.get(key), hub_fields.get(key)) {
            (Some(again), Some(hub)) => find_losses(again, hub, path, losses),
            (None, Some(hub)) => losses.push(json!({ "path": path, "is": hub })),
            (Some(again), None) => losses.push(json!({ "path": path, "was": fingerprint(Some(again)) })),
            (None, None) => {}
        }
        path.pop();
    }
}

/// Puts back what the older form could not hold, where its writer left the surroundings alone.
fn restore(object: &mut Value, kept: &str) {
    let Ok(Value::Array(losses)) = serde_json::from_str(kept) else { return };
    for loss in &losses {
        let Some(path) = loss.get("path").and_then(Value::as_array) else { continue };
        let path: Vec<&str> = path.iter().filter_map(Value::as_str).collect();
        let now = crate::json::at(object, &path).map(|value| fingerprint(Some(value)));
        let was = loss.get("was").and_then(Value::as_str).map(str::to_owned);
        if now != was {
            continue;
        }
        match loss.get("is") {
            Some(value) => crate::json::set(object, &path, value.clone()),
            None => drop(crate::json::take(object, &path)),
        }
    }
}

/// FNV-1a over the JSON text: enough to see that a value was changed.
fn fingerprint(value: Option<&Value>) -> String {
    let text = value.map(Value::to_string).unwrap_or_default();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The text of an annotation.
pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    crate::json::text(object, &["metadata", "annotations", name])
}

/// The text of a label.
pub fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    crate::json::text(object, &["metadata", "labels", name])
}

/// Removes an annotation and returns its text. An annotations object that was there only for it goes too.
pub fn take_annotation(object: &mut Value, name: &str) -> Option<String> {
    take_from(object, "annotations", name)
}

/// Removes a label and returns its text. A labels object that was there only for it goes too.
pub fn take_label(object: &mut Value, name: &str) -> Option<String> {
    take_from(object, "labels", name)
}

/// Writes an annotation.
pub fn set_annotation(object: &mut Value, name: &str, text: impl Into<String>) {
    crate::json::set(object, &["metadata", "annotations", name], text.into());
}

/// Writes a label.
pub fn set_label(object: &mut Value, name: &str, text: impl Into<String>) {
    crate::json::set(object, &["metadata", "labels", name], text.into());
}

fn take_from(object: &mut Value, map: &str, name: &str) -> Option<String> {
    crate::json::at(object, &["metadata", map, name])?.as_str()?;
    let taken = crate::json::take(object, &["metadata", map, name])?;
    crate::json::drop_if_empty(object, &["metadata", map]);
    match taken {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The fields of an object that hold something, without the named ones.
pub fn others(object: &Object, without: &[&str]) -> Object {
    object
        .iter()
        .filter(|(key, _)| !without.contains(&key.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The older form of this made-up kind knows no percentages and no colours.
    const STEPS: Steps = Steps {
        up: |_| Ok(()),
        down: |object| {
            crate::json::set(object, &["spec", "most"], 1);
            drop(crate::json::take(object, &["spec", "colour"]));
            Ok(())
        },
    };

    fn down() -> Value {
        let mut object = json!({"spec": {"most": "10%", "colour": "red", "size": 3}});
        go_down(&mut object, STEPS).unwrap();
        assert_eq!(object.pointer("/spec"), Some(&json!({"most": 1, "size": 3})));
        object
    }

    #[track_caller]
    fn up(mut object: Value, expected: Value) {
        go_up(&mut object, STEPS).unwrap();
        assert_eq!(object.pointer("/spec"), Some(&expected));
        assert_eq!(annotation(&object, HUB_FIELDS), None);
    }

    #[test]
    fn what_the_older_form_cannot_hold_comes_back() {
        up(down(), json!({"most": "10%", "colour": "red", "size": 3}));
    }

    #[test]
    fn a_writer_of_the_older_form_who_changed_the_same_field_wins() {
        let mut changed = down();
        crate::json::set(&mut changed, &["spec", "most"], 2);
        up(changed, json!({"most": 2, "colour": "red", "size": 3}));
    }

    #[test]
    fn a_writer_of_the_older_form_who_set_a_field_that_was_kept_wins() {
        let mut set = down();
        crate::json::set(&mut set, &["spec", "colour"], "blue");
        up(set, json!({"most": "10%", "colour": "blue", "size": 3}));
    }

    #[test]
    fn a_writer_of_the_older_form_who_removed_the_field_wins() {
        let mut removed = down();
        drop(crate::json::take(&mut removed, &["spec", "most"]));
        up(removed, json!({"colour": "red", "size": 3}));
    }
}
