//! ImageListPullJob v1alpha1: the same shape under the older name.

pub use super::v1beta1::{FailedImageStatus, Spec, Status, Template};
use crate::names::APPS_GROUP;

crate::kind! {
    /// Pulls several images on many nodes before pods need them.
    ImageListPullJob { group: APPS_GROUP, version: "v1alpha1", plural: "imagelistpulljobs", scope: Namespaced,
        spec: Spec, status: Status }
}
