//! What a WorkloadSpread must look like.

use std::sync::Arc;

use kruise_api::{
    json,
    kubernetes::{
        defaults, shape,
        validation::{self, Violation},
    },
    selector::LabelSelector,
    workloadspread::v1beta1::WorkloadSpread,
};
use serde_json::{Value, json};

use super::{Family, Listed, family, listed};
use crate::{
    admission::kinds::{Change, Context},
    configuration::{Data, workloadspread_workloads},
    strategic_merge,
};

type Violations = Vec<Violation>;

const TARGET: &[&str] = &["spec", "targetRef"];
/// All moves of a pod through the other subsets must be over before the first one is tried again.
const ALL_MOVES: i64 = 295;

/// What rules may know besides the object.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The spreads of the namespace, sorted by name. The one that is validated may be among them.
    pub others: &'a [Arc<WorkloadSpread>],
    /// The data of ConfigMap `kruise-configuration`, if it is there.
    pub configuration: Option<&'a Data>,
    /// The workload, if it is there.
    pub workload: Option<&'a Value>,
}

/// The rules in the form in which [kinds](crate::admission::kinds::Entry::rules) list them.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Violations) {
    let cluster = context.cluster;
    let (configuration, workload) = (cluster.configuration(), cluster.spread_workload());
    let known = Known {
        others: &cluster.spreads(&change.request.namespace),
        configuration: configuration.as_deref(),
        workload: workload.as_deref(),
    };
    validate(change, &known, found);
}

/// Appends what is wrong.
pub fn validate(change: &Change<'_>, known: &Known<'_>, found: &mut Violations) {
    let object = change.new;
    target(object, known, found);
    let subsets = json::at(object, &["spec", "subsets"]).and_then(Value::as_array);
    let subsets = subsets.map(Vec::as_slice).unwrap_or_default();
    if subsets.is_empty() {
        found.push(Violation::required("spec.subsets", "subsets number must >= 1 in WorkloadSpread"));
    } else {
        let mut names: Vec<&str> = Vec::new();
        for (index, subset) in subsets.iter().enumerate() {
            let path = format!("spec.subsets[{index}]");
            name(subset, &path, &mut names, found);
            placement(subset, &path, found);
            patch(subset, &path, object, known, found);
        }
        limits(change, subsets, found);
        strategy(object, subsets, found);
    }
    if let Some(filter) = json::at(object, &["spec", "targetFilter"])
        && let Some(selector) = json::at(filter, &["selector"])
        && let Err(error) = parsed(selector)
    {
        found.push(Violation::invalid("spec.targetFilter", filter.clone(), error));
    }
    if change.old.is_some_and(|old| identity(old) != identity(object)) {
        let detail = "change TargetReference is not permitted for WorkloadSpread";
        found.push(Violation::invalid("spec.targetRef", value(object), detail));
    } else {
        found.extend(conflict(change, known));
    }
}

fn parsed(selector: &Value) -> Result<(), String> {
    let selector: LabelSelector =
        serde_json::from_value(selector.clone()).map_err(|error| error.to_string())?;
    selector.matcher().map(drop).map_err(|error| error.to_string())
}

fn value(object: &Value) -> Value {
    json::at(object, TARGET).cloned().unwrap_or_default()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    json::text(object, &["spec", "targetRef", field]).unwrap_or_default()
}

fn group(object: &Value) -> &str {
    text(object, "apiVersion").split_once('/').map_or("", |(group, _)| group)
}

/// Group, kind and name: what makes a workload another one.
fn identity(object: &Value) -> [&str; 3] {
    [group(object), text(object, "kind"), text(object, "name")]
}

fn target(object: &Value, known: &Known<'_>, found: &mut Violations) {
    let path = "spec.targetRef";
    if json::at(object, TARGET).is_none() {
        found.push(Violation::required(path, "no targetRef defined in WorkloadSpread"));
        return;
    }
    let invalid = |detail: String| Violation::invalid(path, value(object), detail);
    if ["apiVersion", "kind", "name"].into_iter().any(|field| text(object, field).is_empty()) {
        found.push(invalid("empty TargetReference is not valid for WorkloadSpread.".to_owned()));
        return;
    }
    let [group, kind, _] = identity(object);
    if family(group, kind).is_some() {
        return;
    }
    if Family::ALL.into_iter().any(|family| family.resource().kind == kind) {
        found.push(invalid(format!("TargetReference is not valid for {kind}.")));
        return;
    }
    let empty = Data::new();
    match workloadspread_workloads(known.configuration.unwrap_or(&empty)) {
        Err(error) => found.push(Violation::internal(path, error.to_string())),
        Ok(list) if listed(&list, group, kind) == Some(Listed::Target) => {}
        Ok(_) => found.push(invalid("TargetReference's GroupKind is not permitted.".to_owned())),
    }
}

