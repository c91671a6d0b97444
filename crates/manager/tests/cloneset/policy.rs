//! A server that refuses what our controllers write.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kruise_testkit::Backend;
use kube::{Api, api::DeleteParams};
use serde_json::json;

use crate::stage::Stage;

/// What it says.
pub(crate) const WORDS: &str = "the house forbids it";
/// How long a real server takes to heed a policy.
const HEEDED: Duration = Duration::from_secs(5);

/// A policy that refuses updates of a resource in a namespace unless an expression holds.
pub(crate) struct Policy {
    name: String,
    client: kube::Client,
}

impl Policy {
    /// From now on the expression must hold.
    pub(crate) async fn begins(stage: &Stage, namespace: &str, resource: &str, expression: &str) -> Self {
        let name = format!("refusal-{namespace}");
        stage
            .put(json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": name},
                "spec": {
                    "failurePolicy": "Fail",
                    "matchConstraints": {
                        "namespaceSelector":
                            {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                        "resourceRules": [{
                            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                            "resources": [resource],
                        }],
                    },
                    "validations": [{"expression": expression, "message": WORDS}],
                },
            }))
            .await;
        stage
            .put(json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": name},
                "spec": {"policyName": name, "validationActions": ["Deny"]},
            }))
            .await;
        // A real server takes a moment to heed it.
        if stage.cluster.backend() == Backend::Real {
            tokio::time::sleep(HEEDED).await;
        }
        Self { name, client: stage.cluster.client() }
    }

    /// The server takes everything again.
    pub(crate) async fn ends(&self) {
        let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(self.client.clone());
        bindings.delete(&self.name, &DeleteParams::default()).await.unwrap();
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.client.clone());
        policies.delete(&self.name, &DeleteParams::default()).await.unwrap();
    }
}
