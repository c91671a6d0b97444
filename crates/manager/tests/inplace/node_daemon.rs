//! A node daemon, played by the test: it stops a container whose environment reads labels or annotations that have
//! changed, and tells on the pod what runs. It knows nothing but what the specification says about both sides.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use kruise_api::{annotations::RUNTIME_CONTAINERS_META, conditions::IN_PLACE_UPDATE_READY};
use kruise_core::hash;
use kruise_sim::Sim;
use kube::{
    Api,
    api::{Patch, PatchParams},
    runtime::watcher::{self, Event},
};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, annotation, label, name},
    stage::Stage,
    words::is_false,
};

/// Name and value of each variable that reads a label or an annotation.
pub(crate) type Environment = BTreeMap<String, String>;

/// The daemon of all nodes.
pub(crate) struct NodeDaemon<'a> {
    sim: &'a Sim,
    pods: Api<Pod>,
    /// What each container was started with, by its id: image and environment.
    running: Mutex<BTreeMap<String, (String, Environment)>>,
}

impl<'a> NodeDaemon<'a> {
    pub(crate) fn new(stage: &'a Stage, demo: &Demo) -> Self {
        Self { sim: stage.sim(), pods: demo.sandbox.api(), running: Mutex::default() }
    }

    /// Works while something else happens.
    pub(crate) async fn during<T>(&self, story: impl Future<Output = T>) -> T {
        tokio::select! {
            told = story => told,
            never = self.work() => never,
        }
    }

    /// The environment that a container was started with.
    pub(crate) fn environment(&self, status: &ContainerStatus) -> Environment {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let id = status.container_id.as_deref().unwrap_or_default();
        running.get(id).map(|(_, environment)| environment.clone()).unwrap_or_default()
    }

    async fn work<T>(&self) -> T {
        let mut events = std::pin::pin!(watcher::watcher(self.pods.clone(), watcher::Config::default()));
        loop {
            if let Some(Ok(Event::InitApply(pod) | Event::Apply(pod))) = events.next().await {
                self.look(&pod).await;
            }
        }
    }

    async fn look(&self, pod: &Pod) {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
        let mut entries = Vec::new();
        for container in &pod.spec.as_ref().unwrap().containers {
            let status = statuses.unwrap_or_default().iter().find(|status| status.name == container.name);
            let runs =
                |status: &&ContainerStatus| status.state.as_ref().is_some_and(|is| is.running.is_some());
            let Some(status) = status.filter(runs) else { continue };
            let id = status.container_id.clone().unwrap_or_default();
            let wanted = wanted(pod, container);
            let (image, environment) = {
                let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                running.entry(id.clone()).or_insert_with(|| (status.image.clone(), wanted.clone())).clone()
            };
            if environment != wanted && is_false(pod, IN_PLACE_UPDATE_READY) {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                self.sim.kill_container(namespace, &name(pod), &container.name);
            }
            entries.push(json!({
                "name": container.name, "containerID": id, "restartCount": status.restart_count,
                "hashes": {
                    "plainHash": hash::of_json(&json!({"image": image, "name": container.name}).to_string()),
                    "extractedEnvFromMetadataHash": hash::of_json(&extracted(&environment)),
                },
            }));
        }
        let told = json!({"containers": entries}).to_string();
        if !entries.is_empty() && annotation(pod, RUNTIME_CONTAINERS_META) != told {
            let patch = json!({"metadata": {"annotations": {RUNTIME_CONTAINERS_META: told}}});
            let _ = self.pods.patch(&name(pod), &PatchParams::default(), &Patch::Merge(patch)).await;
        }
    }
}

/// What the environment of a container would be if it was started now.
fn wanted(pod: &Pod, container: &Container) -> Environment {
    let variables = container.env.as_deref().unwrap_or_default().iter();
    let read = variables.filter_map(|variable| {
        let path = &variable.value_from.as_ref()?.field_ref.as_ref()?.field_path;
        let (map, key) = path.strip_prefix("metadata.")?.strip_suffix("']")?.split_once("['")?;
        let value = if map == "labels" { label(pod, key) } else { annotation(pod, key) };
        Some((variable.name.clone(), value.to_owned()))
    });
    read.collect()
}

/// The text that is hashed.
fn extracted(environment: &Environment) -> String {
    if environment.is_empty() {
        return "null".to_owned();
    }
    let entry = |(name, value): (&String, &String)| {
        if value.is_empty() { json!({"name": name}) } else { json!({"name": name, "value": value}) }
    };
    Value::from_iter(environment.iter().map(entry)).to_string()
}
