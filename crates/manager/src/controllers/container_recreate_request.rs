//! Supervises ContainerRecreateRequests, which the daemons of the nodes carry out.

use kruise_core::{
    containerrecreaterequest::{self, CONTAINER_RECREATE_REQUEST, Observed, is_over},
    object::{ObjectKey, ObjectRef},
};
use kruise_runtime::controller::{Context, Controller, Error, Next};

use super::{environment, unreadable, workers};
use crate::{caches::BY_POD, shared::Shared};

/// The name.
pub const NAME: &str = "containerrecreaterequest-controller";

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    let requests = caches.recreate_requests.clone();
    let shared = shared.clone();
    Controller::new(NAME, &environment(&shared, NAME))
        .workers(workers(&shared, NAME))
        .follow(&caches.recreate_requests)
        .follow(&caches.pods)
        .wake(&caches.recreate_requests, |change, wake| wake(change.key.clone()))
        .wake(&caches.pods, move |change, wake| {
            let mut last = None;
            for pod in change.old.iter().chain(&change.new) {
                // An update of a pod is told with both, a namesake that follows too.
                if last.replace(pod.metadata.uid.clone()).as_ref() == Some(&pod.metadata.uid) {
                    continue;
                }
                for request in requests.by_index(BY_POD, &pod.metadata.uid) {
                    let is_settled = request.object.as_ref().is_ok_and(|request| is_over(request))
                        && request.metadata.finalizers.is_empty();
                    if !is_settled {
                        wake(request.metadata.key());
                    }
                }
            }
        })
        .reconcile(move |context, key| {
            let shared = shared.clone();
            async move { pass(&shared, &context, &key).await }
        })
}

async fn pass(shared: &Shared, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
    let Some(stored) = shared.caches.recreate_requests.get(key) else { return Ok(Next::Forget) };
    let request = match &stored.object {
        Ok(request) => request.clone(),
        Err(problem) => {
            let uid = stored.metadata.uid.clone();
            let object = ObjectRef { resource: CONTAINER_RECREATE_REQUEST, key: key.clone(), uid };
            return Err(unreadable(context, object, problem).await);
        }
    };
    let pod = ObjectKey::new(key.namespace.clone(), request.spec.pod_name.as_str());
    let seen = Observed { pod: shared.caches.pods.get(&pod), request, now: context.clock().now() };
    let plan = containerrecreaterequest::plan(&seen);
    if let Some(waits) = plan.waits {
        tracing::debug!(reason = waits.as_str(), "waits");
    }
    context.act(key, &plan.effects).await?;
    Ok(plan.wake_after.into())
}
