//! A StatefulSet in a namespace of its own, and where its pods are.

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::{Cluster, Sandbox, cluster::HOLLOW_NODES, wait::seen};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::stage::Stage;

pub(crate) const OWN: &str = "apps.kruise.io/v1beta1";
pub(crate) const NATIVE: &str = "apps/v1";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const HOST: &str = "kubernetes.io/hostname";
/// A label of some nodes of the test clusters that says nothing about places.
pub(crate) const RACK: &str = "kruise-rs.io/node-type";
pub(crate) const INJECTED: &str = "kruise.io/injected-persistent-pod-state";
pub(crate) const AUTO: &str = "kruise.io/auto-generate-persistent-pod-state";
pub(crate) const REQUIRED: &str = "kruise.io/required-persistent-topology";
pub(crate) const PREFERRED: &str = "kruise.io/preferred-persistent-topology";
pub(crate) const NOTED: &str = "kruise.io/persistent-pod-annotations";

/// A namespace with the StatefulSet `web`.
pub(crate) struct Home {
    pub(crate) cluster: Cluster,
    pub(crate) sandbox: Sandbox,
    api_version: &'static str,
}

/// Merges a JSON merge patch into an object.
pub(crate) fn merged(mut object: Value, patch: &Value) -> Value {
    match (&mut object, patch) {
        (Value::Object(members), Value::Object(changes)) => {
            for (key, change) in changes {
                let before = members.remove(key).unwrap_or(Value::Null);
                if !change.is_null() {
                    members.insert(key.clone(), merged(before, change));
                }
            }
            object
        }
        _ => patch.clone(),
    }
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// The terms that a pod prefers.
pub(crate) fn preferred(pod: &Value) -> &Value {
    &pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
}

/// A preferred term.
pub(crate) fn term(weight: i32, key: &str, value: &Value) -> Value {
    let expression = json!({"key": key, "operator": "In", "values": [value]});
    json!({"weight": weight, "preference": {"matchExpressions": [expression]}})
}

impl Home {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str, api_version: &'static str) -> Self {
        let cluster = stage.cluster.clone();
        Self { sandbox: cluster.sandbox(purpose).await, cluster, api_version }
    }

    /// The default object: three replicas, all at once.
    pub(crate) fn set(&self, change: &Value) -> Value {
        let set = json!({
            "apiVersion": self.api_version, "kind": "StatefulSet",
            "metadata": {"name": "web", "namespace": self.sandbox.namespace()},
            "spec": {
                "replicas": 3, "serviceName": "web", "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}, "annotations": {"ip": "1.2.3.4"}},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "nodeSelector": {HOLLOW_NODES.0: HOLLOW_NODES.1},
                        "containers": [{"name": "main", "image": self.cluster.image("app:v1")}],
                    },
                },
            },
        });
        merged(set, change)
    }

    /// An object `name` about `web` that requires the zone and prefers the node.
    pub(crate) fn state_of(&self, name: &str, change: &Value) -> Value {
        let state = json!({
            "apiVersion": OWN, "kind": "PersistentPodState",
            "metadata": {"name": name, "namespace": self.sandbox.namespace()},
            "spec": {
                "targetRef": {"apiVersion": self.api_version, "kind": "StatefulSet", "name": "web"},
                "requiredPersistentTopology": {"keys": [ZONE]},
                "preferredPersistentTopology": [{"weight": 30, "preference": {"keys": [HOST]}}],
            },
        });
        merged(state, change)
    }

    pub(crate) async fn create(&self, stage: &Stage, object: Value) -> Value {
        stage.create(object).await.unwrap()
    }

    /// `web` with its pods ready.
    pub(crate) async fn start(&self, stage: &Stage, change: Value) {
        let set = self.create(stage, self.set(&change)).await;
        self.ready(usize::try_from(set["spec"]["replicas"].as_u64().unwrap()).unwrap()).await;
    }

    /// Changes `web`.
    pub(crate) async fn change(&self, stage: &Stage, change: Value) {
        stage.patch(&self.set(&json!({})), &change).await.unwrap();
    }

    pub(crate) async fn pods(&self) -> Vec<Value> {
        let pods: Vec<Pod> = self.sandbox.list().await;
        pods.into_iter().map(|pod| serde_json::to_value(pod).unwrap()).collect()
    }

    pub(crate) async fn pod(&self, name: &str) -> Value {
        serde_json::to_value(self.sandbox.get::<Pod>(name).await).unwrap()
    }

    /// Waits until there are so many pods and all are ready.
    pub(crate) async fn ready(&self, count: usize) {
        let look = async || {
            let pods = self.pods().await;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            seen(ready == count && pods.len() == count, format!("{ready} of {} pods are ready", pods.len()))
        };
        self.sandbox.eventually("the pods are ready", look).await;
    }

    pub(crate) fn states(&self) -> Api<DynamicObject> {
        let resource = kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
            "apps.kruise.io",
            "v1beta1",
            "PersistentPodState",
        ));
        Api::namespaced_with(self.cluster.client(), self.sandbox.namespace(), &resource)
    }

    pub(crate) async fn state(&self, name: &str) -> Option<Value> {
        let found = self.states().get_opt(name).await.unwrap();
        found.map(|state| serde_json::to_value(state).unwrap())
    }

    /// Changes an object about pods.
    pub(crate) async fn change_state(&self, name: &str, change: Value) {
        self.states().patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    pub(crate) async fn until_state(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let look = async || {
            let state = self.state(name).await.unwrap_or_default();
            match is_so(&state) {
                true => kruise_testkit::wait::Look::Yes(state),
                false => kruise_testkit::wait::Look::No(state.to_string()),
            }
        };
        self.sandbox.eventually(what, look).await
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        let look = async || {
            let state = self.state(name).await;
            seen(state.is_none(), format!("{state:?}"))
        };
        self.sandbox.eventually("it is gone", look).await;
    }

    /// Waits until these pods are noted where they are.
    pub(crate) async fn until_noted(&self, name: &str, pods: &[&str]) -> Value {
        let what = format!("{pods:?} are noted");
        let state = self
            .until_state(name, &what, |state| {
                let noted = state["status"]["podStates"].as_object().cloned().unwrap_or_default();
                noted.keys().map(String::as_str).eq(pods.iter().copied())
                    && state["status"]["observedGeneration"] == state["metadata"]["generation"]
            })
            .await;
        state["status"]["podStates"].clone()
    }

    /// Deletes a pod and waits until one of its name is ready again.
    pub(crate) async fn replace(&self, name: &str) -> Value {
        let uid = self.pod(name).await["metadata"]["uid"].clone();
        self.delete(name).await;
        self.again(name, &uid).await
    }

    pub(crate) async fn delete(&self, name: &str) {
        let pods: Api<Pod> = self.sandbox.api();
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until another pod of a name is ready.
    pub(crate) async fn again(&self, name: &str, uid: &Value) -> Value {
        let look = async || {
            let pods = self.pods().await;
            let found = pods.into_iter().find(|pod| {
                pod["metadata"]["name"] == name && pod["metadata"]["uid"] != *uid && is_ready(pod)
            });
            match found {
                Some(pod) => kruise_testkit::wait::Look::Yes(pod),
                None => kruise_testkit::wait::Look::No("it is not there".to_owned()),
            }
        };
        self.sandbox.eventually("the pod is ready again", look).await
    }

    /// How many events with this reason there are about an object.
    pub(crate) async fn events(&self, about: &str, reason: &str) -> Vec<String> {
        let events = self.sandbox.events().await.into_iter();
        let found = events.filter(|event| event.about == about && event.reason == reason);
        found.map(|event| event.message).collect()
    }
}
