//! Volume claims of pods that are gone or were let go.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    Plan, Purpose,
    view::{View, instance_id},
};
use crate::{
    effect::{Effect, Patch, Target},
    object::PERSISTENT_VOLUME_CLAIM,
    pod::{Metadata, Pod},
    text::Text,
};

/// Claims follow pods that were let go. Claims that no pod will take again go with their pods. `coming` are the ids of pods
/// that are made next.
pub(super) fn clean_up(view: &View<'_>, coming: &[Text], plan: &mut Plan) {
    let mut goes: BTreeSet<Text> = BTreeSet::new();
    for purpose in &plan.purposes {
        if let Purpose::DeleteClaim(name) = purpose {
            goes.insert(name.clone());
        }
    }
    let mut claims: Vec<&Metadata> = view.seen.claims.iter().map(AsRef::as_ref).collect();
    claims.sort_by(|left, right| left.name.cmp(&right.name));
    for claim in claims.into_iter().filter(|claim| !claim.is_deleting() && !goes.contains(&claim.name)) {
        let Some(id) = instance_id(claim) else { continue };
        let has_id = |pod: &&&Pod| instance_id(&pod.metadata) == Some(id);
        if let Some(pod) = view.released.iter().find(has_id) {
            plan.add(give_to(view, claim, pod), Purpose::MoveClaim(claim.name.clone()));
        } else if !view.desired.reuse_claims
            && !coming.contains(id)
            && !view.pods.iter().any(|pod| has_id(&pod))
        {
            match view.inactive.iter().find(has_id) {
                Some(pod) => plan.add(give_to(view, claim, pod), Purpose::MoveClaim(claim.name.clone())),
                None => plan.add(delete(claim), Purpose::CleanUpClaim(claim.name.clone())),
            }
        }
    }
}

fn give_to(view: &View<'_>, claim: &Metadata, pod: &Pod) -> Effect {
    let owners = json!([{"$patch": "delete", "uid": view.set.uid}, pod.reference().controller_reference()]);
    Effect::Patch {
        target: target(claim),
        subresource: None,
        patch: Patch::Strategic(json!({"metadata": {"ownerReferences": owners}})),
    }
}

fn delete(claim: &Metadata) -> Effect {
    Effect::Delete { target: target(claim), grace: None, follows: false }
}

/// Deletes a claim if the deletion of its pod, which comes before it in the plan, has happened.
pub(super) fn delete_with_pod(claim: &Metadata) -> Effect {
    Effect::Delete { target: target(claim), grace: None, follows: true }
}

fn target(claim: &Metadata) -> Target {
    Target::with_uid(PERSISTENT_VOLUME_CLAIM, claim.key(), claim.uid.clone())
}
