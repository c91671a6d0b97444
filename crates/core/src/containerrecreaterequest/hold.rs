//! Holds the pod of a request not ready before its containers stop, and lets it go.
//!
//! The finalizer comes before the hold and goes after it, so that no request can disappear and leave a pod not ready.

use kruise_api::{
    conditions::KRUISE_POD_READY, containerrecreaterequest::v1beta1::ContainerRecreateRequest,
    finalizers::CONTAINER_RECREATE_REQUEST as FINALIZER,
};
use serde_json::{Value, json};

use super::{CONTAINER_RECREATE_REQUEST, Observed};
use crate::{
    effect::{Effect, Patch, Target},
    object::ObjectKey,
    pod::Pod,
    readiness::{self, Reason, seconds},
};

/// The condition that says since when the pod is held, and the words in which it says so.
const GRACE: &str = "PreRecreateGrace";
const GRACE_MESSAGE: &str = "Pod has been forced to not-ready for unreadyGracePeriodSeconds drain";

/// The next step of taking hold.
pub(super) enum Step {
    /// There is none: nothing is to be held, or all is done.
    Done,
    /// A write, before anything else is written to the request.
    Write(Effect),
    /// The conditions of the request become these.
    Conditions(Value),
}

/// What to do so that the pod is held as long as the request wants. A pod without the gate stays ready; the time passes all
/// the same.
pub(super) fn acquire(seen: &Observed, pod: &Pod) -> Step {
    let request = &seen.request;
    let wanted = request.spec.strategy.as_ref().and_then(|strategy| strategy.unready_grace_period_seconds);
    if wanted.is_none() || is_marked(request) {
        return Step::Done;
    }
    if pod.has_readiness_gate(KRUISE_POD_READY) {
        if !has_finalizer(request) {
            let with = finalizers(request).chain([FINALIZER]).collect();
            return Step::Write(write_finalizers(request, with));
        }
        if let Some(effect) = readiness::add(pod, &reason(request), seen.now) {
            return Step::Write(effect);
        }
    }
    let present = request.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let mut conditions: Vec<Value> = present
        .iter()
        .filter(|condition| condition.kind != GRACE)
        .map(|condition| json!(condition))
        .collect();
    conditions.push(json!({
        "type": GRACE, "status": "True", "reason": GRACE, "message": GRACE_MESSAGE,
        "lastTransitionTime": seconds(seen.now),
    }));
    Step::Conditions(conditions.into())
}

/// The next step of letting the pod go: first the pod, then, once that can be seen, the finalizer.
pub(super) fn release(seen: &Observed) -> Option<Effect> {
    let request = &seen.request;
    if !has_finalizer(request) {
        return None;
    }
    let freed =
        super::plan::living_pod(seen).ok().and_then(|pod| readiness::remove(pod, &reason(request), seen.now));
    Some(freed.unwrap_or_else(|| {
        let without = finalizers(request).filter(|finalizer| *finalizer != FINALIZER).collect();
        write_finalizers(request, without)
    }))
}

/// The request as the target of a write.
pub(super) fn target(request: &ContainerRecreateRequest) -> Target {
    let metadata = &request.metadata;
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let key = ObjectKey::new(namespace, metadata.name.as_deref().unwrap_or_default());
    Target::with_uid(CONTAINER_RECREATE_REQUEST, key, metadata.uid.as_deref().unwrap_or_default().into())
}

fn is_marked(request: &ContainerRecreateRequest) -> bool {
    let conditions = request.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|condition| condition.kind == GRACE && condition.status == "True")
}

fn reason(request: &ContainerRecreateRequest) -> Reason {
    Reason::new("ContainerRecreateRequest", target(request).key.to_string())
}

fn finalizers(request: &ContainerRecreateRequest) -> impl Iterator<Item = &str> {
    request.metadata.finalizers.iter().flatten().map(String::as_str)
}

fn has_finalizer(request: &ContainerRecreateRequest) -> bool {
    finalizers(request).any(|finalizer| finalizer == FINALIZER)
}

/// The list is written as a whole, so only to the version that it was read from.
fn write_finalizers(request: &ContainerRecreateRequest, finalizers: Vec<&str>) -> Effect {
    let version = request.metadata.resource_version.as_deref().unwrap_or_default();
    Effect::Patch {
        target: target(request).at_version(version.into()),
        subresource: None,
        patch: Patch::Merge(json!({"metadata": {"finalizers": finalizers}})),
    }
}
