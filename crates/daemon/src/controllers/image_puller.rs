//! Pulls the images that the NodeImage of this node asks for, and tells how far that is.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kruise_api::nodeimage::v1beta1::NodeImage;
use kruise_core::{merge_patch, object::ObjectKey};
use kruise_runtime::{
    controller::{Context, Controller, Error, Next},
    queue::Bucket,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::careful_status_patch;
use crate::{
    node::Node,
    pulling::{
        self, NODE_IMAGE,
        worker::{Parts, Workers},
    },
};

/// The name of its queue.
pub const NAME: &str = "imagepuller";
/// The name under which it tells events.
const COMPONENT: &str = "kruise-daemon-imagepuller";
/// How long the cache may take to show an own write.
const PATIENCE: Duration = Duration::from_secs(30);
/// Writes of the status: so many per second, and at once.
const WRITES: (f64, u32) = (0.5, 5);

/// The controller, and its workers, which end with the daemon.
pub fn controller(node: &Node) -> (Controller, Workers) {
    let workers = Workers::new(Parts {
        runtime: node.runtimes.first().clone(),
        node_images: node.caches.node_images.clone(),
        key: node.key(),
        credentials: node.credentials.clone(),
        clock: node.settings.clock.clone(),
        recorder: node.events.recorder(COMPONENT),
        most: node.settings.most_pulls,
        space: node.settings.space,
    });
    let puller = Puller {
        node: node.clone(),
        workers: workers.clone(),
        writes: Arc::new(Mutex::new(Bucket::new(WRITES.0, WRITES.1))),
    };
    let controller = Controller::new(NAME, &node.environment(NAME, PATIENCE))
        .queue(node.queue())
        .workers(1)
        .follow(&node.caches.node_images)
        .wake(&node.caches.node_images, |change, wake| {
            let spec = |view: &Arc<kruise_runtime::cache::Guarded<NodeImage>>| {
                view.object.as_ref().ok().map(|object| object.spec.clone())
            };
            let (old, new) = (change.old.as_ref().map(spec), change.new.as_ref().map(spec));
            if change.initial || old != new {
                wake(change.key.clone());
            }
        })
        .reconcile(move |context, key| {
            let puller = puller.clone();
            async move { puller.pass(&context, &key).await }
        });
    workers.tell(controller.queue());
    (controller, workers)
}

#[derive(Clone)]
struct Puller {
    node: Node,
    workers: Workers,
    writes: Arc<Mutex<Bucket>>,
}

impl Puller {
    async fn pass(&self, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
        let Some(view) = self.node.caches.node_images.get(key).filter(|view| !view.metadata.is_deleting())
        else {
            self.workers.stop();
            return Ok(Next::Forget);
        };
        let object = match &view.object {
            Ok(object) => object,
            Err(problem) => return Err(Error::terminal(problem.to_string())),
        };
        let random = context.random();
        let soon = Duration::from_millis(3000 + random.below(2000));
        let told = self.workers.sync(&object.spec, object.status.as_ref());
        let status =
            pulling::status(&object.spec, object.status.as_ref(), &told, context.clock().now_seconds());
        let unfinished = status.succeeded.unwrap_or(0) + status.failed.unwrap_or(0) < status.desired;
        if let Some(patch) = change(object, &status) {
            let may = self.writes.lock().unwrap_or_else(PoisonError::into_inner).try_take(Instant::now());
            if !may {
                return Ok(Next::After(soon));
            }
            context.act(key, &[careful_status_patch(NODE_IMAGE, &view.metadata, patch)]).await?;
        }
        let late = Duration::from_secs(20 * 60 + random.below(10 * 60));
        Ok(Next::After(if unfinished { soon } else { late }))
    }
}

/// What must be written for this status to stand there.
fn change(object: &NodeImage, status: &kruise_api::nodeimage::v1beta1::Status) -> Option<Value> {
    // A node without images has nothing to tell.
    if object.status.is_none() && status.desired == 0 {
        return None;
    }
    let before = object.status.as_ref().and_then(|status| serde_json::to_value(status).ok());
    let after = serde_json::to_value(status).unwrap_or_default();
    let patch = merge_patch::between(&before.unwrap_or_else(|| json!({})), &after)?;
    Some(json!({ "status": patch }))
}
