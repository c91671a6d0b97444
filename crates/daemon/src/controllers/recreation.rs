//! Recreates containers of pods of this node. Keys are pods: their requests are served one at a time.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_api::containerrecreaterequest::v1beta1::{ContainerState, Phase};
use kruise_core::{
    object::{ObjectKey, ObjectRef, POD},
    text::Text,
};
use kruise_runtime::{
    controller::{Context, Controller, Error, Next},
    events::Recorder,
};
use tokio::time::Instant;

use super::{careful_status_patch, pod_address, status_patch};
use crate::{
    cri::{self, Detail, Runtime, newest},
    node::{BY_POD, Node},
    recreation::{self, Begin, Instance, Known, NoRuntime, Pick, REQUEST, Step, Target},
    stopping::Stopping,
};

/// The name of its queue.
pub const NAME: &str = "crr";
/// The name under which it tells events.
const COMPONENT: &str = "kruise-daemon-crr";
/// How many pods are worked on at once, and so how many containers are being stopped.
const WORKERS: usize = 32;
/// How often we look for other requests of a pod while a container of it is being stopped.
const NEWCOMERS: Duration = Duration::from_secs(1);
/// How long the cache may take to show an own write.
const PATIENCE: Duration = Duration::from_secs(10);

/// The controller.
pub fn controller(node: &Node) -> Controller {
    let environment = node.environment(NAME, PATIENCE);
    let recreation =
        Recreation { node: node.clone(), recorder: node.events.recorder(COMPONENT), held: Arc::default() };
    Controller::new(NAME, &environment)
        .queue(node.queue())
        .workers(WORKERS)
        .follow(&node.caches.requests)
        .wake(&node.caches.requests, |change, wake| {
            // Also when a request is over or gone: the next one of its pod may begin.
            for request in change.old.iter().chain(&change.new) {
                if let Ok(object) = &request.object {
                    let namespace = request.metadata.namespace.clone();
                    wake(ObjectKey::new(namespace, object.spec.pod_name.as_str()));
                }
            }
        })
        .reconcile(move |context, key| {
            let recreation = recreation.clone();
            async move { recreation.pass(&context, &key).await }
        })
}

/// Times by the pod and the uid of its request.
type Held = BTreeMap<(ObjectKey, Text), Instant>;

#[derive(Clone)]
struct Recreation {
    node: Node,
    recorder: Recorder,
    /// Since when we know that the pod of a request is held.
    held: Arc<Mutex<Held>>,
}

