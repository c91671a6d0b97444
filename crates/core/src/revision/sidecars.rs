//! Revisions of a SidecarSet: its containers, volumes, pull secrets and annotations, in the bytes of the original.

use kruise_api::kubernetes::shape::{self, Unknown};
use serde_json::{Map, Value, json};

use super::drop_nulls;

/// What of a spec a revision holds.
const MEMBERS: [&str; 5] = ["containers", "imagePullSecrets", "initContainers", "patchPodMetadata", "volumes"];
/// What a sidecar has beside the members of a container.
const OWN: [&str; 6] = [
    "podInjectPolicy",
    "upgradeStrategy",
    "shareVolumePolicy",
    "shareVolumeDevicePolicy",
    "transferEnv",
    "resourcesPolicy",
];
/// Of these, those that are written although they are empty.
const ALWAYS: [&str; 2] = ["upgradeStrategy", "shareVolumePolicy"];

/// `data` of the revision of a spec.
pub fn data(spec: &Value) -> Value {
    let mut members = written(spec);
    for name in MEMBERS {
        members.entry(name).or_insert(Value::Null);
    }
    members.insert("$patch".to_owned(), "replace".into());
    json!({"spec": members})
}

/// The sidecars of a spec, or of the data of a revision, in the form in which equal ones are equal.
pub fn comparable(spec: &Value) -> Value {
    let mut value = written(spec).into();
    drop_nulls(&mut value);
    value
}

/// The members that are not empty, as the original stores them.
fn written(spec: &Value) -> Map<String, Value> {
    let mut members = Map::new();
    for name in MEMBERS {
        let Some(items) = spec.get(name).and_then(Value::as_array).filter(|items| !items.is_empty()) else {
            continue;
        };
        let items: Vec<Value> = match name {
            "containers" | "initContainers" => items.iter().map(container).collect(),
            "volumes" => items.iter().map(|volume| canonical("core.Volume", volume.clone())).collect(),
            _ => items.iter().cloned().map(tidy).collect(),
        };
        members.insert(name.to_owned(), items.into());
    }
    members
}

fn container(container: &Value) -> Value {
    let mut members = container.as_object().cloned().unwrap_or_default();
    let mut own = Map::new();
    for name in OWN {
        let member = members.remove(name).map(tidy).filter(|member| !is_nothing(member));
        if let Some(member) = member.or_else(|| ALWAYS.contains(&name).then(|| json!({}))) {
            own.insert(name.to_owned(), member);
        }
    }
    let mut written = canonical("core.Container", members.into());
    if let Some(members) = written.as_object_mut() {
        members.extend(own);
    }
    written
}

/// As a typed server writes it. What does not fit its type stays as it is.
fn canonical(kind: &str, mut value: Value) -> Value {
    let _ = shape::canonical(kind, &mut value, Unknown::Keep);
    value
}

/// Without empty texts and lists. Empty objects stay: they stand behind pointers.
fn tidy(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().map(|(name, member)| (name, tidy(member)));
            Value::Object(kept.filter(|(_, member)| !is_nothing(member)).collect())
        }
        Value::Array(items) => items.into_iter().map(tidy).collect::<Vec<_>>().into(),
        other => other,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
