//! What an effect is for: which event tells of it, and which condition reports its failure.

use crate::{
    effect::{Event, Level},
    object::ObjectRef,
    plan::{self, Part},
    text::Text,
};

/// What an effect is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new pod.
    CreatePod(Text),
    /// A claim of a new pod.
    CreateClaim(Text),
    /// A pod goes.
    DeletePod(Text),
    /// The claim of a pod that goes.
    DeleteClaim(Text),
    /// A claim whose pod is gone.
    CleanUpClaim(Text),
    /// A claim that belongs to its pod from now on.
    MoveClaim(Text),
    /// A pod is changed to a revision.
    UpdateInPlace {
        /// The pod.
        pod: Text,
        /// The revision.
        revision: Text,
    },
    /// A step of an update in place before or after the one that changes the pod.
    PrepareInPlace {
        /// The pod.
        pod: Text,
        /// The revision.
        revision: Text,
    },
    /// The server is asked whether it would take an update in place.
    AskInPlace {
        /// The pod.
        pod: Text,
        /// The revision.
        revision: Text,
    },
    /// A pod goes back to the revision that it left, because the server refused the rest of its update.
    TakeBackInPlace(Text),
    /// A pod is asked to go because of an update.
    ReCreate {
        /// The pod.
        pod: Text,
        /// The revision.
        revision: Text,
    },
    /// A pod goes at once because of an update: nobody has to be asked, and nothing has to come before.
    Replace {
        /// The pod.
        pod: Text,
        /// The revision.
        revision: Text,
    },
    /// Images are pulled ahead of an update.
    PullImage {
        /// The job.
        job: Text,
        /// The image.
        image: Text,
    },
    /// Something that nobody is told about.
    Quiet(Part),
}

impl Purpose {
    /// The pod and the revision of a step of an update in place, or of a question about one.
    pub fn in_place(&self) -> Option<(&Text, &Text)> {
        match self {
            Self::UpdateInPlace { pod, revision }
            | Self::PrepareInPlace { pod, revision }
            | Self::AskInPlace { pod, revision } => Some((pod, revision)),
            _ => None,
        }
    }
}

impl plan::Purpose for Purpose {
    fn part(&self) -> Part {
        match self {
            Self::CreatePod(_)
            | Self::CreateClaim(_)
            | Self::DeletePod(_)
            | Self::DeleteClaim(_)
            | Self::CleanUpClaim(_)
            | Self::MoveClaim(_) => Part::Scale,
            Self::UpdateInPlace { .. }
            | Self::PrepareInPlace { .. }
            | Self::AskInPlace { .. }
            | Self::TakeBackInPlace(_)
            | Self::ReCreate { .. }
            | Self::Replace { .. } => Part::Update,
            Self::PullImage { .. } => Part::Housekeeping,
            Self::Quiet(part) => *part,
        }
    }

    fn done(&self, set: &ObjectRef) -> Vec<Event> {
        // Who follows the original's events of an update sees both, as there.
        if let Self::Replace { pod, revision } = self {
            let (pod, revision) = (pod.clone(), revision.clone());
            let both = [Self::ReCreate { pod: pod.clone(), revision }, Self::DeletePod(pod)];
            return both.iter().flat_map(|purpose| purpose.done(set)).collect();
        }
        let (reason, message) = match self {
            Self::CreatePod(pod) => ("SuccessfulCreate", format!("succeed to create pod {pod}")),
            Self::DeletePod(pod) => ("SuccessfulDelete", format!("succeed to delete pod {pod}")),
            Self::UpdateInPlace { pod, revision } => (
                "SuccessfulUpdatePodInPlace",
                format!("successfully update pod {pod} in-place(revision {revision})"),
            ),
            Self::ReCreate { pod, revision } => (
                "SuccessfulUpdatePodReCreate",
                format!("successfully patch pod {pod} specified-delete for update(revision {revision})"),
            ),
            Self::PullImage { job, image } => {
                ("CreatedImagePullJob", format!("created ImagePullJob {job} for image: {image}"))
            }
            Self::CreateClaim(_)
            | Self::DeleteClaim(_)
            | Self::CleanUpClaim(_)
            | Self::MoveClaim(_)
            | Self::PrepareInPlace { .. }
            | Self::AskInPlace { .. }
            | Self::TakeBackInPlace(_)
            | Self::Replace { .. }
            | Self::Quiet(_) => return Vec::new(),
        };
        vec![event(set, Level::Normal, reason, message)]
    }

    fn failed(&self, set: &ObjectRef, error: &str) -> Option<Event> {
        let (reason, message) = match self {
            Self::CreatePod(pod) => ("FailedCreate", format!("failed to create pod: {error}, pod: {pod}")),
            Self::CreateClaim(claim) => {
                ("FailedCreate", format!("failed to create pvc: {error}, pvc: {claim}"))
            }
            Self::DeletePod(pod) | Self::Replace { pod, .. } => {
                ("FailedDelete", format!("failed to delete pod {pod}: {error}"))
            }
            Self::DeleteClaim(claim) => ("FailedDelete", format!("failed to delete pvc {claim}: {error}")),
            Self::CleanUpClaim(claim) => ("FailedDelete", format!("failed to clean up PVC {claim}: {error}")),
            Self::MoveClaim(claim) => ("FailedUpdate", format!("failed to update PVC {claim}: {error}")),
            Self::UpdateInPlace { pod, revision }
            | Self::PrepareInPlace { pod, revision }
            | Self::AskInPlace { pod, revision } => (
                "FailedUpdatePodInPlace",
                format!("failed to update pod {pod} in-place(revision {revision}): {error}"),
            ),
            Self::ReCreate { pod, revision } => (
                "FailedUpdatePodReCreate",
                format!(
                    "failed to patch pod specified-delete {pod} for update(revision {revision}): {error}"
                ),
            ),
            Self::PullImage { job, .. } => {
                let message = format!("failed to create ImagePullJob {job}: {error}");
                return Some(event(set, Level::Normal, "FailedCreateImagePullJob", message));
            }
            Self::TakeBackInPlace(pod) => (
                "FailedUpdatePodInPlace",
                format!("failed to take back the update of pod {pod} in-place: {error}"),
            ),
            Self::Quiet(_) => return None,
        };
        Some(event(set, Level::Warning, reason, message))
    }

    fn quiet(part: Part) -> Self {
        Self::Quiet(part)
    }

    fn takes_down(&self) -> Option<&Text> {
        match self {
            Self::UpdateInPlace { pod, .. }
            | Self::PrepareInPlace { pod, .. }
            | Self::ReCreate { pod, .. }
            | Self::Replace { pod, .. } => Some(pod),
            _ => None,
        }
    }

    fn is_remembered(&self) -> bool {
        self.in_place().is_some()
    }
}

pub(super) fn event(set: &ObjectRef, level: Level, reason: &str, message: String) -> Event {
    Event { regarding: set.clone(), level, reason: reason.into(), message }
}
