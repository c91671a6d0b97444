//! SidecarSets and pods of one namespace.
//!
//! Sets exist once in a cluster, and scenarios run beside each other: names and selectors carry the name of the
//! namespace. The namespace owns the sets, so they go with it, also when a scenario fails.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::ControllerRevision,
    core::v1::{Event, Namespace, Pod},
};
use kruise_api::{labels, names};
use kruise_testkit::{
    Cluster, Sandbox, Skip,
    cluster::{HOLLOW_NODES, REAL_NODES},
    events::Seen,
    pod::summary,
    wait::{Look, seen},
};
use kube::{
    Api,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
};
use serde_json::{Value, json};

use crate::{
    film::Film,
    kit::{is_active, merged, name},
    stage::Stage,
};

/// A while that is short on any cluster.
pub(crate) const MOMENT: Duration = Duration::from_secs(5);

/// SidecarSets and pods of one namespace.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) sandbox: Sandbox,
    owner: Value,
    nodes: (&'static str, &'static str),
}

/// The words of a refusal.
pub(crate) fn refusal(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.message),
        error => error.to_string(),
    }
}

/// Pods that carry the sidecars, those that are updated, ready, and both, as a set tells.
pub(crate) fn counts(set: &Value) -> [i64; 4] {
    ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"]
        .map(|field| set["status"][field].as_i64().unwrap_or(0))
}

/// Whether the status is about the newest spec.
pub(crate) fn is_observed(set: &Value) -> bool {
    set["status"]["observedGeneration"] == set["metadata"]["generation"]
}

/// An annotation of a set.
pub(crate) fn mark(set: &Value, key: &str) -> String {
    set["metadata"]["annotations"][key].as_str().unwrap_or_default().to_owned()
}

/// A patch of the update strategy of a set.
pub(crate) fn strategy(members: Value) -> Value {
    json!({"spec": {"updateStrategy": members}})
}

impl Scene {
    /// A namespace with nothing in it, whose pods go to nodes where containers are names only.
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Self {
        let cluster = stage.cluster.clone();
        let sandbox = cluster.sandbox(purpose).await;
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        let uid = namespaces.get(sandbox.namespace()).await.unwrap().metadata.uid;
        let owner =
            json!([{"apiVersion": "v1", "kind": "Namespace", "name": sandbox.namespace(), "uid": uid}]);
        Self { cluster, sandbox, owner, nodes: HOLLOW_NODES }
    }

    /// The same with pods that run real containers.
    pub(crate) async fn with_real_containers(stage: &Stage, purpose: &str) -> Result<Self, Skip> {
        stage.cluster.require_nodes(REAL_NODES).await?;
        Ok(Self { nodes: REAL_NODES, ..Self::prepare(stage, purpose).await })
    }

    /// The full name of a test image, such as `app:v2`.
    pub(crate) fn image(&self, name: &str) -> String {
        self.cluster.image(name)
    }

    /// The value of the label `app` of all pods.
    pub(crate) fn app(&self) -> &str {
        self.sandbox.namespace()
    }

    /// The name that a set has in the cluster.
    pub(crate) fn named(&self, set: &str) -> String {
        format!("{set}-{}", self.app())
    }

    /// What makes an object go with the namespace.
    pub(crate) fn owner(&self) -> Value {
        self.owner.clone()
    }

    /// A sidecar.
    pub(crate) fn sidecar(&self, name: &str, image: &str, more: Value) -> Value {
        merged(json!({"name": name, "image": self.image(image)}), &more)
    }