impl Recreation {
    async fn pass(&self, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
        let requests = self.requests(key);
        let is_open =
            |uid: &Text| requests.iter().any(|known| known.metadata.uid == *uid && !known.is_over());
        self.held().retain(|(pod, uid), _| pod != key || is_open(uid));
        if requests.is_empty() {
            return Ok(Next::Forget);
        }
        let pick = recreation::pick(&requests);
        put_off(context, key, &pick).await?;
        match pick.turn {
            Some(turn) => self.drive(context, key, turn).await,
            None => Ok(Next::Done),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long we know that the pod of a request is held.
    fn seen(&self, key: &ObjectKey, known: &Known) -> Duration {
        if recreation::held_since(known).is_none() {
            return Duration::ZERO;
        }
        let mut held = self.held();
        held.entry((key.clone(), known.metadata.uid.clone())).or_insert_with(Instant::now).elapsed()
    }

    fn requests(&self, key: &ObjectKey) -> Vec<Known> {
        let found = self.node.caches.requests.by_index(BY_POD, &key.to_string());
        let known = |view: Arc<kruise_runtime::cache::Guarded<recreation::Request>>| {
            let request = view.object.clone().ok()?;
            Some(Known { metadata: view.metadata.clone(), request })
        };
        found.into_iter().filter_map(known).collect()
    }

    async fn drive(&self, context: &Context, key: &ObjectKey, known: &Known) -> Result<Next, Error> {
        let now = context.clock().now();
        match recreation::begin(known, self.seen(key, known), now) {
            Begin::Write(patch) => {
                context.act(key, &[careful_status_patch(REQUEST, &known.metadata, patch)]).await?;
                return Ok(Next::Done);
            }
            Begin::Wait { why, after } => {
                tracing::debug!(request = %known.metadata.name, %why, "waits");
                return Ok(after.into());
            }
            Begin::Look => {}
        }
        let runtime = match self.runtime(known) {
            Ok(runtime) => runtime,
            Err(problem) => {
                let message = format!("failed to find runtime service: {problem}");
                let patch = recreation::completed(Some(&message), now);
                context.act(key, &[careful_status_patch(REQUEST, &known.metadata, patch)]).await?;
                return Ok(Next::Done);
            }
        };
        let containers = runtime.containers(Some(known.pod_uid())).await.map_err(Error::other)?;
        let instances = instances(known, &containers, &*runtime).await.map_err(Error::other)?;
        match recreation::step(known, &instances, context.clock().now()) {
            Step::Write(patch) => {
                context.act(key, &[status_patch(REQUEST, &known.metadata, patch)]).await?;
                Ok(Next::Done)
            }
            Step::Complete(patch) => {
                context.act(key, &[careful_status_patch(REQUEST, &known.metadata, patch)]).await?;
                Ok(Next::Done)
            }
            Step::Kill { index, states } => {
                self.kill(context, key, known, &containers, &*runtime, index, states).await
            }
            Step::Wait { why, after } => {
                tracing::debug!(request = %known.metadata.name, %why, "waits");
                Ok(after.into())
            }
        }
    }

    fn runtime(&self, known: &Known) -> Result<Arc<dyn Runtime>, NoRuntime> {
        let name = recreation::runtime_name(known)?;
        self.node.runtimes.named(&name).cloned().ok_or(NoRuntime::Unknown(name))
    }

    #[expect(clippy::too_many_arguments, reason = "one pass, cut in two")]
    async fn kill(
        &self,
        context: &Context,
        key: &ObjectKey,
        known: &Known,
        containers: &[cri::Container],
        runtime: &dyn Runtime,
        index: usize,
        states: Vec<ContainerState>,
    ) -> Result<Next, Error> {
        let target = known.request.spec.containers.get(index);
        let container = target.and_then(|target| newest(containers, &target.name));
        let (Some(target), Some(container)) = (target, container) else { return Ok(Next::Done) };
        // Somebody may have ended the request while we looked.
        let still_wanted =
            self.requests(key).iter().any(|now| now.metadata.uid == known.metadata.uid && !now.is_over());
        if !still_wanted {
            return Ok(Next::Done);
        }
        let pod = self.node.caches.pods.get(key).filter(|pod| pod.metadata.uid == *known.pod_uid());
        let address = pod.and_then(|pod| pod_address(&pod));
        let stopping = Stopping { address, ..stopping(known, key, target, container) };
        tracing::info!(request = %known.metadata.name, container = %target.name, "stops a container");
        let mut stop = pin!(stopping.carry_out(runtime, &self.recorder));
        let stopped = loop {
            tokio::select! {
                stopped = &mut stop => break stopped,
                () = self.welcome(context, key) => {}
            }
        };
        let problem = stopped.err().map(|error| error.to_string());
        let patch = recreation::killed(states, index, problem);
        context.act(key, &[status_patch(REQUEST, &known.metadata, patch)]).await?;
        Ok(Next::Done)
    }

    /// A hook may take long: other requests of the pod that come meanwhile hear that somebody is there.
    async fn welcome(&self, context: &Context, key: &ObjectKey) {
        tokio::time::sleep(NEWCOMERS).await;
        let requests = self.requests(key);
        if let Err(error) = put_off(context, key, &recreation::pick(&requests)).await {
            tracing::debug!(%error, "cannot tell a request that it has to wait");
        }
    }
}

/// Tells those whose turn it is not that they have to wait.
async fn put_off(context: &Context, key: &ObjectKey, pick: &Pick<'_>) -> Result<(), Error> {
    let wait = pick
        .wait
        .iter()
        .map(|known| careful_status_patch(REQUEST, &known.metadata, recreation::in_phase(&Phase::Pending)));
    let wait: Vec<_> = wait.collect();
    if !wait.is_empty() {
        context.act(key, &wait).await?;
    }
    Ok(())
}

fn stopping(known: &Known, pod: &ObjectKey, target: &Target, container: &cri::Container) -> Stopping {
    Stopping {
        pod: ObjectRef { resource: POD, key: pod.clone(), uid: known.pod_uid().into() },
        container: target.name.clone(),
        id: container.id.clone(),
        sandbox: container.sandbox.clone(),
        hook: target.pre_stop.clone(),
        address: None,
        ports: target.ports.clone(),
        grace_seconds: known.grace_seconds(),
        message: format!(
            "Stopping container {} by ContainerRecreateRequest {}",
            target.name, known.metadata.name
        ),
    }
}

/// The newest container of each name that the request is about.
async fn instances(
    known: &Known,
    containers: &[cri::Container],
    runtime: &dyn Runtime,
) -> Result<Vec<Instance>, cri::Error> {
    let mut instances = Vec::new();
    for target in &known.request.spec.containers {
        let Some(container) = newest(containers, &target.name) else { continue };
        let Some(inspected) = runtime.inspect(&container.id, Detail::State).await? else { continue };
        instances.push(Instance {
            name: target.name.clone(),
            id: format!("{}://{}", runtime.name(), container.id),
            state: inspected.state,
            restart_count: container.restart_count(),
            started_at: inspected.started_at,
        });
    }
    Ok(instances)
}
