//! A namespace with a workload `web` and the spread `w` over zones, and words to talk about them.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kruise_api::{
    annotations::{MATCHED_WORKLOADSPREAD, POD_DELETION_COST},
    cloneset::v1beta1::CloneSet,
    workloadspread::v1beta1::WorkloadSpread,
};
use kruise_testkit::{Cluster, Sandbox, cluster::HOLLOW_NODES, wait::seen};
use kube::{Api, api::EvictParams};
use serde_json::{Value, json};

use crate::stage::Stage;

pub(crate) const NO_FLAGS: [&str; 0] = [];

pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) sandbox: Sandbox,
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

pub(crate) fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Failed" | "Succeeded"))
}

pub(crate) fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap()
}

pub(crate) fn annotation<'p>(pod: &'p Pod, key: &str) -> Option<&'p str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The subset of a pod, by its mark; `-` for none.
pub(crate) fn subset_of(pod: &Pod) -> String {
    let mark = annotation(pod, MATCHED_WORKLOADSPREAD).and_then(|mark| serde_json::from_str(mark).ok());
    mark.and_then(|mark: Value| mark["subset"].as_str().map(str::to_owned)).unwrap_or("-".to_owned())
}

pub(crate) fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// A subset that requires the zone of its name (`a`, `b`, `c`, or one that does not exist), with a limit unless it is null.
pub(crate) fn subset(name: &str, limit: Value) -> Value {
    let zone =
        json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [format!("zone-{name}")]});
    let mut subset = json!({"name": name, "requiredNodeSelector": {"matchExpressions": [zone]}});
    if !limit.is_null() {
        subset["maxReplicas"] = limit;
    }
    subset
}

/// How many pods are in each subset, `a3 b2 -1`.
pub(crate) fn places<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for pod in pods {
        *counts.entry(subset_of(pod)).or_default() += 1;
    }
    // Those without a subset come last.
    let outside = counts.remove("-").map(|count| ("-".to_owned(), count));
    let all = counts.into_iter().chain(outside).map(|(subset, count)| format!("{subset}{count}"));
    all.collect::<Vec<_>>().join(" ")
}

impl Scene {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Self {
        let cluster = stage.cluster.clone();
        Self { sandbox: cluster.sandbox(purpose).await, cluster }
    }

    /// A namespace with the spread of the CloneSet `web` over these subsets, and then the set itself.
    pub(crate) async fn start(stage: &Stage, purpose: &str, replicas: usize, subsets: Value) -> Self {
        let scene = Self::prepare(stage, purpose).await;
        scene.spread("apps.kruise.io/v1beta1", "CloneSet", subsets).await;
        scene.create_set(replicas).await;
        scene
    }

