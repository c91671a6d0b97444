//! What to do to the cluster, as data.
//!
//! Planners return effects, and one executor in the runtime carries them out. An effect carries its preconditions, so
//! that it does nothing where the world has moved on: effects of one plan may run in any order, or stop half-way. Only
//! a deletion can ask to come after another write.

use std::time::Duration;

use serde_json::Value;

use crate::{
    object::{ObjectKey, ObjectRef, Resource},
    text::Text,
};

/// One change of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Makes an object. With a name that exists already it fails, as the server says.
    Create {
        /// The kind.
        resource: Resource,
        /// Where; empty for a cluster-wide kind.
        namespace: Text,
        /// The whole object.
        object: Value,
    },
    /// Changes a part of an object.
    Patch {
        /// Which one.
        target: Target,
        /// `status`, `resize` and so on, or the object itself.
        subresource: Option<&'static str>,
        /// The change.
        patch: Patch,
    },
    /// Asks whether the server would take a change, without making it.
    Ask {
        /// Which object.
        target: Target,
        /// `status`, `resize` and so on, or the object itself.
        subresource: Option<&'static str>,
        /// The change.
        patch: Patch,
    },
    /// Removes an object. One that is gone already, or is another object by now, is fine.
    Delete {
        /// Which one.
        target: Target,
        /// How long the object gets to end, if not as long as it asks for itself.
        grace: Option<Duration>,
        /// Only once the write before it in the plan has happened: the data of a pod that was not deleted stays.
        follows: bool,
    },
    /// Tells people.
    Event(Event),
}

/// A resource as roles name it, such as `pods` or `pods/status`.
pub type Endpoint = (Resource, Option<&'static str>);

impl Effect {
    /// What it writes to; nothing for an event.
    pub fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Self::Create { resource, .. } => Some((*resource, None)),
            Self::Patch { target, subresource, .. } | Self::Ask { target, subresource, .. } => {
                Some((target.resource, *subresource))
            }
            Self::Delete { target, .. } => Some((target.resource, None)),
            Self::Event(_) => None,
        }
    }
}

/// An object to change, with what must still hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub resource: Resource,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Keeps a late write from hitting a namesake.
    pub uid: Option<Text>,
    /// Keeps a write from hitting a version that was not seen.
    pub resource_version: Option<Text>,
}

impl Target {
    /// The object with this uid, whatever its version is by now.
    pub fn with_uid(resource: Resource, key: ObjectKey, uid: Text) -> Self {
        Self { resource, key, uid: Some(uid), resource_version: None }
    }

    /// The same, only while it has this version.
    #[must_use]
    pub fn at_version(mut self, resource_version: Text) -> Self {
        self.resource_version = Some(resource_version);
        self
    }
}

/// The forms of a patch.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 7386: the only one besides JSON patch that custom resources take.
    Merge(Value),
    /// Kubernetes' own form for its built-in kinds: lists are merged by key.
    Strategic(Value),
    /// RFC 6902: a list of operations.
    Json(Value),
}

/// What people read in `kubectl describe` and `kubectl get events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object it is about.
    pub regarding: ObjectRef,
    /// `Normal` or `Warning`.
    pub level: Level,
    /// One word in CamelCase that programs may match.
    pub reason: Text,
    /// A sentence.
    pub message: String,
}

/// How much an event should worry someone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As planned.
    Normal,
    /// Someone should look.
    Warning,
}

impl Level {
    /// The word in `type` of an Event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}
