//! The program itself: what it says when it cannot start.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{path::Path, process::Command};

use tempfile::TempDir;

/// Runs the daemon to its end and gives its exit code and what it said.
fn run(folder: &Path, node: Option<&str>, flags: &[&str]) -> (Option<i32>, String) {
    let kubeconfig = folder.join("kubeconfig");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
        contexts: [{name: c, context: {cluster: c, user: u}}]\n\
        clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: u, user: {}}]\n";
    std::fs::write(&kubeconfig, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kruise-daemon"));
    command.env_remove("NODE_NAME").args(["--addr=127.0.0.1:0", "--enable-pprof=false"]);
    command.arg(format!("--kubeconfig={}", kubeconfig.display()));
    command.arg(format!("--socket-folder={}", folder.display())).args(flags);
    if let Some(node) = node {
        command.env("NODE_NAME", node);
    }
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Node daemon 8.1-1.
#[test]
fn without_a_node_name_it_ends_and_names_what_is_missing() {
    let folder = TempDir::new().unwrap();
    let (code, said) = run(folder.path(), None, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("not found NODE_NAME in environments"), "{said}");
}

/// Node daemon 8.1-3, PLATFORM-41.
#[test]
fn without_a_runtime_it_ends_and_names_what_is_missing() {
    let folder = TempDir::new().unwrap();
    let (code, said) = run(folder.path(), Some("n1"), &["--socket-file=k.sock"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("failed to new runtime factory: not found container runtime sock"), "{said}");
}

#[test]
fn a_gate_that_nobody_knows_is_named() {
    let folder = TempDir::new().unwrap();
    let (code, said) = run(folder.path(), Some("n1"), &["--feature-gates=Nonsense=true"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Nonsense"), "{said}");
}
