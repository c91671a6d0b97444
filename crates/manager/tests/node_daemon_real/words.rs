//! Pods to work on, requests, and words to talk about them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kruise_api::{
    containerrecreaterequest::v1beta1::{ContainerRecreateRequest, Phase},
    imagepulljob::v1beta1::ImagePullJob,
    podprobemarker::v1alpha1::PodProbeMarker,
};
use kruise_testkit::{
    Sandbox, Skip,
    cluster::REAL_NODES,
    pod::{container, is_ready, summary},
    wait::{Look, seen},
};
use kube::api::{DeleteParams, ListParams, LogParams};
use serde_json::{Value, json};

use crate::{
    node::{self, Daemon},
    stage::Stage,
};

/// A namespace with a daemon behind it.
pub(crate) struct Room {
    pub(crate) sandbox: Sandbox,
    pub(crate) image: String,
    /// The one that only this scenario has; none where all share one.
    _daemon: Option<Daemon>,
}

impl Room {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Result<Self, Skip> {
        let daemon = node::served(stage).await?;
        Ok(Self::new(stage, purpose, daemon).await)
    }

    pub(crate) async fn new(stage: &Stage, purpose: &str, daemon: Option<Daemon>) -> Self {
        let sandbox = stage.cluster.sandbox(purpose).await;
        Self { sandbox, image: stage.cluster.image("app:v1"), _daemon: daemon }
    }

    /// The containers `app` and `sidecar`, changed by merge patches.
    pub(crate) fn two(&self, app: &Value, sidecar: &Value) -> Value {
        let mut containers = json!([
            {"name": "app", "image": self.image, "ports": [{"name": "web", "containerPort": 8080}]},
            {"name": "sidecar", "image": self.image, "env": [{"name": "PORT", "value": "8081"}]},
        ]);
        for (container, change) in containers.as_array_mut().unwrap().iter_mut().zip([app, sidecar]) {
            for (key, value) in change.as_object().into_iter().flatten() {
                container[key] = value.clone();
            }
        }
        containers
    }

    /// A pod on the real node, once it is ready. `more` are fields of its spec.
    pub(crate) async fn pod(&self, name: &str, containers: Value, more: Value) -> Pod {
        let mut spec = json!({
            "terminationGracePeriodSeconds": 30, "nodeSelector": {REAL_NODES.0: REAL_NODES.1}, "containers": containers,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let _: Pod = self
            .sandbox
            .create(json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}))
            .await;
        self.until(name, "the pod is ready", is_ready).await
    }

