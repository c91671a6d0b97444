//! The pods and claims of a StatefulSet.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::object::{child, items, pod_from_template, set as put, text};
use super::{INDEX_LABEL, NAME_LABEL, REVISION_LABEL, claim_name};
use crate::registry::Resource;

/// The pod of an ordinal.
pub(super) fn build(
    sets: &Arc<Resource>,
    set: &Value,
    template: &Value,
    ordinal: i64,
    revision: &str,
) -> Value {
    let name = format!("{}-{ordinal}", text(set, "/metadata/name"));
    let mut pod = pod_from_template(sets, set, template);
    put(&mut pod, "metadata", "name", json!(name));
    put(&mut pod, "metadata", "generateName", json!(format!("{}-", text(set, "/metadata/name"))));
    if let Some(meta) = pod.get_mut("metadata")
        && let Some(labels) = child(meta, "labels")
    {
        labels.insert(NAME_LABEL.to_owned(), json!(name));
        labels.insert(INDEX_LABEL.to_owned(), json!(ordinal.to_string()));
        labels.insert(REVISION_LABEL.to_owned(), json!(revision));
    }
    put(&mut pod, "spec", "hostname", json!(name));
    let service = text(set, "/spec/serviceName");
    if !service.is_empty() {
        put(&mut pod, "spec", "subdomain", json!(service));
    }
    let templates = items(set, "/spec/volumeClaimTemplates");
    if templates.is_empty() {
        return pod;
    }
    let ours = |volume: &Value| templates.iter().any(|t| text(t, "/metadata/name") == text(volume, "/name"));
    let mut volumes: Vec<Value> = templates
        .iter()
        .map(|template| {
            let claim = json!({"claimName": claim_name(template, set, ordinal)});
            json!({"name": text(template, "/metadata/name"), "persistentVolumeClaim": claim})
        })
        .collect();
    volumes.extend(items(&pod, "/spec/volumes").iter().filter(|volume| !ours(volume)).cloned());
    put(&mut pod, "spec", "volumes", Value::Array(volumes));
    pod
}

/// The claims of an ordinal.
pub(super) fn claims(set: &Value, ordinal: i64) -> Vec<Value> {
    let labels = set.pointer("/spec/selector/matchLabels");
    items(set, "/spec/volumeClaimTemplates")
        .iter()
        .map(|template| {
            let mut metadata = Map::new();
            metadata.insert("name".to_owned(), claim_name(template, set, ordinal));
            let mut all =
                template.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
            all.extend(labels.and_then(Value::as_object).cloned().unwrap_or_default());
            metadata.insert("labels".to_owned(), Value::Object(all));
            if let Some(annotations) = template.pointer("/metadata/annotations") {
                metadata.insert("annotations".to_owned(), annotations.clone());
            }
            json!({"metadata": metadata, "spec": template.get("spec").cloned().unwrap_or_default()})
        })
        .collect()
}
