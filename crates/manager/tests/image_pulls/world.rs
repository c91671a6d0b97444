//! The cluster around the controllers, and its nodes, which answer as daemons do.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kruise_api::{crd::Crd, imagelistpulljob, imagepulljob, nodeimage};
use kruise_sim::Sim;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

pub(crate) const CONFIG: &str = "kruise-daemon-config";

pub(crate) fn api(sim: &Sim, namespace: &str, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let version = if group.is_empty() { "v1" } else { "v1beta1" };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    match namespace {
        "" => Api::all_with(sim.client(), &resource),
        _ => Api::namespaced_with(sim.client(), namespace, &resource),
    }
}

pub(crate) fn jobs(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "default", "apps.kruise.io", "ImagePullJob", "imagepulljobs")
}

pub(crate) fn lists(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "default", "apps.kruise.io", "ImageListPullJob", "imagelistpulljobs")
}

pub(crate) fn node_images(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "", "apps.kruise.io", "NodeImage", "nodeimages")
}

pub(crate) fn secrets(sim: &Sim, namespace: &str) -> Api<DynamicObject> {
    api(sim, namespace, "", "Secret", "secrets")
}

/// Makes the kinds known, and the namespace that daemons read.
pub(crate) async fn install(sim: &Sim) {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(sim.client(), &ApiResource::from_gvk(&kind));
    let all: [&Crd; 3] = [&imagepulljob::CRD, &imagelistpulljob::CRD, &nodeimage::CRD];
    for crd in all {
        let definition: DynamicObject = serde_json::from_value(crd.object()).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
    create(&api(sim, "", "", "Namespace", "namespaces"), json!({"metadata": {"name": CONFIG}})).await;
    sim.advance(Duration::from_secs(2)).await;
}

pub(crate) async fn create(api: &Api<DynamicObject>, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

pub(crate) async fn job(sim: &Sim, name: &str, spec: Value) {
    let mut whole = json!({"image": "x.io/app:v1", "completionPolicy": {"type": "Always"},
        "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3}, "imagePullPolicy": "IfNotPresent"});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": name},
        "spec": whole});
    create(&jobs(sim), object).await;
}

pub(crate) async fn remove(api: &Api<DynamicObject>, name: &str) {
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

/// An object as JSON; null when it is not there.
pub(crate) async fn get(api: &Api<DynamicObject>, name: &str) -> Value {
    api.get_opt(name).await.unwrap().map_or(Value::Null, |object| serde_json::to_value(object).unwrap())
}

pub(crate) async fn all(api: &Api<DynamicObject>) -> Vec<Value> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
}

/// The tags that are wanted on all nodes, as `node image:tag`.
pub(crate) async fn tags(sim: &Sim) -> Vec<String> {
    let mut found = Vec::new();
    for node in all(&node_images(sim)).await {
        for (name, image) in node["spec"]["images"].as_object().into_iter().flatten() {
            for tag in image["tags"].as_array().unwrap() {
                let node = node["metadata"]["name"].as_str().unwrap();
                found.push(format!("{node} {name}:{}", tag["tag"].as_str().unwrap()));
            }
        }
    }
    found
}

/// The daemons of all nodes: a pull takes some time, and the status tells how far each is.
pub(crate) struct Nodes {
    takes: i64,
    /// Images that cannot be pulled.
    pub(crate) broken: Vec<&'static str>,
    /// When pulls began, by node, image, tag and version.
    begun: BTreeMap<(String, String, String, i64), i64>,
    /// The rounds of pulls that were done, by node and image.
    pub(crate) pulls: BTreeMap<(String, String), BTreeSet<i64>>,
    /// The most pulls of one image at once that were ever seen.
    pub(crate) most_at_once: BTreeMap<String, usize>,
}

impl Nodes {
    pub(crate) fn new(takes: i64) -> Self {
        let (begun, pulls, most_at_once) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { takes, broken: Vec::new(), begun, pulls, most_at_once }
    }

    /// Time passes in the cluster, and its nodes work.
    pub(crate) async fn live(&mut self, sim: &Sim, seconds: u64) {
        for _ in 0..seconds {
            sim.advance(Duration::from_secs(1)).await;
            self.work(sim).await;
        }
    }

    pub(crate) async fn work(&mut self, sim: &Sim) {
        let api = node_images(sim);
        let now = sim.clock().now();
        let mut at_once: BTreeMap<String, usize> = BTreeMap::new();
        for node in all(&api).await {
            let name = node["metadata"]["name"].as_str().unwrap().to_owned();
            let (mut statuses, mut counts) = (json!({}), [0_i32; 3]);
            for (image, wanted) in node["spec"]["images"].as_object().into_iter().flatten() {
                let tags: Vec<Value> = wanted["tags"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tag| {
                        let status = self.status(&node, &name, image, tag, now.as_second());
                        let phase = match status["phase"].as_str() {
                            Some("Succeeded") => 0,
                            Some("Failed") => 1,
                            _ => 2,
                        };
                        counts[phase] += 1;
                        if phase == 2 {
                            let full = format!("{image}:{}", tag["tag"].as_str().unwrap());
                            *at_once.entry(full).or_default() += 1;
                        }
                        status
                    })
                    .collect();
                statuses[image] = json!({"tags": tags});
            }
            let mut status = json!({"desired": counts.iter().sum::<i32>(), "succeeded": counts[0], "failed": counts[1],
                "pulling": counts[2], "waiting": 0, "imageStatuses": statuses});
            if let Some(first) = node["status"].get("firstSyncStatus") {
                status["firstSyncStatus"] = first.clone();
            }
            if status != node["status"] && (node["status"].is_object() || counts != [0, 0, 0]) {
                let version = &node["metadata"]["resourceVersion"];
                let whole = json!([{"op": "test", "path": "/metadata/resourceVersion", "value": version},
                    {"op": "add", "path": "/status", "value": status}]);
                let patch = Patch::<()>::Json(serde_json::from_value(whole).unwrap());
                // Someone else was quicker: the next round tells it.
                let _ = api.patch_status(&name, &PatchParams::default(), &patch).await;
            }
        }
        for (image, count) in at_once {
            let most = self.most_at_once.entry(image).or_default();
            *most = (*most).max(count);
        }
    }

    fn status(&mut self, node: &Value, name: &str, image: &str, tag: &Value, now: i64) -> Value {
        let text = tag["tag"].as_str().unwrap();
        let version = tag["version"].as_i64().unwrap_or(0);
        let known = node["status"]["imageStatuses"][image]["tags"].as_array().into_iter().flatten();
        let known = known
            .into_iter()
            .find(|status| status["tag"] == text && status["version"].as_i64().unwrap_or(0) == version);
        if let Some(known) = known.filter(|known| known["completionTime"].is_string()) {
            return known.clone();
        }
        let key = (name.to_owned(), image.to_owned(), text.to_owned(), version);
        let begun = *self.begun.entry(key).or_insert(now);
        let time = |second: i64| jiff::Timestamp::from_second(second).unwrap().to_string();
        let mut status = json!({"tag": text, "phase": "Pulling", "startTime": time(begun)});
        if version > 0 {
            status["version"] = json!(version);
        }
        if now >= begun + self.takes {
            let full = format!("{image}:{text}");
            let is_broken = self.broken.contains(&full.as_str());
            status["phase"] = json!(if is_broken { "Failed" } else { "Succeeded" });
            status["completionTime"] = json!(time(now));
            self.pulls.entry((name.to_owned(), full)).or_default().insert(version);
        }
        status
    }
}
