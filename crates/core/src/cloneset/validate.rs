//! What a CloneSet must look like. Selector and template are judged by the rules that all workloads share.

use std::collections::BTreeSet;

use kruise_api::{
    gates::Gate,
    int_or_percent::{IntOrString, Percent, Problem, Rounding},
    json,
    kubernetes::validation::Violation,
};
use serde_json::Value;

use crate::{
    admission::{
        kinds::{Change, Context},
        rules,
    },
    in_place,
    object::ObjectKey,
    update_order,
};

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const IMMUTABLE: &str = "updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', \
     'scaleStrategy', 'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and \
     'revisionHistoryLimit' are forbidden";
const ROLLING: &[&str] = &["spec", "updateStrategy", "rollingUpdate"];

/// Appends what is wrong.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    if change.old.is_some() {
        update(change, context, found);
    }
    let new = change.new;
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        rules::not_negative(found, new, &["spec", field]);
    }
    template(new, found);
    pods_to_delete(change, context, found);
    scale_budget(new, found);
    strategy(change, found);
    deadline(new, found);
}

fn update(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    if change.touches(&["spec", "selector"]) {
        found.push(Violation::forbidden("spec", IMMUTABLE));
    }
    let policy = json::text(change.new, &[ROLLING, &["podUpdatePolicy"]].concat());
    if policy == Some("InPlaceOnly")
        && let Some(old) = change.old
        && let Some((operation, pointer)) = impossible_in_place(old, change.new, context)
    {
        let detail =
            format!("only allowed to update images in spec for InPlaceOnly, but found {operation} {pointer}");
        found.push(Violation::forbidden("spec", detail));
    }
}

/// The first change of a template that needs a new pod.
fn impossible_in_place(old: &Value, new: &Value, context: &Context<'_>) -> Option<(&'static str, String)> {
    let template = |object: &Value| json::at(object, &["spec", "template"]).cloned().unwrap_or_default();
    let resize = context.gates.enabled(Gate::InPlaceWorkloadVerticalScaling);
    in_place::validate::impossible(&template(old), &template(new), resize)
}

