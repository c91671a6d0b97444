//! What a StatefulSet must look like, besides its name, its selector and its pod template.

use kruise_api::{
    gates::Gate,
    int_or_percent::{IntOrString, Rounding},
    json,
    kubernetes::validation::Violation,
};
use serde_json::Value;

use super::ordinals;
use crate::{
    admission::{
        Answer,
        kinds::{Change, Context},
        rules,
    },
    in_place, update_order,
};

mod claims;

const ROLLING: [&str; 3] = ["spec", "updateStrategy", "rollingUpdate"];
/// How long the value of a label may be.
const LONGEST_LABEL: usize = 63;
const PARALLEL_ONLY: &str = "can only work with Parallel PodManagementPolicyType";
const IN_PLACE_GATE: &str = kruise_api::conditions::IN_PLACE_UPDATE_READY;

/// What may be changed after a StatefulSet was created.
const CHANGEABLE: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "reserveOrdinals",
    "lifecycle",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "volumeClaimTemplates",
    "volumeClaimUpdateStrategy",
    "updateStrategy",
    "scaleStrategy",
];
const IMMUTABLE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
     'reserveOrdinals', 'lifecycle', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy', \
     `volumeClaimTemplates`, `VolumeClaimUpdateStrategy` and 'updateStrategy' are forbidden";

/// Appends what is wrong. Rules that the original does not have look only at what the request changes, so that what is
/// stored can still be worked with.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    let object = change.new;
    rules::label_name(found, object);
    policy(object, found);
    strategy(object, found);
    scale_strategy(object, found);
    rules::not_negative(found, object, &["spec", "replicas"]);
    reserve_ordinals(change, found);
    retention(object, found);
    additions(change, found);
    pods_never_end(object, found);
    if let Some(old) = change.old {
        if rules::differs_outside(old, object, CHANGEABLE) {
            found.push(Violation::forbidden("spec", IMMUTABLE));
        }
        claims::update(old, object, context, found);
    }
}

/// What the writer should know although it is accepted: the name of a pod is a label too.
pub fn advice(change: &Change<'_>) -> Vec<String> {
    let name = json::text(change.new, &["metadata", "name"]).unwrap_or_default();
    let digits = LONGEST_LABEL.saturating_sub(name.len() + 1);
    match digits {
        0 => vec![format!(
            "metadata.name: no pod can be created: use at most {} characters",
            LONGEST_LABEL - 2
        )],
        1..=3 => {
            let noun = if digits == 1 { "digit" } else { "digits" };
            vec![format!(
                "metadata.name: pods whose ordinals have more than {digits} {noun} cannot be created"
            )]
        }
        _ => Vec::new(),
    }
}

/// Refuses a change of the template that InPlaceOnly cannot make.
pub fn in_place_only(change: &Change<'_>, context: &Context<'_>) -> Option<Answer> {
    let old = change.old.filter(|_| pod_update_policy(change.new) == "InPlaceOnly")?;
    let template = |object: &Value| json::at(object, &["spec", "template"]).cloned().unwrap_or_default();
    let resize = context.gates.enabled(Gate::InPlaceWorkloadVerticalScaling);
    let (operation, path) = in_place::validate::impossible(&template(old), &template(change.new), resize)?;
    let message = format!(
        "invalid template modified with InPlaceOnly strategy: {operation} {path}, currently only image update is allowed for \
         InPlaceOnly"
    );
    Some(Answer::Denied { code: 422, message })
}

fn is_parallel(object: &Value) -> bool {
    json::text(object, &["spec", "podManagementPolicy"]) == Some("Parallel")
}

fn pod_update_policy(object: &Value) -> &str {
    json::text(object, &[&ROLLING[..], &["podUpdatePolicy"]].concat()).unwrap_or_default()
}

fn policy(object: &Value, found: &mut Vec<Violation>) {
    let path = ["spec", "podManagementPolicy"];
    match json::text(object, &path).unwrap_or_default() {
        "" => found.push(Violation::required(path.join("."), "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            found.push(Violation::invalid(path.join("."), other, detail));
        }
    }
}

fn strategy(object: &Value, found: &mut Vec<Violation>) {
    let strategy = json::at(object, &["spec", "updateStrategy"]).cloned().unwrap_or_default();
    let rolling = json::at(object, &ROLLING);
    match json::text(&strategy, &["type"]).unwrap_or_default() {
        "" => found.push(Violation::required("spec.updateStrategy", "")),
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                found.push(Violation::invalid(ROLLING.join("."), rolling.clone(), detail));
            }
        }
        "RollingUpdate" => {
            if rolling.is_some() {
                rolling_update(object, found);
            }
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            found.push(Violation::invalid("spec.updateStrategy", strategy, detail));
        }
    }
}

