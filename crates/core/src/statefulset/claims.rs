//! The volume claims of pods: which are created, and who owns them.

use std::collections::BTreeSet;

use kruise_api::statefulset::v1beta1::StatefulSet;
use serde_json::{Map, Value, json};

use super::{
    Purpose,
    plan::Plan,
    reference,
    view::{Slot, View},
};
use crate::{
    claims::{claim, create, template_name},
    effect::{Effect, Patch, Target},
    object::PERSISTENT_VOLUME_CLAIM,
    pod::{Owner, Pod},
    text::Text,
    volume_claim::VolumeClaim,
};

/// The name of the claim of a pod.
pub(super) fn claim_name(template: &Value, set: &str, ordinal: i64) -> Text {
    format!("{}-{set}-{ordinal}", template_name(template)).into()
}

/// The names of the claims of a set, without the ordinal.
pub fn claim_prefixes(set: &StatefulSet) -> Vec<String> {
    let name = reference(set).key.name;
    let templates = set.spec.volume_claim_templates.as_ref().and_then(|claims| claims.0.as_array());
    templates.into_iter().flatten().map(|template| format!("{}-{name}", template_name(template))).collect()
}

/// What a pod that is to be created finds of its claims.
pub(super) enum Found {
    /// All of them.
    All,
    /// These are missing.
    Missing(Vec<(Text, Value)>),
    /// This one is being deleted, or still belongs to the pod before.
    Leaving(Text),
}

/// The claims of a pod that is to be created.
pub(super) fn find(view: &View<'_>, slot: &Slot<'_>) -> Found {
    let mut missing = Vec::new();
    for template in &view.desired.claims {
        let name = claim_name(template, &view.set.key.name, slot.ordinal);
        match view.claims.get(name.as_str()) {
            Some(claim) if claim.metadata.is_deleting() || is_stale(view, slot, claim) => {
                return Found::Leaving(name);
            }
            Some(_) => {}
            None => missing.push((name.clone(), new(view, template, &name))),
        }
    }
    if missing.is_empty() { Found::All } else { Found::Missing(missing) }
}

/// Whether a claim is about to be deleted together with the pod that had the name before.
fn is_stale(view: &View<'_>, slot: &Slot<'_>, claim: &VolumeClaim) -> bool {
    let retention = view.desired.retention;
    retention.is_managed
        && retention.delete_with_pod
        && claim.metadata.owner_references.iter().any(|owner| is_pod(owner, &slot.name))
}

fn is_pod(owner: &Owner, name: &str) -> bool {
    owner.kind == "Pod" && owner.api_version == "v1" && owner.name == name
}

fn new(view: &View<'_>, template: &Value, name: &str) -> Value {
    let labels: Map<String, Value> = view
        .desired
        .selector
        .match_labels
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect();
    let retention = view.desired.retention;
    let owners: Vec<Value> =
        (retention.is_managed && retention.delete_with_set).then(|| set_owner(view)).into_iter().collect();
    claim(template, &view.set.key.namespace, name, &labels, &owners)
}

fn set_owner(view: &View<'_>) -> Value {
    let set = &view.set;
    json!({
        "apiVersion": set.resource.api_version(), "kind": set.resource.kind, "name": set.key.name, "uid": set.uid,
    })
}

/// Creates claims that a pod needs.
pub(super) fn create_all(view: &View<'_>, pod: &Text, missing: Vec<(Text, Value)>, plan: &mut Plan) {
    for (claim, object) in missing {
        let purpose = Purpose::CreateClaim { claim, pod: pod.clone() };
        plan.add(create(object, &view.set.key.namespace), purpose, "the pod needs it");
    }
}

