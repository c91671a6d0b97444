//! A strategic merge patch of a pod or of a pod template: a merge patch that knows by which keys the lists of a pod merge.
//!
//! | in the patch | what it does |
//! | --- | --- |
//! | `field: null` | removes the field |
//! | `$patch: replace` | in an object: the rest of it replaces the old one; in a list: the other items do |
//! | `$patch: delete` | in an object: empties it; in an item of a list: removes the item with its key |
//! | `$retainKeys: [..]` | removes the other fields of the object |
//! | `$setElementOrder/x: [..]` | puts the list `x` into this order |
//! | `$deleteFromPrimitiveList/x: [..]` | removes these values from the list `x` |
//!
//! New items stand before the items after which they are named in the patch, as a server puts them.

use serde_json::{Map, Value};

type Object = Map<String, Value>;

/// Why a patch cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The patch, or what it is for, is no JSON object.
    #[error("invalid JSON document")]
    NotAnObject,
    /// An item of a list lacks the field that identifies it.
    #[error("an item of list {list} does not contain declared merge key: {key}")]
    NoKey {
        /// The name of the list.
        list: String,
        /// The field.
        key: &'static str,
    },
    /// Items that merge by a key must be objects.
    #[error("an item of list {list} is no object")]
    NoItem {
        /// The name of the list.
        list: String,
    },
    /// A directive that does not exist.
    #[error("unknown patch type: {0}")]
    Directive(String),
    /// `$retainKeys` is no list.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
}

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";

/// The parts of a pod whose lists merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Pod,
    Metadata,
    Spec,
    Container,
    Other,
}

/// How a list merges.
#[derive(Clone, Copy)]
enum Merges {
    /// Items with the same value of this field are one.
    By(&'static str, Part),
    /// Equal values are one.
    AsSet,
    /// The new list replaces the old one.
    Whole,
}

impl Part {
    fn object(self, name: &str) -> Self {
        match (self, name) {
            (Self::Pod, "metadata") => Self::Metadata,
            (Self::Pod, "spec") => Self::Spec,
            _ => Self::Other,
        }
    }