fn rolling_update(object: &Value, found: &mut Vec<Violation>) {
    let path = |field| [ROLLING[0], ROLLING[1], ROLLING[2], field];
    rules::not_negative(found, object, &path("partition"));
    at_least_one(found, object, &path("maxUnavailable"));
    rules::not_negative(found, object, &path("minReadySeconds"));
    if let Some(seconds) = json::at(object, &path("minReadySeconds")).and_then(Value::as_i64)
        && seconds > 300
    {
        let detail = "must be no more than 300 seconds";
        found.push(Violation::invalid(path("minReadySeconds").join("."), seconds, detail));
    }
    let policy = pod_update_policy(object);
    match policy {
        "" | "ReCreate" => {}
        "InPlaceIfPossible" | "InPlaceOnly" => readiness_gate(object, policy, found),
        other => {
            let detail = "must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'";
            found.push(Violation::invalid(path("podUpdatePolicy").join("."), other, detail));
        }
    }
    let unordered = path("unorderedUpdate");
    if let Some(update) = json::at(object, &unordered) {
        if !is_parallel(object) {
            let detail = format!("unorderedUpdate {PARALLEL_ONLY}");
            found.push(Violation::required(unordered.join("."), detail));
        }
        let path = format!("{}.priorityStrategy", unordered.join("."));
        update_order::validate::priority(update, &path, found);
    }
}

fn readiness_gate(object: &Value, policy: &str, found: &mut Vec<Violation>) {
    let path = ["spec", "template", "spec", "readinessGates"];
    let gates = json::at(object, &path);
    let is_there = |gate: &Value| json::text(gate, &["conditionType"]) == Some(IN_PLACE_GATE);
    if !gates.and_then(Value::as_array).into_iter().flatten().any(is_there) {
        let detail = format!("must contains {IN_PLACE_GATE} when podUpdatePolicy is {policy}");
        let value = gates.cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        found.push(Violation::invalid(path.join("."), value, detail));
    }
}

/// A number or a share of all that is not zero. A share that rounds to zero is fine: it counts as one.
fn at_least_one(found: &mut Vec<Violation>, object: &Value, path: &[&str]) {
    let Some(value) = json::at(object, path) else { return };
    rules::int_or_percent(found, object, path);
    let Ok(number) = serde_json::from_value::<IntOrString>(value.clone()) else { return };
    // Of a hundred, every share of at least one per cent is at least one.
    if let Ok(share) = number.parse()
        && share.of(100, Rounding::Down) < 1
        && !matches!(value, Value::String(text) if text.contains(['.', '-']))
    {
        let shown = if value.is_string() { Value::from(0) } else { value.clone() };
        found.push(Violation::invalid(path.join("."), shown, "should not be less than 1"));
    }
}

fn scale_strategy(object: &Value, found: &mut Vec<Violation>) {
    let path = ["spec", "scaleStrategy", "maxUnavailable"];
    let Some(value) = json::at(object, &path) else { return };
    at_least_one(found, object, &path);
    if !is_parallel(object) && value.as_i64() != Some(1) {
        found.push(Violation::invalid(path.join("."), value.clone(), PARALLEL_ONLY));
    }
}

fn reserve_ordinals(change: &Change<'_>, found: &mut Vec<Violation>) {
    let list = json::at(change.new, &["spec", "reserveOrdinals"]).cloned().unwrap_or_default();
    let Ok(entries) = serde_json::from_value::<Vec<IntOrString>>(list.clone()) else { return };
    for (index, entry) in entries.iter().enumerate() {
        let Err(problem) = ordinals::reserved(entry) else { continue };
        let mut refuse = |problem: &str| {
            found.push(Violation::invalid(
                "spec",
                list.clone(),
                format!("{index} th reserve ordinal {problem}"),
            ));
        };
        match &problem {
            // The original accepts it, so what is stored may have it.
            ordinals::Error::TooLarge(_) if !change.touches(&["spec", "reserveOrdinals"]) => {}
            ordinals::Error::NotARange(text) => {
                refuse(&problem.to_string());
                refuse(&format!("is invalid: {text}, err = invalid range {text}"));
            }
            _ => refuse(&problem.to_string()),
        }
    }
}

fn retention(object: &Value, found: &mut Vec<Violation>) {
    for field in ["whenDeleted", "whenScaled"] {
        let path = ["spec", "persistentVolumeClaimRetentionPolicy", field];
        if json::at(object, &path[..2]).is_none() {
            return;
        }
        let value = json::text(object, &path).unwrap_or_default();
        if !matches!(value, "Retain" | "Delete") {
            found.push(Violation::not_supported(path.join("."), value, &["Retain", "Delete"]));
        }
    }
}

/// What the original accepts although it cannot work.
fn additions(change: &Change<'_>, found: &mut Vec<Violation>) {
    let object = change.new;
    for path in [&["spec", "ordinals", "start"][..], &["spec", "revisionHistoryLimit"]] {
        if change.touches(path) {
            rules::not_negative(found, object, path);
        }
    }
    let path = ["spec", "volumeClaimUpdateStrategy", "type"];
    if let Some(value) = json::text(object, &path).filter(|value| !value.is_empty() && change.touches(&path))
    {
        let known = ["OnPodRollingUpdate", "OnDelete"];
        if !known.contains(&value) {
            found.push(Violation::not_supported(path.join("."), value, &known));
        }
    }
}

fn pods_never_end(object: &Value, found: &mut Vec<Violation>) {
    let path = |field| ["spec", "template", "spec", field];
    if let Some(policy) = json::text(object, &path("restartPolicy"))
        && !matches!(policy, "" | "Always")
    {
        found.push(Violation::not_supported(path("restartPolicy").join("."), policy, &["Always"]));
    }
    if json::at(object, &path("activeDeadlineSeconds")).is_some() {
        let detail = "activeDeadlineSeconds in StatefulSet is not Supported";
        found.push(Violation::forbidden(path("activeDeadlineSeconds").join("."), detail));
    }
}

#[cfg(test)]
mod tests;
