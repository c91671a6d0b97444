//! The suite, on both servers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kruise_apiserver::ApiServer;
use kruise_apiserver::controllers;
use kruise_comparison::story::{Apart, Behaviour, Server, Step, Stories, minor};
use kruise_comparison::{exceptions, run};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Set to write answers that are not yet written down, and the list of exceptions.
const RECORD: &str = "KRUISE_RECORD";
/// Set to run only behaviours whose names contain this.
const ONLY: &str = "KRUISE_ONLY";

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn recording() -> bool {
    std::env::var_os(RECORD).is_some()
}

fn files() -> Vec<(PathBuf, Stories)> {
    let folder = crate_dir().join("behaviours");
    let mut paths: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let stories = Stories::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, stories)
    };
    paths.into_iter().map(read).collect()
}

/// What the step answered against what is written, as a difference to read.
fn difference(behaviour: &Behaviour, step: &Step, seen: &[String], server: Server) -> Option<String> {
    let expected = step.expected(server);
    if expected == seen {
        return None;
    }
    let mut text = format!("{}\n    > {} {}\n", behaviour.name, step.method, step.path);
    for line in expected.iter().filter(|line| !seen.contains(line)) {
        text.push_str(&format!("    - {line}\n"));
    }
    for line in seen.iter().filter(|line| !expected.contains(line)) {
        text.push_str(&format!("    + {line}\n"));
    }
    Some(text)
}

/// Writes an answer down where the story says that there is one to write.
fn record(reasons: &BTreeSet<Apart>, is_new: bool, step: &mut Step, seen: &[String], server: Server) {
    if step.expected(server) == seen {
        return;
    }
    let apart = reasons.iter().find(|apart| apart.is(server)).copied();
    match server {
        _ if step.expected.is_empty() && (is_new || server != Server::Embedded) => {
            step.expected = seen.to_vec();
        }
        _ if apart.is_some() => {
            step.apart.insert(apart.unwrap(), seen.to_vec());
        }
        // The real answer was written first; the reason says that it is the old one.
        Server::Embedded if step.apart.is_empty() && !reasons.is_empty() => {
            let old = std::mem::replace(&mut step.expected, seen.to_vec());
            step.apart.insert(*reasons.first().unwrap(), old);
        }
        _ => {}
    }
}

async fn compare(client: &Client, server: Server) {
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut failures = Vec::new();
    let mut count = 0;
    let mut exceptional = Vec::new();
    for (path, mut stories) in files() {
        exceptional.extend(exceptions::of(&stories.behaviours, server));
        for behaviour in &mut stories.behaviours {
            if !behaviour.applies(server) || !behaviour.name.contains(&only) {
                continue;
            }
            count += 1;
            let outcome = match run::run(client, behaviour).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    failures.push(format!("{}\n    {error}\n", behaviour.name));
                    continue;
                }
            };
            if recording() {
                let reasons: BTreeSet<Apart> = behaviour.reasons.keys().copied().collect();
                let is_new = behaviour.from.is_some();
                for (step, seen) in behaviour.steps.iter_mut().zip(&outcome) {
                    record(&reasons, is_new, step, seen, server);
                }
            }
            let behaviour = &*behaviour;
            let steps = behaviour.steps.iter().zip(&outcome);
            failures.extend(steps.filter_map(|(step, seen)| difference(behaviour, step, seen, server)));
        }
        if recording() {
            std::fs::write(&path, stories.to_string()).unwrap();
        }
    }
    println!("{count} behaviours on {server:?}");
    exceptional.iter().for_each(|line| println!("{line}"));
    assert!(failures.is_empty(), "{} differ\n\n{}", failures.len(), failures.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn the_embedded_server_answers_what_is_written() {
    let server = ApiServer::builder().seed(1).build();
    let client = Client::new(server.clone(), "default");
    tokio::select! {
        _ = controllers::run(server.local(), controllers::Options::default()) => {}
        () = compare(&client, Server::Embedded) => {}
    }
}

#[tokio::test]
#[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
async fn a_real_server_answers_what_is_written() {
    let path = std::env::var("KUBECONFIG").expect("KUBECONFIG names the cluster for tests");
    let kubeconfig = Kubeconfig::read_from(&path).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    // Refusals are what the suite is about; the client must not try again behind its back.
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let version = client.apiserver_version().await.unwrap().git_version;
    compare(&client, Server::Real(minor(&version).unwrap())).await;
}

#[test]
fn stories_are_whole() {
    let mut names = BTreeSet::new();
    for (path, stories) in files() {
        for behaviour in &stories.behaviours {
            let Behaviour { name, steps, reasons, .. } = behaviour;
            assert!(names.insert(name.clone()), "two behaviours are called {name:?}");
            assert!(
                steps.iter().all(|step| !step.expected.is_empty()),
                "{name:?} has a step without an answer"
            );
            let is_same = |step: &Step| step.apart.values().any(|lines| *lines == step.expected);
            assert!(!steps.iter().any(is_same), "{name:?} has another answer that is no other");
            let apart: BTreeSet<Apart> = steps.iter().flat_map(|step| step.apart.keys().copied()).collect();
            let explained: BTreeSet<Apart> = reasons.keys().copied().collect();
            assert_eq!(apart, explained, "{name:?}: each other answer needs a reason, each reason an answer");
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(stories.to_string(), text, "{} is not written as it would be recorded", path.display());
    }
    assert!(names.len() >= 80, "only {} behaviours", names.len());
}

#[test]
fn the_list_of_exceptions_is_up_to_date() {
    let files = files();
    let wanted = exceptions::document(files.iter().flat_map(|(_, stories)| &stories.behaviours));
    let path = crate_dir().join("../../docs/embedded-cluster-exceptions.md");
    if recording() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, wanted, "set {RECORD}=1 to write {}", path.display());
}
