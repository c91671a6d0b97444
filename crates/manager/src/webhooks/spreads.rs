//! What WorkloadSpreads count when pods are made and deleted.

use std::time::Duration;

use kruise_api::gates::Gate;
use kruise_core::{
    admission::{Answer, Operation, Request},
    object::{ObjectKey, POD},
    pod::Pod,
};
use kruise_runtime::live;
use serde::Deserialize as _;
use tokio::time::{Instant, timeout_at};

use crate::{
    shared::Shared,
    spreads::{Taken, are_read},
};

/// How long an answer may take; API servers wait a second longer.
const WITHIN: Duration = Duration::from_secs(4);
/// How long a booking is tried to be given back.
const GIVE_BACK_WITHIN: Duration = Duration::from_millis(500);

/// Whether a request is about a pod, and spreads count.
fn counts(shared: &Shared, request: &Request) -> bool {
    let resource = &request.resource;
    resource.group.is_empty()
        && resource.resource == "pods"
        && !request.dry_run
        && shared.settings.gates.enabled(Gate::WorkloadSpread)
}

/// The place of a new pod.
pub(super) async fn place(shared: &Shared, request: &Request) -> Result<Option<Taken>, String> {
    if request.operation != Operation::Create || !request.subresource.is_empty() || !counts(shared, request) {
        return Ok(None);
    }
    let until = Instant::now() + WITHIN;
    if !are_read(shared, until).await {
        return Ok(None);
    }
    shared.spreads.place(shared, &request.namespace, &request.object, until).await
}

/// Gives a place back whose pod is refused.
pub(super) async fn give_back(shared: &Shared, taken: &Taken) {
    shared.spreads.give_back(shared, taken, Instant::now() + GIVE_BACK_WITHIN).await;
}

/// Counts a pod that may be deleted or evicted, after everybody else has agreed. The refusal, if that fails.
pub(super) async fn leave(shared: &Shared, request: &Request) -> Option<Answer> {
    let is_eviction = match (request.operation, request.subresource.as_str()) {
        (Operation::Delete, "") => false,
        (Operation::Create, "eviction") => true,
        _ => return None,
    };
    let spreads = &shared.caches.spreads;
    if !counts(shared, request) || spreads.in_namespace(&request.namespace).is_empty() {
        return None;
    }
    let until = Instant::now() + WITHIN;
    let pod = if is_eviction {
        evicted(shared, request, until).await
    } else {
        // Of a pod that cannot be read nobody knows where it is counted.
        Pod::deserialize(&request.old_object).ok()
    }?;
    let left = shared.spreads.leave(shared, &pod, until).await;
    left.err().map(Answer::pod_check_failed)
}

/// The pod of an eviction.
async fn evicted(shared: &Shared, request: &Request, until: Instant) -> Option<Pod> {
    let key = ObjectKey::new(request.namespace.as_str(), request.name.as_str());
    if let Some(pod) = shared.caches.pods.get(&key) {
        return Some((*pod).clone());
    }
    timeout_at(until, live::get::<Pod>(&shared.client, POD, &key)).await.ok()?.ok()?
}
