//! Tells what the kubelet started, and restarts containers that run with old values of labels and annotations.

use std::{collections::BTreeMap, time::Duration};

use kruise_api::gates::Gate;
use kruise_core::{
    effect::{Effect, Patch, Target},
    object::{ObjectKey, POD},
    pod::Pod,
};
use kruise_runtime::{
    controller::{Context, Controller, Error, Next},
    events::Recorder,
    queue::{self, Queue},
};

use super::pod_address;
use crate::{
    container_meta::{self, Draft, Entry, Meta},
    cri::{self, Detail, Runtime, keys},
    node::Node,
    stopping::Stopping,
};

/// The name of its queue.
pub const NAME: &str = "runtime_container_meta";
/// The name of the queue of restarts.
pub const RESTARTER: &str = "runtime_container_meta_restarter";
/// The name under which it tells events.
const COMPONENT: &str = "kruise-daemon-containermeta";

const WORKERS: usize = 5;
const RESTART_WORKERS: usize = 10;
/// How long the cache may take to show an own write.
const PATIENCE: Duration = Duration::from_secs(30);
/// Changes of a pod come in groups.
const GATHER: Duration = Duration::from_secs(1);
/// When to ask again for an environment that could not be had.
const ASK_AGAIN: Duration = Duration::from_secs(3);
/// How long a command that prints the environment may take.
const COMMAND_PATIENCE: Duration = Duration::from_secs(3);

/// The controllers: the one that tells, and the one that restarts.
pub fn controllers(node: &Node) -> [Controller; 2] {
    let restarter = Restarter { node: node.clone(), recorder: node.events.recorder(COMPONENT) };
    let slow = queue::Options {
        base: Duration::from_secs(3),
        max: Duration::from_secs(600),
        ..queue::Options::default()
    };
    let restarts = Controller::new(RESTARTER, &node.environment(RESTARTER, PATIENCE))
        .queue(slow)
        .workers(RESTART_WORKERS)
        .reconcile(move |_, key| {
            let restarter = restarter.clone();
            async move { restarter.pass(&key).await }
        });
    let with_env = node.has(Gate::InPlaceUpdateEnvFromMetadata);
    let teller = Teller { node: node.clone(), with_env, restarts: restarts.queue().clone() };
    let telling = Controller::new(NAME, &node.environment(NAME, PATIENCE))
        .queue(node.queue())
        .workers(WORKERS)
        .follow(&node.caches.pods)
        .reconcile(move |context, key| {
            let teller = teller.clone();
            async move { teller.pass(&context, &key).await }
        });
    let queue = telling.queue().clone();
    node.caches.pods.subscribe(move |change| {
        let Some(pod) = &change.new else { return };
        if container_meta::is_worth_a_look(change.old.as_deref(), pod, with_env) {
            queue.add_after(change.key.clone(), GATHER);
        }
    });
    [telling, restarts]
}

#[derive(Clone)]
struct Teller {
    node: Node,
    with_env: bool,
    restarts: Queue,
}

impl Teller {
    async fn pass(&self, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
        let Some(pod) = self.node.caches.pods.get(key) else { return Ok(Next::Forget) };
        if !container_meta::is_considered(&pod) || pod.metadata.is_deleting() || pod.metadata.unreadable {
            return Ok(Next::Done);
        }
        let Some(runtime) = runtime(&self.node, &pod) else { return Ok(Next::Done) };
        let containers = runtime.containers(Some(&pod.metadata.uid)).await.map_err(Error::other)?;
        let mut draft = container_meta::draft(&pod, &containers, self.with_env);
        ask(&mut draft, &pod, &*runtime).await;
        if draft.is_news(&pod) {
            let target = Target::with_uid(POD, key.clone(), pod.metadata.uid.clone());
            let patch = Patch::Strategic(draft.meta.patch());
            context.act(key, &[Effect::Patch { target, subresource: Some("status"), patch }]).await?;
        }
        if self.with_env && !container_meta::outdated(&pod, &draft.meta).is_empty() {
            self.restarts.add(key.clone());
        }
        Ok(if draft.ask.is_empty() { Next::Done } else { Next::After(ASK_AGAIN) })
    }
}

/// The runtime of a pod's containers.
fn runtime(node: &Node, pod: &Pod) -> Option<std::sync::Arc<dyn Runtime>> {
    let ids = pod.status.container_statuses.iter().filter_map(|status| cri::split_id(&status.container_id));
    ids.filter_map(|(name, _)| node.runtimes.named(name)).next().cloned()
}

/// Asks for the environments that a draft lacks. What nobody tells stays open.
async fn ask(draft: &mut Draft, pod: &Pod, runtime: &dyn Runtime) {
    for (name, id) in draft.ask.clone() {
        match environment(runtime, &id).await {
            Ok(environment) => draft.answer(pod, &name, &environment),
            Err(error) => tracing::debug!(container = %name, %error, "cannot read the environment"),
        }
    }
}

async fn environment(runtime: &dyn Runtime, id: &str) -> Result<BTreeMap<String, String>, cri::Error> {
    let told = runtime.inspect(id, Detail::Environment).await?.and_then(|inspected| inspected.environment);
    if let Some(environment) = told {
        return Ok(environment);
    }
    let output = runtime.exec(id, &["env".to_owned()], Some(COMMAND_PATIENCE)).await?;
    if output.exit_code != 0 {
        let problem = format!("env ended with {}", output.exit_code);
        return Err(cri::Error::new(cri::Kind::Other, problem));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(text.lines().filter_map(pair).collect())
}

#[derive(Clone)]
struct Restarter {
    node: Node,
    recorder: Recorder,
}

impl Restarter {
    async fn pass(&self, key: &ObjectKey) -> Result<Next, Error> {
        let Some(pod) = self.node.caches.pods.get(key) else { return Ok(Next::Forget) };
        let Some(meta) = Meta::read(&pod).filter(|_| !pod.metadata.unreadable) else { return Ok(Next::Done) };
        let outdated = container_meta::outdated(&pod, &meta);
        let Some(runtime) = runtime(&self.node, &pod).filter(|_| !outdated.is_empty()) else {
            return Ok(Next::Done);
        };
        let containers = runtime.containers(Some(&pod.metadata.uid)).await.map_err(Error::other)?;
        for Entry { name, container_id, .. } in outdated {
            let Some((_, id)) = cri::split_id(&container_id) else { continue };
            let running = containers.iter().find(|one| one.id == id && one.state == cri::State::Running);
            let Some(container) = running else { continue };
            tracing::info!(container = %name, "stops a container that runs with old labels or annotations");
            let stopping = stopping(&pod, &name, container);
            stopping.carry_out(&*runtime, &self.recorder).await.map_err(Error::other)?;
        }
        Ok(Next::Done)
    }
}

/// How to stop a container about which only the runtime is asked.
fn stopping(pod: &Pod, name: &str, container: &cri::Container) -> Stopping {
    let annotation = |key: &str| container.annotations.get(key).map(String::as_str);
    let grace = annotation(keys::DELETION_GRACE).or_else(|| annotation(keys::TERMINATION_GRACE));
    Stopping {
        pod: pod.reference(),
        container: name.to_owned(),
        id: container.id.clone(),
        sandbox: container.sandbox.clone(),
        address: pod_address(pod),
        hook: annotation(keys::PRE_STOP).and_then(|text| serde_json::from_str(text).ok()),
        ports: annotation(keys::PORTS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        grace_seconds: grace.and_then(|text| text.parse().ok()).unwrap_or(30).max(0),
        message: format!("Stopping containerID {} by container meta restarter", container.id),
    }
}
