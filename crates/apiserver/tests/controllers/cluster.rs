//! A server with its controllers, and somebody who plays the kubelet.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    dead_code,
    reason = "shared by several tests"
)]

use std::time::Duration;

use kruise_apiserver::ApiServer;
use kruise_apiserver::client::Local;
use kruise_apiserver::controllers::{self, Controller, Options};
use kruise_apiserver::patch::Patch;
use kruise_apiserver::rest::{DeleteOptions, Propagation, Selection};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub(crate) struct Cluster {
    pub(crate) local: Local,
    namespace: String,
    tasks: JoinSet<()>,
}

pub(crate) fn template(app: &str, image: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

impl Cluster {
    /// All controllers but those of nodes, since nobody keeps nodes alive here.
    pub(crate) fn start() -> Self {
        let without = [Controller::NodeLifecycle, Controller::PodCollector].into();
        Self::with(Options { without, ..Options::default() })
    }

    pub(crate) fn with(options: Options) -> Self {
        let server = ApiServer::builder().seed(7).build();
        let mut tasks = JoinSet::new();
        let local = server.local();
        tasks.spawn(async move {
            controllers::run(local, options).await;
        });
        Self { local: server.local(), namespace: "default".to_owned(), tasks }
    }

    /// The same cluster, seen from a new namespace.
    pub(crate) async fn in_namespace(mut self, namespace: &str) -> Self {
        self.create("", "namespaces", json!({"metadata": {"name": namespace}})).await;
        self.namespace = namespace.to_owned();
        self.settle().await;
        self
    }

    /// Lets the controllers work until they wait; takes less than a second.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    pub(crate) fn version(&self) -> u64 {
        self.local.server().store().version()
    }

    pub(crate) async fn create(&self, group: &str, plural: &str, object: Value) -> Value {
        let resource = self.local.resource(group, plural).unwrap();
        let made = self.local.create(&resource, &self.namespace, object).await;
        made.unwrap_or_else(|status| panic!("{plural}: {}", status.message)).value()
    }

    pub(crate) fn get(&self, group: &str, plural: &str, name: &str) -> Option<Value> {
        let resource = self.local.resource(group, plural).unwrap();
        self.local.get(&resource, &self.namespace, name).ok().map(|record| record.value())
    }

    pub(crate) fn list(&self, group: &str, plural: &str, labels: &str) -> Vec<Value> {
        let resource = self.local.resource(group, plural).unwrap();
        let selection = Selection::parse(&resource, labels, "").unwrap();
        let page = self.local.list(&resource, &self.namespace, selection).unwrap();
        page.records.iter().map(|record| record.value()).collect()
    }

    pub(crate) fn pods(&self, labels: &str) -> Vec<Value> {
        self.list("", "pods", labels)
    }

    pub(crate) async fn merge(&self, group: &str, plural: &str, name: &str, sub: Option<&str>, patch: Value) {
        let resource = self.local.resource(group, plural).unwrap();
        let Value::Object(patch) = patch else { panic!("a patch is an object") };
        let patched = self.local.patch(&resource, &self.namespace, name, sub, &Patch::Merge(patch)).await;
        patched.unwrap_or_else(|status| panic!("{plural} {name}: {}", status.message));
    }

    pub(crate) async fn delete(
        &self,
        group: &str,
        plural: &str,
        name: &str,
        propagation: Option<Propagation>,
    ) {
        let resource = self.local.resource(group, plural).unwrap();
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        self.local.delete(&resource, &self.namespace, name, &options).await.unwrap();
    }

    /// The messages of the events with a reason, by time.
    pub(crate) fn events(&self, reason: &str) -> Vec<String> {
        let mut events: Vec<Value> =
            self.list("", "events", "").into_iter().filter(|event| event["reason"] == reason).collect();
        events.sort_by_key(|event| {
            let name = event["metadata"]["name"].as_str().unwrap();
            u128::from_str_radix(name.rsplit('.').next().unwrap(), 16).unwrap()
        });
        events.iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn deployment(&self, name: &str, replicas: i64, rolling: Value) {
        let strategy = if rolling.is_null() {
            json!({"type": "Recreate"})
        } else {
            json!({"type": "RollingUpdate", "rollingUpdate": rolling})
        };
        let deployment = json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": {"app": name}}, "strategy": strategy,
                "template": template(name, "app:1"),
            },
        });
        self.create("apps", "deployments", deployment).await;
        self.settle().await;
    }

    /// Puts a pod on a node and makes it run and ready, as a kubelet does.
    pub(crate) async fn run_pod(&self, name: &str) {
        let pod = self.get("", "pods", name).unwrap();
        if pod["spec"]["nodeName"].is_null() {
            self.local.bind(&self.namespace, name, "node-1").await.unwrap();
        }
        let now = self.local.server().clock().now_text();
        let status = json!({"status": {"phase": "Running", "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True", "lastTransitionTime": now},
        ]}});
        self.merge("", "pods", name, Some("status"), status).await;
    }

    /// Runs all pods of a selection that do not run yet.
    pub(crate) async fn run_pods(&self, labels: &str) {
        for pod in self.pods(labels) {
            if pod["status"]["phase"] == "Pending" && pod["metadata"]["deletionTimestamp"].is_null() {
                self.run_pod(pod["metadata"]["name"].as_str().unwrap()).await;
            }
        }
        self.settle().await;
    }

    /// Ends a pod's process.
    pub(crate) async fn finish_pod(&self, name: &str, phase: &str) {
        self.merge("", "pods", name, Some("status"), json!({"status": {"phase": phase}})).await;
        self.settle().await;
    }

    /// Removes the pods whose processes have stopped.
    pub(crate) async fn stop_pods(&self) {
        let pods = self.local.resource("", "pods").unwrap();
        let now = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        for pod in self.pods("") {
            if pod["metadata"]["deletionTimestamp"].is_string() {
                let name = pod["metadata"]["name"].as_str().unwrap();
                self.local.delete(&pods, &self.namespace, name, &now).await.unwrap();
            }
        }
        self.settle().await;
    }

    /// Runs and stops pods until nothing changes any more.
    pub(crate) async fn work_until_quiet(&self) {
        for _ in 0..100 {
            let before = self.version();
            self.settle().await;
            self.stop_pods().await;
            self.run_pods("").await;
            if self.version() == before {
                return;
            }
        }
        panic!("the cluster does not come to rest");
    }
}
