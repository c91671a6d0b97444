//! A StatefulSet in a namespace of its own.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kruise_api::{labels, statefulset::v1beta1::StatefulSet};
use kruise_testkit::{Backend, Sandbox, Skip, cluster::REAL_NODES, wait::seen};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    film::Film,
    kit::{is_active, is_available, is_ready, label, merged, name},
    stage::Stage,
};

/// The StatefulSet `web` of the scenarios: 5 replicas, Parallel, of a web server with a readiness probe.
pub(crate) struct Web {
    pub(crate) sandbox: Sandbox,
    image: Box<dyn Fn(&str) -> String>,
    /// Kubelets of hollow nodes probe addresses that nobody has.
    probes: bool,
}

/// A spec whose pods run where images are really pulled: hollow nodes run any image.
pub(crate) async fn pulling(stage: &Stage, mut spec: Value) -> Result<Value, Skip> {
    stage.cluster.require_nodes(REAL_NODES).await?;
    spec["template"] = json!({"spec": {"nodeSelector": {REAL_NODES.0: REAL_NODES.1}}});
    Ok(spec)
}

impl Web {
    /// A namespace for it, with nothing in it yet.
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Self {
        let cluster = stage.cluster.clone();
        let probes = cluster.backend() == Backend::Embedded;
        let sandbox = cluster.sandbox(purpose).await;
        Self { sandbox, image: Box::new(move |name| cluster.image(name)), probes }
    }

    /// `web`, changed by a merge patch of its spec, with all of its pods available.
    pub(crate) async fn start(stage: &Stage, purpose: &str, spec: Value) -> Self {
        let web = Self::prepare(stage, purpose).await;
        web.create(spec).await;
        web.settled().await;
        web
    }

    /// The full name of a test image, such as `app:v2`.
    pub(crate) fn image(&self, name: &str) -> String {
        (self.image)(name)
    }

