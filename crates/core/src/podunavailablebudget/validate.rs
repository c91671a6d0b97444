//! What a PodUnavailableBudget must look like.

use kruise_api::{
    annotations::{PUB_PROTECT_OPERATIONS, PUB_PROTECT_TOTAL_REPLICAS},
    convert::annotation,
    json,
    kubernetes::validation::{Violation, label_selector},
    podunavailablebudget::v1beta1::{Operation, PodUnavailableBudget, TargetReference},
};
use serde_json::Value;

use super::overlap::overlaps;
use crate::admission::{
    kinds::{Change, Context},
    rules,
};

const TARGET: &[&str] = &["spec", "targetRef"];
const SELECTOR: &[&str] = &["spec", "selector"];
const TOTAL: &[&str] = &["spec", "protectTotalReplicas"];

/// Appends what is wrong.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    target(change.new, found);
    numbers(change.new, found);
    operations(change, found);
    total_replicas(change, found);
    ignored(change.new, found);
    if change.old.is_some() && (change.touches(SELECTOR) || change.touches(TARGET)) {
        let detail = "selector and targetRef cannot be modified";
        found.push(Violation::required("spec.selector, targetRef", detail));
    }
    if found.is_empty() {
        found.extend(conflict(change, context));
    }
}

/// The first other budget of the namespace that is about the same workload, or about labels that overlap.
fn conflict(change: &Change<'_>, context: &Context<'_>) -> Option<Violation> {
    let budget: PodUnavailableBudget = serde_json::from_value(change.new.clone()).ok()?;
    let others = context.cluster.budgets(&change.request.namespace);
    let name = json::text(change.new, &["metadata", "name"]).unwrap_or(&change.request.name);
    others.iter().filter(|other| other.metadata.name.as_deref() != Some(name)).find_map(|other| {
        let text = |field: &str| {
            let other = other.metadata.name.as_deref().unwrap_or_default();
            format!("pub.spec.{field} is in conflict with other PodUnavailableBudget {other}")
        };
        if let (Some(own), Some(target)) = (&budget.spec.target_ref, &other.spec.target_ref)
            && (group(own), &own.kind, &own.name) == (group(target), &target.kind, &target.name)
        {
            let value = json::at(change.new, TARGET).cloned().unwrap_or_default();
            return Some(Violation::invalid("spec.targetReference", value, text("targetReference")));
        }
        if let (Some(own), Some(selector)) = (&budget.spec.selector, &other.spec.selector)
            && overlaps(own, selector)
        {
            let value = json::at(change.new, SELECTOR).cloned().unwrap_or_default();
            return Some(Violation::invalid("spec.selector", value, text("selector")));
        }
        None
    })
}

fn group(target: &TargetReference) -> &str {
    target.api_version.as_deref().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group)
}

fn target(object: &Value, found: &mut Vec<Violation>) {
    let both = "spec.selector, targetRef";
    match (json::at(object, SELECTOR), json::at(object, TARGET)) {
        (None, None) => {
            let detail = "no selector or targetRef defined in PodUnavailableBudget";
            found.push(Violation::required(both, detail));
        }
        (Some(_), Some(_)) => {
            found.push(Violation::required(both, "selector and targetRef are mutually exclusive"));
        }
        (Some(selector), None) => {
            let broken = label_selector(selector, "spec.selector");
            if broken.is_empty() && rules::is_empty_selector(selector) {
                let detail = "empty selector is not valid for PodUnavailableBudget.";
                found.push(Violation::invalid("spec.selector", selector.clone(), detail));
            }
            found.extend(broken);
        }
        (None, Some(target)) => {
            let text = |field| json::text(target, &[field]).unwrap_or_default();
            if ["apiVersion", "kind", "name"].into_iter().any(|field| text(field).is_empty()) {
                let detail = "empty targetRef is not valid for PodUnavailableBudget";
                found.push(Violation::invalid("spec.targetRef", target.clone(), detail));
            }
            let version = text("apiVersion");
            if version.matches('/').count() > 1 {
                let detail = format!("unexpected GroupVersion string: {version}");
                found.push(Violation::invalid("spec.targetRef", target.clone(), detail));
            }
        }
    }
}

fn numbers(object: &Value, found: &mut Vec<Violation>) {
    let both = "spec.maxUnavailable, minAvailable";
    let fields = ["maxUnavailable", "minAvailable"];
    match fields.map(|field| json::at(object, &["spec", field]).is_some()) {
        [false, false] => {
            let detail = "no maxUnavailable or minAvailable defined in PodUnavailableBudget";
            found.push(Violation::required(both, detail));
        }
        [true, true] => {
            found.push(Violation::required(both, "maxUnavailable and minAvailable are mutually exclusive"));
        }
        _ => fields.iter().for_each(|field| rules::int_or_percent_up_to_all(found, object, &["spec", field])),
    }
}

/// Conversion never fails, so a bad text of an annotation is found in what was written.
fn operations(change: &Change<'_>, found: &mut Vec<Violation>) {
    let operations = json::at(change.new, &["spec", "protectOperations"]).and_then(Value::as_array);
    for (index, operation) in operations.into_iter().flatten().enumerate() {
        let text = operation.as_str().unwrap_or_default();
        if !Operation::KNOWN.contains(&text) {
            let path = format!("spec.protectOperations[{index}]");
            found.push(Violation::not_supported(path, text, Operation::KNOWN));
        }
    }
    // In later versions there is a field for it, and the annotation is read as far as it can be.
    let is_oldest = change.request.kind.version == "v1alpha1";
    let written = annotation(&change.request.object, PUB_PROTECT_OPERATIONS).filter(|_| is_oldest);
    let written = written.unwrap_or_default();
    for text in written.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        if !Operation::KNOWN.contains(&text) {
            let path = format!("metadata.annotations[{PUB_PROTECT_OPERATIONS}]");
            found.push(Violation::not_supported(path, text, Operation::KNOWN));
        }
    }
}

fn total_replicas(change: &Change<'_>, found: &mut Vec<Violation>) {
    let Some(text) = annotation(&change.request.object, PUB_PROTECT_TOTAL_REPLICAS) else { return };
    let path = format!("metadata.annotations[{PUB_PROTECT_TOTAL_REPLICAS}]");
    let Ok(number) = text.parse::<i32>() else {
        found.push(Violation::invalid(path, text, "must be a valid int32"));
        return;
    };
    let field = json::at(&change.request.object, TOTAL).and_then(Value::as_i64);
    if field.is_some_and(|field| field != i64::from(number)) {
        let detail = "must match spec.protectTotalReplicas when both are set";
        found.push(Violation::invalid(path, text, detail));
    }
}

fn ignored(object: &Value, found: &mut Vec<Violation>) {
    let Some(selector) = json::at(object, &["spec", "ignoredPodSelector"]) else { return };
    let path = "spec.ignoredPodSelector";
    if rules::is_empty_selector(selector) {
        let detail = "empty ignoredPodSelector is not valid for PodUnavailableBudget";
        found.push(Violation::invalid(path, selector.clone(), detail));
    }
    found.extend(label_selector(selector, path));
}
