//! Pods whose containers start in an order, and words to talk about them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kruise_api::{
    annotations::{CONTAINER_LAUNCH_PRIORITY, CONTAINER_LAUNCH_PRIORITY_COMPLETED},
    env::{CONTAINER_BARRIER, CONTAINER_PRIORITY},
};
use kruise_testkit::{Cluster, Sandbox, Skip, cluster::REAL_NODES, pod::container as status_of, wait::seen};
use kube::Api;
use serde_json::{Value, json};

use crate::{
    film::Film,
    kit::{annotation, is_ready, merged, name},
    stage::Stage,
};

/// A namespace for pods that run real containers, where there are such.
pub(crate) struct Room {
    pub(crate) sandbox: Sandbox,
    cluster: Cluster,
}

impl Room {
    pub(crate) async fn prepare(stage: &Stage, purpose: &str) -> Result<Self, Skip> {
        stage.cluster.require_nodes(REAL_NODES).await?;
        let cluster = stage.cluster.clone();
        Ok(Self { sandbox: cluster.sandbox(purpose).await, cluster })
    }

    /// A container that serves at a port of its own and is ready two seconds after it started.
    pub(crate) fn container(&self, name: &str) -> Value {
        let port = 8080 + name.bytes().map(u32::from).sum::<u32>() % 1000;
        json!({
            "name": name,
            "image": self.cluster.image("app:v1"),
            "env": [{"name": "PORT", "value": port.to_string()}],
            "readinessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 2, "periodSeconds": 1},
        })
    }

    /// The same with a priority.
    pub(crate) fn prior(&self, name: &str, priority: &str) -> Value {
        let mut container = self.container(name);
        let variable = json!({"name": CONTAINER_PRIORITY, "value": priority});
        container["env"].as_array_mut().unwrap().push(variable);
        container
    }

    /// Creates a pod, recorded from its first moment on.
    pub(crate) async fn start(&self, pod: Value) -> (Pod, Film) {
        let film = Film::of(self.sandbox.api()).await;
        (self.sandbox.create(pod).await, film)
    }

    /// The keys of the barrier of a pod, in the order of names; nothing where there is no barrier.
    pub(crate) async fn keys(&self, pod: &str) -> Option<BTreeSet<String>> {
        Some(self.barrier(pod).await?.data.unwrap_or_default().into_keys().collect())
    }

    pub(crate) async fn barrier(&self, pod: &str) -> Option<ConfigMap> {
        let maps: Api<ConfigMap> = self.sandbox.api();
        maps.get_opt(&format!("{pod}-barrier")).await.unwrap()
    }

    /// Waits until a pod is as wanted.
    pub(crate) async fn until(&self, what: &str, pod: &str, is_so: impl Fn(&Pod) -> bool) -> Pod {
        self.sandbox
            .eventually(what, async || {
                let found: Pod = self.sandbox.get(pod).await;
                match is_so(&found) {
                    true => kruise_testkit::wait::Look::Yes(found),
                    false => kruise_testkit::wait::Look::No(format!(
                        "{}, keys {:?}",
                        kruise_testkit::pod::summary(&found),
                        self.keys(pod).await
                    )),
                }
            })
            .await
    }

    /// Waits until a pod is ready and nothing more is to be done for its order.
    pub(crate) async fn completed(&self, pod: &str) -> Pod {
        self.until("all containers have started", pod, |pod| is_ready(pod) && is_completed(pod)).await
    }

    /// Waits until the barrier of a pod has exactly these keys.
    pub(crate) async fn has_keys(&self, pod: &str, wanted: &[&str]) {
        let wanted: BTreeSet<String> = wanted.iter().map(|&key| key.to_owned()).collect();
        let look = async || {
            let keys = self.keys(pod).await;
            seen(keys.as_ref() == Some(&wanted), format!("{keys:?}"))
        };
        self.sandbox.eventually(&format!("the barrier has the keys {wanted:?}"), look).await;
    }
}

/// A pod with containers, on a node that runs them.
pub(crate) fn pod(name: &str, containers: &[Value]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {REAL_NODES.0: REAL_NODES.1},
            "containers": containers,
        },
    })
}

