//! Templates of the chart that follow from the list of features: gates, roles, webhook configurations, the policy of node
//! daemons. What depends on a gate stands in a Helm condition on that gate, so that `featureGates` decides in the chart what
//! it decides in the programs.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kruise_api::{
    catalogue::CRDS,
    crd::Conversion,
    gates::{ALIASES, Gate, Gates, Stage, TABLE, rules},
    names,
};
use kruise_core::{
    features::{ALL, Names, Permission, Policy, Reach, Side, Webhook, When, policy, rbac, webhooks},
    migration::Goal,
};
use serde_json::{Value, json};

use super::Generated;

/// The folder of these templates. Every file in it is generated.
pub(super) const FOLDER: &str = "charts/kruise/templates/generated";

const SOURCE: &str = "Made by `cargo xtask generate` from crates/core/src/features. Do not edit.";
const INSTALLED_IN: &str = "{{ $.Values.installation.namespace }}";
const DAEMON_CONFIG: &str = "{{ $.Values.installation.daemonConfigNamespace }}";
/// Sets `$gates`.
const GATES: &str = "{{- $gates := include \"kruise.gates\" . | fromJson }}\n";

/// All templates.
pub(super) fn templates() -> Result<Vec<Generated>> {
    let made = [
        ("_gates.tpl", gates()),
        ("_kinds.tpl", kinds()),
        ("policy.yaml", daemon_policy()?),
        ("roles.yaml", roles()?),
        ("users.yaml", documents(&rbac::user_roles())?),
        ("webhooks.yaml", configurations()?),
    ];
    let files = made.into_iter().map(|(name, text)| Generated {
        path: format!("{FOLDER}/{name}"),
        content: format!("{{{{- /* {SOURCE} */}}}}\n{text}"),
    });
    Ok(files.collect())
}

/// Parses `featureGates` as the programs do.
fn gates() -> String {
    let open = |stage| -> Vec<&str> {
        TABLE.iter().filter(|entry| entry.stage == stage).map(|entry| entry.name).collect()
    };
    // Left alone by `AllAlpha`, because a manager without certificates does not start.
    let alpha: Vec<&str> =
        open(Stage::Alpha).into_iter().filter(|name| *name != "EnableExternalCerts").collect();
    let defaults: Vec<String> =
        TABLE.iter().map(|entry| format!("\n  \"{}\": {}", entry.name, entry.default)).collect();
    let aliases: BTreeMap<&str, &str> = ALIASES.iter().map(|(alias, gate)| (*alias, gate.name())).collect();
    let rules: String = rules::RULES.iter().map(rule_of_gates).collect();
    format!(
        r#"{{{{/* Which gates are open, as JSON: `.Values.featureGates` after the rules between gates. */}}}}
{{{{- define "kruise.gates" -}}}}
{{{{- $gates := fromJson `{{{defaults}
}}` -}}}}
{{{{- $aliases := fromJson `{aliases}` -}}}}
{{{{- $stages := fromJson `{{"AllAlpha":{alpha},"AllBeta":{beta}}}` -}}}}
{{{{- $single := dict -}}}}
{{{{- range splitList "," (.Values.featureGates | default "") -}}}}
{{{{- if trim . -}}}}
{{{{- $parts := splitn "=" 2 . -}}}}
{{{{- $name := trim $parts._0 -}}}}
{{{{- $name = get $aliases $name | default $name -}}}}
{{{{- $value := trim ($parts._1 | default "") -}}}}
{{{{- $open := has $value (list "1" "t" "T" "true" "TRUE" "True") -}}}}
{{{{- if not (or $open (has $value (list "0" "f" "F" "false" "FALSE" "False"))) -}}}}
{{{{- fail (printf "featureGates: invalid value of %s; write %s=true or %s=false" $name $name $name) -}}}}
{{{{- else if hasKey $gates $name -}}}}
{{{{- $_ := set $single $name $open -}}}}
{{{{- else if hasKey $stages $name -}}}}
{{{{- range get $stages $name -}}}}{{{{- $_ := set $gates . $open -}}}}{{{{- end -}}}}
{{{{- else -}}}}
{{{{- fail (printf "featureGates: unrecognized feature gate %s" $name) -}}}}
{{{{- end -}}}}
{{{{- end -}}}}
{{{{- end -}}}}
{{{{- $gates = mergeOverwrite $gates $single -}}}}
{rules}{{{{- toJson $gates -}}}}
{{{{- end }}}}
"#,
        defaults = defaults.join(","),
        aliases = json!(aliases),
        alpha = json!(alpha),
        beta = json!(open(Stage::Beta)),
    )
}