/// The claims that a pod mounts, each with its template. A volume that a running pod lacks cannot be added to it.
fn mounted<'v>(
    view: &'v View<'_>,
    ordinal: i64,
    pod: &'v Pod,
) -> impl Iterator<Item = (Text, &'v Value)> + 'v {
    let names = view.desired.claims.iter().map(move |template| {
        let name = claim_name(template, &view.set.key.name, ordinal);
        (name, template)
    });
    names.filter(|(name, template)| mounts(pod, template_name(template), name))
}

/// Creates the claims of a pod that are gone.
pub(super) fn replace_missing(view: &View<'_>, ordinal: i64, pod: &Pod, plan: &mut Plan) {
    let missing = mounted(view, ordinal, pod).filter(|(name, _)| !view.claims.contains_key(name.as_str()));
    let missing = missing.map(|(name, template)| (name.clone(), new(view, template, &name))).collect();
    create_all(view, &pod.metadata.name, missing, plan);
}

/// Puts the owners of the claims of a pod right. True if something is to be written: until that is seen, the pod must not be
/// deleted, or its claims could be deleted with it against the policy, or stay against it.
pub(super) fn own(view: &View<'_>, ordinal: i64, pod: &Pod, is_wanted: bool, plan: &mut Plan) -> bool {
    let mut changes = false;
    for (name, _) in mounted(view, ordinal, pod) {
        let claim = view.claims.get(name.as_str()).filter(|claim| !claim.metadata.is_deleting());
        if let Some(effect) = claim.and_then(|claim| owners(view, claim, pod, is_wanted)) {
            plan.add(effect, Purpose::Own(name), "persistentVolumeClaimRetentionPolicy");
            changes = true;
        }
    }
    changes
}

/// Takes the claims of all pods that are wanted off their pods, whatever else has to wait. The pods that stay for another pass
/// because of this.
pub(super) fn keep_wanted(view: &View<'_>, plan: &mut Plan) -> BTreeSet<Text> {
    let pods = view.slots.iter().filter_map(|slot| Some((slot.ordinal, slot.pod?)));
    let pods = pods.filter(|(_, pod)| !pod.metadata.unreadable && !pod.metadata.is_deleting());
    let held = pods.filter(|(ordinal, pod)| own(view, *ordinal, pod, true, plan));
    held.map(|(_, pod)| pod.metadata.name.clone()).collect()
}

/// Whether a pod has the volume of a claim template.
pub(super) fn mounts(pod: &Pod, volume: &str, claim: &str) -> bool {
    pod.spec.claims.iter().any(|one| one.volume == volume && one.claim == claim)
}

/// The write that gives a claim the owners that the retention policy wants. Other owners stay.
fn owners(view: &View<'_>, claim: &VolumeClaim, pod: &Pod, is_wanted: bool) -> Option<Effect> {
    let retention = view.desired.retention;
    if !retention.is_managed {
        return None;
    }
    let by_pod = !is_wanted && retention.delete_with_pod;
    let by_set = !by_pod && retention.delete_with_set;
    let mut changes = Vec::new();
    let has_set = claim.metadata.owner_references.iter().any(|owner| owner.uid == view.set.uid);
    match (has_set, by_set) {
        (true, false) => changes.push(json!({"$patch": "delete", "uid": view.set.uid})),
        (false, true) => changes.push(set_owner(view)),
        _ => {}
    }
    let uid = &pod.metadata.uid;
    let pods = claim.metadata.owner_references.iter().filter(|owner| is_pod(owner, &pod.metadata.name));
    let kept = |owner: &&Owner| by_pod && owner.uid == *uid;
    changes.extend(
        pods.clone().filter(|owner| !kept(owner)).map(|owner| json!({"$patch": "delete", "uid": owner.uid})),
    );
    if by_pod && !pods.clone().any(|owner| owner.uid == *uid) {
        changes.push(json!({"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": uid}));
    }
    (!changes.is_empty()).then(|| Effect::Patch {
        target: target(claim),
        subresource: None,
        patch: Patch::Strategic(json!({"metadata": {"ownerReferences": changes}})),
    })
}

pub(super) fn target(claim: &VolumeClaim) -> Target {
    Target::with_uid(PERSISTENT_VOLUME_CLAIM, claim.metadata.key(), claim.metadata.uid.clone())
}
