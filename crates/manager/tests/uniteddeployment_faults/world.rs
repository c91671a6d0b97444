//! The cluster, what people do to it by chance, and what they want in the end.

use std::time::Duration;

use kruise_api::{
    cloneset,
    crd::Crd,
    labels::{SUBSET_NAME, UNITED_DEPLOYMENT_REVISION},
    statefulset, uniteddeployment,
};
use kruise_sim::Sim;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

pub(crate) struct World {
    deeds: Vec<String>,
    /// The field of the template.
    field: &'static str,
    subsets: Vec<&'static str>,
    mode: Value,
    replicas: u64,
    image: u64,
}

pub(crate) fn api(sim: &Sim, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(sim.client(), "default", &resource)
}

pub(crate) fn objects(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps.kruise.io", "v1beta1", "UnitedDeployment")
}

fn nodes(sim: &Sim) -> Api<DynamicObject> {
    Api::all_with(sim.client(), &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Node")))
}

async fn all(api: &Api<DynamicObject>) -> Vec<Value> {
    let list = api.list(&ListParams::default()).await.unwrap();
    list.items.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect()
}

/// The workloads of the subsets: CloneSets and Deployments.
pub(crate) async fn workloads(sim: &Sim) -> Vec<Value> {
    let mut found = all(&api(sim, "apps.kruise.io", "v1beta1", "CloneSet")).await;
    found.extend(all(&api(sim, "apps", "v1", "Deployment")).await);
    found.extend(all(&api(sim, "apps", "v1", "StatefulSet")).await);
    found
}

pub(crate) async fn pods(sim: &Sim) -> Vec<Value> {
    all(&api(sim, "", "v1", "Pod")).await
}

pub(crate) async fn close(sim: &Sim, node: &str, closed: bool) {
    let change = Patch::Merge(json!({"spec": {"unschedulable": closed}}));
    nodes(sim).patch(node, &PatchParams::default(), &change).await.unwrap();
}

/// Makes the kinds known.
pub(crate) async fn install(sim: &Sim) {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(sim.client(), &ApiResource::from_gvk(&kind));
    let kinds: [&Crd; 3] = [&uniteddeployment::CRD, &cloneset::CRD, &statefulset::CRD];
    for crd in kinds {
        let definition: DynamicObject = serde_json::from_value(crd.object()).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
    sim.advance(Duration::from_secs(5)).await;
}

fn template(image: u64) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 1,
            "containers": [{"name": "app", "image": format!("app:v{image}")}]}}}})
}

/// A subset on the nodes that belong to it.
fn subset(name: &str) -> Value {
    let nodes = match name {
        "a" => json!(["node-1"]),
        "b" => json!(["node-2"]),
        "c" => json!(["node-3"]),
        _ => json!(["node-4"]),
    };
    json!({"name": name, "nodeSelectorTerm": {"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}})
}

/// A UnitedDeployment with these subsets.
pub(crate) fn object(field: &str, subsets: &[&str], mode: &Value, replicas: u64) -> Value {
    let subsets: Vec<Value> = subsets.iter().map(|name| subset(name)).collect();
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "UnitedDeployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {field: template(1)},
            "topology": {"subsets": subsets, "scheduleStrategy": mode}}})
}

pub(crate) async fn create(sim: &Sim, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    objects(sim).create(&PostParams::default(), &object).await.unwrap();
}

pub(crate) async fn change(sim: &Sim, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    objects(sim).patch("web", &PatchParams::default(), &patch).await.unwrap();
}

/// Fixed, adaptive and reserving.
pub(crate) fn adaptive(reserves: bool) -> Value {
    json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 10, "unschedulableDuration": 20,
        "reserveUnschedulablePods": reserves}})
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

impl World {
    pub(crate) async fn new(sim: &mut Sim) -> Self {
        install(sim).await;
        let field = *sim.pick_one(&["cloneSetTemplate", "deploymentTemplate"]).unwrap();
        let mode = match sim.pick(0..3) {
            0 => json!({}),
            1 => adaptive(false),
            _ => adaptive(true),
        };
        let mut world = Self {
            deeds: Vec::new(),
            field,
            subsets: vec!["a", "b", "c"],
            mode,
            replicas: sim.pick(1..9),
            image: 1,
        };
        world.note(sim, format!("creates {field}, {}, {} replicas", world.mode, world.replicas));
        create(sim, object(field, &world.subsets, &world.mode, world.replicas)).await;
        world
    }

    pub(crate) fn deeds(&self) -> String {
        self.deeds.join("\n")
    }

