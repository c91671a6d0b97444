//! Updates in place: a pod gets the images, labels, annotations and resources of another revision without being deleted.
//!
//! Four questions, for every kind of workload: can a pod go from one revision to another in place ([`compare()`]), how does
//! it start ([`start()`]), what is next for a pod ([`refresh()`]), and is its update over ([`completion()`])?
//!
//! Everything that a running update needs is in annotations of the pod, so a restart of the manager loses nothing. Each
//! step is one write, decided from what is seen; a pod is made not ready strictly before its containers change, because
//! that write comes in an earlier pass.

mod batch;
mod compare;
mod completion;
pub mod env_hash;
mod image;
mod metadata;
mod refresh;
mod refusals;
mod rolling;
mod start;
pub mod state;
mod take_back;
pub mod validate;

pub use compare::{Update, compare};
pub use completion::{Completion, OtherImages, completion};
pub use image::{is_same as is_same_image, normalised};
pub use refresh::refresh;
pub use refusals::{Refusal, Refusals};
pub use rolling::{Changes, Next, Role, Rolling, Write};
pub use start::{Labels, start};
pub use take_back::{half_done, questions, take_back};

use std::time::Duration;

use kruise_api::annotations;

use crate::{effect::Effect, pod::Pod, text::Text};

/// What decides how updates in place go, besides the pod and its revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Containers are started again when a label or annotation changes that their environment reads.
    pub env_from_metadata: bool,
    /// Cpu and memory can change in place.
    pub resize: bool,
    /// The server takes new amounts of cpu and memory at `pods/resize` only.
    pub resize_subresource: bool,
    /// An annotation of revisions that an update in place cannot change: where two revisions have different values, the pod
    /// has to be re-created.
    pub fixed_annotation: Option<&'static str>,
    /// How long a pod is not ready before its containers change.
    pub grace: Duration,
}

/// The next write for a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The write.
    pub effect: Option<Effect>,
    /// Whether this write is the first that changes containers, or all that changes. A write before it says nothing yet: the
    /// server may refuse this one.
    pub starts: bool,
    /// The revision whose update this write is a step of; nothing where it only ends one.
    pub towards: Option<Text>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
}

impl Progress {
    fn write(effect: Effect) -> Self {
        Self { effect: Some(effect), ..Self::default() }
    }

    /// A step of an update. `is_first` says whether no container was changed before.
    fn step(effect: Effect, towards: &Text, is_first: bool) -> Self {
        let resizes = matches!(&effect, Effect::Patch { subresource: Some(_), .. });
        Self {
            effect: Some(effect),
            starts: is_first && !resizes,
            towards: Some(towards.clone()),
            wake_after: None,
        }
    }
}

/// An annotation of a pod that cannot be used. It concerns this pod only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is no JSON of the known form.
    #[error("pod {pod} has an annotation {annotation} that cannot be read: {problem}")]
    Unreadable {
        /// The pod.
        pod: String,
        /// The annotation.
        annotation: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A grace period without an update.
    #[error(
        "pod has {} but {} not found",
        annotations::IN_PLACE_UPDATE_GRACE,
        annotations::IN_PLACE_UPDATE_STATE
    )]
    GraceWithoutState,
}

/// Whether a pod waits for the end of its grace period. Nothing else may be started on it meanwhile.
pub fn is_in_grace(pod: &Pod) -> bool {
    state::grace_text(pod).is_some()
}

#[cfg(test)]
mod tests;
