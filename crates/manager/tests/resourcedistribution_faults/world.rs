//! The cluster around the controller.

use std::{collections::BTreeMap, time::Duration};

use kruise_api::resourcedistribution;
use kruise_sim::Sim;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

pub(crate) fn api(sim: &Sim, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        "" => Api::all_with(sim.client(), &resource),
        namespace => Api::namespaced_with(sim.client(), namespace, &resource),
    }
}

pub(crate) fn distributions(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps.kruise.io/v1beta1", "ResourceDistribution", "")
}

pub(crate) fn namespaces(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "v1", "Namespace", "")
}

/// Makes the kind known.
pub(crate) async fn install(sim: &Sim) {
    let all = api(sim, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "");
    let definition: DynamicObject = serde_json::from_value(resourcedistribution::CRD.object()).unwrap();
    all.create(&PostParams::default(), &definition).await.unwrap();
    sim.advance(Duration::from_secs(5)).await;
}

/// Creates an object, unless somebody has.
pub(crate) async fn create(sim: &Sim, namespace: &str, object: Value) -> bool {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    let api = api(sim, &text("apiVersion"), &text("kind"), namespace);
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.is_ok()
}

pub(crate) async fn merge(api: &Api<DynamicObject>, name: &str, change: Value) -> bool {
    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.is_ok()
}

pub(crate) async fn delete(api: &Api<DynamicObject>, name: &str) -> bool {
    api.delete(name, &DeleteParams::default()).await.is_ok()
}

pub(crate) async fn list(api: &Api<DynamicObject>) -> Vec<Value> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
}

/// The objects of a kind and name, by namespace.
pub(crate) async fn objects(sim: &Sim, kind: &str, name: &str) -> BTreeMap<String, Value> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let list = api(sim, "v1", kind, "").list(&params).await.unwrap();
    let objects = list.items.into_iter().map(|object| serde_json::to_value(object).unwrap());
    objects.map(|object| (object["metadata"]["namespace"].as_str().unwrap().to_owned(), object)).collect()
}

pub(crate) async fn get(sim: &Sim, name: &str) -> Value {
    serde_json::to_value(distributions(sim).get(name).await.unwrap()).unwrap()
}

pub(crate) fn distribution(name: &str, resource: Value, targets: Value) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "metadata": {"name": name},
        "spec": {"resource": resource, "targets": targets}})
}

pub(crate) fn counts(object: &Value) -> String {
    let count = |field: &str| object["status"][field].as_i64().unwrap_or(-1);
    format!("{}/{}/{}", count("desired"), count("succeeded"), count("failed"))
}

pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == kind).unwrap_or_default()
}

pub(crate) async fn namespace(sim: &Sim, name: &str, labels: Value) -> bool {
    let object =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    create(sim, "", object).await
}
