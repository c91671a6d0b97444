//! Advanced StatefulSet: numbered pods that keep their name and their storage.
//!
//! A pass looks at everything ([`Observed`]), decides one safe step and says how things stand ([`decide()`]). Every ordinal
//! of the set is a slot, in ascending order: slots are filled and repaired first, then pods that are too many are removed
//! from the highest ordinal down, and only then pods are updated.
//!
//! What plans keep, whatever they see: no pod is created while one of its name exists, no more pods are taken down than
//! `maxUnavailable` allows, no pod below the partition is updated, and with OrderedReady a pod is created only when every
//! lower one is available.

mod choice;
mod claims;
mod desired;
mod expansion;
mod observed;
pub mod ordinals;
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

pub use claims::claim_prefixes;
pub use desired::{Desired, Error, ordinals_of};
pub use observed::{Observed, wanted};
pub use plan::{Plan, decide, plan};
pub use purpose::Purpose;
pub use status::{Failure, Failures, Standing, has_failed_update, status_write};

use crate::object::{ObjectKey, ObjectRef, Resource};

/// Advanced StatefulSets, in the version that we read and write.
pub const STATEFUL_SET: Resource =
    Resource::namespaced("apps.kruise.io", "v1beta1", "StatefulSet", "statefulsets");

/// The StatefulSet as the owner of its pods and the subject of events.
pub fn reference(set: &kruise_api::statefulset::v1beta1::StatefulSet) -> ObjectRef {
    let text = |text: &Option<String>| crate::text::Text::from(text.as_deref().unwrap_or_default());
    ObjectRef {
        resource: STATEFUL_SET,
        key: ObjectKey { namespace: text(&set.metadata.namespace), name: text(&set.metadata.name) },
        uid: text(&set.metadata.uid),
    }
}

/// The set and the ordinal in the name of a pod, if it has that form: `web-3` is 3 of `web`.
pub fn parts(pod: &str) -> Option<(&str, i64)> {
    let (set, digits) = pod.rsplit_once('-')?;
    let is_canonical = digits == "0" || !digits.starts_with('0');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let ordinal: i32 = digits.parse().ok().filter(|_| is_canonical && is_number)?;
    Some((set, ordinal.into()))
}

#[cfg(test)]
mod tests;
