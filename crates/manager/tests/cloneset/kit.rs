//! A CloneSet in a namespace of its own, and words to talk about it.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kruise_api::{cloneset::v1beta1::CloneSet, labels};
use kruise_testkit::{Backend, Sandbox, wait::seen};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{film::Film, stage::Stage};

/// The CloneSet `demo` of the scenarios: 5 replicas of a web server with a readiness probe.
pub(crate) struct Demo {
    pub(crate) sandbox: Sandbox,
    image: Box<dyn Fn(&str) -> String>,
    /// Kubelets of hollow nodes probe addresses that nobody has.
    probes: bool,
}

/// Merges a JSON merge patch into an object, for tests that differ in a few fields.
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

/// Not ending and not ended.
pub(crate) fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Failed" | "Succeeded"))
}

/// Whether a condition of a pod is true.
pub(crate) fn has_condition(pod: &Pod, kind: &str) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|one| one.type_ == kind && one.status == "True")
}

/// Ready, as its conditions say.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    has_condition(pod, "Ready")
}

/// Available as far as a pod itself tells: not ending, ready, in its normal state and not in the middle of an update.
pub(crate) fn is_available(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let in_update = conditions.iter().any(|one| one.type_ == "InPlaceUpdateReady" && one.status != "True");
    let state = label(pod, labels::LIFECYCLE_STATE);
    is_active(pod) && is_ready(pod) && !in_update && matches!(state, "" | "Normal")
}

/// A patch of the update strategy of a set.
pub(crate) fn rolling(members: Value) -> Value {
    json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": members}}})
}

/// The revision that a pod is on, as its label says.
pub(crate) fn revision(pod: &Pod) -> String {
    label(pod, labels::CONTROLLER_REVISION_HASH).to_owned()
}

/// A condition of a set: status, reason and message.
pub(crate) fn condition(set: &CloneSet, kind: &str) -> Option<[String; 3]> {
    let status = serde_json::to_value(&set.status).unwrap_or_default();
    let found = status["conditions"].as_array()?.iter().find(|one| one["type"] == kind)?.clone();
    Some(["status", "reason", "message"].map(|key| found[key].as_str().unwrap_or_default().to_owned()))
}

/// A label of a pod, or nothing.
pub(crate) fn label<'a>(pod: &'a Pod, key: &str) -> &'a str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map_or("", String::as_str)
}

/// An annotation of a pod, or nothing.
pub(crate) fn annotation<'a>(pod: &'a Pod, key: &str) -> &'a str {
    pod.metadata.annotations.as_ref().and_then(|pairs| pairs.get(key)).map_or("", String::as_str)
}

/// The name of a pod.
pub(crate) fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

/// The image that a container of a pod is to have.
pub(crate) fn image_of(pod: &Pod, container: &str) -> String {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let found = containers.iter().find(|found| found.name == container);
    found.and_then(|found| found.image.clone()).unwrap_or_default()
}

/// How many pods are on the newest revision.
pub(crate) fn updated(pods: &[Pod], set: &CloneSet) -> usize {
    let revision = set.status.as_ref().and_then(|status| status.update_revision.clone()).unwrap_or_default();
    pods.iter().filter(|pod| label(pod, labels::CONTROLLER_REVISION_HASH) == revision).count()
}

impl Demo {
    /// A namespace for it, with nothing in it yet.
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Self {
        let cluster = stage.cluster.clone();
        let probes = cluster.backend() == Backend::Embedded;
        let sandbox = cluster.sandbox(purpose).await;
        Self { sandbox, image: Box::new(move |name| cluster.image(name)), probes }
    }

    /// `demo`, changed by a merge patch, with all of its pods available.
    pub(crate) async fn start(stage: &Stage, purpose: &str, change: Value) -> Self {
        let demo = Self::prepare(stage, purpose).await;
        demo.create(change).await;
        demo.settled().await;
        demo
    }

    /// The full name of a test image, such as `app:v2`.
    pub(crate) fn image(&self, name: &str) -> String {
        (self.image)(name)
    }