    fn list(self, name: &str) -> Merges {
        use Merges::{AsSet, By, Whole};
        match (self, name) {
            (Self::Metadata, "finalizers") => AsSet,
            (Self::Metadata, "ownerReferences") => By("uid", Self::Other),
            (Self::Spec, "containers" | "initContainers" | "ephemeralContainers") => {
                By("name", Self::Container)
            }
            (Self::Spec, "volumes" | "imagePullSecrets" | "resourceClaims" | "schedulingGates") => {
                By("name", Self::Other)
            }
            (Self::Spec, "hostAliases") => By("ip", Self::Other),
            (Self::Spec, "topologySpreadConstraints") => By("topologyKey", Self::Other),
            (Self::Container, "env") => By("name", Self::Other),
            (Self::Container, "ports") => By("containerPort", Self::Other),
            (Self::Container, "volumeMounts") => By("mountPath", Self::Other),
            (Self::Container, "volumeDevices") => By("devicePath", Self::Other),
            _ => Whole,
        }
    }
}

/// A pod, or a pod template, after a patch.
pub fn pod(pod: &Value, patch: &Value) -> Result<Value, Error> {
    let (Value::Object(old), Value::Object(patch)) = (pod, patch) else { return Err(Error::NotAnObject) };
    object(old.clone(), patch, Part::Pod).map(Value::Object)
}

fn object(mut old: Object, patch: &Object, part: Part) -> Result<Object, Error> {
    match patch.get(PATCH).map(|directive| directive.as_str().unwrap_or_default()) {
        None => {}
        Some("replace") => return Ok(cleaned(patch)),
        Some("delete") => return Ok(Object::new()),
        Some(other) => return Err(Error::Directive(other.to_owned())),
    }
    if let Some(kept) = patch.get(RETAIN_KEYS) {
        let kept = kept.as_array().ok_or(Error::RetainKeys)?;
        old.retain(|name, _| kept.iter().any(|key| key == name.as_str()));
    }
    for (name, new) in patch.iter().filter(|(name, _)| !is_directive(name)) {
        let merged = match (old.remove(name), new) {
            (_, Value::Null) => continue,
            (Some(Value::Object(old)), Value::Object(new)) => {
                Value::Object(object(old, new, part.object(name))?)
            }
            (Some(Value::Array(old)), Value::Array(new)) => match part.list(name) {
                Merges::By(key, item) => Value::Array(list(&old, new, name, key, item)?),
                Merges::AsSet => {
                    let added = new.iter().filter(|value| !old.contains(value)).cloned();
                    Value::Array(old.iter().cloned().chain(added).collect())
                }
                Merges::Whole => clean(&Value::Array(new.clone())),
            },
            (_, new) => clean(new),
        };
        old.insert(name.clone(), merged);
    }
    for (name, values) in patch {
        let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(list) = name.strip_prefix(DELETE_VALUES)
            && let Some(Value::Array(items)) = old.get_mut(list)
        {
            items.retain(|item| !values.contains(item));
        }
        if let Some(list) = name.strip_prefix(ELEMENT_ORDER)
            && let Merges::By(key, _) = part.list(list)
            && let Some(Value::Array(items)) = old.get_mut(list)
        {
            let place = |item: &Value| values.iter().position(|value| value.get(key) == item.get(key));
            // A list that is not sorted by what the order does not name would not stay as it is.
            if items.iter().all(|item| place(item).is_some()) {
                items.sort_by_key(|item| place(item));
            }
        }
    }
    Ok(old)
}

fn list(
    old: &[Value],
    patch: &[Value],
    name: &str,
    key: &'static str,
    part: Part,
) -> Result<Vec<Value>, Error> {
    let (mut server, mut changed, mut replaces) = (old.to_vec(), Vec::new(), false);
    for item in patch {
        let Value::Object(fields) = item else { return Err(Error::NoItem { list: name.to_owned() }) };
        let no_key = || Error::NoKey { list: name.to_owned(), key };
        match fields.get(PATCH).map(|directive| directive.as_str().unwrap_or_default()) {
            Some("replace") => replaces = true,
            Some("delete") => {
                let gone = fields.get(key).ok_or_else(no_key)?;
                server.retain(|old| old.get(key) != Some(gone));
            }
            Some(other) => return Err(Error::Directive(other.to_owned())),
            None => changed.push((fields.get(key).ok_or_else(no_key)?, fields)),
        }
    }
    if replaces {
        return Ok(changed.into_iter().map(|(_, fields)| Value::Object(cleaned(fields))).collect());
    }
    let place = |wanted: &Value| server.iter().position(|item| item.get(key) == Some(wanted));
    let mut rest = server.iter().enumerate().peekable();
    let is_changed = |item: &Value| changed.iter().any(|(wanted, _)| item.get(key) == Some(*wanted));
    let mut merged: Vec<Value> = Vec::with_capacity(server.len() + changed.len());
    for (wanted, fields) in &changed {
        let found = place(wanted);
        // What the server has before this item stays before it.
        while let Some((_, item)) = rest.next_if(|(at, _)| found.is_some_and(|found| *at < found)) {
            if !is_changed(item) {
                merged.push(item.clone());
            }
        }
        let before = merged.iter_mut().find(|item| item.get(key) == Some(*wanted));
        let result = match (&before, found.and_then(|found| server.get(found))) {
            (Some(Value::Object(twice)), _) => object(twice.clone(), fields, part)?,
            (_, Some(Value::Object(known))) => object(known.clone(), fields, part)?,
            _ => cleaned(fields),
        };
        match before {
            Some(slot) => *slot = Value::Object(result),
            None => merged.push(Value::Object(result)),
        }
    }
    merged.extend(rest.filter(|(_, item)| !is_changed(item)).map(|(_, item)| item.clone()));
    Ok(merged)
}

/// A value that is new: nulls and directives go.
fn clean(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(cleaned(fields)),
        Value::Array(items) => {
            let is_deletion = |item: &&Value| item.get(PATCH).is_some_and(|directive| directive == "delete");
            Value::Array(items.iter().filter(|item| !is_deletion(item)).map(clean).collect())
        }
        scalar => scalar.clone(),
    }
}

