//! What the manager knows of the cluster: one cache for each kind that somebody needs, shared by all.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use kruise_api::{
    advancedcronjob::v1beta1::AdvancedCronJob,
    annotations::SIDECARSET_INJECTED_LIST,
    broadcastjob::v1beta1::BroadcastJob,
    cloneset::v1beta1::CloneSet,
    containerrecreaterequest::v1beta1::ContainerRecreateRequest,
    daemonset::v1beta1::DaemonSet,
    ephemeraljob::v1alpha1::EphemeralJob,
    imagelistpulljob::v1beta1::ImageListPullJob,
    imagepulljob::v1beta1::ImagePullJob,
    labels::{CRR_POD_UID, SIDECARSET_NAME, SUBSET_NAME},
    nodepodprobe::v1alpha1::NodePodProbe,
    persistentpodstate::v1beta1::PersistentPodState,
    podprobemarker::v1alpha1::PodProbeMarker,
    podunavailablebudget::v1beta1::PodUnavailableBudget,
    sidecarset::v1beta1::SidecarSet,
    statefulset::v1beta1::StatefulSet,
    workloadspread::v1beta1::WorkloadSpread,
};
use kruise_core::{
    advancedcronjob::{ADVANCED_CRON_JOB, Job},
    broadcastjob::BROADCAST_JOB,
    cloneset::CLONE_SET,
    containerrecreaterequest::CONTAINER_RECREATE_REQUEST,
    daemonset::DAEMON_SET,
    ephemeraljob::EPHEMERAL_JOB,
    imagelistpulljob::IMAGE_LIST_PULL_JOB,
    imagepulljob,
    node::Node,
    nodeimage::{NODE_IMAGE, NodeImage},
    nodepodprobe::{NODE_POD_PROBE, listed_markers},
    object::{
        CONFIG_MAP, CONTROLLER_REVISION, JOB, NAMESPACE, NODE, PERSISTENT_VOLUME_CLAIM, POD, Resource,
        SECRET, STORAGE_CLASS,
    },
    persistentpodstate::PERSISTENT_POD_STATE,
    pod::{Metadata, Pod},
    podprobemarker::{Marker, POD_PROBE_MARKER},
    podunavailablebudget::POD_UNAVAILABLE_BUDGET,
    pre_download::IMAGE_PULL_JOB,
    resourcedistribution::RESOURCE_DISTRIBUTION,
    revision::Revision,
    sidecarset::{SIDECAR_SET, record},
    statefulset::{self, STATEFUL_SET},
    text::Text,
    uniteddeployment::{UNITED_DEPLOYMENT, UnitedDeployment},
    volume_claim::{StorageClass, VolumeClaim},
    workload::{self, DEPLOYMENT, REPLICA_SET, Workload},
    workloadspread::WORKLOAD_SPREAD,
};
use kruise_runtime::{
    cache::{self, Cache, Guarded, Options, Plain, Whole},
    events::Recorder,
    metrics::Framework,
};
use kube::Client;

use crate::distributions::{Distribution, resource_of};

/// The index of objects by the uids of their owners.
pub const BY_OWNER: &str = "owner";
/// The index of pods without a controller, and of workloads of subsets without one, by namespace.
pub const BY_NO_OWNER: &str = "no owner";
/// The index of pods by [those labels](LABELS) that selectors usually ask for, as [`labelled_with`] writes them.
pub const BY_LABEL: &str = "label";
/// The labels of that index.
pub const LABELS: [&str; 5] =
    ["app", "app.kubernetes.io/instance", "app.kubernetes.io/name", "k8s-app", "name"];
/// The index of pods by their node.
pub const BY_NODE: &str = "node";
/// The index of revisions by the workload that they may belong to: the uid of their controller, or the namespace of one
/// without, and always the name without its hash. And of pods without a controller by their name without the ordinal.
pub const BY_KIN: &str = "kin";
/// The index of StatefulSets by the names of their claims without the ordinal.
pub const BY_CLAIM: &str = "claim";
/// The index of pods by the SidecarSets that they got containers from, and of revisions by the SidecarSet they name.
pub const BY_SIDECAR_SET: &str = "sidecarset";
/// The index of ImagePullJobs that are not over, all under one text: [`RUNNING`].
pub const BY_PROGRESS: &str = "progress";
/// The index of ContainerRecreateRequests by the uid of their pod.
pub const BY_POD: &str = "pod";
/// The index of NodePodProbes by the PodProbeMarkers of their probes, as `namespace/name`.
pub const BY_MARKER: &str = "marker";
/// The index of ResourceDistributions by what they distribute, as `Secret/name`.
pub const BY_RESOURCE: &str = "resource";
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

