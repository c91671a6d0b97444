//! What the manager knows of the cluster: one cache for each kind that somebody needs, shared by all.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use kruise_api::{
    annotations::SIDECARSET_INJECTED_LIST,
    cloneset::v1beta1::CloneSet,
    containerrecreaterequest::v1beta1::ContainerRecreateRequest,
    ephemeraljob::v1alpha1::EphemeralJob,
    imagelistpulljob::v1beta1::ImageListPullJob,
    imagepulljob::v1beta1::ImagePullJob,
    labels::{CRR_POD_UID, SIDECARSET_NAME},
    nodepodprobe::v1alpha1::NodePodProbe,
    podprobemarker::v1alpha1::PodProbeMarker,
    sidecarset::v1beta1::SidecarSet,
};
use kruise_core::{
    cloneset::CLONE_SET,
    containerrecreaterequest::CONTAINER_RECREATE_REQUEST,
    ephemeraljob::EPHEMERAL_JOB,
    imagelistpulljob::IMAGE_LIST_PULL_JOB,
    imagepulljob,
    nodeimage::{NODE_IMAGE, Node, NodeImage},
    nodepodprobe::{NODE_POD_PROBE, listed_markers},
    object::{
        CONFIG_MAP, CONTROLLER_REVISION, NAMESPACE, NODE, PERSISTENT_VOLUME_CLAIM, POD, Resource, SECRET,
    },
    pod::{Metadata, Pod},
    podprobemarker::{Marker, POD_PROBE_MARKER},
    pre_download::IMAGE_PULL_JOB,
    revision::Revision,
    sidecarset::{SIDECAR_SET, record},
    text::Text,
};
use kruise_runtime::{
    cache::{Cache, Guarded, Options, Plain, View, Whole},
    metrics::Framework,
};
use kube::Client;

/// The index of objects by the uids of their owners.
pub const BY_OWNER: &str = "owner";
/// The index of pods by their node.
pub const BY_NODE: &str = "node";
/// The index of revisions by the workload that they may belong to: the uid of their controller, or the namespace of one
/// without, and always the name without its hash.
pub const BY_KIN: &str = "kin";
/// The index of pods by the SidecarSets that they got containers from, and of revisions by the SidecarSet they name.
pub const BY_SIDECAR_SET: &str = "sidecarset";
/// The index of ImagePullJobs that are not over, all under one text: [`RUNNING`].
pub const BY_PROGRESS: &str = "progress";
/// The index of ContainerRecreateRequests by the uid of their pod.
pub const BY_POD: &str = "pod";
/// The index of NodePodProbes by the PodProbeMarkers of their probes, as `namespace/name`.
pub const BY_MARKER: &str = "marker";
/// The text of [`BY_PROGRESS`].
pub const RUNNING: &str = "running";
/// The index of ImagePullJobs that are not over and choose their nodes by pods, by namespace.
pub const BY_PODS: &str = "pods";

/// A PodProbeMarker as its cache keeps it.
pub type Markers = Guarded<PodProbeMarker>;

/// A PodProbeMarker, ready to be compared with pods.
pub fn marker(stored: &Markers) -> Marker {
    Marker::new(stored.metadata.key(), stored.metadata.is_deleting(), stored.object.as_ref().ok().cloned())
}

/// All caches. Those of kinds that no feature needs stay empty and cost nothing.
#[derive(Clone, Debug)]
pub struct Caches {
    /// All pods.
    pub pods: Cache<Pod>,
    /// Labels and readiness of nodes; filled from the first time somebody [wants](Cache::want) them.
    pub nodes: Cache<Node>,
    /// Volume claims.
    pub claims: Cache<Plain>,
    /// Revisions of workloads.
    pub revisions: Cache<Revision>,
    /// CloneSets.
    pub clonesets: Cache<Guarded<CloneSet>>,
    /// ImagePullJobs.
    pub pull_jobs: Cache<Guarded<ImagePullJob>>,
    /// ImageListPullJobs.
    pub list_pull_jobs: Cache<Guarded<ImageListPullJob>>,
    /// NodeImages.
    pub node_images: Cache<NodeImage>,
    /// Which secrets there are, without what is in them; filled from the first time somebody wants to know.
    pub secrets: Cache<Plain>,
    /// ContainerRecreateRequests.
    pub recreate_requests: Cache<Guarded<ContainerRecreateRequest>>,
    /// PodProbeMarkers.
    pub probe_markers: Cache<Markers>,
    /// NodePodProbes.
    pub node_probes: Cache<Guarded<NodePodProbe>>,
    /// EphemeralJobs.
    pub ephemeral_jobs: Cache<Guarded<EphemeralJob>>,
    /// SidecarSets.
    pub sidecarsets: Cache<Guarded<SidecarSet>>,
    /// Labels of namespaces; filled from the first time somebody wants them.
    pub namespaces: Cache<Plain>,
    /// The one ConfigMap with settings that need no restart; filled from the first time somebody wants it.
    pub configuration: Cache<Whole>,
}

