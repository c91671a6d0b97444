//! What an effect is for, and what people are told.

use crate::{
    effect::{Event, Level},
    object::ObjectRef,
    plan::{self, Part},
    text::Text,
};

/// What an effect is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A pod gets new images.
    Update {
        /// The pod.
        pod: ObjectRef,
        /// The revision of the set.
        revision: Text,
    },
    /// An idle twin of a hot upgrade gets its empty image.
    Reset {
        /// The pod.
        pod: ObjectRef,
    },
    /// Something that nobody is told about.
    Quiet,
}

impl plan::Purpose for Purpose {
    fn part(&self) -> Part {
        Part::Update
    }

    fn done(&self, _set: &ObjectRef) -> Vec<Event> {
        match self {
            Self::Reset { pod } => vec![event(
                pod,
                Level::Normal,
                "ResetContainerSucceed",
                "reset sidecar container image empty successfully".to_owned(),
            )],
            Self::Update { .. } | Self::Quiet => Vec::new(),
        }
    }

    fn failed(&self, _set: &ObjectRef, error: &str) -> Option<Event> {
        match self {
            Self::Reset { pod } => Some(event(
                pod,
                Level::Warning,
                "ResetContainerFailed",
                format!("reset sidecar container image empty failed: {error}"),
            )),
            // The same reason as for a pod of a CloneSet, so that one search finds both.
            Self::Update { pod, revision } => Some(event(
                pod,
                Level::Warning,
                "FailedUpdatePodInPlace",
                format!("failed to update pod {} in-place(revision {revision}): {error}", pod.key.name),
            )),
            Self::Quiet => None,
        }
    }

    fn quiet(_part: Part) -> Self {
        Self::Quiet
    }
}

/// That pods cannot be updated in place.
pub(super) fn not_upgradable(set: &ObjectRef, count: usize) -> Event {
    let message = format!(
        "SidecarSet in-place update detected {count} not upgradable pod(s) in this round, will skip them."
    );
    event(set, Level::Normal, "NotUpgradablePods", message)
}

fn event(regarding: &ObjectRef, level: Level, reason: &str, message: String) -> Event {
    Event { regarding: regarding.clone(), level, reason: reason.into(), message }
}
