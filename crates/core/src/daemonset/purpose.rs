//! What an effect is for: which events report it.

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
    CreatePod {
        /// The pod.
        pod: Text,
        /// Its node.
        node: Text,
    },
    /// A pod is deleted.
    DeletePod(Text),
    /// A pod is to be deleted, and a hook holds it.
    HoldPod(Text),
    /// A pod that failed or ended is deleted, or an event says that it will be.
    DeleteEnded {
        /// The pod.
        pod: Text,
        /// Its node.
        node: Text,
        /// It ended well, which a pod of a DaemonSet should not.
        succeeded: bool,
        /// It is deleted; otherwise a hook holds it.
        deleted: bool,
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
    /// The server is asked whether it would take an update in place.
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
    /// Something without an owner gets one.
    Adopt(Part),
    /// Something that no event reports.
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
            Self::CreatePod { .. } | Self::DeletePod(_) | Self::HoldPod(_) | Self::DeleteEnded { .. } => {
                Part::Scale
            }
            Self::UpdateInPlace { .. }
            | Self::PrepareInPlace { .. }
            | Self::AskInPlace { .. }
            | Self::TakeBackInPlace(_) => Part::Update,
            Self::PullImage { .. } => Part::Housekeeping,
            Self::Adopt(part) | Self::Quiet(part) => *part,
        }
    }

    fn done(&self, set: &ObjectRef) -> Vec<Event> {
        let deleted = |pod: &Text| normal(set, "SuccessfulDelete", format!("Deleted pod: {pod}"));
        match self {
            Self::CreatePod { pod, .. } => {
                vec![normal(set, "SuccessfulCreate", format!("Created pod: {pod}"))]
            }
            Self::DeletePod(pod) => vec![deleted(pod)],
            Self::DeleteEnded { pod, node, succeeded, deleted: is_deleted } => {
                let namespace = &set.key.namespace;
                let found = if *succeeded {
                    let message = format!(
                        "Found succeeded daemon pod {namespace}/{pod} on node {node}, will try to delete it"
                    );
                    normal(set, "SucceededDaemonPod", message)
                } else {
                    let message = format!(
                        "Found failed daemon pod {namespace}/{pod} on node {node}, will try to kill it"
                    );
                    warning(set, "FailedDaemonPod", message)
                };
                std::iter::once(found).chain(is_deleted.then(|| deleted(pod))).collect()
            }
            Self::UpdateInPlace { pod, .. } => {
                let message = format!("successfully update pod {pod} in-place");
                vec![normal(set, "SuccessfulUpdatePodInPlace", message)]
            }
            Self::PullImage { job, image } => {
                let message = format!("created ImagePullJob {job} for image: {image}");
                vec![normal(set, "CreatedImagePullJob", message)]
            }
            Self::HoldPod(_)
            | Self::PrepareInPlace { .. }
            | Self::AskInPlace { .. }
            | Self::TakeBackInPlace(_)
            | Self::Adopt(_)
            | Self::Quiet(_) => Vec::new(),
        }
    }

    fn failed(&self, set: &ObjectRef, error: &str) -> Option<Event> {
        match self {
            // The set is deleted with its namespace: nobody has to do anything.
            Self::CreatePod { .. } if error.contains("because it is being terminated") => None,
            Self::CreatePod { .. } => Some(warning(set, "FailedCreate", format!("Error creating: {error}"))),
            Self::DeletePod(_) | Self::HoldPod(_) | Self::DeleteEnded { .. } => {
                Some(warning(set, "FailedDelete", format!("Error deleting: {error}")))
            }
            Self::UpdateInPlace { pod, revision }
            | Self::PrepareInPlace { pod, revision }
            | Self::AskInPlace { pod, revision } => Some(warning(
                set,
                "FailedUpdatePodInPlace",
                format!("failed to update pod {pod} in-place(revision {revision}): {error}"),
            )),
            Self::TakeBackInPlace(pod) => Some(warning(
                set,
                "FailedUpdatePodInPlace",
                format!("failed to take back the update of pod {pod} in-place: {error}"),
            )),
            Self::PullImage { job, .. } => {
                let message = format!("failed to create ImagePullJob {job}: {error}");
                Some(normal(set, "FailedCreateImagePullJob", message))
            }
            Self::Adopt(_) | Self::Quiet(_) => None,
        }
    }

    fn quiet(part: Part) -> Self {
        Self::Quiet(part)
    }

    fn adopts(&self) -> bool {
        matches!(self, Self::Adopt(_))
    }

    fn takes_down(&self) -> Option<&Text> {
        match self {
            Self::UpdateInPlace { pod, .. } | Self::PrepareInPlace { pod, .. } => Some(pod),
            _ => None,
        }
    }

    fn is_remembered(&self) -> bool {
        self.in_place().is_some()
    }
}

fn normal(set: &ObjectRef, reason: &str, message: String) -> Event {
    Event { regarding: set.clone(), level: Level::Normal, reason: reason.into(), message }
}

pub(super) fn warning(set: &ObjectRef, reason: &str, message: String) -> Event {
    Event { regarding: set.clone(), level: Level::Warning, reason: reason.into(), message }
}
