//! Rules of updating and of injecting.

use kruise_api::{
    json,
    kubernetes::validation::Violation,
    sidecarset::v1beta1::{InjectionPolicy, SidecarSet, UpdateType},
};
use serde_json::Value;

use super::{
    super::{containers::init_containers, name, revision},
    Known, Violations, selector,
};
use crate::{admission::rules, update_order};

const UPDATE: &[&str] = &["spec", "updateStrategy"];

fn update_type(set: &SidecarSet) -> Option<&UpdateType> {
    set.spec.update_strategy.as_ref().and_then(|strategy| strategy.kind.as_ref())
}

/// Init containers that keep running cannot be updated, so nothing may promise it.
pub(super) fn native(found: &mut Violations, set: &SidecarSet) {
    if update_type(set) == Some(&UpdateType::RollingUpdate) {
        for _ in init_containers(set).filter(|sidecar| sidecar.is_native) {
            let detail = "The initContainer in-place upgrade is not currently supported.";
            found.push(Violation::required("spec.updateStrategy", detail));
        }
    }
}

pub(super) fn injection(found: &mut Violations, new: &Value, set: &SidecarSet, known: &Known<'_>) {
    let choice = set.spec.injection_strategy.as_ref().and_then(|strategy| strategy.revision.as_ref());
    let Some(choice) = choice else { return };
    let given = json::at(new, &["spec", "injectionStrategy", "revision"]).cloned().unwrap_or_default();
    match revision::chosen(name(set), choice, known.revisions) {
        Ok(Some(_)) => {}
        Ok(None) => {
            let detail = "revisionName and customVersion cannot be empty simultaneously";
            found.push(Violation::invalid("revision", given.clone(), detail));
        }
        Err(missing) => {
            let detail = format!("Cannot find specific ControllerRevision, err: {missing}");
            found.push(Violation::invalid("revision", "null", detail));
        }
    }
    if let Some(InjectionPolicy::Other(policy)) =
        choice.policy.as_ref().filter(|policy| !policy.as_str().is_empty())
    {
        let detail = format!("Invalid policy {policy}, supported: [Always, Partial]");
        found.push(Violation::invalid("revision.policy", given, detail));
    }
}

pub(super) fn update(found: &mut Violations, new: &Value, set: &SidecarSet) {
    match update_type(set) {
        Some(UpdateType::Other(kind)) => {
            found.push(Violation::not_supported(
                "spec.updateStrategy.type",
                kind.as_str(),
                UpdateType::KNOWN,
            ));
            return;
        }
        Some(UpdateType::RollingUpdate) => {}
        Some(UpdateType::NotUpdate) | None => return,
    }
    let Some(strategy) = json::at(new, UPDATE) else { return };
    let holds_back = match strategy.get("partition") {
        Some(Value::String(_)) => true,
        Some(number) => number.as_i64().is_some_and(|number| number != 0),
        None => false,
    };
    let chosen = json::at(strategy, &["selector"]);
    if holds_back && chosen.is_some() {
        let detail = "Partition and Selector cannot be used together";
        found.push(Violation::invalid("updateStrategy", strategy.clone(), detail));
    }
    if let Some(chosen) = chosen {
        selector(found, chosen, "spec.updateStrategy.selector");
    }
    rules::int_or_percent(found, new, &["spec", "updateStrategy", "partition"]);
    rules::int_or_percent(found, new, &["spec", "updateStrategy", "maxUnavailable"]);
    update_order::validate::priority(strategy, "spec.updateStrategy.priorityStrategy", found);
    update_order::validate::scatter(strategy, "spec.updateStrategy.scatterStrategy", found);
}
