//! A namespace with a CloneSet `web` and budgets, and words to talk about them.

use k8s_openapi::api::core::v1::Pod;
use kruise_api::{cloneset::v1beta1::CloneSet, podunavailablebudget::v1beta1::PodUnavailableBudget};
use kruise_testkit::{Cluster, Sandbox, cluster::HOLLOW_NODES, wait::seen};
use kube::{
    Api,
    api::{DeleteParams, EvictParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::stage::Stage;

pub(crate) const NO_FLAGS: [&str; 0] = [];
pub(crate) const UPDATES: [&str; 1] = ["--feature-gates=PodUnavailableBudgetUpdateGate=true"];
/// The text of every refusal by a budget that is used up.
pub(crate) const USED_UP: &str = "is forbidden: pub unavailable allowed is negative";

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

/// The words of a refusal.
pub(crate) fn refusal(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let causes: Vec<String> = causes.map(|cause| format!("[{}]", cause.message)).collect();
            format!("{} {} {}", status.code, status.message, causes.join(" "))
        }
        error => error.to_string(),
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

pub(crate) fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Failed" | "Succeeded"))
}

pub(crate) fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap()
}

pub(crate) fn image(pod: &Pod) -> String {
    pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap_or_default()
}

/// `allowed current desired total` of a budget.
pub(crate) fn numbers(budget: &Value) -> [i64; 4] {
    ["unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas"]
        .map(|field| budget["status"][field].as_i64().unwrap_or(-1))
}

