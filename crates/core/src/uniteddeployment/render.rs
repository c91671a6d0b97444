//! The workload of a subset, as it should be.

use kruise_api::{
    annotations::SUBSET_PATCH,
    json::{at, object_or_insert, set},
    labels::{SUBSET_NAME, UNITED_DEPLOYMENT_REVISION},
    raw::Raw,
    uniteddeployment::v1beta1::Subset,
};
use serde_json::{Map, Value, json};

use super::{Child, Desired, Kind, UnitedDeployment};
use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
    object::ObjectRef,
    strategic_merge,
};

/// What a subset gets in this reconcile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// The subset.
    pub(super) subset: &'a Subset,
    /// The name of the revision.
    pub(super) revision: &'a str,
    /// How many pods.
    pub(super) replicas: i64,
    /// How many of them stay on the old revision.
    pub(super) partition: i64,
    /// How many may be unavailable, where pods that hang must not block the update.
    pub(super) max_unavailable: Option<i64>,
}

/// The text of a subset's patch, as the workload carries it.
pub(super) fn patch_text(subset: &Subset) -> String {
    match &subset.patch {
        Some(Raw(patch)) if !patch.is_null() => patch.to_string(),
        _ => String::new(),
    }
}

/// Whether a workload carries the patch of its subset.
pub(super) fn has_patch(child: &Child, subset: &Subset) -> bool {
    let carried = child.metadata.annotations.text(SUBSET_PATCH).unwrap_or_default();
    let wanted = patch_text(subset);
    // Another build may write the same patch in another form.
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    carried == wanted || (!carried.is_empty() && value(carried) == value(&wanted) && value(carried).is_some())
}

/// How the names of a subset's workloads begin.
pub(super) fn prefix(object: &UnitedDeployment, subset: &str) -> String {
    let name = &object.metadata.name;
    let long = format!("{name}-{subset}-");
    // The random part comes after it.
    let is_name = long.len() <= 253 - 5
        && long.split('.').all(|part| {
            part.starts_with(|letter: char| letter.is_ascii_alphanumeric())
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        });
    if is_name { long } else { format!("{name}-") }
}

/// The creation of a workload.
pub(super) fn creation(
    owner: &ObjectRef,
    object: &UnitedDeployment,
    desired: &Desired,
    wanted: &Wanted<'_>,
    id: &str,
) -> Result<Effect, strategic_merge::Error> {
    let prefix = prefix(object, &wanted.subset.name);
    let metadata = json!({
        "name": format!("{prefix}{id}"),
        "generateName": prefix,
        "namespace": object.metadata.namespace,
        "labels": labels(object, desired, wanted),
        "annotations": annotations(desired, wanted.subset),
        "ownerReferences": [owner.controller_reference()],
    });
    let resource = desired.kind.resource();
    let object = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec(object, desired, wanted)?,
    });
    Ok(Effect::Create { resource, namespace: owner.key.namespace.clone(), object })
}

/// The change that brings a workload, as the server has it, to what it should be; nothing where it is that already. Only labels
/// and annotations that we own are touched; the spec becomes what the template says.
pub(super) fn change(
    child: &Child,
    live: &Value,
    object: &UnitedDeployment,
    desired: &Desired,
    wanted: &Wanted<'_>,
) -> Result<Option<Effect>, strategic_merge::Error> {
    let rendered = spec(object, desired, wanted)?;
    let before = at(live, &["spec"]).cloned().unwrap_or_default();
    let mut patch = Map::new();
    if let Some(change) = merge_patch::between(&before, &rendered) {
        patch.insert("spec".to_owned(), change);
    }
    let mut metadata = Map::new();
    for (member, wanted) in
        [("labels", labels(object, desired, wanted)), ("annotations", annotations(desired, wanted.subset))]
    {
        let carried = at(live, &["metadata", member]);
        let missing: Map<String, Value> = wanted
            .into_iter()
            .filter(|(key, value)| carried.and_then(|carried| carried.get(key)) != Some(value))
            .collect();
        if !missing.is_empty() {
            metadata.insert(member.to_owned(), missing.into());
        }
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), metadata.into());
    }
    if patch.is_empty() {
        return Ok(None);
    }
    let version = at(live, &["metadata", "resourceVersion"]).and_then(Value::as_str).unwrap_or_default();
    let target = Target::with_uid(child.kind.resource(), child.metadata.key(), child.metadata.uid.clone());
    let target = target.at_version(version.into());
    Ok(Some(Effect::Patch { target, subresource: None, patch: Patch::Merge(patch.into()) }))
}

