//! Sessions with the machine's kubectl: what is typed, and what a person sees.
//!
//! A session is a file of `sessions/`: lines that begin with `$ ` are typed into a shell, the lines below are
//! the answer (standard output and error together), and lines that begin with `## ` are remarks. What differs from run
//! to run (ages, times, uids, addresses, random ends of names) stands there as a placeholder such as `<age>`. An
//! exit code other than zero stands as `[exit 1]` below the answer.
//!
//! `KUBECTL=PATH` plays the sessions with another kubectl than that on `PATH`.
//!
//! `UPDATE_SESSIONS=1 cargo test -p kruise-local --test kubectl` writes what was seen into the files; read the
//! difference before you keep it, since the files hold what a real server answers.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use kruise_local::cluster::{self, Settings};
use kruise_local::daemons::When;
use regex::{Captures, Regex};

/// One command of a session with the remarks before it.
struct Step {
    remarks: Vec<String>,
    command: String,
    expected: String,
}

fn parse(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut remarks = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let (remarks, command) = (std::mem::take(&mut remarks), command.to_owned());
            steps.push(Step { remarks, command, expected: String::new() });
        } else if line.starts_with("##") {
            remarks.push(line.to_owned());
        } else if let Some(step) = steps.last_mut() {
            step.expected.push_str(line);
            step.expected.push('\n');
        }
    }
    for step in &mut steps {
        step.expected = step.expected.trim_end().to_owned();
    }
    steps
}

fn render(steps: &[Step]) -> String {
    let mut text = String::new();
    for (i, step) in steps.iter().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        for remark in &step.remarks {
            writeln!(text, "{remark}").unwrap();
        }
        writeln!(text, "$ {}", step.command).unwrap();
        if !step.expected.is_empty() {
            writeln!(text, "{}", step.expected).unwrap();
        }
    }
    text
}

/// How lines begin that only newer kubectls add. What they say is about themselves, not about the server.
const OF_NEWER_KUBECTLS: [&str; 2] =
    ["All commands and output from this session will be recorded", "Flag --cpu-percent has been deprecated"];

