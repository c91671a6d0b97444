//! Gives pods with the readiness gate `KruisePodReady` their first condition. The smallest controller, and the shape of
//! all others: which news wakes which key, look, plan, act.

use kruise_core::pod_readiness::{self, Turn};
use kruise_runtime::controller::{Controller, Next};

use super::{environment, workers};
use crate::shared::Shared;

/// The name.
pub const NAME: &str = "pod-readiness-controller";

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let pods = shared.caches.pods.clone();
    Controller::new(NAME, &environment(shared, NAME))
        .workers(workers(shared, NAME))
        .follow(&shared.caches.pods)
        .wake(&shared.caches.pods, |change, wake| {
            // All other pods of the cluster are none of its business, and must cost nothing.
            if change.new.as_deref().is_some_and(pod_readiness::is_waiting) {
                wake(change.key.clone());
            }
        })
        .reconcile(move |context, key| {
            let pods = pods.clone();
            async move {
                let Some(pod) = pods.get(&key) else { return Ok(Next::Forget) };
                if pod.metadata.unreadable {
                    return Ok(Next::Done);
                }
                let now = context.clock().now();
                if !pod_readiness::is_waiting(&pod) {
                    return Ok(Next::Done);
                }
                match pod_readiness::turn(&pod, now) {
                    Turn::Now => context.act(&key, &pod_readiness::plan(&pod, now)).await?,
                    Turn::After(time) => return Ok(Next::After(time)),
                    Turn::WithNode => {}
                }
                Ok(Next::Done)
            }
        })
}
