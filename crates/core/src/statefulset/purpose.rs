//! What a step is for: which event reports it, and which condition its failure.

use crate::{
    effect::{Event, Level},
    object::ObjectRef,
    plan::{self, Part},
    text::Text,
};

/// What a step is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new pod.
    CreatePod(Text),
    /// A claim of a pod.
    CreateClaim {
        /// The claim.
        claim: Text,
        /// The pod.
        pod: Text,
    },
    /// A pod is deleted.
    DeletePod(Text),
    /// A pod gets the labels that make it the one of its name.
    RepairPod(Text),
    /// A claim gets the owners that it should have.
    Own(Text),
    /// A claim grows.
    ResizeClaim {
        /// The claim.
        claim: Text,
        /// The pod.
        pod: Text,
    },
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
    /// The server is asked whether it would accept an update in place.
    AskInPlace {
        /// The pod.
        pod: Text,
        /// The revision.
        revision: Text,
    },
    /// A pod returns to the revision that it left, because the server refused the rest of its update.
    TakeBackInPlace(Text),
    /// Images are pulled ahead of an update.
    PullImage {
        /// The job.
        job: Text,
        /// The image.
        image: Text,
    },
    /// A pod without a controller becomes one of the set.
    Adopt(Text),
    /// Something that no event reports.
    Quiet(Part),
}

impl Purpose {
    /// Whether its failure is the condition `FailedCreatePod`.
    pub fn is_creation(&self) -> bool {
        matches!(self, Self::CreatePod(_) | Self::CreateClaim { .. })
    }

    /// Whether its failure is the condition `FailedUpdatePod`.
    pub fn is_update(&self) -> bool {
        matches!(
            self,
            Self::RepairPod(_) | Self::Own(_) | Self::ResizeClaim { .. } | Self::TakeBackInPlace(_)
        ) || self.in_place().is_some()
    }

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
            | Self::CreateClaim { .. }
            | Self::DeletePod(_)
            | Self::RepairPod(_)
            | Self::Own(_)
            | Self::Adopt(_) => Part::Scale,
            Self::ResizeClaim { .. }
            | Self::UpdateInPlace { .. }
            | Self::PrepareInPlace { .. }
            | Self::AskInPlace { .. }
            | Self::TakeBackInPlace(_) => Part::Update,
            Self::PullImage { .. } => Part::Housekeeping,
            Self::Quiet(part) => *part,
        }
    }

    fn done(&self, set: &ObjectRef) -> Vec<Event> {
        let name = &set.key.name;
        let (reason, message) = match self {
            Self::CreatePod(pod) => {
                ("SuccessfulCreate", format!("create Pod {pod} in StatefulSet {name} successful"))
            }
            Self::CreateClaim { claim, pod } => {
                ("SuccessfulCreate", format!("create Claim {claim} Pod {pod} in StatefulSet {name} success"))
            }
            Self::DeletePod(pod) => {
                ("SuccessfulDelete", format!("delete Pod {pod} in StatefulSet {name} successful"))
            }
            Self::RepairPod(pod) => {
                ("SuccessfulUpdate", format!("update Pod {pod} in StatefulSet {name} successful"))
            }
            Self::ResizeClaim { claim, pod } => {
                ("SuccessfulResize", format!("resize Claim {claim} Pod {pod} in StatefulSet {name} success"))
            }
            Self::UpdateInPlace { pod, revision } => (
                "SuccessfulUpdatePodInPlace",
                format!("successfully update pod {pod} in-place(revision {revision})"),
            ),
            Self::PullImage { job, image } => {
                ("CreatedImagePullJob", format!("created ImagePullJob {job} for image: {image}"))
            }
            Self::Own(_)
            | Self::Adopt(_)
            | Self::PrepareInPlace { .. }
            | Self::AskInPlace { .. }
            | Self::TakeBackInPlace(_)
            | Self::Quiet(_) => return Vec::new(),
        };
        vec![event(set, Level::Normal, reason, message)]
    }

    fn failed(&self, set: &ObjectRef, error: &str) -> Option<Event> {
        let name = &set.key.name;
        let in_set = format!("in StatefulSet {name} failed error: {error}");
        let (reason, message) = match self {
            Self::CreatePod(pod) => ("FailedCreate", format!("create Pod {pod} {in_set}")),
            Self::CreateClaim { claim, pod } => {
                ("FailedCreate", format!("create Claim {claim} for Pod {pod} {in_set}"))
            }
            Self::DeletePod(pod) => ("FailedDelete", format!("delete Pod {pod} {in_set}")),
            Self::RepairPod(pod) => ("FailedUpdate", format!("update Pod {pod} {in_set}")),
            Self::Own(claim) => ("FailedUpdate", format!("update Claim {claim} {in_set}")),
            Self::ResizeClaim { claim, pod } => {
                ("FailedResize", format!("resize Claim {claim} for Pod {pod} {in_set}"))
            }
            Self::UpdateInPlace { pod, revision }
            | Self::PrepareInPlace { pod, revision }
            | Self::AskInPlace { pod, revision } => (
                "FailedUpdatePodInPlace",
                format!("failed to update pod {pod} in-place(revision {revision}): {error}"),
            ),
            Self::TakeBackInPlace(pod) => (
                "FailedUpdatePodInPlace",
                format!("failed to return pod {pod} to the revision before its update in place: {error}"),
            ),
            Self::PullImage { job, .. } => {
                let message = format!("failed to create ImagePullJob {job}: {error}");
                return Some(event(set, Level::Normal, "FailedCreateImagePullJob", message));
            }
            Self::Adopt(_) | Self::Quiet(_) => return None,
        };
        Some(event(set, Level::Warning, reason, message))
    }

    fn quiet(part: Part) -> Self {
        Self::Quiet(part)
    }

    fn takes_down(&self) -> Option<&Text> {
        match self {
            Self::UpdateInPlace { pod, .. } | Self::PrepareInPlace { pod, .. } => Some(pod),
            _ => None,
        }
    }

    fn adopts(&self) -> bool {
        matches!(self, Self::Adopt(_))
    }

    fn is_remembered(&self) -> bool {
        self.in_place().is_some()
    }
}

pub(super) fn event(set: &ObjectRef, level: Level, reason: &str, message: String) -> Event {
    Event { regarding: set.clone(), level, reason: reason.into(), message }
}