fn labels(object: &UnitedDeployment, desired: &Desired, wanted: &Wanted<'_>) -> Map<String, Value> {
    let of_template = at(&desired.template, &["metadata", "labels"]).and_then(Value::as_object);
    let mut labels = of_template.cloned().unwrap_or_default();
    for (key, value) in &object.spec.selector.match_labels {
        labels.insert(key.clone(), value.as_str().into());
    }
    labels.insert(UNITED_DEPLOYMENT_REVISION.to_owned(), wanted.revision.into());
    labels.insert(SUBSET_NAME.to_owned(), wanted.subset.name.as_str().into());
    labels
}

fn annotations(desired: &Desired, subset: &Subset) -> Map<String, Value> {
    let of_template = at(&desired.template, &["metadata", "annotations"]).and_then(Value::as_object);
    let mut annotations = of_template.cloned().unwrap_or_default();
    annotations.insert(SUBSET_PATCH.to_owned(), patch_text(subset).into());
    annotations
}

/// The spec of a subset's workload.
fn spec(
    object: &UnitedDeployment,
    desired: &Desired,
    wanted: &Wanted<'_>,
) -> Result<Value, strategic_merge::Error> {
    let mut spec = at(&desired.template, &["spec"]).cloned().unwrap_or_else(|| json!({}));
    let mut selector = object.spec.selector.clone();
    selector.match_labels.insert(SUBSET_NAME.to_owned(), wanted.subset.name.clone());
    set(&mut spec, &["selector"], json!(selector));
    set(&mut spec, &["replicas"], wanted.replicas);
    update(&mut spec, desired.kind, wanted);
    let pods = pods(at(&spec, &["template"]), wanted)?;
    set(&mut spec, &["template"], pods);
    Ok(without_nulls(spec))
}

/// How far the workload updates its pods.
fn update(spec: &mut Value, kind: Kind, wanted: &Wanted<'_>) {
    let rolling: &[&str] = match kind {
        Kind::Deployment => &["strategy", "rollingUpdate"],
        _ => &["updateStrategy", "rollingUpdate"],
    };
    let chosen = at(spec, &[rolling.first().copied().unwrap_or_default(), "type"]);
    let chosen = chosen.and_then(Value::as_str).unwrap_or_default().to_owned();
    let rolls = matches!(chosen.as_str(), "" | "RollingUpdate");
    let has_partition = match kind {
        Kind::Deployment => false,
        Kind::CloneSet => true,
        Kind::StatefulSet | Kind::AdvancedStatefulSet => rolls,
    };
    if has_partition {
        set(spec, &[rolling, &["partition"]].concat(), wanted.partition);
    }
    if let Some(number) = wanted.max_unavailable.filter(|_| rolls) {
        set(spec, &[rolling, &["maxUnavailable"]].concat(), number);
    }
}

/// The pod template of a subset. The patch comes last, so it has the last word.
fn pods(template: Option<&Value>, wanted: &Wanted<'_>) -> Result<Value, strategic_merge::Error> {
    let subset = wanted.subset;
    let mut pods = template.filter(|one| one.is_object()).cloned().unwrap_or_else(|| json!({}));
    set(&mut pods, &["metadata", "labels", SUBSET_NAME], subset.name.as_str());
    set(&mut pods, &["metadata", "labels", UNITED_DEPLOYMENT_REVISION], wanted.revision);
    if let Some(term) = &subset.node_selector_term {
        place(&mut pods, "matchExpressions", &json!(term.match_expressions));
        place(&mut pods, "matchFields", &json!(term.match_fields));
    }
    if !subset.tolerations.is_empty() {
        append(&mut pods, &["spec"], "tolerations", &json!(subset.tolerations));
    }
    match &subset.patch {
        Some(Raw(patch)) if !patch.is_null() => strategic_merge::pod(&pods, patch),
        _ => Ok(pods),
    }
}

/// Adds demands to every term about nodes; a pod needs one of them.
fn place(pods: &mut Value, member: &str, demands: &Value) {
    const REQUIRED: &[&str] =
        &["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    if demands.as_array().is_none_or(Vec::is_empty) {
        return;
    }
    let Some(required) = object_or_insert(pods, REQUIRED) else { return };
    let terms = required.entry("nodeSelectorTerms").or_insert_with(|| json!([]));
    if !terms.is_array() {
        *terms = json!([]);
    }
    let Some(terms) = terms.as_array_mut() else { return };
    if terms.is_empty() {
        terms.push(json!({}));
    }
    for term in terms {
        append(term, &[], member, demands);
    }
}

/// Adds items to the end of a list.
fn append(object: &mut Value, path: &[&str], member: &str, items: &Value) {
    let Some(members) = object_or_insert(object, path) else { return };
    let list = members.entry(member).or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    if let (Some(list), Some(items)) = (list.as_array_mut(), items.as_array()) {
        list.extend(items.iter().cloned());
    }
}

/// A merge patch cannot say null, and a server takes it for absent.
fn without_nulls(mut value: Value) -> Value {
    crate::revision::drop_nulls(&mut value);
    value
}
