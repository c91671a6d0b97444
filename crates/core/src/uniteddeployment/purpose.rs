//! What steps are for: the events that report refusals.

use super::Kind;
use crate::{
    effect::{Event, Level},
    object::ObjectRef,
    plan::{self, Part},
    text::Text,
};

/// What a step is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// A subset gets its workload.
    CreateSubset {
        /// The kind.
        kind: Kind,
        /// The subset.
        subset: String,
    },
    /// A workload is deleted that is no subset's.
    DeleteSubset {
        /// The kind.
        kind: Kind,
        /// The workload.
        name: Text,
    },
    /// A workload becomes what its subset should have.
    UpdateSubset {
        /// The kind.
        kind: Kind,
        /// The workload.
        name: Text,
        /// The subset.
        subset: String,
    },
    /// The revision of the template.
    Revision,
    /// The object becomes the owner of something.
    Adopt(Part),
    /// Something that no event reports.
    Quiet(Part),
}

impl Purpose {
    /// Whether the step gives or takes a subset its workload.
    pub fn provisions(&self) -> bool {
        matches!(self, Self::CreateSubset { .. } | Self::DeleteSubset { .. })
    }

    /// The subset whose workload is written.
    pub fn subset(&self) -> Option<&str> {
        match self {
            Self::CreateSubset { subset, .. } | Self::UpdateSubset { subset, .. } => Some(subset),
            _ => None,
        }
    }
}

impl plan::Purpose for Purpose {
    fn part(&self) -> Part {
        match self {
            Self::CreateSubset { .. } | Self::DeleteSubset { .. } => Part::Scale,
            Self::UpdateSubset { .. } | Self::Revision => Part::Update,
            Self::Adopt(part) | Self::Quiet(part) => *part,
        }
    }

    fn done(&self, _: &ObjectRef) -> Vec<Event> {
        Vec::new()
    }

    fn failed(&self, owner: &ObjectRef, error: &str) -> Option<Event> {
        match self {
            // The object is deleted with its namespace: nobody has to do anything.
            Self::CreateSubset { .. } if error.contains("because it is being terminated") => None,
            Self::CreateSubset { kind, subset } => Some(failed(owner, &not_created(*kind, subset, error))),
            Self::DeleteSubset { kind, name } => {
                let message = format!("fail to delete Subset ({}) {name}: {error}", kind.as_str());
                Some(failed(owner, &format!("fail to manage Subset provision: {message}")))
            }
            Self::UpdateSubset { kind, name, .. } => Some(failed(owner, &not_updated(*kind, name, error))),
            Self::Revision => Some(warning(owner, "FailedRevisionProvision", error.to_owned())),
            Self::Adopt(_) | Self::Quiet(_) => None,
        }
    }

    fn quiet(part: Part) -> Self {
        Self::Quiet(part)
    }

    fn adopts(&self) -> bool {
        matches!(self, Self::Adopt(_))
    }
}

/// What is said of a workload that could not be made.
pub(super) fn not_created(kind: Kind, subset: &str, error: &str) -> String {
    format!("fail to manage Subset provision: fail to create Subset ({}) {subset}: {error}", kind.as_str())
}

/// What is said of a workload that could not be changed.
pub(super) fn not_updated(kind: Kind, name: &str, error: &str) -> String {
    format!("Error updating PodSet ({}) {name} when updating: {error}", kind.as_str())
}

/// A workload could not be made or changed.
pub(super) fn failed(owner: &ObjectRef, message: &str) -> Event {
    warning(owner, "FailedUpdateSubset", message.to_owned())
}

pub(super) fn warning(owner: &ObjectRef, reason: &str, message: String) -> Event {
    Event { regarding: owner.clone(), level: Level::Warning, reason: reason.into(), message }
}