/// The same in the order of its containers.
pub(crate) fn ordered(pod: Value) -> Value {
    merged(pod, &json!({"metadata": {"annotations": {CONTAINER_LAUNCH_PRIORITY: "Ordered"}}}))
}

/// The workload of a kind whose template is a pod.
pub(crate) fn workload(kind: &str, name: &str, pod: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": pod.pointer("/metadata/annotations")},
                "spec": pod["spec"],
            },
        },
    })
}

/// Whether nothing more is to be done for the order of a pod.
pub(crate) fn is_completed(pod: &Pod) -> bool {
    annotation(pod, CONTAINER_LAUNCH_PRIORITY_COMPLETED) == "true"
}

/// What each container waits for: the key, where the last variable reads it from the barrier of this pod.
pub(crate) fn barriers(pod: &Pod) -> Vec<(String, Option<String>)> {
    let barrier = format!("{}-barrier", name(pod));
    let key = |container: &k8s_openapi::api::core::v1::Container| {
        let variable = container.env.as_ref()?.last().filter(|one| one.name == CONTAINER_BARRIER)?;
        let reference = variable.value_from.as_ref()?.config_map_key_ref.as_ref()?;
        assert_ne!(reference.optional, Some(true), "a key that may be missing holds nothing back");
        (reference.name == barrier).then(|| reference.key.clone())
    };
    let containers = &pod.spec.as_ref().unwrap().containers;
    containers.iter().map(|container| (container.name.clone(), key(container))).collect()
}

/// The same, short enough to compare.
pub(crate) fn waits_for(pod: &Pod) -> String {
    let one = |(name, key): (String, Option<String>)| format!("{name}:{}", key.unwrap_or("-".to_owned()));
    barriers(pod).into_iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Why a container waits.
pub(crate) fn waiting<'a>(pod: &'a Pod, container: &str) -> &'a str {
    let waiting = status_of(pod, container).and_then(|status| status.state.as_ref()?.waiting.as_ref());
    waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default()
}

/// Whether a container runs or ran.
pub(crate) fn has_started(pod: &Pod, container: &str) -> bool {
    status_of(pod, container).is_some_and(|status| {
        let state = status.state.as_ref();
        let runs_or_ran = state.is_some_and(|state| state.running.is_some() || state.terminated.is_some());
        runs_or_ran || status.restart_count > 0
    })
}

/// Whether a container ended well.
pub(crate) fn has_succeeded(pod: &Pod, container: &str) -> bool {
    let ended = status_of(pod, container).and_then(|status| status.state.as_ref()?.terminated.as_ref());
    ended.is_some_and(|ended| ended.exit_code == 0)
}

/// When a container began to run.
pub(crate) fn started_at(pod: &Pod, container: &str) -> String {
    let running = status_of(pod, container).and_then(|status| status.state.as_ref()?.running.as_ref());
    running.and_then(|running| running.started_at.as_ref()).map(|at| at.0.to_string()).unwrap_or_default()
}

/// Checks over everything that was seen of a pod that no container started before all of the groups before its own had
/// been ready.
#[track_caller]
pub(crate) fn assert_order(film: &Film, pod: &Pod, groups: &[&[&str]]) {
    let mut been_ready: BTreeSet<&str> = BTreeSet::new();
    let mut started: BTreeSet<&str> = BTreeSet::new();
    let frames = film.frames();
    let of_this = frames.iter().flat_map(|frame| frame.pods.values());
    for seen in of_this.filter(|seen| seen.metadata.uid == pod.metadata.uid) {
        for (place, group) in groups.iter().enumerate() {
            for container in group.iter().filter(|container| has_started(seen, container)) {
                let early = groups[..place].iter().copied().flatten().find(|one| !been_ready.contains(**one));
                assert_eq!(early, None, "{container} started although this one had not been ready");
                started.insert(container);
            }
        }
        for container in groups.iter().copied().flatten() {
            let is_ready = status_of(seen, container).is_some_and(|status| status.ready);
            if is_ready || has_succeeded(seen, container) {
                been_ready.insert(container);
            }
        }
    }
    assert_eq!(
        started.len(),
        groups.iter().map(|group| group.len()).sum::<usize>(),
        "all were seen to start"
    );
}