/// The text under which revisions without a controller are found.
pub fn orphans_of(namespace: &str) -> String {
    format!("{namespace}/")
}

/// The text under which revisions are found that are named after a workload.
pub fn named_after(namespace: &str, workload: &str) -> String {
    format!("{namespace}/{workload}")
}

fn owners(metadata: &Metadata, texts: &mut Vec<Text>) {
    texts.extend(metadata.owner_references.iter().map(|owner| owner.uid.clone()));
}

fn running(job: &Guarded<ImagePullJob>) -> Option<&ImagePullJob> {
    job.object.as_deref().ok().filter(|job| !imagepulljob::is_over(job))
}

fn kin(metadata: &Metadata, texts: &mut Vec<Text>) {
    texts.push(match metadata.controller() {
        Some(owner) => owner.uid.clone(),
        None => orphans_of(&metadata.namespace).into(),
    });
    if let Some((workload, _)) = metadata.name.rsplit_once('-') {
        texts.push(named_after(&metadata.namespace, workload).into());
    }
}

impl Caches {
    /// Empty ones.
    pub fn new(metrics: &Framework) -> Self {
        let pods = Cache::new(POD)
            .with_index(BY_OWNER, |pod: &Pod, texts| owners(&pod.metadata, texts))
            .with_index(BY_NODE, |pod: &Pod, texts| {
                if !pod.spec.node_name.is_empty() {
                    texts.push(pod.spec.node_name.clone());
                }
            })
            .with_index(BY_SIDECAR_SET, |pod: &Pod, texts| {
                if let Some(list) = pod.metadata.annotations.text(SIDECARSET_INJECTED_LIST) {
                    texts.extend(record::injected(list).map(Text::from));
                }
            });
        let owned = |resource: Resource| {
            Cache::new(resource)
                .with_index(BY_OWNER, |object: &Plain, texts| owners(&object.metadata, texts))
                .with_metrics(metrics)
        };
        Self {
            pods: pods.with_metrics(metrics),
            nodes: Cache::new(NODE).with_metrics(metrics),
            claims: owned(PERSISTENT_VOLUME_CLAIM),
            revisions: Cache::new(CONTROLLER_REVISION)
                .with_index(BY_KIN, |revision: &Revision, texts| kin(&revision.metadata, texts))
                .with_index(BY_SIDECAR_SET, |revision: &Revision, texts| {
                    texts.extend(revision.metadata.labels.get(SIDECARSET_NAME).cloned());
                })
                .with_metrics(metrics),
            clonesets: Cache::new(CLONE_SET).with_metrics(metrics),
            pull_jobs: Cache::new(IMAGE_PULL_JOB)
                .with_index(BY_OWNER, |job: &Guarded<ImagePullJob>, texts| owners(&job.metadata, texts))
                .with_index(BY_PROGRESS, |job: &Guarded<ImagePullJob>, texts| {
                    if running(job).is_some() {
                        texts.push(RUNNING.into());
                    }
                })
                .with_index(BY_PODS, |job: &Guarded<ImagePullJob>, texts| {
                    if running(job).is_some_and(|job| job.spec.template.pod_selector.is_some()) {
                        texts.push(job.metadata.namespace.clone());
                    }
                })
                .with_metrics(metrics),
            list_pull_jobs: Cache::new(IMAGE_LIST_PULL_JOB).with_metrics(metrics),
            node_images: Cache::new(NODE_IMAGE).with_metrics(metrics),
            secrets: Cache::new(SECRET).with_metrics(metrics),
            recreate_requests: Cache::new(CONTAINER_RECREATE_REQUEST)
                .with_index(BY_POD, |request: &Guarded<ContainerRecreateRequest>, texts| {
                    texts.extend(request.metadata.labels.get(CRR_POD_UID).cloned());
                })
                .with_metrics(metrics),
            probe_markers: Cache::new(POD_PROBE_MARKER).with_metrics(metrics),
            node_probes: Cache::new(NODE_POD_PROBE)
                .with_index(BY_MARKER, |list: &Guarded<NodePodProbe>, texts| {
                    if let Ok(list) = &list.object {
                        texts.extend(listed_markers(list).map(Text::from));
                    }
                })
                .with_metrics(metrics),
            ephemeral_jobs: Cache::new(EPHEMERAL_JOB).with_metrics(metrics),
            sidecarsets: Cache::new(SIDECAR_SET).with_metrics(metrics),
            namespaces: Cache::new(NAMESPACE).with_metrics(metrics),
            configuration: Cache::new(CONFIG_MAP).with_metrics(metrics),
        }
    }