    /// The default object, changed by a merge patch.
    pub(crate) fn object(&self, change: &Value) -> Value {
        let demo = json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "CloneSet",
            "metadata": {"name": "demo", "namespace": self.sandbox.namespace()},
            "spec": {
                "replicas": 5,
                "selector": {"matchLabels": {"app": "demo"}},
                "template": {
                    "metadata": {"labels": {"app": "demo"}},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "nodeSelector": {"kruise-rs.io/node-type": "hollow"},
                        "containers": [{
                            "name": "main",
                            "image": self.image("app:v1"),
                            "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1},
                        }],
                    },
                },
            },
        });
        let mut demo = merged(demo, change);
        let main = demo.pointer_mut("/spec/template/spec/containers/0").and_then(Value::as_object_mut);
        if let Some(main) = main.filter(|_| !self.probes) {
            main.remove("readinessProbe");
        }
        demo
    }

    /// Creates it.
    pub(crate) async fn create(&self, change: Value) -> CloneSet {
        self.sandbox.create(self.object(&change)).await
    }

    /// The CloneSet as it is now.
    pub(crate) async fn set(&self) -> CloneSet {
        self.sandbox.get("demo").await
    }

    /// Changes it by a merge patch.
    pub(crate) async fn change(&self, patch: Value) -> CloneSet {
        self.sandbox.merge("demo", patch).await
    }

    /// Changes it by a merge patch; the words of the refusal, if there is one.
    pub(crate) async fn try_change(&self, patch: Value) -> Result<CloneSet, String> {
        let api: Api<CloneSet> = self.sandbox.api();
        match api.patch("demo", &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(set) => Ok(set),
            Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gives the container `main` another image.
    pub(crate) async fn set_image(&self, image: &str) -> CloneSet {
        let mut template = self.template().await;
        template["spec"]["containers"][0]["image"] = self.image(image).into();
        self.change(json!({"spec": {"template": {"spec": {"containers": template["spec"]["containers"]}}}}))
            .await
    }

    /// The pod template as it is stored.
    pub(crate) async fn template(&self) -> Value {
        serde_json::to_value(self.set().await).unwrap()["spec"]["template"].clone()
    }

    /// All pods of the namespace, by name.
    pub(crate) async fn all_pods(&self) -> Vec<Pod> {
        let mut pods: Vec<Pod> = self.sandbox.list().await;
        pods.sort_by_key(name);
        pods
    }

    /// Those that are not ending.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        self.all_pods().await.into_iter().filter(is_active).collect()
    }

    /// The uids of its pods, by name.
    pub(crate) async fn uids(&self) -> BTreeMap<String, String> {
        let uid = |pod: &Pod| (name(pod), pod.metadata.uid.clone().unwrap_or_default());
        self.pods().await.iter().map(uid).collect()
    }

    /// Begins to record the pods.
    pub(crate) async fn film(&self) -> Film {
        Film::of(self.sandbox.api()).await
    }

    /// Patches a pod.
    pub(crate) async fn change_pod(&self, name: &str, patch: Value) -> Pod {
        self.sandbox.strategic(name, patch).await
    }

    /// Waits until the set and its pods are as wanted.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&CloneSet, &[Pod]) -> bool) {
        let look = async || {
            let (set, pods) = (self.set().await, self.all_pods().await);
            seen(is_so(&set, &pods), describe(&set, &pods))
        };
        self.sandbox.eventually(what, look).await;
    }

    /// Checks over a time that the set and its pods stay as wanted.
    pub(crate) async fn always(
        &self,
        what: &str,
        during: Duration,
        holds: impl Fn(&CloneSet, &[Pod]) -> bool,
    ) {
        let look = async || {
            let (set, pods) = (self.set().await, self.all_pods().await);
            seen(holds(&set, &pods), describe(&set, &pods))
        };
        self.sandbox.always(what, during, look).await;
    }

    /// Waits until as many pods as wanted are available, no other is left, and the status says so.
    pub(crate) async fn settled(&self) {
        self.until("all pods are available", |set, pods| {
            let wanted = set.spec.replicas.unwrap_or(1);
            let status = set.status.clone().unwrap_or_default();
            status.observed_generation == set.metadata.generation
                && [status.replicas, status.ready_replicas, status.available_replicas] == [wanted; 3]
                && pods.len() == usize::try_from(wanted).unwrap()
                && pods.iter().all(|pod| is_active(pod) && is_ready(pod))
        })
        .await;
    }

    /// The same, with all of them on the newest revision.
    pub(crate) async fn rolled_out(&self) {
        self.until("all pods are updated and available", |set, pods| {
            let wanted = set.spec.replicas.unwrap_or(1);
            let status = set.status.clone().unwrap_or_default();
            status.observed_generation == set.metadata.generation
                && status.updated_replicas == wanted
                && status.updated_available_replicas.unwrap_or(0) == wanted
                && status.current_revision == status.update_revision
                && pods.len() == usize::try_from(wanted).unwrap()
                && pods.iter().all(is_ready)
        })
        .await;
    }

    /// Waits until so many pods are on the newest revision, all are available, and the status agrees.
    pub(crate) async fn at_rest(&self, wanted_updated: usize) {
        self.until(&format!("{wanted_updated} pods are updated and all are available"), |set, pods| {
            let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap();
            let status = set.status.clone().unwrap_or_default();
            let is = |number: i32| usize::try_from(number).unwrap();
            status.observed_generation == set.metadata.generation
                && is(status.updated_replicas) == wanted_updated
                && is(status.available_replicas) == wanted
                && pods.len() == wanted
                && pods.iter().all(is_available)
                && updated(pods, set) == wanted_updated
        })
        .await;
    }

    /// How many events with this reason were told, repetitions counted.
    pub(crate) async fn events(&self, reason: &str) -> Vec<kruise_testkit::events::Seen> {
        self.sandbox.events().await.into_iter().filter(|event| event.reason == reason).collect()
    }
}

fn describe(set: &CloneSet, pods: &[Pod]) -> String {
    let status = serde_json::to_string(&set.status).unwrap_or_default();
    let pods: Vec<String> = pods
        .iter()
        .map(|pod| {
            let state = if is_ready(pod) { "ready" } else { "not ready" };
            let ending = if is_active(pod) { "" } else { ", ending" };
            let revision = label(pod, labels::CONTROLLER_REVISION_HASH);
            let stage = label(pod, labels::LIFECYCLE_STATE);
            format!("{} ({state}{ending}, {revision}, {stage})", name(pod))
        })
        .collect();
    format!("generation {:?}, status {status}, pods {}", set.metadata.generation, pods.join(", "))
}