/// A rule between gates as an action of a template.
fn rule_of_gates(rule: &rules::Rule) -> String {
    let (condition, open) = match rule.cause {
        rules::Cause::Closed(gate) => (format!("not $gates.{gate}"), false),
        rules::Cause::Open(gates) => (among(gates.iter().map(ToString::to_string), "or"), true),
    };
    let gates: Vec<String> = rule.gates.iter().map(|gate| format!("\"{gate}\"")).collect();
    let gates = gates.join(" ");
    format!(
        "{{{{- if {condition} -}}}}{{{{- range list {gates} -}}}}{{{{- $_ := set $gates . {open} -}}}}{{{{- end -}}}}{{{{- end -}}}}\n"
    )
}

fn kinds() -> String {
    let old = Goal::OpenKruise19.kinds().filter(|(crd, version)| Goal::Ours.version(crd) != Some(*version));
    let old: Vec<&str> = old.map(|(crd, _)| crd.kind).collect();
    format!(
        "{{{{/* Kinds that OpenKruise 1.9 stores as v1alpha1. */}}}}\n{{{{- define \"kruise.storedAsV1alpha1\" -}}}}\n{}\n{{{{- end }}}}\n",
        old.join(" ")
    )
}

/// `a`, or `or $gates.a $gates.b`.
fn among(gates: impl Iterator<Item = String>, operator: &str) -> String {
    let gates: Vec<String> = gates.map(|gate| format!("$gates.{gate}")).collect();
    match gates.as_slice() {
        [only] => only.clone(),
        _ => format!("{operator} {}", gates.join(" ")),
    }
}

/// The condition of a template under which something holds; none if it always does.
fn condition(when: When) -> Option<String> {
    match when {
        When::Always => None,
        When::All(gates) => Some(among(gates.iter().map(ToString::to_string), "and")),
        When::Any(gates) => Some(among(gates.iter().map(ToString::to_string), "or")),
        When::Not(gate) => Some(format!("not $gates.{gate}")),
    }
}

/// In brackets if it has several parts.
fn operand(condition: &str) -> String {
    if condition.contains(' ') { format!("({condition})") } else { condition.to_owned() }
}

fn both(one: When, other: When) -> Option<String> {
    match (condition(one), condition(other)) {
        (Some(one), Some(other)) if one == other => Some(one),
        (Some(one), Some(other)) => Some(format!("and {} {}", operand(&one), operand(&other))),
        (one, other) => one.or(other),
    }
}

/// Objects as they are, with the namespaces of the values.
fn documents(objects: &[Value]) -> Result<String> {
    let mut text = String::new();
    for (index, object) in objects.iter().enumerate() {
        let yaml = serde_saphyr::to_string(object).context("failed to write a template")?;
        text.push_str(if index == 0 { "" } else { "---\n" });
        text.push_str(&in_namespaces(yaml.trim_end()));
        text.push('\n');
    }
    Ok(text)
}

fn in_namespaces(yaml: &str) -> String {
    yaml.replace(names::NAMESPACE, INSTALLED_IN).replace(names::DAEMON_CONFIG_NAMESPACE, DAEMON_CONFIG)
}

/// Every gate open. Together with the rules that say what is off, nothing is missing.
fn everything() -> Gates {
    TABLE.iter().fold(Gates::default(), |gates, entry| gates.with(entry.gate))
}

