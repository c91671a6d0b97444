//! Everything a pass may know, and what is remembered between passes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kruise_api::imagepulljob::v1beta1::ImagePullJob;
use kruise_core::{
    cloneset::CLONE_SET,
    effect::Event,
    image_secrets::{self, Source, copy_of},
    imagepulljob::{self, Observed, PodOrder, Selection, nodes_of_pods},
    nodeimage::NodeImage,
    object::{ObjectKey, SECRET},
    pod::Metadata,
    text::Text,
    update_order::Strategy,
};
use kruise_runtime::{
    cache::{Guarded, Whole},
    controller::Context,
    live,
};
use kube::Client;

use crate::shared::Shared;

/// Why something cannot be known.
pub(super) enum Error {
    /// The job says something that has no meaning.
    Job(imagepulljob::Error),
    /// A secret could not be read.
    Read(kube::Error),
}

impl From<imagepulljob::Error> for Error {
    fn from(error: imagepulljob::Error) -> Self {
        Self::Job(error)
    }
}

/// Gathers. Clones are the same.
#[derive(Clone)]
pub(super) struct Observer {
    shared: Shared,
    client: Client,
    memory: Arc<Mutex<Memory>>,
}

/// All of it may be lost: the cluster has what matters.
#[derive(Default)]
struct Memory {
    /// What people heard last of each job.
    told: BTreeMap<ObjectKey, String>,
    /// The versions of secrets and of their copies that were compared and are the same. Their content is not kept.
    same: BTreeMap<ObjectKey, (Text, Text)>,
}

impl Observer {
    pub(super) fn new(shared: &Shared, client: Client) -> Self {
        Self { shared: shared.clone(), client, memory: Arc::default() }
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<Arc<Guarded<ImagePullJob>>> {
        self.shared.caches.pull_jobs.get(key)
    }

    /// Everything; nothing while something is still being read for the first time.
    pub(super) async fn observe(
        &self,
        context: &Context,
        key: &ObjectKey,
        job: Arc<ImagePullJob>,
        room: usize,
    ) -> Result<Option<Observed>, Error> {
        let is_over = imagepulljob::is_over(&job);
        let nodes = if is_over { Vec::new() } else { self.nodes(key, &job)? };
        let Some(secrets) = self.secrets(key, &job, is_over).await.map_err(Error::Read)? else {
            return Ok(None);
        };
        let options = &self.shared.settings.options;
        Ok(Some(Observed {
            nodes,
            secrets,
            ttl_of_tags: options.default_ttlseconds_for_always_nodeimage,
            room,
            seed: context.random().next_u64(),
            now: context.clock().now(),
            job,
        }))
    }

    fn nodes(&self, key: &ObjectKey, job: &ImagePullJob) -> Result<Vec<Arc<NodeImage>>, Error> {
        let caches = &self.shared.caches;
        let node = |name: &str| caches.node_images.get(&ObjectKey::cluster(name));
        let selection = Selection::of(job)?;
        Ok(match &selection {
            Selection::All | Selection::Labels(_) => {
                selection.choose(job.metadata.uid.as_deref().unwrap_or_default(), caches.node_images.list())
            }
            Selection::Names(names) => Selection::named(names.iter().map(String::as_str), node),
            Selection::Pods(_) => {
                let pods = caches.pods.in_namespace(&key.namespace);
                let names = nodes_of_pods(&selection, &pods, &self.order(key, job));
                Selection::named(names.iter().map(Text::as_str), node)
            }
        })
    }

    /// The order in which the workload of the job updates its pods.
    fn order(&self, key: &ObjectKey, job: &ImagePullJob) -> PodOrder {
        let owners = job.metadata.owner_references.iter().flatten();
        let Some(owner) = owners.into_iter().find(|owner| owner.controller == Some(true)) else {
            return PodOrder::Name;
        };
        match owner.kind.as_str() {
            "StatefulSet" => PodOrder::Ordinal,
            kind if kind == CLONE_SET.kind => {
                let set = ObjectKey::new(key.namespace.clone(), owner.name.as_str());
                let set = self.shared.caches.clonesets.get(&set).and_then(|set| set.object.clone().ok());
                let rolling = set.and_then(|set| set.spec.update_strategy.clone()?.rolling_update);
                let strategy = rolling.and_then(|rolling| {
                    let scatter = rolling.scatter_strategy;
                    Strategy::new(rolling.priority_strategy.as_ref(), &scatter).ok()
                });
                strategy.map_or(PodOrder::Name, PodOrder::Strategy)
            }
            _ => PodOrder::Name,
        }
    }

    /// What is known of the secrets of a job; nothing while they are still being listed.
    async fn secrets(
        &self,
        key: &ObjectKey,
        job: &ImagePullJob,
        is_over: bool,
    ) -> Result<Option<image_secrets::Observed>, kube::Error> {
        let config_namespace = Text::from(self.shared.settings.environment.daemon_config_namespace.as_str());
        let mut seen = image_secrets::Observed { config_namespace, ..Default::default() };
        let names = &job.spec.template.pull_secrets;
        if names.is_empty() || key.namespace == seen.config_namespace {
            return Ok(Some(seen));
        }
        let cache = &self.shared.caches.secrets;
        cache.want();
        if !cache.is_synced() {
            return Ok(None);
        }
        let copies = cache.in_namespace(&seen.config_namespace);
        seen.copies = copies.into_iter().map(|copy| Arc::new(copy.metadata.clone())).collect();
        if !is_over {
            for name in names {
                let source = ObjectKey::new(key.namespace.clone(), name.as_str());
                let found = self.source(&source, copy_of(&seen.copies, &source, key)).await?;
                seen.sources.insert(name.as_str().into(), found);
            }
        }
        Ok(Some(seen))
    }

    async fn source(&self, key: &ObjectKey, copy: Option<&Arc<Metadata>>) -> Result<Source, kube::Error> {
        let cached = self.shared.caches.secrets.get(key);
        let versions = cached
            .zip(copy)
            .map(|(source, copy)| (source.metadata.resource_version.clone(), copy.resource_version.clone()));
        if versions.is_some() && self.memory().same.get(key) == versions.as_ref() {
            return Ok(Source::Same);
        }
        let Some(source) = live::get::<Whole>(&self.client, SECRET, key).await? else {
            self.memory().same.remove(key);
            return Ok(Source::Missing);
        };
        let copy = match copy {
            Some(copy) => live::get::<Whole>(&self.client, SECRET, &copy.key()).await?,
            None => None,
        };
        let content =
            |secret: &Whole| (secret.object.get("data").cloned(), secret.object.get("type").cloned());
        if let Some(copy) = copy.as_ref().filter(|copy| content(copy) == content(&source)) {
            let versions = (source.metadata.resource_version.clone(), copy.metadata.resource_version.clone());
            self.memory().same.insert(key.clone(), versions);
        }
        Ok(Source::Read { source: source.object, copy: copy.map(|copy| copy.object) })
    }

    /// Whether people have not heard this of a job yet.
    pub(super) fn is_new(&self, key: &ObjectKey, notice: &Event) -> bool {
        let message = &notice.message;
        self.memory().told.insert(key.clone(), message.clone()).as_ref() != Some(message)
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.memory().told.remove(key);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
