//! What the chart knows of gates and kinds.

use std::collections::BTreeMap;

use kruise_api::gates::{ALIASES, Stage, TABLE, rules};
use kruise_core::migration::Goal;
use serde_json::json;

use super::among;

/// Parses `featureGates` as the programs do.
pub(super) fn gates() -> String {
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

/// Lists of kinds.
pub(super) fn kinds() -> String {
    let old = Goal::OpenKruise19.kinds().filter(|(crd, version)| Goal::Ours.version(crd) != Some(*version));
    let old: Vec<&str> = old.map(|(crd, _)| crd.kind).collect();
    format!(
        "{{{{/* Kinds that OpenKruise 1.9 stores as v1alpha1. */}}}}\n{{{{- define \"kruise.storedAsV1alpha1\" -}}}}\n{}\n{{{{- end }}}}\n",
        old.join(" ")
    )
}
