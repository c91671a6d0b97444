//! Templates of the chart that follow from the list of features: gates, roles, webhook configurations, the policy of node
//! daemons. What depends on a gate stands in a Helm condition on that gate, so that `featureGates` decides in the chart what
//! it decides in the programs.

mod gates;
mod roles;
mod webhooks;

use anyhow::{Context, Result};
use kruise_api::{
    gates::{Gates, TABLE},
    json, names,
};
use kruise_core::features::{When, policy, rbac};
use serde_json::Value;

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
        ("_gates.tpl", gates::gates()),
        ("_kinds.tpl", gates::kinds()),
        ("policy.yaml", daemon_policy()?),
        ("roles.yaml", roles::roles()?),
        ("users.yaml", documents(&rbac::user_roles())?),
        ("webhooks.yaml", webhooks::configurations()?),
    ];
    let files = made.into_iter().map(|(name, text)| Generated {
        path: format!("{FOLDER}/{name}"),
        content: format!("{{{{- /* {SOURCE} */}}}}\n{text}"),
    });
    Ok(files.collect())
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

/// A text in an object; empty if it is not there.
fn text_at<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    json::at(object, path).and_then(Value::as_str).unwrap_or_default()
}
