//! Revisions of the template: what they hold, byte for byte as the original writes it, and when two of them are equal.
//!
//! Pods carry the name of the revision, so the revision of a template that did not change must be found again whoever wrote
//! it: a new one would restart every pod.

use kruise_api::{
    kubernetes::shape::{self, Unknown},
    uniteddeployment::upgrade_clone_set,
};
use serde_json::{Map, Value, json};

use super::Kind;

/// Whether the data of a revision holds a template of a UnitedDeployment.
pub fn is_template(template: &Value) -> bool {
    Kind::ALL.iter().any(|kind| template.get(kind.field()).is_some())
}

/// `data` of the revision of a template.
pub fn data(kind: Kind, template: &Value) -> Value {
    json!({"spec": {"template": {"$patch": "replace", kind.field(): written(kind, template)}}})
}

/// The templates of a revision or of a spec, in the form in which equal ones are equal. What is empty means what is absent.
pub fn comparable(template: &Value) -> Value {
    let mut all = Map::new();
    for kind in Kind::ALL {
        let Some(one) = template.get(kind.field()).filter(|one| !one.is_null()) else { continue };
        let mut one = one.clone();
        if kind == Kind::CloneSet
            && let Some(spec) = one.get_mut("spec")
        {
            upgrade_clone_set(spec);
        }
        let mut one = written(kind, &one);
        prune(&mut one);
        all.insert(kind.field().to_owned(), one);
    }
    Value::Object(all)
}

/// A template as a typed server writes it: structs that are held by value appear, empty optional members disappear.
fn written(kind: Kind, template: &Value) -> Value {
    let mut template = template.clone();
    let Some(members) = template.as_object_mut() else { return template };
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    let _ = shape::canonical("meta.ObjectMeta", metadata, Unknown::Keep);
    let spec = members.entry("spec").or_insert_with(|| json!({}));
    match kind {
        Kind::StatefulSet => native("apps.StatefulSetSpec", spec),
        Kind::Deployment => native("apps.DeploymentSpec", spec),
        Kind::CloneSet => of_own(spec, &["scaleStrategy", "updateStrategy"]),
        Kind::AdvancedStatefulSet => of_own(spec, &["updateStrategy", "volumeClaimUpdateStrategy"]),
    }
    template
}

fn native(shape: &str, spec: &mut Value) {
    let _ = shape::canonical(shape, spec, Unknown::Keep);
}

/// The same for a spec of one of our own kinds, whose structs by value these are.
fn of_own(spec: &mut Value, structs: &[&str]) {
    let Some(members) = spec.as_object_mut() else { return };
    let mut pods = members.remove("template").unwrap_or_else(|| json!({}));
    let claims = members.remove("volumeClaimTemplates");
    members.values_mut().for_each(drop_zeros);
    members.retain(|name, value| !(is_zero(value) || name == "minReadySeconds" && *value == 0));
    for name in structs {
        members.entry(*name).or_insert_with(|| json!({}));
    }
    let _ = shape::canonical("core.PodTemplateSpec", &mut pods, Unknown::Keep);
    members.insert("template".to_owned(), pods);
    if let Some(Value::Array(mut claims)) = claims
        && !claims.is_empty()
    {
        for claim in &mut claims {
            let _ = shape::canonical("core.PersistentVolumeClaim", claim, Unknown::Keep);
        }
        members.insert("volumeClaimTemplates".to_owned(), Value::Array(claims));
    }
}

/// What Go leaves out: null, false, empty texts and lists. Numbers are mostly pointers, so a zero of them is written.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn drop_zeros(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(drop_zeros);
            members.retain(|name, value| !(is_zero(value) || name == "gracePeriodSeconds" && *value == 0));
        }
        Value::Array(items) => items.iter_mut().for_each(drop_zeros),
        _ => {}
    }
}

/// Takes out what means the same as nothing.
fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(prune);
            members.retain(|_, member| match member {
                Value::Null => false,
                Value::String(text) => !text.is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(members) => !members.is_empty(),
                _ => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}