fn name<'s>(subset: &'s Value, path: &str, names: &mut Vec<&'s str>, found: &mut Violations) {
    let name = json::text(subset, &["name"]).unwrap_or_default();
    let path = format!("{path}.name");
    if name.is_empty() {
        found.push(Violation::invalid(path, "", ""));
    } else if names.contains(&name) {
        found.push(Violation::invalid(path, name, format!("duplicated subset name {name}")));
    }
    names.push(name);
}

fn placement(subset: &Value, path: &str, found: &mut Violations) {
    if let Some(term) = json::at(subset, &["requiredNodeSelector"]) {
        found.extend(validation::node_selector_term(term, &format!("{path}.requiredNodeSelector")));
    }
    let preferred = json::at(subset, &["preferredNodeSelector"]).and_then(Value::as_array);
    for (index, term) in preferred.into_iter().flatten().enumerate() {
        let path = format!("{path}.preferredNodeSelector[{index}]");
        found.extend(validation::preferred_scheduling_term(term, &path));
    }
    found.extend(validation::tolerations(subset, path));
}

/// The pods that a patch makes from the template that is there now.
fn patch(subset: &Value, path: &str, object: &Value, known: &Known<'_>, found: &mut Violations) {
    let (Some(patch), Some(workload)) = (json::at(subset, &["patch"]), known.workload) else { return };
    let Some(template) = json::at(workload, &["spec", "template"]) else { return };
    let path = format!("{path}.patch");
    let invalid = |detail: String| Violation::invalid(path.as_str(), patch.to_string(), detail);
    let mut patched = match strategic_merge::pod(template, patch) {
        Ok(patched) => patched,
        Err(error) => {
            found.push(invalid(format!("failed to merge patch: {error}")));
            return;
        }
    };
    if let Err(error) = shape::unknown_members("core.PodTemplateSpec", &patched) {
        found.push(invalid(format!("failed to unmarshal: {error}")));
        return;
    }
    let claims = json::at(workload, &["spec", "volumeClaimTemplates"]).and_then(Value::as_array);
    let has_claims = matches!(text(object, "kind"), "CloneSet" | "StatefulSet");
    let claims = claims.into_iter().flatten().filter(|_| has_claims);
    let claims = claims.filter_map(|claim| json::text(claim, &["metadata", "name"]).map(str::to_owned));
    let options = validation::Options { extra_volumes: claims.collect() };
    json::default_at(&mut patched, &["spec"], json!({}));
    let with_host_ports =
        defaults::Options { host_network_host_ports: true, ..defaults::Options::KUBERNETES };
    defaults::pod_template_spec(&mut patched, &with_host_ports);
    let spec = json::at(&patched, &["spec"]).cloned().unwrap_or_default();
    found.extend(validation::pod_spec(&spec, &path, &options));
}

/// The limits of all subsets together.
fn limits(change: &Change<'_>, subsets: &[Value], found: &mut Violations) {
    let is_by_ordinal = text(change.new, "kind") == "StatefulSet";
    let mut first: Option<&Value> = None;
    let (mut sum, mut is_sound) = (0_i64, true);
    for (index, subset) in subsets.iter().enumerate() {
        let Some(limit) = json::at(subset, &["maxReplicas"]) else { continue };
        let mut wrong = |detail: &str| {
            is_sound = false;
            found.push(Violation::invalid(
                format!("spec.subsets[{index}].maxReplicas"),
                limit.clone(),
                detail,
            ));
        };
        if first.is_some_and(|first| first.is_string() != limit.is_string()) {
            wrong("the maxReplicas type of all subsets must be the same");
            continue;
        }
        first = first.or(Some(limit));
        if is_by_ordinal && limit.is_string() {
            wrong("the maxReplicas type must be Int for StatefulSet");
            continue;
        }
        match (limit.as_i64(), limit.as_str()) {
            (Some(number), _) if number >= 0 => {}
            (_, Some(text)) => match percent(text) {
                Some(percent) => {
                    let before = sum;
                    sum = sum.saturating_add(percent);
                    if before <= 100 && sum > 100 {
                        wrong("the sum of all subset's maxReplicas exceeds 100% is no permitted");
                    }
                }
                // The original lets these pass, so they may be stored.
                None if !text.ends_with('%') && !change.touches(&["spec", "subsets"]) => is_sound = false,
                None => wrong("maxReplicas is not valid for subset"),
            },
            _ => wrong("maxReplicas is not valid for subset"),
        }
    }
    let last = subsets.last().and_then(|subset| json::at(subset, &["maxReplicas"]));
    if is_sound && sum < 100 && last.is_some_and(Value::is_string) {
        let detail = "maxReplicas sum of all subsets must equal 100% when type is specified as percent";
        let first = first.cloned().unwrap_or_default();
        found.push(Violation::invalid("spec.subsets[0].maxReplicas", first, detail));
    }
}