    /// A CloneSet `set` of one pod on the real node that changes in place only. `more` are labels of its pod.
    pub(crate) fn set(&self, more: &Value, containers: Value) -> Value {
        let mut labels = json!({"app": "set"});
        for (key, value) in more.as_object().into_iter().flatten() {
            labels[key] = value.clone();
        }
        let spec = json!({
            "terminationGracePeriodSeconds": 2, "nodeSelector": {REAL_NODES.0: REAL_NODES.1}, "containers": containers,
        });
        json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
            "metadata": {"name": "set", "namespace": self.sandbox.namespace()},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": "set"}},
                "template": {"metadata": {"labels": labels}, "spec": spec},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}},
            },
        })
    }

    /// Waits until a pod is as it should be.
    pub(crate) async fn until(&self, name: &str, what: &str, is_so: impl Fn(&Pod) -> bool) -> Pod {
        let look = async || {
            let found: Pod = self.sandbox.get(name).await;
            if is_so(&found) { Look::Yes(found) } else { Look::No(summary(&found)) }
        };
        self.sandbox.eventually(what, look).await
    }

    /// The pod, once it says of these containers when their last instances ended: the kubelet may tell that a moment after it
    /// tells of the new ones.
    pub(crate) async fn after_stop(&self, name: &str, containers: &[&str]) -> Pod {
        let is_known = |pod: &Pod| {
            containers.iter().all(|container| {
                let last = status(pod, container).last_state.as_ref();
                last.is_some_and(|state| state.terminated.is_some()) && started_at(pod, container).is_some()
            })
        };
        self.until_told(name, "the end of the last containers is known", is_known).await
    }

    /// Waits until a pod is as it should be, and says what the pod tells when it is not.
    pub(crate) async fn until_told(&self, name: &str, what: &str, is_so: impl Fn(&Pod) -> bool) -> Pod {
        let look = async || {
            let found: Pod = self.sandbox.get(name).await;
            if is_so(&found) { Look::Yes(found) } else { Look::No(format!("{:?}", found.status)) }
        };
        self.sandbox.eventually(what, look).await
    }

    /// Asks for containers of a pod to be recreated. `more` are other fields of the spec.
    pub(crate) async fn ask(
        &self,
        name: &str,
        pod: &str,
        containers: &[&str],
        more: &Value,
    ) -> ContainerRecreateRequest {
        let containers: Vec<Value> = containers.iter().map(|name| json!({"name": name})).collect();
        let mut spec = json!({"podName": pod, "containers": containers});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        self.sandbox.create(json!({"metadata": {"name": name}, "spec": spec})).await
    }

    /// Waits until a request is as it should be.
    pub(crate) async fn until_request(
        &self,
        name: &str,
        what: &str,
        is_so: impl Fn(&ContainerRecreateRequest) -> bool,
    ) -> ContainerRecreateRequest {
        let look = async || {
            let found: ContainerRecreateRequest = self.sandbox.get(name).await;
            if is_so(&found) { Look::Yes(found) } else { Look::No(format!("{:?}", found.status)) }
        };
        self.sandbox.eventually(what, look).await
    }

    /// Waits until a request is over.
    pub(crate) async fn ended(&self, name: &str) -> ContainerRecreateRequest {
        let is_over = |request: &ContainerRecreateRequest| {
            request.status.as_ref().is_some_and(|status| status.phase == Phase::Completed)
        };
        self.until_request(name, "the request is over", is_over).await
    }

    /// Deletes what only a manager can let go of, for a scenario after which there is none.
    pub(crate) async fn clear(&self) {
        let sandbox = &self.sandbox;
        let all = (DeleteParams::default(), ListParams::default());
        sandbox.api::<PodProbeMarker>().delete_collection(&all.0, &all.1).await.unwrap();
        sandbox.api::<ImagePullJob>().delete_collection(&all.0, &all.1).await.unwrap();
        let gone = async || {
            let markers: Vec<PodProbeMarker> = sandbox.list().await;
            let jobs: Vec<ImagePullJob> = sandbox.list().await;
            seen(
                markers.is_empty() && jobs.is_empty(),
                format!("{} markers, {} jobs", markers.len(), jobs.len()),
            )
        };
        sandbox.eventually("markers and jobs are gone", gone).await;
    }

    /// What the instance of a container before the current one printed.
    pub(crate) async fn said_before(&self, pod: &str, container: &str) -> String {
        let params =
            LogParams { container: Some(container.to_owned()), previous: true, ..LogParams::default() };
        self.sandbox.api::<Pod>().logs(pod, &params).await.unwrap()
    }
}

/// The state of each container: `app Succeeded killed`.
pub(crate) fn states(request: &ContainerRecreateRequest) -> Vec<String> {
    let states = request.status.as_ref().map(|status| status.container_recreate_states.as_slice());
    let states = states.unwrap_or_default().iter().map(|state| {
        let killed = if state.is_killed == Some(true) { " killed" } else { "" };
        format!("{} {:?}{killed}", state.name, state.phase)
    });
    states.collect()
}

/// Why a request ended.
pub(crate) fn message(request: &ContainerRecreateRequest) -> &str {
    request.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or_default()
}

pub(crate) fn status<'a>(pod: &'a Pod, name: &str) -> &'a ContainerStatus {
    container(pod, name).unwrap()
}

/// When the last instance of a container ended.
pub(crate) fn ended_at(pod: &Pod, name: &str) -> Timestamp {
    let last = status(pod, name).last_state.as_ref().and_then(|state| state.terminated.as_ref());
    last.unwrap().finished_at.as_ref().unwrap().0
}

/// Since when a container runs.
pub(crate) fn started_at(pod: &Pod, name: &str) -> Option<Timestamp> {
    let running = status(pod, name).state.as_ref()?.running.as_ref()?;
    running.started_at.as_ref().map(|time| time.0)
}

/// When a request was made.
pub(crate) fn made_at(request: &ContainerRecreateRequest) -> Timestamp {
    request.metadata.creation_timestamp.as_ref().unwrap().0
}
