//! The gates, as data.

use std::fmt;

/// How settled a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// May change.
    Alpha,
    /// Stays.
    Beta,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The gate.
    pub gate: Gate,
    /// How users write it.
    pub name: &'static str,
    /// Whether it is open unless someone says otherwise.
    pub default: bool,
    /// How settled the feature is.
    pub stage: Stage,
    /// What it does when it is open, in one sentence.
    pub about: &'static str,
}

macro_rules! table {
    ($( #[doc = $about:literal] $gate:ident: $default:literal, $stage:ident; )*) => {
        /// A feature that can be switched on and off. Its name in Rust is its name on the command line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Gate {
            $( #[doc = $about] $gate, )*
        }

        /// Every gate, in the order of the enumeration.
        pub const TABLE: &[Entry] = &[
            $( Gate::$gate.entry(), )*
        ];

        impl Gate {
            /// The row of this gate.
            pub const fn entry(self) -> Entry {
                match self {
                    $( Self::$gate => Entry {
                        gate: self,
                        name: stringify!($gate),
                        default: $default,
                        stage: Stage::$stage,
                        about: $about.trim_ascii(),
                    }, )*
                }
            }
        }
    };
}

table! {
    /// Pods pass through our webhooks: without it there is no injection, no budget, no spreading, no launch order.
    PodWebhook: true, Beta;
    /// Features that need the node daemon work: pulling images, recreating containers, probes.
    KruiseDaemon: true, Beta;
    /// Each node daemon watches the pods of its node and reports the hashes of their containers.
    DaemonWatchingPod: true, Beta;
    /// The revision label of CloneSet pods holds only the hash, so that names of CloneSets may be longer.
    CloneSetShortHash: false, Alpha;
    /// Every new pod gets our readiness gate, not only pods of our workloads.
    KruisePodReadinessGate: false, Alpha;
    /// CloneSets and StatefulSets pull images ahead of updates in place.
    PreDownloadImageForInPlaceUpdate: false, Alpha;
    /// DaemonSets pull images ahead of updates.
    PreDownloadImageForDaemonSetUpdate: false, Alpha;
    /// A CloneSet takes updated pods back when its partition is raised.
    CloneSetPartitionRollback: false, Alpha;
    /// Objects with the protection label cannot be deleted.
    ResourcesDeletionProtection: false, Beta;
    /// Protection of CRDs that still have objects works; it needs the right to list everything.
    DeletionProtectionForCRDCascadingGate: false, Alpha;
    /// WorkloadSpread works.
    WorkloadSpread: true, Beta;
    /// PodUnavailableBudgets protect pods from deletion and eviction.
    PodUnavailableBudgetDeleteGate: true, Beta;
    /// PodUnavailableBudgets protect pods from updates in place.
    PodUnavailableBudgetUpdateGate: false, Alpha;
    /// The cluster resizes pods in place, so budgets tell a resize from an update.
    InPlacePodVerticalScaling: false, Alpha;
    /// Workloads change the resources of running pods in place.
    InPlaceWorkloadVerticalScaling: false, Alpha;
    /// Templates get no defaults; never close it again once it was open, or every template changes.
    TemplateNoDefaults: false, Alpha;
    /// Templates with the host network also get host ports by default, as old clusters did it.
    DefaultHostNetworkHostPortsInPodTemplates: false, Alpha;
    /// Updates in place restart containers whose variables come from changed labels or annotations.
    InPlaceUpdateEnvFromMetadata: true, Beta;
    /// StatefulSets delete volume claims by their retention policy.
    StatefulSetAutoDeletePVC: true, Beta;
    /// StatefulSets may start counting at another number than zero.
    StatefulSetStartOrdinal: false, Alpha;
    /// Pods of StatefulSets carry their ordinal as a label.
    PodIndexLabel: true, Beta;
    /// StatefulSets make volume claims larger when their template grows.
    StatefulSetAutoResizePVCGate: false, Alpha;
    /// Pods on nodes that a DaemonSet has left do not count against its maxUnavailable.
    DaemonSetPruneIneligibleNodes: false, Alpha;
    /// SidecarSets may patch any annotation of a pod, not only those on the white list.
    SidecarSetPatchPodMetadataDefaultsAllowed: false, Alpha;
    /// Sidecars of all SidecarSets are injected in the order of their names.
    EnableSortSidecarContainerByName: false, Alpha;
    /// Sidecars end when the main containers of a job have ended.
    SidecarTerminator: false, Alpha;
    /// PodProbeMarkers work.
    PodProbeMarkerGate: true, Beta;
    /// Probes are written into annotations of pods for nodes without daemon.
    EnablePodProbeMarkerOnServerless: false, Alpha;
    /// Liveness probes of pods that ask for it are taken from the kubelet.
    EnhancedLivenessProbe: false, Alpha;
    /// Changes of pods that cannot change the decision of a CloneSet are dropped early.
    CloneSetEventHandlerOptimization: false, Alpha;
    /// Pods that wait for their update count as updated while scaling.
    PreparingUpdateAsUpdate: false, Alpha;
    /// ImagePullJobs and ImageListPullJobs work.
    ImagePullJobGate: false, Alpha;
    /// ResourceDistributions work.
    ResourceDistributionGate: false, Beta;
    /// A CloneSet makes pods again when a volume claim template changes.
    RecreatePodWhenChangeVCTInCloneSetGate: false, Alpha;
    /// The certificates of the webhooks come from someone else.
    EnableExternalCerts: false, Alpha;
    /// A CloneSet stops waiting for a write of its own that never shows up.
    ForceDeleteTimeoutExpectationGate: false, Alpha;
}

impl Gate {
    /// The gate with exactly this name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|entry| entry.name == name).map(|entry| entry.gate)
    }

    /// How users write it.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alpha => "alpha",
            Self::Beta => "beta",
        })
    }
}
