//! What a UnitedDeployment must look like, besides its selector and the pods of its template.

use std::collections::BTreeSet;

use kruise_api::{
    int_or_percent::IntOrString,
    json,
    kubernetes::{
        shape::{self, Unknown},
        validation::{self, Violation, names},
    },
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{Kind, allocation::resolve};
use crate::{
    admission::{
        kinds::{Change, Context},
        rules,
    },
    strategic_merge,
};

const TEMPLATE: &str = "spec.template";
const SUBSETS: &str = "spec.topology.subsets";
const ALTERNATIVES: &str =
    "statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate";
const STAYS: &str = "may not be changed in an update";
/// What an absent `maxReplicas` counts in a sum.
const UNLIMITED: i64 = 1_000_000;

/// Appends what is wrong. Rules that the original does not have look only at what the request changes, so that what is
/// stored can still be worked with.
pub fn rule(change: &Change<'_>, _: &Context<'_>, found: &mut Vec<Violation>) {
    let object = change.new;
    rules::not_negative(found, object, &["spec", "replicas"]);
    template(object, found);
    let subsets = subsets_of(object);
    names_and_places(&subsets, found);
    numbers(object, &subsets, found);
    partitions(object, &subsets, found);
    reservation(object, found);
    additions(change, &subsets, found);
    if let Some(old) = change.old {
        update(old, object, &subsets, found);
    }
}

/// What a CloneSet template says in vain. The original accepts it, so it is no refusal.
pub fn advice(change: &Change<'_>) -> Vec<String> {
    let object = change.new;
    let path = ["spec", "template", Kind::CloneSet.field()];
    let Some(template) = json::at(object, &path) else { return Vec::new() };
    let mut said = Vec::new();
    for labels in [&["metadata", "labels"][..], &["spec", "template", "metadata", "labels"]] {
        let mut found = Vec::new();
        rules::selector_matches(&mut found, object, &[&path[..], labels].concat());
        if !found.is_empty() {
            let path = [&path[..], labels].concat().join(".");
            said.push(format!("{path}: spec.selector does not match these labels, no pods will be found"));
        }
    }
    if json::at(template, &["spec", "replicas"]).is_some() {
        said.push(format!("{}.spec.replicas: replicas in cloneSetTemplate will not be used", path.join(".")));
    }
    said
}

fn subsets_of(object: &Value) -> Vec<&Value> {
    let subsets = json::at(object, &["spec", "topology", "subsets"]).and_then(Value::as_array);
    subsets.into_iter().flatten().collect()
}

fn kinds(object: &Value) -> Vec<Kind> {
    let is_there = |kind: &Kind| json::at(object, &["spec", "template", kind.field()]).is_some();
    Kind::ALL.into_iter().filter(is_there).collect()
}

fn template(object: &Value, found: &mut Vec<Violation>) {
    let given = kinds(object);
    match given.as_slice() {
        [] => {
            found.push(Violation::required(TEMPLATE, format!("should provide one of {ALTERNATIVES}")));
        }
        [_] => {}
        _ => {
            let value = json::at(object, &["spec", "template"]).cloned().unwrap_or_default();
            let detail = format!("should provide only one of {ALTERNATIVES}");
            found.push(Violation::invalid(TEMPLATE, value, detail));
        }
    }
    for kind in given.into_iter().filter(|kind| *kind != Kind::CloneSet) {
        let field = kind.field();
        let path = ["spec", "template", field];
        let at = |rest: &[&'static str]| [&path[..], rest].concat();
        rules::selector_matches(found, object, &at(&["metadata", "labels"]));
        let policy = at(&["spec", "template", "spec", "restartPolicy"]);
        if let Some(value) = json::text(object, &policy).filter(|policy| !matches!(*policy, "" | "Always")) {
            found.push(Violation::not_supported(policy.join("."), value, &["Always"]));
        }
        let replicas = at(&["spec", "replicas"]);
        if let Some(value) = json::at(object, &replicas) {
            let detail = format!("replicas in {field} will not be used");
            found.push(Violation::invalid(replicas.join("."), value.clone(), detail));
        }
        let partition = at(&["spec", "updateStrategy", "rollingUpdate", "partition"]);
        if let Some(value) = json::at(object, &partition).filter(|_| kind.is_stateful()) {
            let detail = format!("partition in {field} will not be used");
            found.push(Violation::invalid(partition.join("."), value.clone(), detail));
        }
    }
}

fn names_and_places(subsets: &[&Value], found: &mut Vec<Violation>) {
    let mut known = BTreeSet::new();
    for (index, subset) in subsets.iter().enumerate() {
        let path = format!("{SUBSETS}[{index}]");
        let name = json::text(subset, &["name"]).unwrap_or_default();
        if name.is_empty() {
            found.push(Violation::required(format!("{path}.name"), ""));
        }
        if !known.insert(name) {
            let detail = format!("duplicated subset name {name}");
            found.push(Violation::invalid(format!("{path}.name"), name, detail));
        }
        let broken = names::dns_label(name);
        if !broken.is_empty() {
            let detail = format!("invalid subset name {}", broken.join(", "));
            found.push(Violation::invalid(format!("{path}.name"), name, detail));
        }
        if let Some(term) = json::at(subset, &["nodeSelectorTerm"]) {
            found.extend(validation::node_selector_term(term, &format!("{path}.nodeSelectorTerm")));
        }
        found.extend(validation::tolerations(subset, &path));
    }
}

/// A number of a subset in pods; nothing where it is absent or wrong.
fn number(subset: &Value, field: &str, path: &str, total: i64, found: &mut Vec<Violation>) -> Option<i64> {
    let value = json::at(subset, &[field])?;
    let resolved =
        IntOrString::deserialize(value).map_err(|_| String::from("must be an integer or percentage"));
    match resolved.and_then(|value| resolve(&value, total)) {
        Ok(number) => Some(number),
        Err(detail) => {
            found.push(Violation::invalid(format!("{path}.{field}"), value.clone(), detail));
            None
        }
    }
}

fn numbers(object: &Value, subsets: &[&Value], found: &mut Vec<Violation>) {
    let total = json::at(object, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1);
    let is_adaptive =
        json::text(object, &["spec", "topology", "scheduleStrategy", "type"]) == Some("Adaptive");
    let before = found.len();
    let (mut sum, mut own) = (0_i64, 0);
    let (mut sum_min, mut sum_max, mut with_max, mut bounded) = (0_i64, 0_i64, 0, 0);
    for (index, subset) in subsets.iter().enumerate() {
        let path = format!("{SUBSETS}[{index}]");
        let has = |field: &str| json::at(subset, &[field]).is_some();
        if has("replicas") {
            own += 1;
            if is_adaptive {
                let detail = "specify replicas use minReplicas/maxReplicas to enable adaptive strategy";
                found.push(Violation::forbidden(format!("{path}.replicas"), detail));
            }
        }
        let replicas = number(subset, "replicas", &path, total, found);
        let min = number(subset, "minReplicas", &path, total, found);
        let max = number(subset, "maxReplicas", &path, total, found);
        bounded += usize::from(has("minReplicas") || has("maxReplicas"));
        with_max += usize::from(has("maxReplicas"));
        sum = sum.saturating_add(replicas.unwrap_or(0));
        sum_min = sum_min.saturating_add(min.unwrap_or(0));
        sum_max = sum_max.saturating_add(max.unwrap_or(UNLIMITED));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let value = json::at(subset, &["minReplicas"]).cloned().unwrap_or_default();
            let detail = format!("subset[{index}].minReplicas must be less than or equal to maxReplicas");
            found.push(Violation::invalid(format!("{path}.minReplicas"), value, detail));
        }
    }
    // Sums of numbers that are wrong say nothing.
    if found.len() > before {
        return;
    }
    let mut refuse = |value: Value, detail: String| found.push(Violation::invalid(SUBSETS, value, detail));
    if own > 0 && bounded > 0 {
        let detail = "subset.Replicas and subset.MinReplicas/subset.MaxReplicas are mutually exclusive in a \
                      UnitedDeployment";
        refuse(json!(subsets), detail.to_owned());
        return;
    }
    if with_max > 0 && with_max == subsets.len() {
        refuse(json!(with_max), "at least one subset.maxReplicas must be empty".to_owned());
    }
    if bounded > 0 && sum_min > sum_max {
        let detail = "sum of indicated subset.minReplicas should not be greater than sum of indicated \
                      subset.maxReplicas";
        refuse(json!(sum_min), detail.to_owned());
    }
    if sum > total {
        let detail = format!(
            "sum of indicated subset replicas {sum} should not be greater than UnitedDeployment replicas {total}"
        );
        refuse(json!(sum), detail);
    }
    if own > 0 && own == subsets.len() && sum != total {
        let detail = format!(
            "if replicas of all subsets are provided, the sum of indicated subset replicas {sum} should equal \
             UnitedDeployment replicas {total}"
        );
        refuse(json!(sum), detail);
    }
}

const PARTITIONS: [&str; 4] = ["spec", "updateStrategy", "manualUpdate", "partitions"];

fn partitions(object: &Value, subsets: &[&Value], found: &mut Vec<Violation>) {
    let Some(Value::Object(partitions)) = json::at(object, &PARTITIONS) else { return };
    for subset in partitions.keys() {
        if !subsets.iter().any(|known| json::text(known, &["name"]) == Some(subset)) {
            let detail = format!("subset {subset} does not exist");
            found.push(Violation::invalid(PARTITIONS.join("."), json!(partitions), detail));
        }
    }
}

fn reservation(object: &Value, found: &mut Vec<Violation>) {
    let path = ["spec", "topology", "scheduleStrategy"];
    let Some(schedule) = json::at(object, &path) else { return };
    let reserves = json::at(schedule, &["adaptive", "reserveUnschedulablePods"]) == Some(&json!(true));
    let is_adaptive = json::text(schedule, &["type"]) == Some("Adaptive");
    if reserves && is_adaptive && kinds(object).into_iter().any(Kind::is_stateful) {
        let detail =
            "only stateless workloads (Deployment and CloneSet) are supported by reserved rescheduling";
        found.push(Violation::invalid(path.join("."), schedule.clone(), detail));
    }
}

/// What the original accepts although it cannot work.
fn additions(change: &Change<'_>, subsets: &[&Value], found: &mut Vec<Violation>) {
    let object = change.new;
    if change.touches(&PARTITIONS)
        && let Some(Value::Object(partitions)) = json::at(object, &PARTITIONS)
    {
        for (subset, number) in partitions {
            if let Some(number) = number.as_i64().filter(|number| *number < 0) {
                let path = format!("{}[{subset}]", PARTITIONS.join("."));
                found.push(Violation::invalid(path, number, "must be greater than or equal to 0"));
            }
        }
    }
    for field in ["rescheduleCriticalSeconds", "unschedulableDuration"] {
        let path = ["spec", "topology", "scheduleStrategy", "adaptive", field];
        if change.touches(&path) {
            rules::not_negative(found, object, &path);
        }
    }
    if change.touches(&["spec", "revisionHistoryLimit"]) {
        rules::not_negative(found, object, &["spec", "revisionHistoryLimit"]);
    }
    let is_new = change.touches(&["spec", "template"]) || change.touches(&["spec", "topology", "subsets"]);
    let [kind] = kinds(object)[..] else { return };
    let pods = json::at(object, &["spec", "template", kind.field(), "spec", "template"]);
    let Some(pods) = pods.filter(|_| is_new) else { return };
    for (index, subset) in subsets.iter().enumerate() {
        let Some(patch) = json::at(subset, &["patch"]) else { continue };
        let detail = match strategic_merge::pod(pods, patch) {
            Err(error) => error.to_string(),
            Ok(mut patched) => match shape::canonical("core.PodTemplateSpec", &mut patched, Unknown::Keep) {
                Err(error) => error.to_string(),
                Ok(_) => continue,
            },
        };
        let detail = format!("cannot be applied to the pod template: {detail}");
        found.push(Violation::invalid(format!("{SUBSETS}[{index}].patch"), patch.clone(), detail));
    }
}

fn update(old: &Value, new: &Value, subsets: &[&Value], found: &mut Vec<Violation>) {
    let selector = |object| json::at(object, &["spec", "selector"]).cloned().unwrap_or_default();
    if selector(old) != selector(new) {
        found.push(Violation::forbidden("spec.selector", STAYS));
    }
    let stored = subsets_of(old);
    for (index, subset) in subsets.iter().enumerate() {
        let name = json::text(subset, &["name"]);
        let Some(before) = stored.iter().find(|stored| json::text(stored, &["name"]) == name) else {
            continue;
        };
        for field in ["nodeSelectorTerm", "tolerations"] {
            // An empty list and an empty term say nothing.
            let part = |subset: &Value| {
                json::at(subset, &[field]).filter(|part| **part != json!([]) && **part != json!({})).cloned()
            };
            if part(before) != part(subset) {
                found.push(Violation::forbidden(format!("{SUBSETS}[{index}].{field}"), STAYS));
            }
        }
    }
    for (kind, changeable, allowed) in [
        (
            Kind::StatefulSet,
            &[
                "template",
                "updateStrategy",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
                "ordinals",
                "replicas",
                "selector",
            ][..],
            "updates to statefulsetTemplate spec for fields other than 'template', 'updateStrategy', \
             'persistentVolumeClaimRetentionPolicy', 'minReadySeconds' and 'ordinals' are forbidden",
        ),
        (
            Kind::AdvancedStatefulSet,
            &["template", "updateStrategy", "replicas", "selector"][..],
            "updates to advancedStatefulsetTemplate spec for fields other than 'template', and 'updateStrategy' are \
             forbidden",
        ),
    ] {
        let path = ["spec", "template", kind.field()];
        let (Some(before), Some(after)) = (json::at(old, &path), json::at(new, &path)) else { continue };
        if rules::differs_outside(before, after, changeable) {
            found.push(Violation::forbidden(format!("{}.spec", path.join(".")), allowed));
        }
    }
}

#[cfg(test)]
mod tests;