/// What binds daemons to their nodes. It names everything that a daemon may write with any gates: that it may not write
/// something is no reason to let it.
fn daemon_policy() -> Result<String> {
    let objects = documents(&policy::objects(&everything()))?;
    let served = "semverCompare \">=1.30.0-0\" .Capabilities.KubeVersion.Version";
    Ok(format!("{GATES}{{{{- if and $gates.KruiseDaemon ({served}) }}}}\n{objects}{{{{- end }}}}\n"))
}

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
fn roles() -> Result<String> {
    let mut text = GATES.to_owned();
    let objects = rbac::objects(&everything().without(Gate::EnableExternalCerts));
    let of = |kind: &str, name: &str| {
        objects.iter().find(|object| {
            object["metadata"]["name"] == name && object["kind"].as_str().is_some_and(|is| is.ends_with(kind))
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

/// Both webhook configurations, and the parts that their entries share.
fn configurations() -> Result<String> {
    let options = webhooks::Options::default();
    let mut text = GATES.to_owned();
    text.push_str("{{- $policy := include \"kruise.podFailurePolicy\" . }}\n");
    text.push_str("{{- $timeout := int .Values.webhookConfiguration.timeoutSeconds }}\n");
    let configurations = webhooks::configurations(&everything(), &options);
    for (side, configuration) in [Side::Mutating, Side::Validating].into_iter().zip(configurations) {
        let (kind, name) = (&configuration["kind"], &configuration["metadata"]["name"]);
        let (kind, name) = (kind.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
        text.push_str(&format!(
            "---\n{{{{- $service := include \"kruise.webhookService\" (list . \"{kind}\" \"{name}\") }}}}\n\
             apiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n  annotations:\n    \
             {{{{- with .Values.externalCerts.annotations }}}}\n    {{{{- toYaml . | nindent 4 }}}}\n    {{{{- end }}}}\n    \
             # The manager takes over what stands here.\n    template: \"\"\nwebhooks:\n"
        ));
        for webhook in ALL.iter().flat_map(|feature| feature.webhooks).filter(|webhook| webhook.side == side)
        {
            text.push_str(&entry(webhook, &options));
        }
    }
    for reach in [Reach::OtherNamespaces, Reach::Protected, Reach::Everything] {
        text.push_str(&selectors(reach, &options)?);
    }
    text.push_str(SERVICE);
    Ok(text)
}

/// Where the webhooks answer: the Service, and the authority that the server knows already.
const SERVICE: &str = r#"
{{- define "kruise.webhookService" -}}
{{- $root := index . 0 -}}
{{- $gates := include "kruise.gates" $root | fromJson -}}
url: null
{{- if not $gates.EnableExternalCerts }}
{{- $found := lookup "admissionregistration.k8s.io/v1" (index . 1) "" (index . 2) | default dict }}
{{- with first (dig "webhooks" (list dict) $found | default (list dict)) }}
{{- with dig "clientConfig" "caBundle" "" . }}
caBundle: {{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
"#;

/// The name of the template with the selectors of a reach.
fn selectors_name(reach: Reach) -> &'static str {
    match reach {
        Reach::Everything => "kruise.reach.everything",
        Reach::OtherNamespaces => "kruise.reach.otherNamespaces",
        Reach::Protected => "kruise.reach.protected",
    }
}

/// The fields of an entry that say which objects it is called for.
const SELECTORS: [&str; 2] = ["namespaceSelector", "objectSelector"];

/// The selectors of webhooks with this reach.
fn selectors(reach: Reach, options: &webhooks::Options) -> Result<String> {
    let azure = webhooks::Options { azure: true, ..options.clone() };
    let of = |options: &webhooks::Options| -> Result<String> {
        let webhook = ALL.iter().flat_map(|feature| feature.webhooks).find(|webhook| webhook.reach == reach);
        let entry = webhook.map(|webhook| webhooks::entry(webhook, options)).context("no such webhook")?;
        let mut text = String::new();
        for field in SELECTORS {
            if let Some(selector) = entry.get(field) {
                text.push_str(&format!("{field}: {}\n", in_namespaces(&selector.to_string())));
            }
        }
        Ok(text)
    };
    let (with, without) = (of(&azure)?, of(options)?);
    let name = selectors_name(reach);
    let otherwise = if without.is_empty() { String::new() } else { format!("{{{{- else }}}}\n{without}") };
    Ok(format!(
        "\n{{{{- define \"{name}\" }}}}\n{{{{- if $.Values.webhookConfiguration.aksIntegration }}}}\n{with}{otherwise}{{{{- end }}}}\n{{{{- end }}}}\n"
    ))
}

/// One webhook, under the condition of its gates.
fn entry(webhook: &Webhook, options: &webhooks::Options) -> String {
    let entry = webhooks::entry(webhook, options);
    let mut text = format!(
        "- name: {}\n  clientConfig:\n    service:\n      name: {}\n      namespace: {INSTALLED_IN}\n      path: {}\n    \
         {{{{- $service | nindent 4 }}}}\n  rules:\n",
        webhook.name, options.service, webhook.path
    );
    for rule in entry["rules"].as_array().into_iter().flatten() {
        text.push_str(&format!("  - {rule}\n"));
    }
    let policy = match (webhook.reach, webhook.policy) {
        (Reach::OtherNamespaces, Policy::Fail) => "{{ $policy }}",
        (_, policy) => policy.as_str(),
    };
    text.push_str(&format!("  failurePolicy: {policy}\n  timeoutSeconds: {{{{ $timeout }}}}\n"));
    let special = ["name", "clientConfig", "rules", "failurePolicy", "timeoutSeconds"];
    for (field, value) in entry.as_object().into_iter().flatten() {
        if !special.contains(&field.as_str()) && !SELECTORS.contains(&field.as_str()) {
            text.push_str(&format!("  {field}: {value}\n"));
        }
    }
    text.push_str(&format!("  {{{{- include \"{}\" $ | nindent 2 }}}}\n", selectors_name(webhook.reach)));
    match condition(webhook.when) {
        Some(condition) => format!("{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"),
        None => text,
    }
}
