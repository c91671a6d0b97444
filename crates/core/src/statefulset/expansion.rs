//! Claims that follow their templates: how far they fit, and how they grow.

use kruise_api::{annotations::OWNED_BY_STATEFULSET, statefulset::v1beta1::VolumeClaimStatus};
use serde_json::{Value, json};

use super::{
    Purpose,
    claims::{claim_name, target},
    plan::Plan,
    purpose::event,
    status::is_reported,
    view::{Slot, View},
};
use crate::{
    claims::template_name,
    effect::{Effect, Level, Patch},
    plan::{Part, Purpose as _},
    text::Text,
    volume_claim::VolumeClaim,
};

/// The condition of a claim whose volume has grown, but not its file system: a pod that is started again finishes that.
const FILE_SYSTEM_PENDING: &str = "FileSystemResizePending";

/// How far a claim follows its template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fit {
    same_kind: bool,
    compatible: bool,
    ready: bool,
    patched: bool,
}

fn fit(template: &VolumeClaim, claim: &VolumeClaim) -> Fit {
    let size = |claim: &VolumeClaim| claim.spec.resources.requests.size().unwrap_or(0);
    let class = |claim: &VolumeClaim| claim.spec.storage_class_name.clone();
    let same_class = match (class(template), class(claim)) {
        (Some(wanted), Some(actual)) => wanted == actual,
        _ => true,
    };
    let same_kind = same_class && template.spec.access_modes == claim.spec.access_modes;
    let compatible = same_kind && size(claim) >= size(template);
    let ready = same_kind && claim.status.capacity.size().unwrap_or(0) >= size(claim);
    let patched = compatible && (ready || claim.is(FILE_SYSTEM_PENDING));
    Fit { same_kind, compatible, ready, patched }
}

/// The claims of a slot that exist and stay, each with its template and how far it follows it.
fn fits<'v>(
    view: &'v View<'_>,
    ordinal: i64,
) -> impl Iterator<Item = (&'v Value, &'v VolumeClaim, Fit)> + 'v {
    view.desired.claims.iter().zip(&view.templates).filter_map(move |(raw, template)| {
        let claim = view.claims.get(claim_name(raw, &view.set.key.name, ordinal).as_str())?;
        (!claim.metadata.is_deleting()).then(|| (raw, *claim, fit(template, claim)))
    })
}

/// Whether no claim of a slot is being expanded.
pub(super) fn is_ready(view: &View<'_>, ordinal: i64) -> bool {
    fits(view, ordinal).all(|(_, _, fit)| fit.ready)
}

/// The claims of a slot that grow.
pub(super) fn running<'v>(view: &'v View<'_>, ordinal: i64) -> impl Iterator<Item = &'v VolumeClaim> + 'v {
    fits(view, ordinal).filter(|(_, _, fit)| fit.compatible && !fit.ready).map(|(_, claim, _)| claim)
}

/// Whether all claims of a slot have what their templates ask for.
pub(super) fn is_compatible(view: &View<'_>, ordinal: i64) -> bool {
    fits(view, ordinal).all(|(_, _, fit)| fit.compatible)
}

/// What became of the claims of a pod that is to be updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expansion {
    /// They have their sizes.
    Done,
    /// They grow; the pod counts as unavailable.
    Running,
    /// They cannot follow their templates.
    Impossible,
}

/// Lets the claims of a slot grow.
pub(super) fn expand(view: &View<'_>, slot: &Slot<'_>, plan: &mut Plan) -> Expansion {
    let mut state = Expansion::Done;
    for (template, claim, fit) in fits(view, slot.ordinal) {
        let name = &claim.metadata.name;
        if fit.patched {
            continue;
        }
        state = Expansion::Running;
        if fit.compatible {
            continue;
        }
        if !fit.same_kind {
            let problem = format!(
                "failed to update pvc {name}: contains diff other than spec resource, wait pvc to be deleted"
            );
            if !is_reported(&view.seen.set, &problem) {
                let told = event(&view.set, Level::Warning, "FailedUpdatePVC", problem.clone());
                plan.add(Effect::Event(told), Purpose::quiet(Part::Housekeeping), "the claim cannot follow");
            }
            plan.fail(Part::Update, problem);
            return Expansion::Impossible;
        }
        if let Err(problem) = can_grow(view, &slot.name, claim) {
            plan.fail(Part::Update, problem);
            return Expansion::Impossible;
        }
        let resources = template.pointer("/spec/resources").cloned().unwrap_or_default();
        let patch = json!({
            "metadata": {"annotations": {OWNED_BY_STATEFULSET: view.set.key.name}},
            "spec": {"resources": resources},
        });
        let effect =
            Effect::Patch { target: target(claim), subresource: None, patch: Patch::Strategic(patch) };
        let purpose = Purpose::ResizeClaim { claim: name.clone(), pod: slot.name.clone() };
        plan.add(effect, purpose, "its template asks for more");
    }
    state
}

fn can_grow(view: &View<'_>, pod: &Text, claim: &VolumeClaim) -> Result<(), String> {
    let class: Text = claim.spec.storage_class_name.clone().unwrap_or_default();
    let Some(known) = view.seen.storage_classes.get(&class) else {
        return Err(format!("could not get sc {class}: storageclass.storage.k8s.io \"{class}\" not found"));
    };
    if known.allow_volume_expansion != Some(true) {
        return Err(format!("storage class {class} for {pod} does not support volume expansion"));
    }
    Ok(())
}

/// How far the claims of all pods follow their templates, in the order of the templates.
pub(super) fn status(view: &View<'_>) -> Vec<VolumeClaimStatus> {
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let ordinals = || view.slots.iter().filter(|slot| slot.pod.is_some()).map(|slot| slot.ordinal);
    let templates = view.desired.claims.iter().zip(&view.templates);
    let status = templates.map(|(raw, template)| {
        let fits = ordinals().filter_map(|ordinal| {
            let claim = view.claims.get(claim_name(raw, &view.set.key.name, ordinal).as_str())?;
            Some(fit(template, claim))
        });
        let fits: Vec<Fit> = fits.collect();
        VolumeClaimStatus {
            volume_claim_name: template_name(raw).to_owned(),
            compatible_replicas: count(fits.iter().filter(|fit| fit.compatible).count()),
            compatible_ready_replicas: count(fits.iter().filter(|fit| fit.compatible && fit.ready).count()),
        }
    });
    status.collect()
}