/// How a kind is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    /// From the start, if a feature that is on needs it.
    Always,
    /// From the first time somebody [wants](Cache::want) it.
    OnDemand,
}

/// All caches, one entry for each kind: what it is for, its field, its view, its resource, when it is followed, its indexes.
macro_rules! caches {
    ($(
        $(#[$doc:meta])*
        $field:ident: $view:ty = $resource:expr, $followed:ident $(, $index:ident by $texts:expr)*;
    )*) => {
        /// All caches. Those of kinds that no feature needs stay empty and cost nothing.
        #[derive(Clone, Debug)]
        pub struct Caches {
            $($(#[$doc])* pub $field: Cache<$view>,)*
        }

        impl Caches {
            /// Empty ones.
            pub fn new(metrics: &Framework) -> Self {
                Self {
                    $($field: Cache::<$view>::new($resource)$(.with_index($index, $texts))*.with_metrics(metrics),)*
                }
            }

            /// All of them, whatever is in them.
            pub fn all(&self) -> Vec<&dyn cache::Followed> {
                vec![$(&self.$field,)*]
            }

            /// Reports objects that cannot be read in full with events. The replica that leads does.
            pub fn tell_unreadable(&self, to: &Recorder) {
                $(self.$field.tell_unreadable(to.clone());)*
            }

            /// Whether a kind is only followed from when somebody wants it.
            pub fn is_on_demand(resource: Resource) -> bool {
                [$(($resource, Followed::$followed),)*].contains(&(resource, Followed::OnDemand))
            }

            /// Follows a kind for as long as it is polled. Nothing for a kind that has no cache, or that is followed on
            /// demand.
            pub fn follow(
                &self,
                resource: Resource,
                client: Client,
                options: Options,
            ) -> Option<BoxFuture<'static, ()>> {
                $(if resource == $resource && Followed::$followed == Followed::Always {
                    let cache = self.$field.clone();
                    return Some(async move { cache.run(client, options).await }.boxed());
                })*
                None
            }

            /// Waits until the first list of a kind is complete, but not longer than this. Returns whether it is; a kind
            /// that is not followed from the start always is.
            pub async fn synced(&self, resource: Resource, timeout: Duration) -> bool {
                $(if resource == $resource && Followed::$followed == Followed::Always {
                    return self.$field.synced(timeout).await;
                })*
                true
            }
        }
    };
}

caches! {
    /// All pods.
    pods: Pod = POD, Always,
        BY_OWNER by |pod, texts| owners(&pod.metadata, texts),
        BY_KIN by |pod, texts| free_pod(&pod.metadata, texts),
        BY_NO_OWNER by without_controller,
        BY_LABEL by labels,
        BY_NODE by nodes,
        BY_SIDECAR_SET by injected_sets;
    /// Labels and readiness of nodes.
    nodes: Node = NODE, OnDemand;
    /// Volume claims.
    claims: VolumeClaim = PERSISTENT_VOLUME_CLAIM, Always,
        BY_OWNER by |claim, texts| owners(&claim.metadata, texts);
    /// Storage classes.
    storage_classes: StorageClass = STORAGE_CLASS, OnDemand;
    /// Revisions of workloads.
    revisions: Revision = CONTROLLER_REVISION, Always,
        BY_KIN by |revision, texts| kin(&revision.metadata, texts),
        BY_SIDECAR_SET by |revision, texts| texts.extend(revision.metadata.labels.get(SIDECARSET_NAME).cloned());
    /// CloneSets.
    clonesets: Guarded<CloneSet> = CLONE_SET, Always,
        BY_OWNER by |set, texts| owners(&set.metadata, texts),
        BY_NO_OWNER by |set, texts| free_subset(&set.metadata, texts);
    /// Advanced StatefulSets.
    statefulsets: Guarded<StatefulSet> = STATEFUL_SET, Always, BY_CLAIM by named_claims,
        BY_OWNER by |set, texts| owners(&set.metadata, texts),
        BY_NO_OWNER by |set, texts| free_subset(&set.metadata, texts);
    /// DaemonSets of OpenKruise.
    daemonsets: Guarded<DaemonSet> = DAEMON_SET, Always;
    /// ImagePullJobs.
    pull_jobs: Guarded<ImagePullJob> = IMAGE_PULL_JOB, Always,
        BY_OWNER by |job, texts| owners(&job.metadata, texts),
        BY_PROGRESS by |job, texts| texts.extend(running(job).map(|_| RUNNING.into())),
        BY_PODS by pod_jobs;
    /// ImageListPullJobs.
    list_pull_jobs: Guarded<ImageListPullJob> = IMAGE_LIST_PULL_JOB, Always,
        BY_OWNER by |list, texts| owners(&list.metadata, texts);
    /// BroadcastJobs.
    broadcast_jobs: Guarded<BroadcastJob> = BROADCAST_JOB, Always,
        BY_OWNER by |job, texts| owners(&job.metadata, texts);
    /// AdvancedCronJobs.
    cron_jobs: Guarded<AdvancedCronJob> = ADVANCED_CRON_JOB, Always;
    /// Jobs of Kubernetes.
    jobs: Job = JOB, OnDemand, BY_OWNER by |job, texts| owners(&job.metadata, texts);
    /// NodeImages.
    node_images: NodeImage = NODE_IMAGE, Always;
    /// Which secrets there are, without what is in them.
    secrets: Plain = SECRET, OnDemand;
    /// ContainerRecreateRequests.
    recreate_requests: Guarded<ContainerRecreateRequest> = CONTAINER_RECREATE_REQUEST, Always,
        BY_POD by |request, texts| texts.extend(request.metadata.labels.get(CRR_POD_UID).cloned());
    /// PodProbeMarkers.
    probe_markers: Markers = POD_PROBE_MARKER, Always;
    /// NodePodProbes.
    node_probes: Guarded<NodePodProbe> = NODE_POD_PROBE, Always, BY_MARKER by markers;
    /// EphemeralJobs.
    ephemeral_jobs: Guarded<EphemeralJob> = EPHEMERAL_JOB, Always;
    /// SidecarSets.
    sidecarsets: Guarded<SidecarSet> = SIDECAR_SET, Always;
    /// ResourceDistributions.
    distributions: Distribution = RESOURCE_DISTRIBUTION, Always,
        BY_RESOURCE by |one, texts| texts.extend(resource_of(one));
    /// Labels of namespaces.
    namespaces: Plain = NAMESPACE, OnDemand;
    /// The one ConfigMap with settings that need no restart.
    configuration: Whole = CONFIG_MAP, OnDemand;
    /// PodUnavailableBudgets.
    budgets: Guarded<PodUnavailableBudget> = POD_UNAVAILABLE_BUDGET, Always;
    /// PersistentPodStates.
    persistent_pod_states: Guarded<PersistentPodState> = PERSISTENT_POD_STATE, Always;
    /// WorkloadSpreads.
    spreads: Guarded<WorkloadSpread> = WORKLOAD_SPREAD, Always;
    /// Deployments, as those see them that count pods. Like the next ones they are followed once a budget counts one, or a
    /// UnitedDeployment may have one.
    deployments: Workload = DEPLOYMENT, OnDemand,
        BY_OWNER by |one, texts| owners(&one.metadata, texts),
        BY_NO_OWNER by |one, texts| free_subset(&one.metadata, texts);
    /// ReplicaSets.
    replica_sets: Workload = REPLICA_SET, OnDemand, BY_OWNER by |set, texts| owners(&set.metadata, texts);
    /// StatefulSets of Kubernetes.
    native_statefulsets: Workload = workload::STATEFUL_SET, OnDemand,
        BY_OWNER by |set, texts| owners(&set.metadata, texts),
        BY_NO_OWNER by |set, texts| free_subset(&set.metadata, texts);
    /// UnitedDeployments.
    united_deployments: Guarded<UnitedDeployment> = UNITED_DEPLOYMENT, Always;
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

fn without_controller(pod: &Pod, texts: &mut Vec<Text>) {
    if pod.metadata.controller().is_none() {
        texts.push(pod.metadata.namespace.clone());
    }
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

/// A pod of nobody may belong to the set that its name is made from.
fn free_pod(metadata: &Metadata, texts: &mut Vec<Text>) {
    if metadata.controller().is_none()
        && let Some((set, _)) = statefulset::parts(&metadata.name)
    {
        texts.push(named_after(&metadata.namespace, set).into());
    }
}

/// A workload of nobody that says it is the workload of a subset.
fn free_subset(metadata: &Metadata, texts: &mut Vec<Text>) {
    if metadata.controller().is_none() && metadata.labels.contains(SUBSET_NAME) {
        texts.push(metadata.namespace.clone());
    }
}

fn named_claims(set: &Guarded<StatefulSet>, texts: &mut Vec<Text>) {
    if let Ok(object) = &set.object {
        let prefixes = statefulset::claim_prefixes(object).into_iter();
        texts.extend(prefixes.map(|one| named_after(&set.metadata.namespace, &one).into()));
    }
}

fn labels(pod: &Pod, texts: &mut Vec<Text>) {
    let Pod { metadata, .. } = pod;
    let found = LABELS.iter().filter_map(|key| Some((key, metadata.labels.text(key)?)));
    texts.extend(found.map(|(key, value)| labelled_with(&metadata.namespace, key, value).into()));
}

/// Pods of a namespace with a label, as the index [`BY_LABEL`] has them.
pub fn labelled_with(namespace: &str, key: &str, value: &str) -> String {
    format!("{namespace}/{key}={value}")
}

fn nodes(pod: &Pod, texts: &mut Vec<Text>) {
    if !pod.spec.node_name.is_empty() {
        texts.push(pod.spec.node_name.clone());
    }
}

fn injected_sets(pod: &Pod, texts: &mut Vec<Text>) {
    if let Some(list) = pod.metadata.annotations.text(SIDECARSET_INJECTED_LIST) {
        texts.extend(record::injected(list).map(Text::from));
    }
}

fn pod_jobs(job: &Guarded<ImagePullJob>, texts: &mut Vec<Text>) {
    if running(job).is_some_and(|job| job.spec.template.pod_selector.is_some()) {
        texts.push(job.metadata.namespace.clone());
    }
}

fn markers(list: &Guarded<NodePodProbe>, texts: &mut Vec<Text>) {
    if let Ok(list) = &list.object {
        texts.extend(listed_markers(list).map(Text::from));
    }
}

impl Caches {
    /// The cache of a kind of workload that others count the pods of; nothing for one that has another cache.
    pub fn workloads(&self, resource: Resource) -> Option<&Cache<Workload>> {
        match resource {
            DEPLOYMENT => Some(&self.deployments),
            REPLICA_SET => Some(&self.replica_sets),
            workload::STATEFUL_SET => Some(&self.native_statefulsets),
            _ => None,
        }
    }

    /// The revisions of the SidecarSet of this name, in the namespace of the manager.
    pub fn sidecar_set_revisions(&self, namespace: &str, set: &str) -> Vec<Arc<Revision>> {
        let mut found = self.revisions.by_index(BY_SIDECAR_SET, set);
        found.retain(|revision| revision.metadata.namespace == *namespace);
        found
    }
}

#[cfg(test)]
mod tests {
    use kruise_core::features;

    use super::*;

    #[test]
    fn every_kind_that_a_feature_watches_has_a_cache() {
        let caches = Caches::new(&Framework::new(&kruise_runtime::metrics::Registry::default()));
        let cached: Vec<Resource> = caches.all().iter().map(|cache| cache.resource()).collect();
        let built = features::ALL.iter().filter(|feature| feature.built);
        let missing: Vec<&str> = built
            .flat_map(|feature| feature.watches)
            .filter(|resource| !cached.contains(resource))
            .map(|resource| resource.kind)
            .collect();
        assert_eq!(missing, [""; 0]);
    }
}