    pub(crate) fn spread_object(&self, api_version: &str, kind: &str, subsets: Value) -> Value {
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread", "metadata": {"name": "w"}, "spec": {
            "targetRef": {"apiVersion": api_version, "kind": kind, "name": "web"}, "subsets": subsets}})
    }

    pub(crate) async fn spread(&self, api_version: &str, kind: &str, subsets: Value) {
        let object = self.spread_object(api_version, kind, subsets);
        self.put_spread(object).await;
    }

    /// Creates a spread and waits until the manager has seen it.
    pub(crate) async fn put_spread(&self, object: Value) {
        let _: WorkloadSpread = self.sandbox.create(object).await;
        self.until_status("the spread is seen", |status| status["observedGeneration"] == 1).await;
    }

    pub(crate) fn pod_spec(&self) -> Value {
        json!({
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {HOLLOW_NODES.0: HOLLOW_NODES.1},
            "containers": [{"name": "main", "image": self.cluster.image("app:v1")}],
        })
    }

    pub(crate) fn template(&self) -> Value {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": self.pod_spec()})
    }

    /// A workload `web` of any kind with a template, changed by a merge patch.
    pub(crate) async fn create(&self, api_version: &str, kind: &str, replicas: usize, change: Value) {
        let object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": self.template()},
        });
        self.sandbox.create_any(merged(object, &change)).await.unwrap();
    }

    pub(crate) async fn create_set(&self, replicas: usize) {
        self.create("apps.kruise.io/v1beta1", "CloneSet", replicas, json!({})).await;
    }

    pub(crate) async fn scale_set(&self, replicas: usize) {
        self.sandbox.merge::<CloneSet>("web", json!({"spec": {"replicas": replicas}})).await;
    }

    pub(crate) async fn change_spread(&self, change: Value) {
        self.sandbox.merge::<WorkloadSpread>("w", change).await;
    }

    pub(crate) async fn status(&self) -> Value {
        let spread: WorkloadSpread = self.sandbox.get("w").await;
        serde_json::to_value(spread.status.unwrap_or_default()).unwrap()
    }

    /// The pods that do not end, sorted by name.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.sandbox.list::<Pod>().await.into_iter().filter(is_active).collect()
    }

    /// Waits until the active pods are in these subsets, `a3 b2 -1`.
    pub(crate) async fn until_places(&self, wanted: &str) {
        let look = async || {
            let told = places(&self.pods().await);
            seen(told == wanted, told)
        };
        self.sandbox.eventually(&format!("the pods are at {wanted}"), look).await;
    }

    /// The costs of the active pods, `a200 a200 b100`, sorted.
    pub(crate) async fn costs(&self) -> String {
        let mut costs: Vec<String> = self
            .pods()
            .await
            .iter()
            .map(|pod| format!("{}{}", subset_of(pod), annotation(pod, POD_DELETION_COST).unwrap_or("?")))
            .collect();
        costs.sort();
        costs.join(" ")
    }

    pub(crate) async fn until_costs(&self, wanted: &str) {
        let look = async || {
            let told = self.costs().await;
            seen(told == wanted, told)
        };
        self.sandbox.eventually(&format!("the costs are {wanted}"), look).await;
    }

    /// `name replicas/missing`, of all versions together.
    pub(crate) async fn account(&self) -> String {
        let status = self.status().await;
        let accounts = status["subsetStatuses"].as_array().cloned().unwrap_or_default();
        let one = |account: &Value| {
            format!(
                "{} {}/{}",
                account["name"].as_str().unwrap(),
                account["replicas"],
                account["missingReplicas"]
            )
        };
        accounts.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    pub(crate) async fn until_account(&self, wanted: &str) {
        let look = async || {
            let (told, settled) = (self.account().await, self.has_no_records().await);
            seen(told == wanted && settled, format!("{told} {}", self.status().await))
        };
        self.sandbox.eventually(&format!("the account is {wanted} without records"), look).await;
    }

    pub(crate) async fn has_no_records(&self) -> bool {
        let status = self.status().await.to_string();
        !status.contains("creatingPods") && !status.contains("deletingPods")
    }

    /// Waits for something in the status.
    pub(crate) async fn until_status(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let look = async || {
            let status = self.status().await;
            seen(is_so(&status), status.to_string())
        };
        self.sandbox.eventually(what, look).await;
    }

    pub(crate) async fn evict(&self, pod: &str) -> Result<(), String> {
        let api: Api<Pod> = self.sandbox.api();
        api.evict(pod, &EvictParams::default()).await.map(drop).map_err(|error| error.to_string())
    }

    /// The messages of events about the spread with this reason.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let all = self.sandbox.events().await.into_iter();
        let own = all.filter(|event| event.about == "WorkloadSpread/w" && event.reason == reason);
        own.map(|event| event.message).collect()
    }

    pub(crate) async fn until_event(&self, reason: &str) -> String {
        let look = async || match self.events(reason).await.into_iter().next() {
            Some(message) => kruise_testkit::wait::Look::Yes(message),
            None => kruise_testkit::wait::Look::No(format!("{:?}", self.sandbox.events().await)),
        };
        self.sandbox.eventually(&format!("event {reason}"), look).await
    }

    /// Lets time pass.
    pub(crate) async fn rest(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}
