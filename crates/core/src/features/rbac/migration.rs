//! What `kruise-manager migrate-storage` must be allowed to do. It has an account of its own: the manager never writes
//! definitions or other people's objects as a whole, and the account can go when the migration is over.

use kruise_api::{catalogue::CRDS, crd::Crd, names};
use serde_json::{Value, json};

use super::GROUP;

const NAME: &str = "kruise-storage-migration";

/// The account, its role and the binding of the two.
pub fn migration() -> Vec<Value> {
    let moved: Vec<&Crd> = CRDS.iter().copied().filter(|crd| crd.versions.len() > 1).collect();
    let definitions: Vec<String> = moved.iter().map(|crd| crd.name()).collect();
    let own = "apiextensions.k8s.io";
    let mut rules = vec![
        json!({"apiGroups": [own], "resources": ["customresourcedefinitions"], "verbs": ["get"]}),
        json!({
            "apiGroups": [own],
            "resources": ["customresourcedefinitions", "customresourcedefinitions/status"],
            "resourceNames": definitions,
            "verbs": ["patch"],
        }),
    ];
    for group in [names::APPS_GROUP, names::POLICY_GROUP] {
        let kinds = moved.iter().filter(|crd| crd.group == group);
        let plurals: Vec<&str> = kinds.map(|crd| crd.plural).collect();
        rules.push(json!({"apiGroups": [group], "resources": plurals, "verbs": ["list", "patch"]}));
    }
    let role = "ClusterRole";
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": names::NAMESPACE}}),
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": role, "metadata": {"name": NAME}, "rules": rules}),
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": GROUP, "kind": role, "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": names::NAMESPACE}],
        }),
    ]
}
