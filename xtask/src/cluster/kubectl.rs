//! Asks the API server, by `kubectl`: the machine's own, or the one of the packages.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::layout::Layout;
use super::packages::Packages;
use super::tool;

/// `kubectl` with the cluster's kubeconfig.
#[derive(Debug, Clone)]
pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

/// A node as far as a cluster's health goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) ready: bool,
    pub(crate) version: String,
}

/// The machine's own kubectl, or the one of the packages.
pub(crate) fn program(layout: &Layout) -> Result<PathBuf> {
    tool::find("kubectl")
        .or_else(|| Packages::cached(layout)?.program("kubectl").ok())
        .context("there is no kubectl; install it, or let `cargo xtask cluster up` fetch one")
}

impl Kubectl {
    pub(crate) fn find(layout: &Layout) -> Result<Self> {
        Ok(Self { program: program(layout)?, kubeconfig: layout.kubeconfig() })
    }

    /// Whether the API server says that it is ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.run(&["get", "--raw", "/readyz"]).is_ok_and(|told| told.trim() == "ok")
    }

    /// The version that the API server tells.
    pub(crate) fn server_version(&self) -> Result<String> {
        let told: Value = serde_json::from_str(&self.run(&["get", "--raw", "/version"])?)?;
        Ok(told.get("gitVersion").and_then(Value::as_str).unwrap_or("unknown").to_owned())
    }

    pub(crate) fn nodes(&self) -> Result<Vec<Node>> {
        Ok(nodes(&serde_json::from_str(&self.run(&["get", "nodes", "-o", "json"])?)?))
    }

    /// Whether the default namespace takes pods.
    pub(crate) fn has_default_service_account(&self) -> bool {
        self.run(&["get", "serviceaccount", "default", "--namespace=default"]).is_ok()
    }

    /// Runs kubectl; the answer is what it prints.
    fn run(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.env("KUBECONFIG", &self.kubeconfig).arg("--request-timeout=5s").args(args);
        tool::capture(&mut command)
    }
}

fn nodes(list: &Value) -> Vec<Node> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = list.get("items").and_then(Value::as_array).into_iter().flatten();
    items
        .map(|node| Node {
            name: text(node.pointer("/metadata/name")),
            ready: is_ready(node),
            version: text(node.pointer("/status/nodeInfo/kubeletVersion")),
        })
        .collect()
}

fn is_ready(node: &Value) -> bool {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions
        .filter(|condition| condition.get("type").and_then(Value::as_str) == Some("Ready"))
        .any(|condition| condition.get("status").and_then(Value::as_str) == Some("True"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check_ready(conditions: Value, expected: bool) {
        let list =
            json!({ "items": [{ "metadata": { "name": "a" }, "status": { "conditions": conditions } }] });
        assert_eq!(nodes(&list), [Node { name: "a".to_owned(), ready: expected, version: String::new() }]);
    }

    #[test]
    fn a_node_is_ready_when_its_condition_says_so() {
        check_ready(json!([{ "type": "Ready", "status": "True" }]), true);
        check_ready(json!([{ "type": "Ready", "status": "Unknown" }]), false);
        check_ready(json!([{ "type": "DiskPressure", "status": "True" }]), false);
        check_ready(json!(null), false);
    }
}
