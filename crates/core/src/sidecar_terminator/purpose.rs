//! What people are told.

use crate::{
    effect::{Event, Level},
    object::ObjectRef,
    pod::Pod,
};

pub(super) const REASON: &str = "SidecarTerminator";

/// What an effect is for: which event tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Sidecars are killed.
    Kill {
        /// The pod.
        pod: ObjectRef,
        /// The sidecars.
        sidecars: Vec<String>,
    },
    /// Images of sidecars are replaced.
    ReplaceImage {
        /// The pod.
        pod: ObjectRef,
        /// The sidecars.
        sidecars: Vec<String>,
    },
    /// Something that nobody is told about.
    Quiet,
}

impl Purpose {
    /// The event to send after the effect took place.
    pub fn done(&self) -> Option<Event> {
        let (pod, sidecars, way) = match self {
            Self::Kill { pod, sidecars } => (pod, sidecars, "crr"),
            Self::ReplaceImage { pod, sidecars } => (pod, sidecars, "in-place update"),
            Self::Quiet => return None,
        };
        let names = sidecars.join(" ");
        let message =
            format!("Kruise SidecarTerminator is trying to terminate sidecar [{names}] using {way}");
        Some(Event { regarding: pod.clone(), level: Level::Normal, reason: REASON.into(), message })
    }
}

/// That sidecars cannot be ended on this kind of node.
pub(super) fn cannot(pod: &Pod, sidecars: &[String], node: &str, missing: &str) -> Event {
    let names = sidecars.join(" ");
    let message = format!(
        "Kruise SidecarTerminator cannot terminate sidecar [{names}] on {node}: the environment variable {missing} is missing"
    );
    Event { regarding: pod.reference(), level: Level::Warning, reason: REASON.into(), message }
}