/// A whole number of percent.
fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty())?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().unwrap_or(i64::MAX))
}

fn strategy(object: &Value, subsets: &[Value], found: &mut Violations) {
    let kind = json::text(object, &["spec", "scheduleStrategy", "type"]).unwrap_or_default();
    let path = "spec.scheduleStrategy";
    if !matches!(kind, "" | "Fixed" | "Adaptive") {
        let detail = "ScheduleStrategy's type is not valid";
        found.push(Violation::invalid(format!("{path}.type"), kind, detail));
    }
    let Some(adaptive) = json::at(object, &["spec", "scheduleStrategy", "adaptive"]) else { return };
    if kind != "Adaptive" {
        let detail = "the scheduleStrategy's type must be adaptive when using adaptive scheduleStrategy";
        found.push(Violation::invalid(format!("{path}.type"), kind, detail));
        return;
    }
    let has_limit = |subset: &Value| json::at(subset, &["maxReplicas"]).is_some();
    if subsets.len() > 1 && subsets.last().is_some_and(has_limit) {
        let detail =
            "the last subset's maxReplicas must be not specified when using adaptive scheduleStrategy";
        found.push(Violation::invalid(format!("{path}.adaptive"), adaptive.clone(), detail));
    }
    let Some(seconds) = json::at(adaptive, &["rescheduleCriticalSeconds"]).and_then(Value::as_i64) else {
        return;
    };
    let others = i64::try_from(subsets.len()).unwrap_or(i64::MAX) - 1;
    let most = ALL_MOVES.checked_div(others).unwrap_or(i64::MAX);
    if seconds < 0 || seconds > most {
        let most = if others > 0 { most } else { i64::from(i32::MAX) };
        let detail =
            format!("rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > {most} is not permitted");
        found.push(Violation::invalid(format!("{path}.adaptive.rescheduleCriticalSeconds"), seconds, detail));
    }
}

/// The first other spread of the same workload.
fn conflict(change: &Change<'_>, known: &Known<'_>) -> Option<Violation> {
    let own = json::text(change.new, &["metadata", "name"]).unwrap_or(&change.request.name);
    let wanted = identity(change.new);
    let others = known.others.iter().filter_map(|other| {
        let name = other.metadata.name.as_deref()?;
        let target = &other.spec.target_ref;
        let group = target.api_version.split_once('/').map_or("", |(group, _)| group);
        (name != own && wanted == [group, target.kind.as_str(), target.name.as_str()]).then_some(name)
    });
    let other = others.min()?;
    let detail = format!("ws.spec.targetRef is in conflict with other WorkloadSpread {other}");
    Some(Violation::invalid("spec.targetRef", value(change.new), detail))
}

/// The workload whose template patches are tried on, as the spec of a request names it: group, version, kind and name.
/// Nothing where no subset has a patch.
pub fn tried_on(object: &Value) -> Option<[&str; 4]> {
    let subsets = json::at(object, &["spec", "subsets"]).and_then(Value::as_array)?;
    subsets.iter().any(|subset| json::at(subset, &["patch"]).is_some()).then_some(())?;
    let version = text(object, "apiVersion");
    let version = version.split_once('/').map_or(version, |(_, version)| version);
    let [group, kind, name] = identity(object);
    (!kind.is_empty() && !name.is_empty()).then_some([group, version, kind, name])
}

/// Whether the white list has to be known for an object.
pub fn needs_list(object: &Value) -> bool {
    let [group, kind, _] = identity(object);
    family(group, kind).is_none()
}
