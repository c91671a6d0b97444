//! CloneSet between v1alpha1 (flat update strategy, some settings in labels and annotations) and v1beta1.

use serde_json::{Value, json};

use crate::{
    annotations::{
        IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS, IMAGE_PREDOWNLOAD_PARALLELISM,
        IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS,
    },
    convert::{Error, annotation, label, set_annotation, set_label, take_annotation, take_label},
    json::{at_mut, drop_if_empty, object_mut, set, take, text},
    labels::CLONESET_SCALING_EXCLUDE_PREPARING_DELETE,
};

const UPDATE: &[&str] = &["updateStrategy"];
const ROLLING: &[&str] = &["updateStrategy", "rollingUpdate"];
const SCALE: &[&str] = &["spec", "scaleStrategy"];
const IN_PLACE: &[&str] = &["spec", "updateStrategy", "rollingUpdate", "inPlaceUpdateStrategy"];

/// v1alpha1 to v1beta1.
pub(super) fn up(object: &mut Value) -> Result<(), Error> {
    let Some(spec) = at_mut(object, &["spec"]).filter(|spec| spec.is_object()) else { return Ok(()) };
    nest_update_strategy(spec);
    let disabled =
        take(spec, &["scaleStrategy", "disablePVCReuse"]).is_some_and(|value| value == json!(true));
    set(spec, &["scaleStrategy", "enablePVCReuse"], !disabled);
    if label(object, CLONESET_SCALING_EXCLUDE_PREPARING_DELETE) == Some("true") {
        take_label(object, CLONESET_SCALING_EXCLUDE_PREPARING_DELETE);
        set(object, &[SCALE, &["excludePreparingDelete"]].concat(), true);
    }
    if let Some(text) = take_annotation(object, IMAGE_PREDOWNLOAD_PARALLELISM) {
        let value = text.parse::<i32>().map_or_else(|_| json!(text), |number| json!(number));
        set(object, &[IN_PLACE, &["imagePreDownloadParallelism"]].concat(), value);
    }
    promote_number(object, IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS, "imagePreDownloadTimeoutSeconds");
    promote_number(object, IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS, "imagePreDownloadMinUpdatedReadyPods");
    Ok(())
}

/// v1beta1 to v1alpha1.
pub(super) fn down(object: &mut Value) -> Result<(), Error> {
    if object_mut(object, &["spec"]).is_none() {
        return Ok(());
    }
    for (field, name) in [
        ("imagePreDownloadParallelism", IMAGE_PREDOWNLOAD_PARALLELISM),
        ("imagePreDownloadTimeoutSeconds", IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS),
        ("imagePreDownloadMinUpdatedReadyPods", IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS),
    ] {
        match take(object, &[IN_PLACE, &[field]].concat()) {
            Some(Value::String(value)) => set_annotation(object, name, value),
            Some(value) if !value.is_null() => set_annotation(object, name, value.to_string()),
            _ => {}
        }
    }
    match take(object, &[SCALE, &["excludePreparingDelete"]].concat()) {
        Some(Value::Bool(true)) => set_label(object, CLONESET_SCALING_EXCLUDE_PREPARING_DELETE, "true"),
        _ if label(object, CLONESET_SCALING_EXCLUDE_PREPARING_DELETE) == Some("true") => {
            take_label(object, CLONESET_SCALING_EXCLUDE_PREPARING_DELETE);
        }
        _ => {}
    }
    // Absent means "do not reuse" in v1beta1 and "reuse" in v1alpha1, so the older form always says it.
    let reuse =
        take(object, &[SCALE, &["enablePVCReuse"]].concat()).is_some_and(|value| value == json!(true));
    if !reuse {
        set(object, &[SCALE, &["disablePVCReuse"]].concat(), true);
    }
    drop_if_empty(object, IN_PLACE);
    if let Some(spec) = at_mut(object, &["spec"]) {
        flatten_update_strategy(spec);
    }
    Ok(())
}

/// Moves the flat update strategy of a v1alpha1 spec under `rollingUpdate`. A UnitedDeployment embeds such specs.
pub(crate) fn nest_update_strategy(spec: &mut Value) {
    let Some(strategy) = object_mut(spec, UPDATE) else { return };
    let flat = std::mem::take(strategy);
    let policy = match flat.get("type").and_then(Value::as_str) {
        Some("OnDelete") => None,
        Some(policy @ ("InPlaceIfPossible" | "InPlaceOnly")) => Some(policy),
        _ => Some("ReCreate"),
    };
    strategy.insert("type".into(), if policy.is_some() { "RollingUpdate" } else { "OnDelete" }.into());
    let mut rolling = crate::convert::others(&flat, &["type"]);
    if let Some(policy) = policy {
        rolling.insert("podUpdatePolicy".into(), policy.into());
    }
    if !rolling.is_empty() {
        strategy.insert("rollingUpdate".into(), Value::Object(rolling));
    }
}

/// Moves the settings of `rollingUpdate` of a v1beta1 spec up into the update strategy.
pub(crate) fn flatten_update_strategy(spec: &mut Value) {
    let policy = text(spec, &[ROLLING, &["podUpdatePolicy"]].concat()).unwrap_or("ReCreate").to_owned();
    let on_delete = text(spec, &[UPDATE, &["type"]].concat()) == Some("OnDelete");
    let rolling = take(spec, ROLLING);
    let Some(strategy) = object_mut(spec, UPDATE) else { return };
    strategy.insert("type".into(), if on_delete { "OnDelete".into() } else { policy.into() });
    if let Some(Value::Object(rolling)) = rolling {
        strategy.extend(crate::convert::others(&rolling, &["podUpdatePolicy"]));
    }
}

/// Only whole numbers move into the spec; other texts stay where the user wrote them.
fn promote_number(object: &mut Value, name: &str, field: &str) {
    let Some(number) = annotation(object, name).and_then(|text| text.parse::<i32>().ok()) else { return };
    take_annotation(object, name);
    set(object, &[IN_PLACE, &[field]].concat(), number);
}
