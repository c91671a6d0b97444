//! Ends the sidecars of a job's pod once its main containers are done.
//!
//! A request to kill containers is read when it is needed: a pod has one at most, and only at its end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_api::containerrecreaterequest::v1beta1::ContainerRecreateRequest;
use kruise_core::{
    effect::Effect,
    object::ObjectKey,
    pod::Pod,
    sidecar_terminator::{self, Observed, Plan, REQUEST, is_interesting, request_name},
};
use kruise_runtime::{
    controller::{Context, Controller, Error, Next},
    live,
};
use kube::Client;

use super::{environment, tunable_queue, workers};
use crate::shared::Shared;

/// The name.
pub const NAME: &str = "sidecarterminator-controller";

/// When to look again at a request that is not finished: a container that was killed may come back before that.
const UNFINISHED: Duration = Duration::from_secs(10);
/// When to look again while nodes are still being read for the first time.
const NO_NODES_YET: Duration = Duration::from_secs(1);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let environment = environment(shared, NAME);
    let terminator =
        Terminator { shared: shared.clone(), client: environment.client.clone(), told: Arc::default() };
    Controller::new(NAME, &environment)
        .queue(tunable_queue(shared))
        .workers(workers(shared, NAME))
        .follow(&shared.caches.pods)
        .wake(&shared.caches.pods, |change, wake| {
            // Pods that are gone are only forgotten, if they ever mattered.
            let pod = change.latest();
            if pod.is_some_and(|pod| is_interesting(pod)) {
                wake(change.key.clone());
            }
        })
        .reconcile(move |context, key| {
            let terminator = terminator.clone();
            async move { terminator.pass(&context, &key).await }
        })
}

#[derive(Clone)]
struct Terminator {
    shared: Shared,
    client: Client,
    /// What people heard last of each pod.
    told: Arc<Mutex<BTreeMap<ObjectKey, String>>>,
}

impl Terminator {
    async fn pass(&self, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
        let Some(pod) = self.shared.caches.pods.get(key) else {
            self.told().remove(key);
            return Ok(Next::Forget);
        };
        if pod.metadata.unreadable || !is_interesting(&pod) {
            return Ok(Next::Done);
        }
        let nodes = &self.shared.caches.nodes;
        nodes.want();
        if !nodes.is_synced() {
            return Ok(Next::After(NO_NODES_YET));
        }
        let seen = Observed {
            node: nodes
                .get(&ObjectKey::cluster(pod.spec.node_name.clone()))
                .map(|node| node.metadata.labels.clone()),
            request: self.request(&pod).await?,
            now: context.clock().now(),
            pod,
        };
        let plan = sidecar_terminator::plan(&seen);
        if let Some(problem) = plan.problem {
            return Err(Error::other(problem));
        }
        context.act(key, &self.effects(key, &plan)).await?;
        let is_complete = |request: &Arc<ContainerRecreateRequest>| {
            request.status.as_ref().is_some_and(|status| status.completion_time.is_some())
        };
        let unfinished = seen.request.filter(|request| !is_complete(request)).map(|_| UNFINISHED);
        Ok([plan.wake_after, unfinished].into_iter().flatten().min().into())
    }

    async fn request(&self, pod: &Pod) -> Result<Option<Arc<ContainerRecreateRequest>>, Error> {
        let key = ObjectKey::new(pod.metadata.namespace.clone(), request_name(pod));
        live::get(&self.client, REQUEST, &key).await.map(|found| found.map(Arc::new)).map_err(Error::other)
    }

    /// The writes of a plan, each followed by the event that tells of it, and what should be heard once.
    fn effects(&self, key: &ObjectKey, plan: &Plan) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (effect, purpose) in plan.effects.iter().zip(&plan.purposes) {
            effects.push(effect.clone());
            effects.extend(purpose.done().map(Effect::Event));
        }
        if let Some(notice) = &plan.notice
            && self.told().insert(key.clone(), notice.message.clone()).as_ref() != Some(&notice.message)
        {
            effects.push(Effect::Event(notice.clone()));
        }
        effects
    }

    fn told(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectKey, String>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
