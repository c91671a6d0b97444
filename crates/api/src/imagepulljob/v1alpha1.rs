//! ImagePullJob v1alpha1: the same shape under the older name.

pub use super::v1beta1::{Spec, Status, Template};
use crate::names::APPS_GROUP;

crate::kind! {
    /// Pulls one image on many nodes before pods need it.
    ImagePullJob { group: APPS_GROUP, version: "v1alpha1", plural: "imagepulljobs", scope: Namespaced,
        spec: Spec, status: Status }
}