fn template(new: &Value, found: &mut Vec<Violation>) {
    let spec = ["spec", "template", "spec"];
    let policy = json::text(new, &[&spec[..], &["restartPolicy"]].concat());
    if let Some(policy) = policy.filter(|policy| !policy.is_empty() && *policy != "Always") {
        found.push(Violation::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    if json::at(new, &[&spec[..], &["activeDeadlineSeconds"]].concat()).is_some() {
        let detail = "activeDeadlineSeconds in cloneset is not Supported";
        found.push(Violation::forbidden("spec.template.spec.activeDeadlineSeconds", detail));
    }
}

/// Names that this request adds must be pods of this set.
fn pods_to_delete(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    let path = "spec.scaleStrategy.podsToDelete";
    let names = |object: &Value| -> Vec<String> {
        let list = json::at(object, &["spec", "scaleStrategy", "podsToDelete"]).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let wanted = names(change.new);
    let mut once = BTreeSet::new();
    let twice: BTreeSet<&str> =
        wanted.iter().filter(|name| !once.insert(name.as_str())).map(String::as_str).collect();
    if !twice.is_empty() {
        let twice: Vec<&str> = twice.into_iter().collect();
        let value = Value::from(wanted.clone());
        found.push(Violation::invalid(path, value, format!("duplicated items [{}]", twice.join(" "))));
        return;
    }
    let known: BTreeSet<String> = change.old.map(names).unwrap_or_default().into_iter().collect();
    let uid = json::text(change.new, &["metadata", "uid"]).unwrap_or_default();
    let namespace = json::text(change.new, &["metadata", "namespace"]).unwrap_or(&change.request.namespace);
    for name in wanted.iter().filter(|name| !known.contains(*name)) {
        let detail = match context.cluster.pod(&ObjectKey::new(namespace, name.as_str())) {
            None => format!("find pod {name} failed: Pod \"{name}\" not found"),
            Some(pod) if pod.metadata.is_deleting() => format!("find pod {name} already terminating"),
            Some(pod) if pod.metadata.controller().is_none_or(|owner| owner.uid != uid) => {
                format!("find pod {name} owner is not this CloneSet")
            }
            Some(_) => continue,
        };
        found.push(Violation::invalid(path, name.as_str(), detail));
    }
}

fn scale_budget(new: &Value, found: &mut Vec<Violation>) {
    let path = ["spec", "scaleStrategy", "maxUnavailable"];
    if let Some(value) = json::at(new, &path)
        && let Some(number) = scaled(value, "maxUnavailable", &path.join("."), replicas(new), found)
        && number < 0
    {
        found.push(Violation::invalid(path.join("."), value.clone(), NOT_NEGATIVE));
    }
}

fn strategy(change: &Change<'_>, found: &mut Vec<Violation>) {
    let is_old_version = change.is_written_as("v1alpha1");
    let prefix = if is_old_version { "spec.updateStrategy" } else { "spec.updateStrategy.rollingUpdate" };
    let kind = json::text(&change.request.object, &["spec", "updateStrategy", "type"]).unwrap_or_default();
    let (allowed, detail): (&[&str], _) = if is_old_version {
        (
            &["", "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"],
            "must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'",
        )
    } else {
        (&["", "RollingUpdate", "OnDelete"], "must be 'RollingUpdate' or 'OnDelete'")
    };
    if !allowed.contains(&kind) {
        found.push(Violation::invalid("spec.updateStrategy.type", kind, detail));
    }
    let Some(rolling) = json::at(change.new, ROLLING) else { return };
    let policy = json::text(rolling, &["podUpdatePolicy"]).unwrap_or_default();
    if !["", "ReCreate", "InPlaceIfPossible", "InPlaceOnly"].contains(&policy) {
        let detail = "must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'";
        found.push(Violation::invalid(format!("{prefix}.podUpdatePolicy"), policy, detail));
    }
    numbers(change, rolling, prefix, policy, found);
    update_order::validate::priority(rolling, &format!("{prefix}.priorityStrategy"), found);
    update_order::validate::scatter(rolling, &format!("{prefix}.scatterStrategy"), found);
    in_place(rolling, &format!("{prefix}.inPlaceUpdateStrategy"), found);
}

fn numbers(change: &Change<'_>, rolling: &Value, prefix: &str, policy: &str, found: &mut Vec<Violation>) {
    let replicas = replicas(change.new);
    let mut number = |field: &str, usual: i64| -> i64 {
        let value = json::at(rolling, &[field]);
        let scaled = value.map(|value| scaled(value, field, &format!("{prefix}.{field}"), replicas, found));
        scaled.map_or(usual, |number| number.unwrap_or(0))
    };
    let (partition, surge) = (number("partition", 0), number("maxSurge", 0));
    // 20% unless given, which is at least one of any pods.
    let unavailable = number("maxUnavailable", 1);
    let value = |field: &str| json::at(rolling, &[field]).cloned().unwrap_or_default();
    if partition < 0 {
        found.push(Violation::invalid(format!("{prefix}.partition"), value("partition"), NOT_NEGATIVE));
    }
    if surge > 0 && policy == "InPlaceOnly" {
        let with = if change.is_written_as("v1alpha1") { "strategy type" } else { "podUpdatePolicy" };
        let detail = format!("can not use maxSurge with {with} InPlaceOnly");
        found.push(Violation::invalid(format!("{prefix}.maxSurge"), value("maxSurge"), detail));
    }
    if replicas > 0 && surge < 1 && unavailable < 1 {
        let detail = "maxUnavailable and maxSurge should not both be less than 1";
        found.push(Violation::invalid(format!("{prefix}.maxUnavailable"), value("maxUnavailable"), detail));
    }
}

fn replicas(object: &Value) -> u32 {
    let replicas = json::at(object, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(1);
    u32::try_from(replicas).unwrap_or(0)
}

/// A number or a share of the replicas, rounded up. What is neither is told.
fn scaled(value: &Value, field: &str, path: &str, replicas: u32, found: &mut Vec<Violation>) -> Option<i64> {
    let parsed = serde_json::from_value::<IntOrString>(value.clone()).ok()?;
    let error = match parsed.parse() {
        Ok(number) => return Some(number.of(replicas, Rounding::Up)),
        Err(error) => error,
    };
    let text = error.value.trim_end_matches('%');
    let problem = match error.problem {
        // Up is towards zero for what is below zero.
        Problem::Negative => {
            let share: Percent = error.value.trim_start_matches('-').parse().ok()?;
            return Some(-i64::from(share.of(replicas, Rounding::Down)));
        }
        Problem::NotANumber => format!("strconv.ParseFloat: parsing {text:?}: invalid syntax"),
        Problem::NotAPercentage | Problem::TooManyDigits => error.problem.to_string(),
    };
    let detail = format!("failed GetScaledValueFromIntOrPercent for {field}: {problem}");
    found.push(Violation::invalid(path, value.clone(), detail));
    None
}

fn in_place(rolling: &Value, path: &str, found: &mut Vec<Violation>) {
    let Some(strategy) = json::at(rolling, &["inPlaceUpdateStrategy"]) else { return };
    let fields =
        ["gracePeriodSeconds", "imagePreDownloadTimeoutSeconds", "imagePreDownloadMinUpdatedReadyPods"];
    for field in fields {
        if let Some(number) =
            json::at(strategy, &[field]).and_then(Value::as_i64).filter(|number| *number < 0)
        {
            found.push(Violation::invalid(format!("{path}.{field}"), number, NOT_NEGATIVE));
        }
    }
    let field = "imagePreDownloadParallelism";
    let Some(value) = json::at(strategy, &[field]) else { return };
    let problem = match value.as_str().map(|text| (text, text.parse::<i64>())) {
        Some((text, _)) if text.ends_with('%') => Some(format!("{field} does not support percentage value")),
        Some((text, Err(_))) => Some(format!(
            "{field} must be a valid integer: strconv.ParseInt: parsing {text:?}: invalid syntax"
        )),
        Some((_, Ok(number))) => (number < 0).then(|| format!("{field} must be non-negative")),
        None => value.as_i64().filter(|number| *number < 0).map(|_| format!("{field} must be non-negative")),
    };
    found
        .extend(problem.map(|problem| Violation::invalid(format!("{path}.{field}"), value.clone(), problem)));
}

fn deadline(new: &Value, found: &mut Vec<Violation>) {
    let number = |field| json::at(new, &["spec", field]).and_then(Value::as_i64);
    let Some(deadline) = number("progressDeadlineSeconds") else { return };
    if deadline != i64::from(i32::MAX) && deadline <= number("minReadySeconds").unwrap_or(0) {
        let detail = "must be greater than minReadySeconds";
        found.push(Violation::invalid("spec.progressDeadlineSeconds", deadline, detail));
    }
}

#[cfg(test)]
mod tests;
