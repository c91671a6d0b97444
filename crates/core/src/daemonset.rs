//! Advanced DaemonSet: one pod on each node that fits.
//!
//! A reconcile looks at all nodes and at the pods of the set ([`Observed`]), decides one safe step for each node and
//! summarizes the pods for the status ([`decide()`]). Adding and removing pods comes before updating: a node whose pods
//! change for one reason is left alone by the other. Each effect of a plan may fail or come late without harm, because the
//! next reconcile starts from what it sees.
//!
//! What plans keep, whatever they see: no node gets a second pod of one revision, no pod is made where the node does not
//! fit, no more nodes lose their available pod than `maxUnavailable` allows, and no pod goes beyond the partition.

mod backoff;
mod desired;
mod in_place_update;
mod manage;
mod observed;
mod placement;
mod plan;
mod pods;
mod pre_download;
mod purpose;
mod refused;
mod revisions;
mod rollout;
mod status;
pub mod validate;
mod view;
mod waits;
mod wake;

pub use backoff::Backoff;
pub use desired::{Desired, Error, Limits, Rolling};
pub use observed::Observed;
pub use placement::{Fit, Placement};
pub use plan::{decide, plan};
pub use purpose::Purpose;
pub use refused::Refused;
pub use status::{Standing, status_write};
pub use wake::{Watched, is_heartbeat};

use crate::object::{ObjectRef, Resource};

/// DaemonSets of OpenKruise, in the version that we read and write.
pub const DAEMON_SET: Resource = Resource::namespaced("apps.kruise.io", "v1beta1", "DaemonSet", "daemonsets");

/// The DaemonSet as the owner of its pods and the subject of events.
pub fn reference(set: &kruise_api::daemonset::v1beta1::DaemonSet) -> ObjectRef {
    let text = |text: &Option<String>| crate::text::Text::from(text.as_deref().unwrap_or_default());
    ObjectRef {
        resource: DAEMON_SET,
        key: crate::object::ObjectKey {
            namespace: text(&set.metadata.namespace),
            name: text(&set.metadata.name),
        },
        uid: text(&set.metadata.uid),
    }
}

#[cfg(test)]
mod tests;