    fn note(&mut self, sim: &Sim, deed: String) {
        self.deeds.push(format!("{} {deed}", sim.clock().now()));
    }

    async fn set_subsets(&self, sim: &Sim) {
        let subsets: Vec<Value> = self.subsets.iter().map(|name| subset(name)).collect();
        change(sim, json!({"topology": {"subsets": subsets, "scheduleStrategy": self.mode}})).await;
    }

    /// Does one thing.
    pub(crate) async fn act(&mut self, sim: &mut Sim) {
        match sim.pick(0..8) {
            0 | 1 => {
                self.replicas = sim.pick(0..10);
                self.note(sim, format!("scales to {}", self.replicas));
                change(sim, json!({"replicas": self.replicas})).await;
            }
            2 | 3 => {
                self.image += 1;
                self.note(sim, format!("image {}", self.image));
                change(sim, json!({"template": {self.field: template(self.image)}})).await;
            }
            4 => {
                match self.subsets.contains(&"d") {
                    true => self.subsets.retain(|name| *name != "d"),
                    false => self.subsets.push("d"),
                }
                self.note(sim, format!("subsets {:?}", self.subsets));
                self.set_subsets(sim).await;
            }
            5 => {
                let (node, closed) = (format!("node-{}", sim.pick(1..4)), sim.pick(0..2) == 0);
                self.note(sim, format!("{node} closed: {closed}"));
                close(sim, &node, closed).await;
            }
            6 => {
                let found = workloads(sim).await;
                let Some(one) = sim.pick_one(&found) else { return };
                let name = one["metadata"]["name"].as_str().unwrap().to_owned();
                self.note(sim, format!("deletes {name}"));
                let (group, version, kind) = match self.field {
                    "cloneSetTemplate" => ("apps.kruise.io", "v1beta1", "CloneSet"),
                    _ => ("apps", "v1", "Deployment"),
                };
                let _ = api(sim, group, version, kind).delete(&name, &DeleteParams::background()).await;
            }
            _ => {
                let partition = sim.pick(0..3);
                self.note(sim, format!("partition {partition}"));
                change(sim, json!({"updateStrategy": {"manualUpdate": {"partitions": {"a": partition}}}}))
                    .await;
            }
        }
    }

    /// What people want in the end: open nodes, no partition, and some pods.
    pub(crate) async fn resume(&mut self, sim: &mut Sim) {
        for node in 1..5 {
            close(sim, &format!("node-{node}"), false).await;
        }
        self.replicas = sim.pick(1..9);
        self.note(sim, format!("wants {} in the end", self.replicas));
        change(
            sim,
            json!({"replicas": self.replicas, "updateStrategy": {"manualUpdate": {"partitions": null}}}),
        )
        .await;
    }

    /// Whether everything is as people want it.
    pub(crate) async fn is_done(&self, sim: &Sim) -> Result<(), String> {
        let web = serde_json::to_value(objects(sim).get("web").await.unwrap()).unwrap();
        let status = &web["status"];
        let label = |object: &Value, key: &str| {
            object["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned()
        };
        let found = workloads(sim).await;
        let mut subsets: Vec<String> = found.iter().map(|one| label(one, SUBSET_NAME)).collect();
        subsets.sort();
        if subsets != self.subsets {
            return Err(format!("workloads {subsets:?}, not {:?}: {status}", self.subsets));
        }
        let wanted: i64 = found.iter().filter_map(|one| one["spec"]["replicas"].as_i64()).sum();
        if wanted != i64::try_from(self.replicas).unwrap() {
            return Err(format!("{wanted} replicas, not {}: {status}", self.replicas));
        }
        let pods = pods(sim).await;
        let revision = status["updatedRevision"].as_str().unwrap_or_default();
        let image = format!("app:v{}", self.image);
        let good = pods
            .iter()
            .filter(|pod| {
                is_ready(pod)
                    && label(pod, UNITED_DEPLOYMENT_REVISION) == revision
                    && pod["spec"]["containers"][0]["image"] == *image
            })
            .count();
        let replicas = usize::try_from(self.replicas).unwrap();
        if good != replicas || pods.len() != replicas {
            return Err(format!("{good} good pods of {}, not {replicas}: {status}", pods.len()));
        }
        let told = ["replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas"];
        let is_told = told.iter().all(|field| status[field].as_u64().unwrap_or(0) == self.replicas)
            && status["currentRevision"] == revision
            && status["observedGeneration"] == web["metadata"]["generation"]
            && status["subsetStatuses"].as_array().map(Vec::len) == Some(self.subsets.len());
        if is_told { Ok(()) } else { Err(format!("the status says {status}")) }
    }
}
