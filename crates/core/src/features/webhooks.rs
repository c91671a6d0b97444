//! The two webhook configurations, made from the list of features.

use std::collections::BTreeMap;

use kruise_api::{gates::Gates, json::set, labels::DELETE_PROTECTION, names};
use serde_json::{Value, json};

use super::{ALL, HookRule, Policy, Reach, Side, Webhook};
use crate::admission::Operation;

/// What an installation may choose.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the manager and of the Service in front of it.
    pub namespace: String,
    /// The Service in front of the webhooks.
    pub service: String,
    /// How long the API server waits for the webhooks of pods.
    pub pod_timeout_seconds: u32,
    /// How long it waits for the others.
    pub timeout_seconds: u32,
    /// What happens when a webhook does not answer, by its name, where it is not as usual.
    pub policies: BTreeMap<String, Policy>,
    /// Namespaces whose pods pass without us, besides the system's and our own.
    pub exempt_namespaces: Vec<String>,
    /// Whether the cluster is one of Azure: its admission enforcer rewrites configurations that do not exclude its own
    /// namespaces.
    pub azure: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: names::NAMESPACE.to_owned(),
            service: names::WEBHOOK_SERVICE.to_owned(),
            pod_timeout_seconds: 5,
            timeout_seconds: 5,
            policies: BTreeMap::new(),
            exempt_namespaces: Vec::new(),
            azure: false,
        }
    }
}

impl Options {
    /// The same, but pods start without us while we do not answer: without sidecars, protection and all else that
    /// admission gives them. For those to whom that is better than no pod.
    #[must_use]
    pub fn fail_open(mut self) -> Self {
        let webhooks = ALL.iter().flat_map(|feature| feature.webhooks);
        let of_pods = webhooks.filter(|webhook| webhook.reach == Reach::OtherNamespaces);
        self.policies.extend(of_pods.map(|webhook| (webhook.name.to_owned(), Policy::Ignore)));
        self
    }
}

/// The webhooks of a side that are registered with these gates, in the order of the list.
pub fn registered(gates: &Gates, side: Side) -> impl Iterator<Item = &'static Webhook> {
    let webhooks = ALL.iter().flat_map(|feature| feature.webhooks);
    webhooks.filter(move |webhook| webhook.side == side && webhook.when.holds(gates))
}

/// The mutating and the validating configuration.
///
/// The annotation `template` is empty: the manager then takes the list as it is here for what it keeps up to date.
pub fn configurations(gates: &Gates, options: &Options) -> [Value; 2] {
    [
        (Side::Mutating, "MutatingWebhookConfiguration", names::MUTATING_WEBHOOK_CONFIGURATION),
        (Side::Validating, "ValidatingWebhookConfiguration", names::VALIDATING_WEBHOOK_CONFIGURATION),
    ]
    .map(|(side, kind, name)| {
        let webhooks: Vec<Value> = registered(gates, side).map(|webhook| entry(webhook, options)).collect();
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name, "annotations": {"template": ""}},
            "webhooks": webhooks,
        })
    })
}

/// The configurations as they are shipped in files. A manager outside of the cluster registers itself by `url`; an explicit
/// null takes that away again, where a server would find both a URL and a Service, and refuse.
pub fn manifests(gates: &Gates, options: &Options) -> [Value; 2] {
    configurations(gates, options).map(|mut configuration| {
        let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.into_iter().flatten() {
            set(webhook, &["clientConfig", "url"], Value::Null);
        }
        configuration
    })
}

/// A webhook as an entry of a configuration.
pub fn entry(webhook: &Webhook, options: &Options) -> Value {
    let policy = options.policies.get(webhook.name).copied().unwrap_or(webhook.policy);
    let timeout = match webhook.reach {
        Reach::OtherNamespaces => options.pod_timeout_seconds,
        Reach::Everything | Reach::Protected => options.timeout_seconds,
    };
    let mut entry = json!({
        "name": webhook.name,
        "clientConfig": {"service": {
            "namespace": options.namespace,
            "name": options.service,
            "path": webhook.path,
        }},
        "rules": webhook.rules.iter().map(rule).collect::<Vec<_>>(),
        "failurePolicy": policy.as_str(),
        "matchPolicy": "Equivalent",
        "sideEffects": webhook.side_effects.as_str(),
        "timeoutSeconds": timeout,
        "admissionReviewVersions": ["v1", "v1beta1"],
    });
    let namespaces = namespace_selector(webhook.reach, options);
    if !namespaces.is_empty() {
        set(&mut entry, &["namespaceSelector", "matchExpressions"], namespaces);
    }
    if webhook.reach == Reach::Protected {
        let labelled = json!([{"key": DELETE_PROTECTION, "operator": "Exists"}]);
        set(&mut entry, &["objectSelector", "matchExpressions"], labelled);
    }
    if webhook.side == Side::Mutating {
        set(&mut entry, &["reinvocationPolicy"], "Never");
    }
    entry
}

fn rule(rule: &HookRule) -> Value {
    let operations: Vec<&str> = rule.operations.iter().copied().map(Operation::as_str).collect();
    json!({
        "apiGroups": [rule.group],
        "apiVersions": rule.versions,
        "resources": [rule.resource],
        "operations": operations,
        "scope": "*",
    })
}

fn namespace_selector(reach: Reach, options: &Options) -> Vec<Value> {
    let unlike = |key: &str, values: Value| json!({"key": key, "operator": "NotIn", "values": values});
    let name = "kubernetes.io/metadata.name";
    let mut expressions = match reach {
        Reach::Everything => Vec::new(),
        Reach::Protected => vec![unlike(name, json!([names::KUBE_SYSTEM]))],
        // By label as the original does it, and by name: without the label our own pods could not start while all of
        // them are down.
        Reach::OtherNamespaces => {
            let mut exempt = vec![names::KUBE_SYSTEM, &options.namespace];
            exempt.extend(options.exempt_namespaces.iter().map(String::as_str));
            vec![unlike("control-plane", json!(["openkruise"])), unlike(name, json!(exempt))]
        }
    };
    if options.azure {
        expressions.push(unlike("control-plane", json!(["true"])));
        expressions.push(unlike("kubernetes.azure.com/managedby", json!(["aks"])));
    }
    expressions
}
