//! NodeImage v1alpha1: the same shape under the older name.

pub use super::v1beta1::{
    FirstSyncState, FirstSyncStatus, Image, ImageStatus, OwnerReference, Phase, PullPolicy, PullSecret, Spec,
    Status, Tag, TagStatus,
};
use crate::names::APPS_GROUP;

crate::kind! {
    /// The images that one node is to pull, and how far it is.
    NodeImage { group: APPS_GROUP, version: "v1alpha1", plural: "nodeimages", scope: Cluster,
        spec: Spec, status: Status }
}