    /// A set with the container `sc`, changed by a merge patch.
    pub(crate) fn set_object(&self, set: &str, change: &Value) -> Value {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "SidecarSet",
            "metadata": {"name": self.named(set), "ownerReferences": self.owner},
            "spec": {
                "selector": {"matchLabels": {"app": self.app()}},
                "containers": [self.sidecar("sc", "app:v1", json!({}))],
            },
        });
        merged(object, change)
    }

    /// The API of sets in a version.
    pub(crate) fn sets(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(names::APPS_GROUP, version, "SidecarSet");
        Api::all_with(self.cluster.client(), &ApiResource::from_gvk(&kind))
    }

    /// Creates a set; what is stored, or the words of the refusal.
    pub(crate) async fn try_create_set(&self, set: &str, change: Value) -> Result<Value, String> {
        let object = self.set_object(set, &change);
        let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let made = self.sets(&version).create(&PostParams::default(), &object).await;
        made.map(|made| serde_json::to_value(made).unwrap()).map_err(refusal)
    }

    /// Creates a set and waits until the manager knows it.
    pub(crate) async fn create_set(&self, set: &str, change: Value) -> Value {
        self.try_create_set(set, change).await.unwrap();
        self.observed(set).await
    }

    /// The set as it is now.
    pub(crate) async fn set(&self, set: &str) -> Value {
        serde_json::to_value(self.sets("v1beta1").get(&self.named(set)).await.unwrap()).unwrap()
    }

    /// Changes a set by a merge patch; what is stored, or the words of the refusal.
    pub(crate) async fn try_change_set(&self, set: &str, change: Value) -> Result<Value, String> {
        let patch = Patch::Merge(change);
        let made = self.sets("v1beta1").patch(&self.named(set), &PatchParams::default(), &patch).await;
        made.map(|made| serde_json::to_value(made).unwrap()).map_err(refusal)
    }

    /// Changes a set by a merge patch.
    pub(crate) async fn change_set(&self, set: &str, change: Value) -> Value {
        self.try_change_set(set, change).await.unwrap()
    }

    /// Changes a set by a merge patch, and waits until the manager knows it.
    pub(crate) async fn publish(&self, set: &str, change: Value) -> Value {
        self.change_set(set, change).await;
        self.observed(set).await
    }

    /// The merge patch that gives the first sidecar another image.
    pub(crate) async fn with_image(&self, set: &str, image: &str) -> Value {
        let mut containers = self.set(set).await["spec"]["containers"].clone();
        containers[0]["image"] = self.image(image).into();
        json!({"spec": {"containers": containers}})
    }

    /// Gives the first sidecar another image.
    pub(crate) async fn set_image(&self, set: &str, image: &str) -> Value {
        let change = self.with_image(set, image).await;
        self.change_set(set, change).await
    }

    /// Deletes a set, and waits until it is gone.
    pub(crate) async fn delete_set(&self, set: &str) {
        let sets = self.sets("v1beta1");
        sets.delete(&self.named(set), &DeleteParams::background()).await.unwrap();
        let look = async || seen(sets.get_opt(&self.named(set)).await.unwrap().is_none(), "it is there");
        self.sandbox.eventually("the set is gone", look).await;
    }

    /// Waits until the manager has seen the newest spec.
    pub(crate) async fn observed(&self, set: &str) -> Value {
        self.until("the newest spec is observed", set, |set, _| is_observed(set)).await;
        self.set(set).await
    }

    /// Waits until a set and the pods are as wanted.
    pub(crate) async fn until(&self, what: &str, set: &str, is_so: impl Fn(&Value, &[Pod]) -> bool) {
        let look = async || {
            let (set, pods) = (self.set(set).await, self.pods().await);
            seen(is_so(&set, &pods), describe(&set, &pods))
        };
        self.sandbox.eventually(what, look).await;
    }

    /// Checks over a time that a set and the pods stay as wanted.
    pub(crate) async fn always(
        &self,
        what: &str,
        set: &str,
        during: Duration,
        holds: impl Fn(&Value, &[Pod]) -> bool,
    ) {
        let look = async || {
            let (set, pods) = (self.set(set).await, self.pods().await);
            seen(holds(&set, &pods), describe(&set, &pods))
        };
        self.sandbox.always(what, during, look).await;
    }

    /// Waits until a set tells these [counts] of its newest spec.
    pub(crate) async fn until_counts(&self, set: &str, wanted: [i64; 4]) {
        let what = format!("the counts of {set} are {wanted:?}");
        self.until(&what, set, |set, _| is_observed(set) && counts(set) == wanted).await;
    }

    /// The same, and they stay so.
    pub(crate) async fn rests_at(&self, set: &str, wanted: [i64; 4]) {
        self.until_counts(set, wanted).await;
        self.always("the counts stay", set, MOMENT, |set, _| counts(set) == wanted).await;
    }

    /// A pod with the container `main`, changed by a merge patch.
    pub(crate) fn pod_object(&self, name: &str, change: &Value) -> Value {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": self.app()}},
            "spec": self.pod_spec(),
        });
        merged(object, change)
    }

    /// What runs in a pod, for templates of workloads.
    pub(crate) fn pod_spec(&self) -> Value {
        json!({
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {self.nodes.0: self.nodes.1},
            "containers": [{"name": "main", "image": self.image("app:v1")}],
        })
    }

    async fn post_pod(&self, name: &str, change: &Value, dry_run: bool) -> Result<Pod, String> {
        let pod: Pod = serde_json::from_value(self.pod_object(name, change)).unwrap();
        let params = PostParams { dry_run, ..PostParams::default() };
        self.sandbox.api::<Pod>().create(&params, &pod).await.map_err(refusal)
    }

    /// Creates a pod; what is stored, or the words of the refusal.
    pub(crate) async fn try_create_pod(&self, name: &str, change: Value) -> Result<Pod, String> {
        self.post_pod(name, &change, false).await
    }

    /// Creates a pod.
    pub(crate) async fn create_pod(&self, name: &str, change: Value) -> Pod {
        self.try_create_pod(name, change).await.unwrap()
    }

    /// The pod that would be created.
    pub(crate) async fn imagine_pod(&self, change: &Value) -> Result<Pod, String> {
        self.post_pod("imagined", change, true).await
    }

    /// Waits until a pod that would be created is as wanted. For news that reach the manager in their own time.
    pub(crate) async fn until_pods_would(
        &self,
        what: &str,
        change: &Value,
        is_so: impl Fn(&Result<Pod, String>) -> bool,
    ) {
        let look = async || {
            let answer = self.imagine_pod(change).await;
            if is_so(&answer) { Look::Yes(()) } else { Look::No(format!("{answer:?}")) }
        };
        self.sandbox.eventually(what, look).await;
    }

    /// Creates pods `pod-0`, `pod-1` and so on.
    pub(crate) async fn create_pods(&self, number: usize) {
        for index in 0..number {
            self.create_pod(&format!("pod-{index}"), json!({})).await;
        }
    }

    /// All pods that are not ending, by name.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        let mut pods: Vec<Pod> = self.sandbox.list().await;
        pods.retain(is_active);
        pods.sort_by_key(name);
        pods
    }

    /// A pod.
    pub(crate) async fn pod(&self, name: &str) -> Pod {
        self.sandbox.get(name).await
    }

    /// Changes a pod.
    pub(crate) async fn change_pod(&self, name: &str, patch: Value) -> Pod {
        self.sandbox.merge(name, patch).await
    }

    /// Deletes a pod, and waits until it is gone.
    pub(crate) async fn delete_pod(&self, name: &str) {
        self.sandbox.delete::<Pod>(name).await;
        let pods = self.sandbox.api::<Pod>();
        let look = async || seen(pods.get_opt(name).await.unwrap().is_none(), "it is there");
        self.sandbox.eventually("the pod is gone", look).await;
    }

    /// Begins to record the pods.
    pub(crate) async fn film(&self) -> Film {
        Film::of(self.sandbox.api()).await
    }

    /// Puts labels on the namespace.
    pub(crate) async fn label_namespace(&self, labels: Value) {
        let namespaces: Api<Namespace> = Api::all(self.cluster.client());
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        namespaces.patch(self.app(), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Events about a set. Those of objects without a namespace are in `default`.
    pub(crate) async fn events_of_set(&self, set: &str) -> Vec<Seen> {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), "default");
        let about = format!("SidecarSet/{}", self.named(set));
        let events = events.list(&ListParams::default()).await.unwrap();
        events.iter().map(Seen::from).filter(|event| event.about == about).collect()
    }

    /// Events of the namespace with this reason.
    pub(crate) async fn events(&self, reason: &str) -> Vec<Seen> {
        self.sandbox.events().await.into_iter().filter(|event| event.reason == reason).collect()
    }

    /// The API of the revisions of sets.
    pub(crate) fn revision_api(&self) -> Api<ControllerRevision> {
        Api::namespaced(self.cluster.client(), names::NAMESPACE)
    }

    /// The revisions of a set, by number.
    pub(crate) async fn revisions(&self, set: &str) -> Vec<ControllerRevision> {
        let ours = ListParams::default().labels(&format!("{}={}", labels::SIDECARSET_NAME, self.named(set)));
        let mut found = self.revision_api().list(&ours).await.unwrap().items;
        found.sort_by_key(|one| one.revision);
        found
    }
}

fn describe(set: &Value, pods: &[Pod]) -> String {
    let pods: Vec<String> = pods.iter().map(summary).collect();
    format!(
        "generation {}, status {}, pods {}",
        set["metadata"]["generation"],
        set["status"],
        pods.join("\n")
    )
}
