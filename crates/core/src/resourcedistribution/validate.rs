//! What a ResourceDistribution must look like. No refusal repeats what the resource holds: it may be a Secret.

use kruise_api::{
    json,
    kubernetes::validation::{Violation, names},
    resourcedistribution::v1beta1,
};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::{
    content::Kind,
    source::{Problem, Source, trial},
};
use crate::admission::kinds::{Change, Context};

const RESOURCE: &str = "spec.resource";

/// What the server said to a trial of the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialRefused {
    /// Its code.
    pub code: u16,
    /// Its words.
    pub message: String,
}

fn resource(object: &Value) -> Map<String, Value> {
    json::at(object, &["spec", "resource"]).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The object to ask the server about before a new or changed resource is accepted, in this namespace. Nothing where the
/// rules refuse it anyway, or it was accepted before.
pub fn to_try(new: &Value, old: &Value, namespace: &str) -> Option<(Kind, Value)> {
    let (wanted, stored) = (resource(new), resource(old));
    let is_leaving = json::at(old, &["metadata", "deletionTimestamp"]).is_some();
    let is_known = !stored.is_empty() && wanted == stored;
    let source = Source::parse(&wanted).ok().filter(|_| !is_known && !is_leaving)?;
    Some((source.kind, trial(&wanted, namespace)))
}

/// Appends what is wrong.
pub fn rule(change: &Change<'_>, context: &Context<'_>, found: &mut Vec<Violation>) {
    let wanted = resource(change.new);
    match Source::parse(&wanted) {
        Ok(_) => {}
        Err(Problem::Empty) => {
            found.push(Violation::invalid(RESOURCE, Value::Null, Problem::Empty.to_string()));
        }
        Err(problem @ Problem::Unreadable(_)) => {
            found.push(Violation::internal(RESOURCE, problem.to_string()));
        }
        Err(Problem::Unsupported(kind)) => {
            let detail = Problem::Unsupported(String::new()).to_string();
            found.push(Violation::invalid(RESOURCE, kind, detail));
        }
        Err(Problem::Nameless) => found.push(Violation::required("spec.resource.metadata.name", "")),
    }
    if change.old.is_some_and(|old| identity(&resource(old)) != identity(&wanted)) {
        let detail = "resource apiVersion, kind, and name are immutable";
        found.push(Violation::invalid(RESOURCE, Value::Null, detail));
    }
    targets(change.new, found);
    if found.is_empty() {
        found.extend(context.cluster.refused_trial().map(refused));
    }
}

fn identity(resource: &Map<String, Value>) -> [Option<&Value>; 3] {
    let name = resource.get("metadata").and_then(|metadata| metadata.get("name"));
    [resource.get("apiVersion"), resource.get("kind"), name]
}

fn refused(trial: TrialRefused) -> Violation {
    let TrialRefused { code, message } = trial;
    match code {
        400 | 422 => {
            Violation::invalid(RESOURCE, Value::Null, format!("spec.resource is invalid: {message}"))
        }
        403 => Violation::forbidden(RESOURCE, format!("spec.resource is forbidden: {message}")),
        _ => Violation::internal(RESOURCE, format!("failed to dry-run validate spec.resource: {message}")),
    }
}

fn targets(object: &Value, found: &mut Vec<Violation>) {
    let Some(value) = json::at(object, &["spec", "targets"]) else { return };
    let Ok(targets) = v1beta1::Targets::deserialize(value) else { return };
    let listed = |list: &Option<v1beta1::Namespaces>| -> Vec<String> {
        let names = list.iter().flat_map(|list| &list.list);
        names.map(|one| one.name.clone().unwrap_or_default()).collect()
    };
    let (included, excluded) = (listed(&targets.included_namespaces), listed(&targets.excluded_namespaces));
    for (path, list) in
        [("spec.targets.includedNamespaces", &included), ("spec.targets.excludedNamespaces", &excluded)]
    {
        for name in list {
            let broken = names::dns_label(name);
            found.extend(broken.into_iter().map(|rule| Violation::invalid(path, name.as_str(), rule)));
        }
    }
    let both: Vec<&str> =
        included.iter().filter(|name| excluded.contains(name)).map(String::as_str).collect();
    if !both.is_empty() {
        let detail = format!(
            "ambiguous targets because namespace [{}] is in both IncludedNamespaces.List and ExcludedNamespaces.List",
            both.join(" ")
        );
        found.push(Violation::invalid("spec.targets", value.clone(), detail));
    }
    if let Some(Err(error)) =
        targets.namespace_selector.as_ref().map(kruise_api::selector::LabelSelector::matcher)
    {
        let selector = json::at(value, &["namespaceSelector"]).cloned().unwrap_or_default();
        let detail = format!("labelSelectorAsSelector error: {error}");
        found.push(Violation::invalid("spec.targets.namespaceSelector", selector, detail));
    }
}