/// The budget of the CloneSet `web`.
pub(crate) fn target() -> Value {
    json!({"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}})
}

impl Scene {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Self {
        let cluster = stage.cluster.clone();
        Self { sandbox: cluster.sandbox(purpose).await, cluster }
    }

    /// A namespace with the CloneSet `web` of so many ready pods and a budget `web` with this spec for it.
    pub(crate) async fn start(stage: &Stage, purpose: &str, replicas: usize, spec: Value) -> Self {
        let scene = Self::prepare(stage, purpose).await;
        scene.create_set(replicas, json!({})).await;
        scene.ready(replicas).await;
        scene.create_budget("web", merged(target(), &spec)).await;
        scene
    }

    pub(crate) fn template(&self) -> Value {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": self.pod_spec()})
    }

    pub(crate) fn pod_spec(&self) -> Value {
        json!({
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {HOLLOW_NODES.0: HOLLOW_NODES.1},
            "containers": [{"name": "main", "image": self.cluster.image("app:v1")}],
        })
    }

    pub(crate) async fn create_set(&self, replicas: usize, change: Value) -> CloneSet {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": self.template()},
        });
        self.sandbox.create(merged(object, &change)).await
    }

    pub(crate) async fn change_set(&self, change: Value) {
        self.sandbox.merge::<CloneSet>("web", change).await;
    }

    pub(crate) async fn set_image(&self, image: &str) {
        let mut containers = self.pod_spec()["containers"].clone();
        containers[0]["image"] = self.cluster.image(image).into();
        self.change_set(json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
    }

    /// Waits until so many pods are there and ready.
    pub(crate) async fn ready(&self, count: usize) {
        let look = async || {
            let pods = self.pods().await;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            seen(ready == count && pods.len() == count, format!("{ready} of {} pods are ready", pods.len()))
        };
        self.sandbox.eventually("the pods are ready", look).await;
    }

    /// The pods that do not end, sorted by name.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.sandbox.list::<Pod>().await.into_iter().filter(is_active).collect()
    }

    /// The names of the pods that serve.
    pub(crate) async fn serving(&self) -> Vec<String> {
        self.pods().await.iter().filter(|pod| is_ready(pod)).map(name).collect()
    }

    pub(crate) fn budgets(&self) -> Api<PodUnavailableBudget> {
        self.sandbox.api()
    }

    pub(crate) async fn try_create_budget(&self, name: &str, spec: Value) -> Result<Value, String> {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        let object: PodUnavailableBudget = serde_json::from_value(object).unwrap();
        let made = self.budgets().create(&PostParams::default(), &object).await;
        made.map(|made| serde_json::to_value(made).unwrap()).map_err(refusal)
    }

    /// Creates a budget and waits until its pods are counted and know it.
    pub(crate) async fn create_budget(&self, name: &str, spec: Value) {
        self.try_create_budget(name, spec).await.unwrap();
        self.until(name, "it is counted", |budget| {
            budget["status"]["observedGeneration"] == budget["metadata"]["generation"]
        })
        .await;
    }

    pub(crate) async fn budget(&self, name: &str) -> Value {
        serde_json::to_value(self.budgets().get(name).await.unwrap()).unwrap()
    }

    pub(crate) async fn change_budget(&self, name: &str, change: Value) -> Result<(), String> {
        let made = self.budgets().patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
        made.map(drop).map_err(refusal)
    }

    pub(crate) async fn until(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
        let look = async || {
            let budget = self.budget(name).await;
            seen(is_so(&budget), format!("{} {}", budget["metadata"]["generation"], budget["status"]))
        };
        self.sandbox.eventually(what, look).await;
    }

    /// Waits until the budget says `allowed current desired total`.
    pub(crate) async fn until_numbers(&self, name: &str, wanted: [i64; 4]) {
        let what = format!("the numbers are {wanted:?}");
        self.until(name, &what, |budget| numbers(budget) == wanted).await;
    }

    pub(crate) async fn delete_with(&self, pod: &str, params: DeleteParams) -> Result<(), String> {
        let api: Api<Pod> = self.sandbox.api();
        api.delete(pod, &params).await.map(drop).map_err(refusal)
    }

    pub(crate) async fn delete(&self, pod: &str) -> Result<(), String> {
        self.delete_with(pod, DeleteParams::default()).await
    }

    /// An eviction that only asks. (The client of kube 5.0 sends the options under a name that servers do not know.)
    pub(crate) async fn evict_dry(&self, pod: &str) -> Result<(), String> {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", self.sandbox.namespace());
        let body = json!({"metadata": {"name": pod}, "deleteOptions": {"dryRun": ["All"]}});
        let request = http::Request::post(path).header("Content-Type", "application/json");
        let request = request.body(body.to_string().into_bytes()).unwrap();
        self.cluster.client_without_retries().request::<Value>(request).await.map(drop).map_err(refusal)
    }

    pub(crate) async fn evict(&self, pod: &str) -> Result<(), String> {
        let api: Api<Pod> = Api::namespaced(self.cluster.client_without_retries(), self.sandbox.namespace());
        api.evict(pod, &EvictParams::default()).await.map(drop).map_err(refusal)
    }

    pub(crate) async fn patch_pod(&self, pod: &str, change: Value) -> Result<(), String> {
        let api: Api<Pod> = self.sandbox.api();
        let made = api.patch(pod, &PatchParams::default(), &Patch::Strategic(change)).await;
        made.map(drop).map_err(refusal)
    }

    /// Gives a pod another image, as `kubectl set image` does.
    pub(crate) async fn patch_image(&self, pod: &str, image: &str) -> Result<(), String> {
        let container = json!({"name": "main", "image": self.cluster.image(image)});
        self.patch_pod(pod, json!({"spec": {"containers": [container]}})).await
    }

    /// Creates a pod that nobody controls, and waits until it is ready.
    pub(crate) async fn create_pod(&self, name: &str, change: Value) {
        let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": self.pod_spec()});
        let _: Pod = self.sandbox.create(merged(pod, &change)).await;
        let look = async || {
            let pod: Pod = self.sandbox.get(name).await;
            seen(is_ready(&pod), format!("{:?}", pod.status))
        };
        self.sandbox.eventually("the pod is ready", look).await;
    }

    /// Scales the set by one pod that fits no node.
    pub(crate) async fn create_pod_of_set_that_waits(&self) {
        let change = json!({"spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            "template": {"spec": {"nodeSelector": {"no": "node"}}}}});
        self.change_set(change).await;
        let look = async || {
            let (pods, serving) = (self.pods().await.len(), self.serving().await.len());
            seen(pods == 3 && serving == 2, format!("{serving} of {pods} pods serve"))
        };
        self.sandbox.eventually("a pod waits", look).await;
    }

    /// How many events with this reason there are about a pod or a budget.
    pub(crate) async fn events(&self, about: &str, reason: &str) -> usize {
        self.sandbox
            .events()
            .await
            .iter()
            .filter(|event| event.about == about && event.reason == reason)
            .count()
    }

    pub(crate) async fn until_event(&self, about: &str, reason: &str) {
        let look = async || {
            let all = self.sandbox.events().await;
            let found = all.iter().any(|event| event.about == about && event.reason == reason);
            seen(found, format!("{all:?}"))
        };
        self.sandbox.eventually("the event is there", look).await;
    }
}

/// Checks that somebody was refused by a budget that is used up.
#[track_caller]
pub(crate) fn refused(answer: Result<(), String>, code: u16) {
    let text = answer.unwrap_err();
    assert!(text.starts_with(&format!("{code} ")) && text.contains(USED_UP), "{text}");
}
