//! Volume claims of pods that are gone or were let go.

use std::collections::BTreeSet;

use super::{
    Plan, Purpose,
    view::{View, instance_id},
};
use crate::{
    claims,
    object::PERSISTENT_VOLUME_CLAIM,
    pod::{Metadata, Pod},
    text::Text,
};

/// Claims follow pods that were released. Claims that no pod will take again are deleted with their pods. `coming` are the
/// ids of pods that are created next, `deleted` the names of claims that are deleted already.
pub(super) fn clean_up(view: &View<'_>, coming: &[Text], deleted: &BTreeSet<Text>) -> Plan {
    let mut plan = Plan::default();
    let mut own: Vec<&Metadata> = view.seen.claims.iter().map(AsRef::as_ref).collect();
    own.sort_by(|left, right| left.name.cmp(&right.name));
    for claim in own.into_iter().filter(|claim| !claim.is_deleting() && !deleted.contains(&claim.name)) {
        let Some(id) = instance_id(claim) else { continue };
        let has_id = |pod: &&&Pod| instance_id(&pod.metadata) == Some(id);
        let give = |pod: &Pod| claims::give(claim, &view.set, &pod.reference());
        let moved = || Purpose::MoveClaim(claim.name.clone());
        if let Some(pod) = view.released.iter().find(has_id) {
            plan.add(give(pod), moved(), "its pod was released");
        } else if !view.desired.reuse_claims
            && !coming.contains(id)
            && !view.pods.iter().any(|pod| has_id(&pod))
        {
            match view.inactive.iter().find(has_id) {
                Some(pod) => plan.add(give(pod), moved(), "it is deleted with its pod, which has ended"),
                None => {
                    let purpose = Purpose::CleanUpClaim(claim.name.clone());
                    plan.add(claims::delete(claim), purpose, "its pod is gone");
                }
            }
        }
    }
    plan
}

/// The names of claims that a plan deletes.
pub(super) fn deleted(plan: &Plan) -> BTreeSet<Text> {
    plan.written(PERSISTENT_VOLUME_CLAIM)
}
