//! CloneSet: many identical pods without identity.
//!
//! A pass looks at everything ([`Observed`]), decides one safe step and says how things stand ([`decide()`]). Scaling comes before updating: a pass that adds or removes pods updates none. Each effect of a plan may
//! fail or come late without harm, because the next pass starts from what it sees.
//!
//! What plans keep, whatever they see: no more pods are taken down than `maxUnavailable` allows, there are never more than
//! `replicas + maxSurge` pods, and no pod goes beyond the partition.

mod claims;
mod desired;
mod numbers;
mod observed;
mod plan;
mod pods;
mod pre_download;
mod purpose;
mod scale;
mod status;
mod update;
pub mod validate;
mod view;
mod waits;

pub use desired::{Desired, Error};
pub use numbers::{Counts, Limits, Numbers, numbers};
pub use observed::{Claim, Observed, needs_nodes};
pub use plan::{Plan, decide, plan};
pub use purpose::Purpose;
pub use status::{Standing, has_failed_update, status, status_write};

use crate::object::{ObjectRef, Resource};

/// CloneSets, in the version that we read and write.
pub const CLONE_SET: Resource = Resource::namespaced("apps.kruise.io", "v1beta1", "CloneSet", "clonesets");

/// The CloneSet as the owner of its pods and the subject of events.
pub fn reference(set: &kruise_api::cloneset::v1beta1::CloneSet) -> ObjectRef {
    let text = |text: &Option<String>| crate::text::Text::from(text.as_deref().unwrap_or_default());
    ObjectRef {
        resource: CLONE_SET,
        key: crate::object::ObjectKey {
            namespace: text(&set.metadata.namespace),
            name: text(&set.metadata.name),
        },
        uid: text(&set.metadata.uid),
    }
}

#[cfg(test)]
mod tests;