/// Replaces what differs from run to run. Columns keep their places where the placeholder fits.
struct Placeholders(Vec<(Regex, &'static str)>);

impl Placeholders {
    fn new() -> Self {
        let rules = [
            // The random end of a name of a pod.
            (r"(-[0-9a-z]{8,10})-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "${1}-<5ch>"),
            (r"\b(cs|ads)-demo-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "${1}-demo-<5ch>"),
            (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uid>"),
            (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
            (r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
            (r#"(resourceVersion"?: )"\d+""#, r#"${1}"<version>""#),
            (r"\b127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
            (r"\b10\.\d+\.\d+\.\d+(/\d+)?\b", "<ip>"),
            (r"\b\d+(\.\d+)?s \(\d+(\.\d+)?s including waiting\)", "<age> (<age> including waiting)"),
            (r"(containerd://|sha256:)[0-9a-f]{64}", "${1}<id>"),
            // Newer kubectls say where and of what.
            (r"\bspec\.\w+\{\S+\}: ", ""),
            (r"\bdeleted from \S+ namespace", "deleted"),
            (r"X509SHA256=[0-9a-f]{64}", "X509SHA256=<id>"),
            (r"\bcontainer [0-9a-f]{12}\b", "container <id>"),
            (r"(^|[ (])((\d{1,2}[dhm])?\d{1,2}s|\d{1,2}m)($|[ )])", "${1}<age>${4}"),
        ];
        Self(rules.map(|(pattern, name)| (Regex::new(&format!("(?m){pattern}")).unwrap(), name)).into())
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (pattern, name) in &self.0 {
            let spaced =
                Regex::new(&format!("(?m)(?:{})( *)", pattern.as_str().trim_start_matches("(?m)"))).unwrap();
            let placeholder = |found: &Captures<'_>| {
                let mut placeholder = String::new();
                found.expand(name, &mut placeholder);
                let spaces = found.get(found.len() - 1).map_or(0, |spaces| spaces.len());
                // In a column, the placeholder takes the room of what it stands for.
                let width = if spaces > 1 { found[0].len() } else { placeholder.len() + spaces };
                format!("{placeholder:width$}")
            };
            // A match takes the spaces behind it, so of two neighbouring columns it takes only the first.
            for _ in 0..2 {
                text = spaced.replace_all(&text, placeholder).into_owned();
            }
        }
        let is_old = |line: &&str| !OF_NEWER_KUBECTLS.iter().any(|new| line.starts_with(new));
        text.lines().filter(is_old).map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}

/// The kubectl to play with.
fn kubectl() -> PathBuf {
    env::var_os("KUBECTL").map_or_else(|| PathBuf::from("kubectl"), PathBuf::from)
}

fn has_kubectl() -> bool {
    Command::new(kubectl()).args(["version", "--client"]).output().is_ok_and(|output| output.status.success())
}

/// Where programs are looked for: first in a folder that has nothing but the chosen kubectl.
fn path(home: &Path) -> OsString {
    let usual = env::var_os("PATH").unwrap_or_default();
    let chosen = kubectl();
    if chosen.components().count() == 1 {
        return usual;
    }
    let folder = home.join("bin");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(chosen.canonicalize().unwrap(), folder.join("kubectl")).unwrap();
    let all = std::iter::once(folder).chain(env::split_paths(&usual));
    env::join_paths(all).unwrap()
}

fn run(session: &str) {
    run_with(session, "");
}

/// Plays a session on a cluster with more feature gates.
fn run_with(session: &str, feature_gates: &str) {
    if !has_kubectl() {
        eprintln!("left out: the session {session}, since there is no kubectl on PATH");
        return;
    }
    let sessions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let file = sessions.join(format!("{session}.txt"));
    let steps = parse(&fs::read_to_string(&file).unwrap());
    let home = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(sessions.join("files")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, home.path().join(path.file_name().unwrap())).unwrap();
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::os::unix::fs::symlink(examples.canonicalize().unwrap(), home.path().join("examples")).unwrap();

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let kubeconfig = home.path().join("kubeconfig");
    let cluster = runtime.block_on(cluster::start(&settings(kubeconfig.clone(), feature_gates))).unwrap();
    let placeholders = Placeholders::new();
    let path = path(home.path());
    let mut seen = Vec::new();
    for step in steps.iter() {
        let output = Command::new("sh")
            .current_dir(home.path())
            .args(["-c", &format!("exec 2>&1; {}", step.command)])
            .env("HOME", home.path())
            .env("KUBECONFIG", &kubeconfig)
            .env("PATH", &path)
            .env("TZ", "UTC")
            .output()
            .unwrap();
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text = text.replace(&home.path().display().to_string(), "<home>");
        let mut text = placeholders.fill(&text);
        match output.status.code() {
            Some(0) => {}
            Some(code) => write!(text, "\n[exit {code}]").unwrap(),
            None => text.push_str("\n[killed]"),
        }
        seen.push(text.trim().to_owned());
    }
    runtime.block_on(cluster.stop()).unwrap();

    if env::var_os("UPDATE_SESSIONS").is_some() {
        let steps: Vec<Step> =
            steps.into_iter().zip(seen).map(|(step, expected)| Step { expected, ..step }).collect();
        fs::write(&file, render(&steps)).unwrap();
        return;
    }
    let mut faults = String::new();
    for (step, seen) in steps.iter().zip(&seen) {
        if step.expected.trim() != seen {
            let Step { command, expected, .. } = step;
            write!(faults, "$ {command}\n--- expected\n{expected}\n--- seen\n{seen}\n\n").unwrap();
        }
    }
    assert!(faults.is_empty(), "the session {session} went otherwise:\n\n{faults}");
}

#[allow(clippy::disallowed_methods, reason = "kubectl compares times with the clock of the machine")]
fn settings(kubeconfig: PathBuf, feature_gates: &str) -> Settings {
    Settings {
        port: Some(0),
        kubeconfig,
        data_dir: None,
        nodes: 3,
        speed: 1.0,
        seed: 1,
        now: jiff::Timestamp::now(),
        with_manager: true,
        daemons: When::ThereIsWork,
        feature_gates: feature_gates.to_owned(),
    }
}

#[test]
fn plain_objects_are_made_read_changed_and_deleted() {
    run("objects");
}

#[test]
fn what_kubectl_makes_by_itself_is_taken() {
    run("create");
}

#[test]
fn the_server_says_what_it_serves() {
    run("discovery");
}

#[test]
fn our_kinds_are_served_in_all_their_versions() {
    run("kinds");
}

#[test]
fn mistakes_are_answered_with_what_is_wrong() {
    run("mistakes");
}

#[test]
fn a_deployment_comes_up_rolls_and_goes() {
    run("deployments");
}

#[test]
fn pods_run_and_tell_about_themselves() {
    run("pods");
}

#[test]
fn pods_can_be_talked_to() {
    run("inside");
}

#[test]
fn who_asks_counts() {
    run("access");
}

#[test]
fn several_manage_one_object() {
    run("managers");
}

#[test]
fn nodes_are_ready_and_can_be_closed() {
    run("nodes");
}

#[test]
fn the_tutorial_of_a_clone_set_goes_as_it_did() {
    run("cloneset");
}

#[test]
fn a_daemon_set_comes_up_and_is_updated_in_place_node_by_node() {
    run("daemonset");
}

#[test]
fn the_tutorial_of_a_stateful_set_goes_as_it_did() {
    run("statefulset");
}

#[test]
fn the_tutorial_of_a_sidecar_set_goes_as_it_did() {
    run("sidecarset");
}

#[test]
fn the_tutorial_of_a_workload_spread_goes_as_it_did() {
    run("workloadspread");
}

#[test]
fn a_united_deployment_runs_in_two_zones() {
    run("uniteddeployment");
}

#[test]
fn a_budget_and_deletion_protection_say_no() {
    run("protection");
}

#[test]
fn containers_start_one_after_the_other() {
    run("launch-priority");
}

#[test]
fn the_tutorial_of_a_broadcast_job_goes_as_it_did() {
    run("broadcastjob");
}

#[test]
fn the_tutorial_of_an_advanced_cron_job_goes_as_it_did() {
    run("advancedcronjob");
}

#[test]
fn a_resource_distribution_goes_as_it_did() {
    run_with("resourcedistribution", "ResourceDistributionGate=true");
}
