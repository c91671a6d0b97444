//! Restarts containers whose liveness probes fail where the daemon runs them, as far as budgets allow. A key is a pod.
//!
//! There is one worker: each restart counts for the budgets that the next one asks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    annotations::CONTAINER_PROBE_CONTEXT, json, nodepodprobe::v1alpha1::ProbeState, probe::State,
};
use kruise_core::{
    containerrecreaterequest::is_over,
    effect::Effect,
    enhanced_liveness::{
        budget::{self, Budget, POD_DISRUPTION_BUDGETS, POD_UNAVAILABLE_BUDGET},
        decide::{self, Memory, Observed},
        pace::Limiter,
        taken,
    },
    object::ObjectKey,
    pod::Pod,
    podprobemarker,
    text::Text,
};
use kruise_runtime::{
    controller::{Context, Controller, Error, Next},
    live,
};
use kube::Client;
use serde_json::Value;

use super::{environment, tunable_queue};
use crate::{caches::BY_POD, shared::Shared};

/// The name.
pub const NAME: &str = "enhanced-liveness-controller";

/// How long a request counts that was made and is not in the cache.
const UNSEEN: SignedDuration = SignedDuration::from_mins(1);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let (caches, options) = (&shared.caches, &shared.settings.options);
    let environment = environment(shared, NAME);
    let limiter = Limiter::new(options.enhanced_liveness_qps, options.enhanced_liveness_burst);
    let supervisor = Supervisor {
        shared: shared.clone(),
        client: environment.client.clone(),
        memory: Arc::new(Mutex::new(Memory { limiter, backoff: BTreeMap::new() })),
        made: Arc::default(),
    };
    Controller::new(NAME, &environment)
        .queue(tunable_queue(shared))
        .workers(1)
        .follow(&caches.recreate_requests)
        .wake(&caches.node_probes, |change, wake| {
            let Some(Ok(list)) = change.new.as_ref().map(|stored| &stored.object) else { return };
            for pod in list.status.iter().flat_map(|status| &status.pod_probe_statuses) {
                if pod.probe_states.iter().any(fails) {
                    wake(ObjectKey::new(pod.namespace.as_str(), pod.name.as_str()));
                }
            }
        })
        .wake(&caches.pods, |change, wake| {
            if change.latest().is_some_and(|pod| pod.metadata.annotations.contains(CONTAINER_PROBE_CONTEXT)) {
                wake(change.key.clone());
            }
        })
        .wake(&caches.recreate_requests, |change, wake| {
            let requests =
                change.old.iter().chain(&change.new).filter_map(|stored| stored.object.as_ref().ok());
            for request in requests {
                wake(ObjectKey::new(change.key.namespace.clone(), request.spec.pod_name.as_str()));
            }
        })
        .reconcile(move |context, key| {
            let supervisor = supervisor.clone();
            async move { supervisor.pass(&context, &key).await }
        })
}

/// Whether this is a liveness probe that fails: those of markers have a separator in their names.
fn fails(state: &ProbeState) -> bool {
    state.state == State::Failed && podprobemarker::parts(&state.name).is_none()
}

#[derive(Clone)]
struct Supervisor {
    shared: Shared,
    client: Client,
    memory: Arc<Mutex<Memory>>,
    /// Requests that were made, until the cache tells of them.
    made: Arc<Mutex<BTreeMap<ObjectKey, Made>>>,
}

/// A request that was made.
struct Made {
    pod: Text,
    when: Timestamp,
}

impl Supervisor {
    async fn pass(&self, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
        let caches = &self.shared.caches;
        let now = context.clock().now();
        let Some(pod) = caches.pods.get(key) else {
            lock(&self.memory).backoff.retain(|_, backoff| !backoff.is_forgiven(now));
            return Ok(Next::Forget);
        };
        let states = self.states(&pod);
        if pod.metadata.unreadable || taken(&pod).is_empty() || !states.iter().any(fails) {
            return Ok(Next::Done);
        }
        let requests = caches.recreate_requests.by_index(BY_POD, &pod.metadata.uid);
        let requests = requests.iter().filter_map(|request| request.object.as_ref().ok().cloned()).collect();
        let budgets = self.budgets(&key.namespace).await?;
        let neighbours = caches.pods.in_namespace(&key.namespace);
        let restarting = self.restarting(&key.namespace, now);
        let exhausted_budget = budget::exhausted(&pod, &budgets, &neighbours, &restarting);
        let seen = Observed { pod, states, requests, exhausted_budget, now };
        let (before, plan) = {
            let mut memory = lock(&self.memory);
            let before = memory.backoff.clone();
            (before, decide::decide(&seen, &mut memory))
        };
        for waits in &plan.waits {
            tracing::debug!(?waits, "waits");
        }
        let request = plan.effects.iter().find_map(|effect| match effect {
            Effect::Create { object, .. } => json::text(object, &["metadata", "name"]),
            _ => None,
        });
        let acted = context.act(key, &plan.effects).await;
        match (request, &acted) {
            (Some(name), Ok(())) => {
                let made = Made { pod: key.name.clone(), when: now };
                lock(&self.made).insert(ObjectKey::new(key.namespace.clone(), name), made);
            }
            (Some(_), Err(_)) => {
                let mut memory = lock(&self.memory);
                memory.backoff = before;
                memory.limiter.give_back();
            }
            (None, _) => {}
        }
        acted?;
        Ok(plan.wake_after.into())
    }

    /// What the node of a pod says about it.
    fn states(&self, pod: &Pod) -> Vec<ProbeState> {
        let list = self.shared.caches.node_probes.get(&ObjectKey::cluster(pod.spec.node_name.clone()));
        let Some(Ok(list)) = list.as_ref().map(|stored| &stored.object) else { return Vec::new() };
        let told = list.status.iter().flat_map(|status| &status.pod_probe_statuses);
        told.filter(|told| *pod.metadata.uid == told.uid)
            .flat_map(|told| told.probe_states.iter().cloned())
            .collect()
    }

    /// The pods of a namespace that lose a container now, or will in a moment.
    fn restarting(&self, namespace: &str, now: Timestamp) -> BTreeSet<Text> {
        let cache = &self.shared.caches.recreate_requests;
        let mut made = lock(&self.made);
        made.retain(|request, made| now.duration_since(made.when) < UNSEEN && cache.get(request).is_none());
        let unseen = made.iter().filter(|(request, _)| *request.namespace == *namespace);
        let mut restarting: BTreeSet<Text> = unseen.map(|(_, made)| made.pod.clone()).collect();
        let requests = cache.in_namespace(namespace);
        let running = requests
            .iter()
            .filter_map(|stored| stored.object.as_ref().ok())
            .filter(|request| !is_over(request));
        restarting.extend(running.map(|request| Text::from(request.spec.pod_name.as_str())));
        restarting
    }

    /// All budgets of a namespace, as the server has them: they are asked for seldom, and must not be old.
    async fn budgets(&self, namespace: &str) -> Result<Vec<Budget>, Error> {
        let list = |resource| live::list::<Value>(&self.client, resource, namespace);
        let mut found = Vec::new();
        for resource in POD_DISRUPTION_BUDGETS {
            if let Some(budgets) = list(resource).await.map_err(Error::other)? {
                found.extend(budgets.iter().map(Budget::of_kubernetes));
                break;
            }
        }
        let ours = list(POD_UNAVAILABLE_BUDGET).await.map_err(Error::other)?.unwrap_or_default();
        found.extend(ours.iter().map(Budget::of_ours));
        Ok(found)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
