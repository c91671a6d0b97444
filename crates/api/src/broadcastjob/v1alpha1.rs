//! BroadcastJob v1alpha1: the same shape as v1beta1.

pub use super::v1beta1::{Spec, Status};
use crate::names::APPS_GROUP;

crate::kind! {
    /// Runs one pod to its end on every node that fits, once or for every node that joins.
    BroadcastJob { group: APPS_GROUP, version: "v1alpha1", plural: "broadcastjobs", scope: Namespaced,
        spec: Spec, status: Status }
}
