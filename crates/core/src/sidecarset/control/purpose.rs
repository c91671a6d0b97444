//! What an effect is for, and what people are told.

use crate::{
    effect::{Event, Level},
    object::ObjectRef,
};

/// What an effect is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A pod gets new images.
    Update {
        /// The pod.
        pod: ObjectRef,
    },
    /// An idle twin of a hot upgrade gets its empty image.
    Reset {
        /// The pod.
        pod: ObjectRef,
    },
    /// Something that nobody is told about.
    Quiet,
}

impl Purpose {
    /// The event to send after the effect took place.
    pub fn done(&self) -> Option<Event> {
        match self {
            Self::Reset { pod } => Some(event(
                pod,
                Level::Normal,
                "ResetContainerSucceed",
                "reset sidecar container image empty successfully".to_owned(),
            )),
            Self::Update { .. } | Self::Quiet => None,
        }
    }

    /// The event to send when the effect was refused.
    pub fn failed(&self, error: &str) -> Option<Event> {
        match self {
            Self::Reset { pod } => Some(event(
                pod,
                Level::Warning,
                "ResetContainerFailed",
                format!("reset sidecar container image empty failed: {error}"),
            )),
            Self::Update { .. } | Self::Quiet => None,
        }
    }
}

/// That pods cannot be updated in place.
pub(super) fn not_upgradable(set: &ObjectRef, count: usize) -> Event {
    let message = format!(
        "SidecarSet in-place update detected {count} not upgradable pod(s) in this round, will skip them."
    );
    event(set, Level::Normal, "NotUpgradablePods", message)
}

/// Why something waits. A SidecarSet has no conditions, so an event says it, once for each text.
pub fn waiting(set: &ObjectRef, reasons: &[String]) -> Option<Event> {
    (!reasons.is_empty()).then(|| event(set, Level::Normal, "Waiting", reasons.join("; ")))
}

fn event(regarding: &ObjectRef, level: Level, reason: &str, message: String) -> Event {
    Event { regarding: regarding.clone(), level, reason: reason.into(), message }
}