    /// The revisions of the SidecarSet of this name, in the namespace of the manager.
    pub fn sidecar_set_revisions(&self, namespace: &str, set: &str) -> Vec<Arc<Revision>> {
        let mut found = self.revisions.by_index(BY_SIDECAR_SET, set);
        found.retain(|revision| revision.metadata.namespace == *namespace);
        found
    }

    /// Follows a kind for as long as it is polled. Nothing for a kind that has no cache.
    pub fn follow(
        &self,
        resource: Resource,
        client: Client,
        options: Options,
    ) -> Option<BoxFuture<'static, ()>> {
        fn run<V: View>(
            cache: &Cache<V>,
            client: Client,
            options: Options,
        ) -> Option<BoxFuture<'static, ()>> {
            let cache = cache.clone();
            Some(async move { cache.run(client, options).await }.boxed())
        }
        match resource {
            POD => run(&self.pods, client, options),
            PERSISTENT_VOLUME_CLAIM => run(&self.claims, client, options),
            CONTROLLER_REVISION => run(&self.revisions, client, options),
            CLONE_SET => run(&self.clonesets, client, options),
            IMAGE_PULL_JOB => run(&self.pull_jobs, client, options),
            IMAGE_LIST_PULL_JOB => run(&self.list_pull_jobs, client, options),
            NODE_IMAGE => run(&self.node_images, client, options),
            CONTAINER_RECREATE_REQUEST => run(&self.recreate_requests, client, options),
            POD_PROBE_MARKER => run(&self.probe_markers, client, options),
            NODE_POD_PROBE => run(&self.node_probes, client, options),
            EPHEMERAL_JOB => run(&self.ephemeral_jobs, client, options),
            SIDECAR_SET => run(&self.sidecarsets, client, options),
            _ => None,
        }
    }

    /// Waits until the first list of a kind is complete, but not longer than this. Tells whether it is; a kind without a
    /// cache always is.
    pub async fn synced(&self, resource: Resource, patience: Duration) -> bool {
        match resource {
            POD => self.pods.synced(patience).await,
            PERSISTENT_VOLUME_CLAIM => self.claims.synced(patience).await,
            CONTROLLER_REVISION => self.revisions.synced(patience).await,
            CLONE_SET => self.clonesets.synced(patience).await,
            IMAGE_PULL_JOB => self.pull_jobs.synced(patience).await,
            IMAGE_LIST_PULL_JOB => self.list_pull_jobs.synced(patience).await,
            NODE_IMAGE => self.node_images.synced(patience).await,
            CONTAINER_RECREATE_REQUEST => self.recreate_requests.synced(patience).await,
            POD_PROBE_MARKER => self.probe_markers.synced(patience).await,
            NODE_POD_PROBE => self.node_probes.synced(patience).await,
            EPHEMERAL_JOB => self.ephemeral_jobs.synced(patience).await,
            SIDECAR_SET => self.sidecarsets.synced(patience).await,
            _ => true,
        }
    }
}
