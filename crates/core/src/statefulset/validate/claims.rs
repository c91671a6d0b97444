//! Changes of claim templates, where claims grow with them.

use kruise_api::{gates::Gate, json, kubernetes::validation::Violation};
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    admission::kinds::Context, claims::template_name, volume_claim::StorageClass, volume_claim::VolumeClaim,
};

const PATH: &str = "spec.volumeClaimTemplates";

/// Appends the first thing that is wrong.
pub(super) fn update(old: &Value, new: &Value, context: &Context<'_>, found: &mut Vec<Violation>) {
    let kind = json::text(new, &["spec", "volumeClaimUpdateStrategy", "type"]);
    if !context.gates.enabled(Gate::StatefulSetAutoResizePVCGate) || kind != Some("OnPodRollingUpdate") {
        return;
    }
    let list = |object| {
        json::at(object, &["spec", "volumeClaimTemplates"])
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (before, after) = (list(old), list(new));
    if before.len() != after.len() {
        let detail = "volumeClaimTemplate can not be added or deleted when OnRollingUpdate";
        found.push(Violation::invalid(PATH, after, detail));
        return;
    }
    found.extend(after.iter().find_map(|template| compare(template, &before, &after, context)));
}

fn compare(template: &Value, before: &[Value], after: &[Value], context: &Context<'_>) -> Option<Violation> {
    let name = template_name(template);
    let path = format!("{PATH}[{name}]");
    let Some(stored) = before.iter().find(|stored| template_name(stored) == name) else {
        let detail = "volumeClaimTemplate name can not be modified";
        return Some(Violation::forbidden(format!("{path}.name"), detail));
    };
    let claim = |template: &Value| VolumeClaim::deserialize(template).unwrap_or_default();
    let (old, new) = (claim(stored), claim(template));
    let class = |claim: &VolumeClaim| claim.spec.storage_class_name.clone();
    let has_other_class = matches!((class(&old), class(&new)), (Some(old), Some(new)) if old != new);
    if old.spec.access_modes != new.spec.access_modes || has_other_class {
        let detail = "volumeClaimTemplate can not be modified when OnRollingUpdate";
        return Some(Violation::invalid(path, after.to_vec(), detail));
    }
    let size = |template: &Value, part: &str| {
        let amount = template.pointer(&format!("/spec/resources/{part}/storage"))?;
        kruise_api::kubernetes::quantity::Quantity::from_json(amount).ok().map(|amount| amount.nanos())
    };
    let same = |part| size(stored, part) == size(template, part);
    if same("requests") && same("limits") {
        return None;
    }
    let known = match class(&new) {
        Some(name) => match context.cluster.storage_class(&name) {
            Some(known) => known,
            None => {
                let path = format!("{path}.spec.storageClassName");
                return Some(Violation::invalid(path, name.as_str(), "can not get sc"));
            }
        },
        None => context.cluster.default_storage_class()?,
    };
    cannot_grow(&known).then(|| {
        let detail = format!("storage class {} does not support volume expansion", known.metadata.name);
        Violation::forbidden(format!("{path}.spec.resources.requests.storage"), detail)
    })
}

fn cannot_grow(class: &StorageClass) -> bool {
    class.allow_volume_expansion != Some(true)
}
