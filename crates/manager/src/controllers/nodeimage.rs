//! NodeImages: one for each node, kept in order.
//!
//! Most of what happens to a NodeImage needs a pass at a time in the future, or none: see [`nodeimage::delay`].

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_core::{
    imagepulljob::{self, IMAGE_PULL_JOB},
    nodeimage::{self, NodeImage, Observed, PullSecret, TagOwner},
    object::{ObjectKey, SECRET},
    text::Text,
};
use kruise_runtime::{
    cache::Plain,
    controller::{Context, Controller, Error, Next},
    live,
    queue::Priority,
};
use kube::Client;

use super::{environment, workers};
use crate::shared::Shared;

/// The name.
pub const NAME: &str = "nodeimage-controller";

/// When to look again while nodes are still being read for the first time.
const NO_NODES_YET: Duration = Duration::from_secs(1);
/// When to look at a tag whose job is not known: it may have gone before its tag came in.
const UNKNOWN_OWNER: Duration = Duration::from_secs(5);
/// When to ask again after a question that was not answered.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How many jobs that are gone are remembered.
const MOST_GONE: usize = 10_000;

/// The controller.
pub fn controller(shared: &Shared) -> Controller {
    let caches = &shared.caches;
    caches.nodes.want();
    let environment = environment(shared, NAME);
    let keeper = Keeper { shared: shared.clone(), client: environment.client.clone(), gone: Arc::default() };
    let controller = Controller::new(NAME, &environment)
        .workers(workers(shared, NAME))
        .follow(&caches.node_images)
        .wake(&caches.nodes, |change, wake| match (&change.old, &change.new) {
            (Some(old), Some(new)) if !new.differs(old) => {}
            _ => wake(change.key.clone()),
        })
        .reconcile(move |context, key| {
            let keeper = keeper.clone();
            async move { keeper.pass(&context, &key).await }
        });
    let (queue, clock) = (controller.queue().clone(), shared.settings.clock.clone());
    let jobs = caches.pull_jobs.clone();
    caches.node_images.subscribe(move |change| {
        let is_known =
            |owner: &TagOwner| jobs.get(&owner.key()).is_some_and(|job| job.metadata.uid == owner.uid);
        let new = change.new.as_deref();
        if new.is_some_and(|new| nodeimage::new_owners(change.old.as_deref(), new).any(|one| !is_known(one)))
        {
            queue.add_after(change.key.clone(), UNKNOWN_OWNER);
        }
        match nodeimage::delay(change.old.as_deref(), change.new.as_deref(), clock.now()) {
            Some(Duration::ZERO) if change.initial => queue.add_with(change.key.clone(), Priority::Low),
            Some(Duration::ZERO) => queue.add(change.key.clone()),
            Some(delay) => queue.add_after(change.key.clone(), delay),
            None => {}
        }
    });
    let (queue, node_images) = (controller.queue().clone(), caches.node_images.clone());
    caches.pull_jobs.subscribe(move |change| {
        // Jobs that went while nobody looked are found when all NodeImages are passed at the start.
        let (Some(old), None) = (&change.old, &change.new) else { return };
        for object in node_images.list() {
            if nodeimage::of_job(&object, &old.metadata.uid) {
                queue.add(object.metadata.key());
            }
        }
    });
    controller
}

#[derive(Clone)]
struct Keeper {
    shared: Shared,
    client: Client,
    /// The uids of jobs that are gone for ever, so that each is asked for once and not on every node.
    gone: Arc<Mutex<BTreeSet<Text>>>,
}

impl Keeper {
    async fn pass(&self, context: &Context, key: &ObjectKey) -> Result<Next, Error> {
        let caches = &self.shared.caches;
        if !caches.nodes.is_synced() {
            return Ok(Next::After(NO_NODES_YET));
        }
        let (node, image) = (caches.nodes.get(key), caches.node_images.get(key));
        if node.is_none() && image.is_none() {
            return Ok(Next::Forget);
        }
        let (gone_owners, is_certain) = self.gone_owners(image.as_deref()).await;
        let seen = Observed {
            gone_owners,
            busy_owners: self.busy_owners(image.as_deref()),
            gone_secrets: self.gone_secrets(image.as_deref()).await,
            creation_delay: self.shared.settings.options.nodeimage_creation_delay,
            now: context.clock().now(),
            node,
            image,
        };
        let plan = nodeimage::plan(&seen);
        if let Some(reason) = &plan.reason {
            tracing::debug!(reason, "waits");
        }
        context.act(key, &plan.effects).await?;
        let again = (!is_certain).then_some(ASK_AGAIN);
        Ok([plan.wake_after, again].into_iter().flatten().min().into())
    }

    /// The jobs that are certainly gone, and whether that is known of all. That the cache does not have one may mean that it has not heard of it yet, or is not
    /// filled at all, so the server is asked.
    async fn gone_owners(&self, image: Option<&NodeImage>) -> (BTreeSet<Text>, bool) {
        let (mut gone, mut is_certain) = (BTreeSet::new(), true);
        let mut asked = BTreeSet::new();
        for owner in image.into_iter().flat_map(nodeimage::owners) {
            let cached = self.shared.caches.pull_jobs.get(&owner.key());
            if cached.is_some_and(|job| job.metadata.uid == owner.uid) || !asked.insert(&owner.uid) {
                continue;
            }
            match self.is_gone(owner).await {
                Ok(true) => drop(gone.insert(owner.uid.clone())),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(job = %owner.key(), %error, "cannot find out whether a job is still there");
                    is_certain = false;
                }
            }
        }
        (gone, is_certain)
    }

    /// The jobs that run and will end.
    fn busy_owners(&self, image: Option<&NodeImage>) -> BTreeSet<Text> {
        let is_busy = |owner: &&TagOwner| {
            let cached = self.shared.caches.pull_jobs.get(&owner.key());
            let job =
                cached.filter(|job| job.metadata.uid == owner.uid).and_then(|job| job.object.clone().ok());
            job.is_some_and(|job| imagepulljob::will_end(&job))
        };
        let owners = image.into_iter().flat_map(nodeimage::owners);
        owners.filter(is_busy).map(|owner| owner.uid.clone()).collect()
    }

    async fn is_gone(&self, owner: &TagOwner) -> Result<bool, kube::Error> {
        if self.gone().contains(&owner.uid) {
            return Ok(true);
        }
        let found = live::get::<Plain>(&self.client, IMAGE_PULL_JOB, &owner.key()).await?;
        let is_gone = found.is_none_or(|job| job.metadata.uid != owner.uid);
        if is_gone {
            let mut gone = self.gone();
            if gone.len() >= MOST_GONE {
                gone.clear();
            }
            gone.insert(owner.uid.clone());
        }
        Ok(is_gone)
    }

    async fn gone_secrets(&self, image: Option<&NodeImage>) -> BTreeSet<ObjectKey> {
        let mut gone = BTreeSet::new();
        let keys: BTreeSet<ObjectKey> =
            image.into_iter().flat_map(nodeimage::secrets).map(PullSecret::key).collect();
        for key in keys {
            if let Ok(None) = live::get::<Plain>(&self.client, SECRET, &key).await {
                gone.insert(key);
            }
        }
        gone
    }

    fn gone(&self) -> MutexGuard<'_, BTreeSet<Text>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
