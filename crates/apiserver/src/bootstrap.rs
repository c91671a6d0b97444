//! The objects that every cluster has from its first moment.

use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::server::ApiServer;

/// Creates them. Nothing here waits, since no hooks exist yet.
pub(crate) fn fill(server: &ApiServer) {
    let local = server.local();
    let put = |group: &str, plural: &str, namespace: &str, object: Value| {
        let Ok(resource) = local.resource(group, plural) else { return };
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
