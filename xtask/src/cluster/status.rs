//! Tells whether the cluster is usable, part by part.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;

use super::kubectl::{Kubectl, Node};
use super::layout::{Layout, REAL_NODE, hollow_name};
use super::process::Found;
use super::record::Record;
use super::{control_plane, node, process, registry};

/// What was seen, and what is wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) text: String,
    pub(crate) problems: Vec<String>,
}

/// Looks at every part of the cluster.
pub(crate) fn look(layout: &Layout) -> Result<Report> {
    let Some(record) = Record::read(layout)? else {
        return Ok(Report { text: String::new(), problems: vec!["there is no cluster".to_owned()] });
    };
    let running = process::all(layout);
    let pid_of = |part: &str| {
        // Children carry the part's name too: containerd's shims outlive it.
        running
            .iter()
            .find(|found| found.part == part && found.program == program_of(part))
            .map(|found| found.pid)
    };
    let mut report = Report::default();
    for part in parts(&record) {
        match pid_of(&part) {
            Some(pid) => report.line(&part, &format!("running (pid {pid})")),
            None => report.problem(&part, "not running"),
        }
    }
    match Kubectl::find(layout).and_then(|kubectl| Ok((kubectl.server_version()?, kubectl.nodes()?))) {
        Ok((version, nodes)) => {
            report.line("API", &format!("answers, Kubernetes {version}"));
            report.nodes(&record, &nodes);
        }
        Err(_) => report.problem("API", "does not answer"),
    }
    report.line("binaries", &record.bin_dir.display().to_string());
    report.line("kubeconfig", &layout.kubeconfig().display().to_string());
    report.line("logs", &layout.logs().display().to_string());
    Ok(report)
}

impl Report {
    fn line(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.text, "{name:<24} {text}");
    }

    fn problem(&mut self, name: &str, text: &str) {
        self.line(name, text);
        self.problems.push(format!("{name}: {text}"));
    }

    fn nodes(&mut self, record: &Record, nodes: &[Node]) {
        for node in nodes {
            let name = format!("node {}", node.name);
            match node.ready {
                true => self.line(&name, &format!("Ready, {}", node.version)),
                false => self.problem(&name, "not Ready"),
            }
        }
        let seen: BTreeSet<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        for name in expected_nodes(record).iter().filter(|name| !seen.contains(name.as_str())) {
            self.problem(&format!("node {name}"), "not registered");
        }
    }
}

/// The parts that should run and do not.
pub(crate) fn stopped_parts(layout: &Layout, record: &Record) -> Vec<String> {
    let running = process::all(layout);
    parts(record).into_iter().filter(|part| pid_of(&running, part).is_none()).collect()
}

/// The process of a part. Children carry the part's name too, and containerd's shims outlive it.
fn pid_of(running: &[Found], part: &str) -> Option<i32> {
    running
        .iter()
        .find(|found| found.part == part && found.program == program_of(part))
        .map(|found| found.pid)
}

/// The program that a part is.
fn program_of(part: &str) -> &str {
    match part {
        _ if registry::PARTS.contains(&part) => "docker-registry",
        _ if part.starts_with("hollow-") => "kubemark",
        _ => part,
    }
}

/// The nodes that a cluster should have.
pub(crate) fn expected_nodes(record: &Record) -> Vec<String> {
    let real = record.real_node.then(|| REAL_NODE.to_owned());
    real.into_iter().chain((0..record.hollow).map(hollow_name)).collect()
}

/// The processes that a cluster should have.
fn parts(record: &Record) -> Vec<String> {
    let real: &[&str] = if record.real_node { &node::PARTS } else { &[] };
    let fixed = control_plane::PARTS.iter().chain(&registry::PARTS).chain(real);
    fixed.map(|name| (*name).to_owned()).chain((0..record.hollow).map(hollow_name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record { version: "1.20.2".to_owned(), bin_dir: "/bin".into(), real_node: true, hollow: 1 }
    }

    fn node(name: &str, ready: bool) -> Node {
        Node { name: name.to_owned(), ready, version: "v1".to_owned() }
    }

    #[track_caller]
    fn check_nodes(nodes: &[Node], problems: &[&str]) {
        let mut report = Report::default();
        report.nodes(&record(), nodes);
        assert_eq!(report.problems, problems);
    }

    #[test]
    fn every_expected_node_must_be_ready() {
        check_nodes(&[node("real-0", true), node("hollow-0", true)], &[]);
        check_nodes(&[node("real-0", false), node("hollow-0", true)], &["node real-0: not Ready"]);
        check_nodes(&[node("real-0", true)], &["node hollow-0: not registered"]);
    }

    #[test]
    fn a_part_is_its_own_program_and_not_a_child_of_it() {
        let found = |pid, part: &str, program: &str| Found {
            pid,
            part: part.to_owned(),
            program: program.to_owned(),
        };
        let running = [
            found(1, "containerd", "containerd-shim-runc-v2"),
            found(2, "registry-private", "docker-registry"),
            found(3, "hollow-12", "kubemark"),
            found(4, "kubelet", "kubelet"),
        ];
        let pids =
            ["containerd", "registry-private", "hollow-12", "kubelet"].map(|part| pid_of(&running, part));
        assert_eq!(pids, [None, Some(2), Some(3), Some(4)]);
    }

    #[test]
    fn a_cluster_without_a_real_node_needs_no_container_runtime() {
        let mut record = record();
        assert!(parts(&record).contains(&"containerd".to_owned()));
        record.real_node = false;
        assert!(!parts(&record).contains(&"containerd".to_owned()));
        assert_eq!(expected_nodes(&record), ["hollow-0"]);
    }
}
