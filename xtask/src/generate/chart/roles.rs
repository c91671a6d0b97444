//! Roles and bindings as templates: each rule under the condition of the features that need it.

use std::collections::BTreeMap;

use anyhow::Result;
use kruise_api::{catalogue::CRDS, crd::Conversion, gates::Gate};
use kruise_core::features::{ALL, Names, Permission, rbac};
use serde_json::json;

use super::{GATES, both, documents, everything, in_namespaces, operand, text_at};

/// What a role allows for one resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    group: &'static str,
    names: Vec<String>,
    verbs: Vec<&'static str>,
    resource: &'static str,
}

/// The rules of a role by the condition under which they hold. Those without a condition come first.
type Rules = BTreeMap<Option<String>, Vec<Rule>>;

/// Roles and bindings. Their names, namespaces and accounts are those of [`rbac::objects`].
pub(super) fn roles() -> Result<String> {
    let mut text = GATES.to_owned();
    let objects = rbac::objects(&everything().without(Gate::EnableExternalCerts));
    let of = |kind: &str, name: &str| {
        objects.iter().find(|object| {
            text_at(object, &["metadata", "name"]) == name && text_at(object, &["kind"]).ends_with(kind)
        })
    };
    for role in rbac::Role::ALL {
        let (Some(object), Some(binding)) =
            (of("Role", role.name()), of("Binding", &format!("{}binding", role.name())))
        else {
            continue;
        };
        let mut head = object.clone();
        if let Some(head) = head.as_object_mut() {
            head.remove("rules");
        }
        let rules = rules(role);
        let needed = needed(&rules);
        text.push_str("---\n");
        if let Some(needed) = &needed {
            text.push_str(&format!("{{{{- if {needed} }}}}\n"));
        }
        text.push_str(&documents(&[head])?);
        text.push_str("rules:\n");
        for (condition, rules) in &rules {
            match condition {
                Some(condition) if needed.as_ref() != Some(condition) => {
                    text.push_str(&format!("{{{{- if {condition} }}}}\n{}{{{{- end }}}}\n", lines(rules)));
                }
                _ => text.push_str(&lines(rules)),
            }
        }
        text.push_str("---\n");
        text.push_str(&documents(std::slice::from_ref(binding))?);
        if needed.is_some() {
            text.push_str("{{- end }}\n");
        }
    }
    Ok(text)
}

/// When a role has rules at all; none if it always has.
fn needed(rules: &Rules) -> Option<String> {
    if rules.contains_key(&None) {
        return None;
    }
    let conditions: Vec<&str> = rules.keys().filter_map(Option::as_deref).collect();
    match conditions.as_slice() {
        [only] => Some((*only).to_owned()),
        _ => Some(format!("or {}", conditions.iter().map(|one| operand(one)).collect::<Vec<_>>().join(" "))),
    }
}

fn rules(role: rbac::Role) -> Rules {
    let mut rules = Rules::new();
    for feature in ALL.iter().filter(|feature| feature.built) {
        for permission in feature.permissions.iter().filter(|permission| permission.role == role) {
            let group = rules.entry(both(feature.when, permission.when)).or_default();
            add(group, permission);
        }
    }
    let always = rules.get(&None).cloned().unwrap_or_default();
    for (condition, rules) in &mut rules {
        for rule in rules.iter_mut() {
            if condition.is_some()
                && let Some(known) = always.iter().find(|known| is_same(known, rule))
            {
                rule.verbs.retain(|verb| !known.verbs.contains(verb));
            }
            rule.verbs.sort_unstable();
            rule.verbs.dedup();
        }
        rules.retain(|rule| !rule.verbs.is_empty());
        rules.sort();
    }
    rules.retain(|_, rules| !rules.is_empty());
    rules
}

fn is_same(one: &Rule, other: &Rule) -> bool {
    (one.group, one.resource, &one.names) == (other.group, other.resource, &other.names)
}

fn add(rules: &mut Vec<Rule>, permission: &Permission) {
    for resource in permission.resources {
        let rule = Rule {
            group: permission.group,
            names: object_names(permission.names),
            verbs: permission.verbs.to_vec(),
            resource,
        };
        match rules.iter_mut().find(|known| is_same(known, &rule)) {
            Some(known) => known.verbs.extend(rule.verbs),
            None => rules.push(rule),
        }
    }
}

fn object_names(names: Names) -> Vec<String> {
    match names {
        Names::Any => Vec::new(),
        Names::These(names) => names.iter().map(|name| (*name).to_owned()).collect(),
        Names::ConvertedDefinitions => {
            let converted = CRDS.iter().filter(|crd| matches!(crd.conversion, Conversion::Webhook(_)));
            converted.map(|crd| crd.name()).collect()
        }
    }
}

/// Rules as lines of a role. Those that differ only in their resource become one.
fn lines(rules: &[Rule]) -> String {
    let mut merged: Vec<(&Rule, Vec<&str>)> = Vec::new();
    for rule in rules {
        match merged.last_mut() {
            Some((last, resources))
                if (last.group, &last.names, &last.verbs) == (rule.group, &rule.names, &rule.verbs) =>
            {
                resources.push(rule.resource);
            }
            _ => merged.push((rule, vec![rule.resource])),
        }
    }
    let line = |(rule, resources): (&Rule, Vec<&str>)| {
        // Any kind of any group: which groups is for the installation to say.
        let groups = match rule.group {
            "*" => "{{ toJson $.Values.installation.roleListGroups }}".to_owned(),
            group => json!([group]).to_string(),
        };
        let names = match rule.names.as_slice() {
            [] => String::new(),
            names => format!("  resourceNames: {}\n", in_namespaces(&json!(names).to_string())),
        };
        let (resources, verbs) = (json!(resources), json!(rule.verbs));
        format!("- apiGroups: {groups}\n{names}  resources: {resources}\n  verbs: {verbs}\n")
    };
    merged.into_iter().map(line).collect()
}
