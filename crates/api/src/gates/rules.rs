//! Gates that need other gates. The rules win over what the user set.

use super::{Gate, Gates, Notice};

/// What one gate does to others.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// When the rule holds.
    pub cause: Cause,
    /// The gates that it decides about.
    pub gates: &'static [Gate],
}

/// When a rule holds, and which way it pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This gate is closed, so the others are closed too.
    Closed(Gate),
    /// One of these gates is open, so the others are opened too.
    Open(&'static [Gate]),
}

/// All rules, in the order in which they are applied: the second one closes gates before the third one looks at them.
pub const RULES: &[Rule] = &[
    Rule {
        cause: Cause::Closed(Gate::PodWebhook),
        gates: &[
            Gate::KruisePodReadinessGate,
            Gate::PodUnavailableBudgetDeleteGate,
            Gate::PodUnavailableBudgetUpdateGate,
            Gate::WorkloadSpread,
            Gate::SidecarSetPatchPodMetadataDefaultsAllowed,
            Gate::EnhancedLivenessProbe,
            Gate::EnablePodProbeMarkerOnServerless,
        ],
    },
    Rule {
        cause: Cause::Closed(Gate::KruiseDaemon),
        gates: &[
            Gate::PreDownloadImageForInPlaceUpdate,
            Gate::PreDownloadImageForDaemonSetUpdate,
            Gate::DaemonWatchingPod,
            Gate::InPlaceUpdateEnvFromMetadata,
            Gate::PodProbeMarkerGate,
            Gate::SidecarTerminator,
            Gate::ImagePullJobGate,
            Gate::EnhancedLivenessProbe,
        ],
    },
    Rule {
        cause: Cause::Open(&[
            Gate::PreDownloadImageForInPlaceUpdate,
            Gate::PreDownloadImageForDaemonSetUpdate,
        ]),
        gates: &[Gate::ImagePullJobGate],
    },
    Rule {
        cause: Cause::Closed(Gate::ResourcesDeletionProtection),
        gates: &[Gate::DeletionProtectionForCRDCascadingGate],
    },
];

/// Applies the rules and tells what they changed. Applying them again changes nothing.
pub fn apply(gates: &mut Gates) -> Vec<Notice> {
    let mut notices = Vec::new();
    for rule in RULES {
        let Some((because, open)) = rule.cause.holds(gates) else { continue };
        for gate in rule.gates.iter().copied().filter(|gate| gates.enabled(*gate) != open).collect::<Vec<_>>()
        {
            gates.set(gate, open);
            notices.push(Notice::Overridden { gate, open, because });
        }
    }
    notices
}

impl Cause {
    /// The gate to blame and the way it pushes, when the rule holds.
    fn holds(self, gates: &Gates) -> Option<(Gate, bool)> {
        match self {
            Self::Closed(gate) => (!gates.enabled(gate)).then_some((gate, false)),
            Self::Open(any) => any.iter().copied().find(|gate| gates.enabled(*gate)).map(|gate| (gate, true)),
        }
    }
}
