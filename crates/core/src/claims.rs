//! The volume claims of a pod: made from the claim templates of a workload, given from one owner to another, deleted.

use serde_json::{Map, Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    object::{ObjectRef, PERSISTENT_VOLUME_CLAIM},
    pod::Metadata,
};

/// The name of a claim template.
pub fn template_name(template: &Value) -> &str {
    template.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// A claim to create, from its template. `labels` are added to those of the template.
pub fn claim(
    template: &Value,
    namespace: &str,
    name: &str,
    labels: &Map<String, Value>,
    owners: &[Value],
) -> Value {
    let pairs = |member: &str| {
        let pairs = template.get("metadata").and_then(|metadata| metadata.get(member));
        pairs.and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let mut all_labels = pairs("labels");
    all_labels.extend(labels.clone());
    let mut metadata = json!({"name": name, "namespace": namespace, "labels": all_labels});
    let annotations = pairs("annotations");
    if let Some(members) = metadata.as_object_mut() {
        if !annotations.is_empty() {
            members.insert("annotations".to_owned(), annotations.into());
        }
        if !owners.is_empty() {
            members.insert("ownerReferences".to_owned(), json!(owners));
        }
    }
    json!({
        "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version(),
        "kind": PERSISTENT_VOLUME_CLAIM.kind,
        "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Creates a claim.
pub fn create(claim: Value, namespace: &str) -> Effect {
    Effect::Create { resource: PERSISTENT_VOLUME_CLAIM, namespace: namespace.into(), object: claim }
}

/// Makes `to` the controller of a claim, in place of `from`.
pub fn give(claim: &Metadata, from: &ObjectRef, to: &ObjectRef) -> Effect {
    let owners = json!([{"$patch": "delete", "uid": from.uid}, to.controller_reference()]);
    Effect::Patch {
        target: target(claim),
        subresource: None,
        patch: Patch::Strategic(json!({"metadata": {"ownerReferences": owners}})),
    }
}

/// Deletes a claim.
pub fn delete(claim: &Metadata) -> Effect {
    Effect::Delete { target: target(claim), grace: None, follows: false }
}

/// Deletes a claim if the deletion of its pod, which comes before it in the plan, has happened.
pub fn delete_with_pod(claim: &Metadata) -> Effect {
    Effect::Delete { target: target(claim), grace: None, follows: true }
}

fn target(claim: &Metadata) -> Target {
    Target::with_uid(PERSISTENT_VOLUME_CLAIM, claim.key(), claim.uid.clone())
}
