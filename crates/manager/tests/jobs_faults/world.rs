//! The cluster around the controllers.

use std::time::Duration;

use kruise_api::{advancedcronjob, broadcastjob, crd::Crd, imagelistpulljob};
use kruise_sim::Sim;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

pub(crate) fn api(sim: &Sim, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    Api::namespaced_with(sim.client(), "default", &resource)
}

pub(crate) fn pods(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "", "v1", "Pod", "pods")
}

pub(crate) fn jobs(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "batch", "v1", "Job", "jobs")
}

pub(crate) fn broadcasts(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps.kruise.io", "v1beta1", "BroadcastJob", "broadcastjobs")
}

pub(crate) fn schedules(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps.kruise.io", "v1beta1", "AdvancedCronJob", "advancedcronjobs")
}

/// Makes the kinds known.
pub(crate) async fn install(sim: &Sim) {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(sim.client(), &ApiResource::from_gvk(&kind));
    let all: [&Crd; 3] = [&broadcastjob::CRD, &advancedcronjob::CRD, &imagelistpulljob::CRD];
    for crd in all {
        let definition: DynamicObject = serde_json::from_value(crd.object()).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
    sim.advance(Duration::from_secs(5)).await;
}

/// Creates an object, which is of the kind of its API.
pub(crate) async fn create(api: &Api<DynamicObject>, mut object: Value) {
    let (version, kind) = match api.resource_url().rsplit('/').next() {
        Some("broadcastjobs") => ("apps.kruise.io/v1beta1", "BroadcastJob"),
        Some("advancedcronjobs") => ("apps.kruise.io/v1beta1", "AdvancedCronJob"),
        _ => ("v1", "ResourceQuota"),
    };
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

pub(crate) async fn change(api: &Api<DynamicObject>, name: &str, change: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

pub(crate) async fn get(api: &Api<DynamicObject>, name: &str) -> Value {
    serde_json::to_value(api.get(name).await.unwrap()).unwrap()
}

pub(crate) async fn all(api: &Api<DynamicObject>) -> Vec<Value> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
}

/// A pod template that runs a script.
pub(crate) fn template(script: &str) -> Value {
    json!({"spec": {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", script]}],
    }})
}

pub(crate) fn is_active(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    pod["metadata"]["deletionTimestamp"].is_null() && !matches!(phase, "Succeeded" | "Failed")
}

/// The node that a pod is on or bound to.
pub(crate) fn node_of(pod: &Value) -> &str {
    let bound = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    let node = pod.pointer("/spec/nodeName").or_else(|| pod.pointer(bound));
    node.and_then(Value::as_str).unwrap_or_default()
}
