//! The objects that a cluster begins with: those that were kept, and those that every cluster has.

use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::crd;
use crate::registry::fields;
use crate::rest;
use crate::server::ApiServer;
use crate::store::{Draft, Saved};

impl ApiServer {
    /// Puts back what was kept. Definitions come first: only they tell which fields of custom objects selectors know.
    pub(crate) fn restore(&self, saved: Saved) {
        let (definitions, others): (Vec<_>, Vec<_>) =
            saved.objects.into_iter().partition(|(table, _)| table == crd::TABLE);
        self.put_back(definitions);
        self.serve_restored();
        self.put_back(others);
    }

    fn put_back(&self, objects: Vec<(String, bytes::Bytes)>) {
        let all = self.registry().all();
        for (table, json) in objects {
            let Ok(mut value) = serde_json::from_slice::<Value>(&json) else {
                tracing::error!(table, "a kept object is no JSON");
                continue;
            };
            let resource = all.iter().find(|resource| {
                *resource.table == *table && resource.storage_api_version == resource.api_version()
            });
            let fields = resource.map(|resource| fields::of(resource, &value)).unwrap_or_default();
            let managed = rest::kept_managers(&mut value);
            if let Err(refused) = self.store().restore(&table, Draft { value, fields, managed }) {
                tracing::error!(table, ?refused, "a kept object cannot be put back");
            }
        }
    }
}

/// Creates them. Nothing here waits, since no hooks exist yet.
pub(crate) fn fill(server: &ApiServer) {
    let local = server.local().named("kube-apiserver");
    let put = |group: &str, plural: &str, namespace: &str, object: Value| {
        let Ok(resource) = local.resource(group, plural) else { return };
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if local.get(&resource, namespace, name).is_ok() {
            return;
        }
        let made = local.create(&resource, namespace, object).now_or_never();
        debug_assert!(matches!(made, Some(Ok(_))), "{plural}: {made:?}");
    };
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        put("", "namespaces", "", json!({"metadata": {"name": namespace}}));
    }
    put(
        "",
        "services",
        "default",
        json!({
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {
                "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "type": "ClusterIP",
                "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
                "sessionAffinity": "None",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            },
        }),
    );
    for (name, value, description) in [
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ] {
        put(
            "scheduling.k8s.io",
            "priorityclasses",
            "",
            json!({
                "metadata": {"name": name}, "value": value, "description": description,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        );
    }
}
