//! ResourceDistributions, their namespaces and their copies.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Namespace};
use kruise_testkit::{Cluster, Sandbox, wait::seen};
use kube::{
    Api,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
};
use serde_json::{Value, json};

use crate::stage::Stage;

/// The gate is closed unless somebody opens it.
pub(crate) const OPEN: [&str; 1] = ["--feature-gates=ResourceDistributionGate=true"];
/// The annotations of copies.
pub(crate) const FROM: &str = "kruise.io/resourcedistribution.resource.from";
pub(crate) const HASH: &str = "kruise.io/resourcedistribution.resource.hashcode";
/// Longer than anything takes that goes well.
pub(crate) const MOMENT: Duration = Duration::from_secs(5);
/// The conditions that every status has.
pub(crate) const CONDITIONS: [&str; 6] = [
    "GetResourceFailed",
    "CreateResourceFailed",
    "UpdateResourceFailed",
    "DeleteResourceFailed",
    "ConflictOccurred",
    "NamespaceNotExists",
];

/// ResourceDistributions exist once in a cluster. The namespace of a scenario owns its own, so that they go with it.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) home: Sandbox,
    owner: Value,
}

/// The words of a refusal.
pub(crate) fn refusal(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.message),
        error => error.to_string(),
    }
}

/// A ConfigMap to distribute.
pub(crate) fn config(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Targets by name.
pub(crate) fn included(names: &[&str]) -> Value {
    json!({"includedNamespaces": {"list": named(names)}})
}

/// A list of namespaces.
pub(crate) fn named(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

impl Scene {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Self {
        let cluster = stage.cluster.clone();
        let home = cluster.sandbox(purpose).await;
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        let namespace = namespaces.get(home.namespace()).await.unwrap();
        let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": home.namespace(), "uid": namespace.metadata.uid});
        Self { cluster, home, owner }
    }

    pub(crate) fn any(&self, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            "" => Api::all_with(self.cluster.client(), &resource),
            namespace => Api::namespaced_with(self.cluster.client(), namespace, &resource),
        }
    }

    pub(crate) fn all(&self) -> Api<DynamicObject> {
        self.any("apps.kruise.io/v1beta1", "ResourceDistribution", "")
    }

    pub(crate) fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.cluster.client())
    }

    /// A name that no other scenario has.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.home.namespace())
    }

    /// A namespace with these labels. It is deleted with the others of the scenario.
    pub(crate) async fn space(&self, labels: Value) -> String {
        let sandbox = self.cluster.sandbox("rd").await;
        if labels != json!({}) {
            self.label(sandbox.namespace(), labels).await;
        }
        sandbox.namespace().to_owned()
    }

    pub(crate) async fn label(&self, namespace: &str, labels: Value) {
        let change = json!({"metadata": {"labels": labels}});
        self.namespaces().patch(namespace, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    /// Creates a ResourceDistribution, whose name is that of its resource.
    pub(crate) async fn distribute(&self, resource: Value, targets: Value) -> String {
        let name = resource["metadata"]["name"].as_str().unwrap().to_owned();
        self.create(&name, resource, targets).await.unwrap();
        name
    }

    pub(crate) async fn create(&self, name: &str, resource: Value, targets: Value) -> Result<Value, String> {
        let object = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution",
            "metadata": {"name": name, "ownerReferences": [self.owner]},
            "spec": {"resource": resource, "targets": targets}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        match self.all().create(&PostParams::default(), &object).await {
            Ok(made) => Ok(serde_json::to_value(made).unwrap()),
            Err(error) => Err(refusal(error)),
        }
    }

    pub(crate) async fn get(&self, name: &str) -> Value {
        serde_json::to_value(self.all().get(name).await.unwrap()).unwrap()
    }

    pub(crate) async fn change(&self, name: &str, change: Value) -> Result<Value, String> {
        match self.all().patch(name, &PatchParams::default(), &Patch::Merge(change)).await {
            Ok(changed) => Ok(serde_json::to_value(changed).unwrap()),
            Err(error) => Err(refusal(error)),
        }
    }

    /// The ConfigMap of this name in a namespace.
    pub(crate) async fn copy(&self, namespace: &str, name: &str) -> Option<Value> {
        self.object("ConfigMap", namespace, name).await
    }

    pub(crate) async fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let found = self.any("v1", kind, namespace).get_opt(name).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// All ConfigMaps of this name, as `namespace: data`.
    pub(crate) async fn holders(&self, name: &str) -> Vec<String> {
        let params = ListParams::default().fields(&format!("metadata.name={name}"));
        let list = self.any("v1", "ConfigMap", "").list(&params).await.unwrap();
        let mut names: Vec<String> =
            list.items.into_iter().filter_map(|one| one.metadata.namespace).collect();
        names.sort();
        names
    }

    /// Waits until the status is about the newest spec and counts `desired/succeeded/failed`.
    pub(crate) async fn until(&self, name: &str, expected: &str) -> Value {
        self.home
            .eventually(&format!("{name} counts {expected}"), async || {
                let object = self.get(name).await;
                let (found, status) = (counts(&object), &object["status"]);
                let is_new = status["observedGeneration"] == object["metadata"]["generation"];
                match is_new && found == expected {
                    true => kruise_testkit::wait::Look::Yes(object),
                    false => kruise_testkit::wait::Look::No(format!("{found} {status}")),
                }
            })
            .await
    }

    /// Waits until the ConfigMap of this name is in exactly these namespaces.
    pub(crate) async fn until_held(&self, name: &str, expected: &[&str]) {
        let mut expected: Vec<String> = expected.iter().map(|&name| name.to_owned()).collect();
        expected.sort();
        self.home
            .eventually(&format!("{name} is in {expected:?}"), async || {
                let found = self.holders(name).await;
                seen(found == expected, format!("{found:?}"))
            })
            .await;
    }

    /// Waits until a condition is True for exactly these namespaces; its reason.
    pub(crate) async fn until_failing(&self, name: &str, kind: &str, namespaces: &[&str]) -> String {
        let mut expected: Vec<&str> = namespaces.to_vec();
        expected.sort_unstable();
        let expected = json!(expected);
        self.home
            .eventually(&format!("{name} has {kind} for {expected}"), async || {
                let object = self.get(name).await;
                match condition(&object, kind) {
                    Some(one) if one["status"] == "True" && one["failedNamespaces"] == expected => {
                        kruise_testkit::wait::Look::Yes(one["reason"].as_str().unwrap().to_owned())
                    }
                    _ => kruise_testkit::wait::Look::No(object["status"].to_string()),
                }
            })
            .await
    }

    /// The messages of events about a ResourceDistribution with this reason.
    pub(crate) async fn events(&self, name: &str, reason: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), "default");
        let list = events.list(&ListParams::default()).await.unwrap();
        let own = list.items.into_iter().filter(|event| {
            let about = &event.involved_object;
            about.name.as_deref() == Some(name) && about.kind.as_deref() == Some("ResourceDistribution")
        });
        let own = own.filter(|event| event.reason.as_deref() == Some(reason));
        own.map(|event| event.message.unwrap_or_default()).collect()
    }

    pub(crate) async fn put(&self, kind: &str, namespace: &str, object: Value) -> Value {
        let mut object = object;
        object["apiVersion"] = json!("v1");
        object["kind"] = json!(kind);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let made = self.any("v1", kind, namespace).create(&PostParams::default(), &object).await.unwrap();
        serde_json::to_value(made).unwrap()
    }

    pub(crate) async fn edit(&self, kind: &str, namespace: &str, name: &str, change: Value) {
        let api = self.any("v1", kind, namespace);
        api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    pub(crate) async fn remove(&self, kind: &str, namespace: &str, name: &str) {
        self.any("v1", kind, namespace).delete(name, &DeleteParams::default()).await.unwrap();
    }
}

/// `desired/succeeded/failed` of a status.
pub(crate) fn counts(object: &Value) -> String {
    let count = |field: &str| object["status"][field].as_i64().unwrap_or(-1);
    format!("{}/{}/{}", count("desired"), count("succeeded"), count("failed"))
}

/// A condition of a status.
pub(crate) fn condition<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind)
}

/// The types of all conditions, in order.
pub(crate) fn types(object: &Value) -> Vec<&str> {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter_map(|one| one["type"].as_str()).collect()
}