fn cleaned(fields: &Object) -> Object {
    let kept = fields.iter().filter(|(name, value)| !value.is_null() && !is_directive(name));
    kept.map(|(name, value)| (name.clone(), clean(value))).collect()
}

fn is_directive(name: &str) -> bool {
    name == PATCH || name == RETAIN_KEYS || name.starts_with(ELEMENT_ORDER) || name.starts_with(DELETE_VALUES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn before() -> Value {
        json!({"metadata": {"labels": {"app": "web"}, "finalizers": ["a"]}, "spec": {
            "tolerations": [{"key": "x"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [{"name": "main", "image": "app:v1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
                {"name": "log", "image": "log:v1"}]}})
    }

    #[track_caller]
    fn check(patch: Value, path: &str, expected: Value) {
        let after = pod(&before(), &patch).unwrap();
        assert_eq!(after.pointer(path).cloned().unwrap_or_default(), expected);
    }

    #[test]
    fn containers_and_variables_merge_by_name() {
        let patch = |env: Value| json!({"spec": {"containers": [{"name": "main", "env": env}]}});
        let env = "/spec/containers/0/env";
        let (a, b) = (json!({"name": "A", "value": "1"}), json!({"name": "B", "value": "2"}));
        check(patch(json!([{"name": "B", "value": "3"}])), env, json!([a, {"name": "B", "value": "3"}]));
        check(patch(json!([{"name": "N"}])), env, json!([{"name": "N"}, a, b]));
        check(patch(json!([{"name": "A", "$patch": "delete"}])), env, json!([b]));
        check(patch(json!([{"$patch": "replace"}, {"name": "N"}])), env, json!([{"name": "N"}]));
        check(
            patch(json!([{"name": "A", "value": null, "valueFrom": {"fieldRef": {}}}])),
            env,
            json!([{"name": "A", "valueFrom": {"fieldRef": {}}}, b]),
        );
        let image = json!({"spec": {"containers": [{"name": "log", "image": "log:v2"}]}});
        check(image.clone(), "/spec/containers/1/image", json!("log:v2"));
        check(image, "/spec/containers/0/image", json!("app:v1"));
        check(
            json!({"spec": {"containers": [{"name": "x"}], "$setElementOrder/containers": [{"name": "log"}, {"name": "x"}, {"name": "main"}]}}),
            "/spec/containers/1/name",
            json!("x"),
        );
    }

    #[test]
    fn other_lists_are_replaced_and_nulls_remove() {
        check(
            json!({"spec": {"tolerations": [{"key": "y", "value": null}]}}),
            "/spec/tolerations",
            json!([{"key": "y"}]),
        );
        check(
            json!({"metadata": {"labels": {"app": null, "zone": "a"}}}),
            "/metadata/labels",
            json!({"zone": "a"}),
        );
        check(json!({"metadata": {"finalizers": ["b", "a"]}}), "/metadata/finalizers", json!(["a", "b"]));
        check(
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
            "/metadata/finalizers",
            json!([]),
        );
        let source = json!({"spec": {"volumes": [{"name": "data", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}});
        check(source, "/spec/volumes", json!([{"name": "data", "hostPath": {"path": "/"}}]));
        check(json!({"spec": {"affinity": {"a": {"b": null}}}}), "/spec/affinity", json!({"a": {}}));
        check(json!({"spec": {"containers": "x"}}), "/spec/containers", json!("x"));
    }

    #[test]
    fn a_patch_that_cannot_be_carried_out_says_why() {
        let told = |patch: Value| pod(&before(), &patch).unwrap_err().to_string();
        assert_eq!(told(json!("x")), "invalid JSON document");
        assert_eq!(
            told(json!({"spec": {"containers": [{"image": "x"}]}})),
            "an item of list containers does not contain declared merge key: name"
        );
        assert_eq!(told(json!({"spec": {"containers": ["x"]}})), "an item of list containers is no object");
        assert_eq!(told(json!({"spec": {"$patch": "merge"}})), "unknown patch type: merge");
    }

    #[test]
    fn nothing_changes_nothing() {
        assert_eq!(pod(&before(), &json!({})).unwrap(), before());
    }
}
