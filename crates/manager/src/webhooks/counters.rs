//! What dashboards show of webhooks and of refusals.

use std::time::Duration;

use kruise_core::admission::Request;
use kruise_runtime::metrics::{Counter, Framework, Registry};

/// Counts requests under the names that dashboards know.
pub(super) struct Counters(pub(super) Framework);

impl kruise_webhook::service::Metrics for Counters {
    fn began(&self, webhook: &str) {
        self.0.webhook_in_flight.add(&[webhook], 1.0);
    }

    fn ended(&self, webhook: &str, code: u16, took: Duration) {
        self.0.webhook_in_flight.add(&[webhook], -1.0);
        self.0.webhook_requests.inc(&[webhook, &code.to_string()]);
        self.0.webhook_latency.observe(&[webhook], took.as_secs_f64());
    }

    fn admission_panicked(&self) {
        self.0.webhook_panics.inc(&[]);
    }

    fn conversion_panicked(&self) {
        self.0.conversion_panics.inc(&[]);
    }
}

/// Counts refused deletions, by object and user.
#[derive(Clone, Debug)]
pub(super) struct Refusals {
    namespaces: Counter,
    definitions: Counter,
    workloads: Counter,
}

impl Refusals {
    pub(super) fn new(registry: &Registry) -> Self {
        const OBJECT: &[&str] = &["name", "username"];
        const WORKLOAD: &[&str] = &["kind_namespace_name", "username"];
        Self {
            namespaces: registry.counter(
                "namespace_deletion_protection",
                "Deletions of namespaces that were refused.",
                OBJECT,
            ),
            definitions: registry.counter(
                "crd_deletion_protection",
                "Deletions of definitions of kinds that were refused.",
                OBJECT,
            ),
            workloads: registry.counter(
                "workload_deletion_protection",
                "Deletions of workloads, services and ingresses that were refused.",
                WORKLOAD,
            ),
        }
    }

    pub(super) fn count(&self, request: &Request) {
        let Request { kind, namespace, user, .. } = request;
        let name = request.object_name();
        match kind.kind.as_str() {
            "Namespace" => self.namespaces.inc(&[name, &user.username]),
            "CustomResourceDefinition" => self.definitions.inc(&[name, &user.username]),
            kind => self.workloads.inc(&[&format!("{kind}_{namespace}_{name}"), &user.username]),
        }
    }
}
