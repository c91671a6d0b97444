//! What binds node daemons to their own nodes.
//!
//! A role says which kinds a daemon may report on, but not on whose objects: with roles alone, who takes over one node could
//! write for all of them. Servers since 1.30 write into the identity of a pod on which node the pod runs, and let a policy
//! look at it. So the policy compares the node of the daemon with the node of the object, for everything but events.

use kruise_api::{gates::Gates, labels, names};
use serde_json::{Value, json};

use super::{ALL, Feature, rbac::Role};

/// The name of the policy, and of its binding.
pub const NAME: &str = "kruise-daemon-own-node";

/// Where servers tell on which node the pod of a token runs.
const NODE_CLAIM: &str = "authentication.kubernetes.io/node-name";
const VERSION: &str = "admissionregistration.k8s.io/v1";

/// The policy and its binding; nothing if no daemon runs with these gates.
pub fn objects(gates: &Gates) -> Vec<Value> {
    let bound = bound(gates);
    if bound.is_empty() {
        return Vec::new();
    }
    let rules: Vec<Value> = bound
        .iter()
        .map(|(group, resource)| {
            // All versions of a kind are the same objects.
            json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [resource]})
        })
        .collect();
    let account = format!("system:serviceaccount:{}:{}", names::NAMESPACE, names::DAEMON);
    let policy = json!({
        "apiVersion": VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [
                {"name": "node-daemon", "expression": format!("request.userInfo.username == '{account}'")},
            ],
            "variables": [
                {"name": "own", "expression": format!("request.userInfo.extra[?'{NODE_CLAIM}'][0].orValue('')")},
                {"name": "wanted", "expression": node_of_object()},
            ],
            "validations": [
                {
                    "expression": "variables.own != ''",
                    "message": "the identity of this node daemon names no node: it must use the token of its pod",
                    "reason": "Forbidden",
                },
                {
                    "expression": "variables.own == '' || variables.own == variables.wanted",
                    "messageExpression": "'the node daemon of ' + variables.own + ' may not report on objects of node \"' \
                        + variables.wanted + '\"'",
                    "reason": "Forbidden",
                },
            ],
        },
    });
    let binding = json!({
        "apiVersion": VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    });
    vec![policy, binding]
}

/// Everything that daemons write and that belongs to a node, by group and resource.
fn bound(gates: &Gates) -> Vec<(&'static str, &'static str)> {
    let is_on = |feature: &&Feature| feature.built && feature.when.holds(gates);
    let mut bound: Vec<(&str, &str)> = ALL
        .iter()
        .filter(is_on)
        .flat_map(|feature| feature.permissions)
        .filter(|permission| permission.role == Role::Daemon && permission.when.holds(gates))
        .filter(|permission| permission.verbs.iter().any(|verb| ["patch", "update"].contains(verb)))
        .flat_map(|permission| permission.resources.iter().map(move |resource| (permission.group, *resource)))
        // Told by everybody about everything.
        .filter(|(_, resource)| *resource != "events")
        .collect();
    bound.sort_unstable();
    bound.dedup();
    bound
}

/// The node of an object as it was: whoever writes must not be able to move it first. Objects of other kinds than these two
/// are named after their node.
fn node_of_object() -> String {
    let label = labels::CRR_NODE_NAME;
    format!(
        "request.resource.resource == 'pods' ? oldObject.?spec.?nodeName.orValue('') : \
         request.resource.resource == 'containerrecreaterequests' ? \
         oldObject.metadata.?labels[?'{label}'].orValue('') : request.name"
    )
}
