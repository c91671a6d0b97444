//! Both webhook configurations as templates: each entry under the condition of its gates.

use anyhow::{Context, Result};
use kruise_core::features::{ALL, Policy, Reach, Side, Webhook, webhooks};
use serde_json::Value;

use super::{GATES, INSTALLED_IN, condition, everything, in_namespaces, text_at};

/// Both webhook configurations, and the parts that their entries share.
pub(super) fn configurations() -> Result<String> {
    let options = webhooks::Options::default();
    let mut text = GATES.to_owned();
    text.push_str("{{- $policy := include \"kruise.podFailurePolicy\" . }}\n");
    text.push_str("{{- $timeout := int .Values.webhookConfiguration.timeoutSeconds }}\n");
    let configurations = webhooks::configurations(&everything(), &options);
    for (side, configuration) in [Side::Mutating, Side::Validating].into_iter().zip(configurations) {
        let (kind, name) =
            (text_at(&configuration, &["kind"]), text_at(&configuration, &["metadata", "name"]));
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
    for rule in entry.get("rules").and_then(Value::as_array).into_iter().flatten() {
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