    /// The default object, with its spec changed by a merge patch.
    pub(crate) fn object(&self, spec: &Value) -> Value {
        let web = json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "StatefulSet",
            "metadata": {"name": "web", "namespace": self.sandbox.namespace()},
            "spec": {
                "replicas": 5,
                "serviceName": "web",
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
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
        let mut web = merged(web, &json!({"spec": spec}));
        let main = web.pointer_mut("/spec/template/spec/containers/0").and_then(Value::as_object_mut);
        if let Some(main) = main.filter(|_| !self.probes) {
            main.remove("readinessProbe");
        }
        web
    }

    /// Creates it.
    pub(crate) async fn create(&self, spec: Value) -> StatefulSet {
        self.sandbox.create(self.object(&spec)).await
    }

    /// The set as it is now.
    pub(crate) async fn set(&self) -> StatefulSet {
        self.sandbox.get("web").await
    }

    /// Its status as JSON.
    pub(crate) async fn status(&self) -> Value {
        serde_json::to_value(self.set().await.status).unwrap()
    }

    /// Changes its spec by a merge patch.
    pub(crate) async fn change(&self, spec: Value) -> StatefulSet {
        self.sandbox.merge("web", json!({"spec": spec})).await
    }

    /// Changes its spec by a merge patch; the text of the refusal, if there is one.
    pub(crate) async fn try_change(&self, spec: Value) -> Result<StatefulSet, String> {
        let api: Api<StatefulSet> = self.sandbox.api();
        let patch = Patch::Merge(json!({"spec": spec}));
        match api.patch("web", &PatchParams::default(), &patch).await {
            Ok(set) => Ok(set),
            Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Changes its rolling update.
    pub(crate) async fn rolling(&self, rolling: Value) -> StatefulSet {
        self.change(json!({"updateStrategy": {"rollingUpdate": rolling}})).await
    }

    /// Gives the container `main` another image.
    pub(crate) async fn set_image(&self, image: &str) -> StatefulSet {
        let set = serde_json::to_value(self.set().await).unwrap();
        let mut containers = set["spec"]["template"]["spec"]["containers"].clone();
        containers[0]["image"] = self.image(image).into();
        self.change(json!({"template": {"spec": {"containers": containers}}})).await
    }

    /// All pods of the namespace, by name.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        let mut pods: Vec<Pod> = self.sandbox.list().await;
        pods.sort_by_key(name);
        pods
    }

    /// A pod.
    pub(crate) async fn pod(&self, ordinal: i64) -> Pod {
        self.sandbox.get(&format!("web-{ordinal}")).await
    }

    /// Patches a pod.
    pub(crate) async fn change_pod(&self, ordinal: i64, patch: Value) -> Pod {
        self.sandbox.strategic(&format!("web-{ordinal}"), patch).await
    }

    /// The claims, by name.
    pub(crate) async fn claims(&self) -> Vec<String> {
        let claims: Vec<PersistentVolumeClaim> = self.sandbox.list().await;
        let left = claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
        let mut names: Vec<String> = left.map(kube::ResourceExt::name_any).collect();
        names.sort();
        names
    }

    /// Begins to record the pods.
    pub(crate) async fn film(&self) -> Film {
        Film::of(self.sandbox.api()).await
    }

    /// The ordinals with the images of their pods, such as `0:v1 2:v2`.
    pub(crate) fn shown(&self, pods: &[Pod]) -> String {
        let mut shown: Vec<(i64, String)> = pods
            .iter()
            .filter_map(|pod| {
                let ordinal: i64 = name(pod).strip_prefix("web-")?.parse().ok()?;
                let image = crate::kit::image_of(pod, "main");
                let tag = image.rsplit_once(':').map_or(image.as_str(), |(_, tag)| tag).to_owned();
                Some((ordinal, format!("{ordinal}:{tag}")))
            })
            .collect();
        shown.sort();
        shown.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
    }

    /// Waits until the set and its pods are as wanted.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&StatefulSet, &[Pod]) -> bool) {
        let look = async || {
            let (set, pods) = (self.set().await, self.pods().await);
            seen(is_so(&set, &pods), describe(&set, &pods))
        };
        self.sandbox.eventually(what, look).await;
    }

    /// Checks over a time that the set and its pods stay as wanted.
    pub(crate) async fn always(
        &self,
        what: &str,
        during: Duration,
        holds: impl Fn(&StatefulSet, &[Pod]) -> bool,
    ) {
        let look = async || {
            let (set, pods) = (self.set().await, self.pods().await);
            seen(holds(&set, &pods), describe(&set, &pods))
        };
        self.sandbox.always(what, during, look).await;
    }

    /// Waits until the pods are these, all are available, and the status says so.
    pub(crate) async fn rests_at(&self, expected: &str) {
        self.until(&format!("the pods are {expected}"), |set, pods| {
            let wanted = i32::try_from(pods.len()).unwrap();
            let status = set.status.clone().unwrap_or_default();
            self.shown(pods) == expected
                && pods.iter().all(is_available)
                && status.observed_generation == set.metadata.generation
                && [status.replicas, status.ready_replicas, status.available_replicas] == [wanted; 3]
        })
        .await;
    }

    /// Waits until all pods are available, and the status says so.
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

    /// The messages of events with a reason.
    pub(crate) async fn messages(&self, reason: &str) -> Vec<String> {
        let events = self.sandbox.events().await.into_iter();
        events.filter(|event| event.reason == reason).map(|event| event.message).collect()
    }
}

/// The names of pods in the order in which they were created; a pod that comes again is named again.
pub(crate) fn comings(film: &Film) -> Vec<String> {
    let mut known = std::collections::BTreeSet::new();
    let mut names = Vec::new();
    for frame in film.frames() {
        for pod in frame.pods.values() {
            if known.insert(pod.metadata.uid.clone()) {
                names.push(name(pod));
            }
        }
    }
    names
}

/// Whether a pod is in a state of its hooks.
pub(crate) fn is_in(pod: &Pod, state: &str) -> bool {
    label(pod, labels::LIFECYCLE_STATE) == state
}

fn describe(set: &StatefulSet, pods: &[Pod]) -> String {
    let status = serde_json::to_string(&set.status).unwrap_or_default();
    let pods: Vec<String> = pods
        .iter()
        .map(|pod| {
            let state = if is_ready(pod) { "ready" } else { "not ready" };
            let ending = if is_active(pod) { "" } else { ", ending" };
            let revision = label(pod, labels::CONTROLLER_REVISION_HASH);
            format!("{} ({state}{ending}, {revision}, {})", name(pod), label(pod, labels::LIFECYCLE_STATE))
        })
        .collect();
    format!("generation {:?}, status {status}, pods {}", set.metadata.generation, pods.join(", "))
}
