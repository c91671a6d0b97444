//! Lets containers start in the order of their priorities: adds the next key to the barrier of a pod.
//!
//! Few pods have an order, and only while they start: their barriers are read when they are needed, and the ConfigMaps of the
//! cluster are not watched.

use std::{sync::Arc, time::Duration};

use kruise_core::{
    launch_priority::{self, Observed, barrier_name},
    object::{CONFIG_MAP, ObjectKey},
};
use kruise_runtime::{
    controller::{Controller, Error, Next},
    live,
};

use super::{environment, workers};
use crate::shared::Shared;

/// The name.
pub const NAME: &str = "container-launch-priority-controller";

/// When to look again at a barrier that was changed.
const SOON: Duration = Duration::from_millis(50);

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let pods = shared.caches.pods.clone();
    let environment = environment(shared, NAME);
    let client = environment.client.clone();
    Controller::new(NAME, &environment)
        .workers(workers(shared, NAME))
        .follow(&shared.caches.pods)
        .wake(&shared.caches.pods, |change, wake| {
            // Without its barrier a pod looks as if all keys were missing, so none is overlooked.
            if change.new.as_deref().is_some_and(|pod| launch_priority::concerns(pod, None)) {
                wake(change.key.clone());
            }
        })
        .reconcile(move |context, key| {
            let (pods, client) = (pods.clone(), client.clone());
            async move {
                let Some(pod) = pods.get(&key) else { return Ok(Next::Forget) };
                if pod.metadata.unreadable || !launch_priority::concerns(&pod, None) {
                    return Ok(Next::Done);
                }
                let barrier = ObjectKey::new(key.namespace.clone(), barrier_name(&key.name));
                let barrier = live::get(&client, CONFIG_MAP, &barrier).await.map_err(Error::other)?;
                let plan = launch_priority::plan(&Observed { pod, barrier: barrier.map(Arc::new) });
                context.act(&key, &plan.effects).await?;
                Ok(if plan.again { Next::After(SOON) } else { Next::Done })
            }
        })
}
