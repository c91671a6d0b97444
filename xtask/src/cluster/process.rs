//! Starts and stops the cluster's processes.
//!
//! There are no pid files that could be stale: every process carries its part's name and the cluster's state folder in
//! its environment, and so do the processes it starts (containerd's shims above all). Looking at `/proc` therefore finds
//! all of them, also when an earlier run was killed right after it started one.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::layout::Layout;
use super::progress::wait_for;
use super::tool;

const PART_VARIABLE: &str = "KRUISE_RS_CLUSTER_PART";
const STATE_VARIABLE: &str = "KRUISE_RS_CLUSTER_STATE";
/// By its full path: a part may have a `PATH` of its own.
const SETSID: &str = "/usr/bin/setsid";
/// Becomes the program that follows, with the folder that follows as its `/tmp`; the mount ends with the process.
const OWN_TMP: [&str; 7] = [
    "/usr/bin/unshare",
    "--mount",
    "--propagation=slave",
    "/bin/sh",
    "-c",
    r#"/bin/mount --bind "$1" /tmp && shift && exec "$@""#,
    "sh",
];

/// A process of the cluster that runs until it is stopped.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<&'static str, String>,
    /// A folder that it sees as `/tmp`, when it must not share that with others.
    pub(crate) tmp: Option<PathBuf>,
    /// What it listens on, to tell early and clearly when another program has it.
    pub(crate) ports: Vec<u16>,
}

/// A process that carries our mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) pid: i32,
    /// The part that it belongs to: itself or a child of it.
    pub(crate) part: String,
    /// The file name of what it runs.
    pub(crate) program: String,
}

/// Whether a call to [`start`] had something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    Now,
    Before,
}

/// Puts the mark on a command.
pub(crate) fn mark(command: &mut Command, layout: &Layout, part: &str) {
    command.env(PART_VARIABLE, part).env(STATE_VARIABLE, &layout.state);
}

/// Starts a part unless it runs.
pub(crate) fn start(layout: &Layout, part: &Part) -> Result<Started> {
    if pid_of(layout, part).is_some() {
        return Ok(Started::Before);
    }
    for port in &part.ports {
        check_free(*port, &part.name)?;
    }
    let log = layout.log_of(&part.name);
    let (out, err) = (tool::append_to(&log)?, tool::append_to(&log)?);
    // A session of its own: neither a closed terminal nor Ctrl-C ends the cluster. `setsid` becomes the program, so
    // the process id stays.
    let mut command = Command::new(SETSID);
    if let Some(tmp) = &part.tmp {
        command.args(OWN_TMP).arg(tmp);
    }
    command.arg(&part.program).args(&part.args).envs(&part.env).current_dir(&layout.state);
    mark(&mut command, layout, &part.name);
    command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .with_context(|| format!("failed to start {}", part.name))?;
    wait_for(&format!("the start of {}", part.name), Duration::from_secs(5), || {
        Ok(pid_of(layout, part).map(|_| ()))
    })
    .with_context(|| died(layout, &part.name))?;
    Ok(Started::Now)
}

/// An error when the part has ended: waiting for it would be in vain.
pub(crate) fn check_alive(layout: &Layout, part: &Part) -> Result<()> {
    match pid_of(layout, part) {
        Some(_) => Ok(()),
        None => bail!(died(layout, &part.name)),
    }
}

/// The process of a part, if it runs.
pub(crate) fn pid_of(layout: &Layout, part: &Part) -> Option<i32> {
    let program = part.program.file_name()?.to_string_lossy().into_owned();
    all(layout)
        .into_iter()
        .find(|found| found.part == part.name && found.program == program)
        .map(|found| found.pid)
}

/// Every living process with our mark.
pub(crate) fn all(layout: &Layout) -> Vec<Found> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| look_at(pid, &layout.state))
        .collect()
}

/// Kills one process; that it is gone already is fine. Children of ours are collected, others are init's.
pub(crate) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, Signal::KILL);
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Ends what a killed run left behind of installing and building. Package management may finish by itself.
pub(crate) fn end_left_over_tasks(layout: &Layout) -> Result<()> {
    let left =
        |kind: &str| -> Vec<_> { all(layout).into_iter().filter(|found| found.part == kind).collect() };
    wait_for("ending the tasks of an earlier run", Duration::from_secs(20), || {
        let tasks = left(tool::TASK);
        tasks.iter().for_each(|found| kill(found.pid));
        Ok(tasks.is_empty().then_some(()))
    })?;
    wait_for("the package management of an earlier run", Duration::from_secs(300), || {
        Ok(left(tool::APT).is_empty().then_some(()))
    })
}

fn look_at(pid: i32, state: &Path) -> Option<Found> {
    let folder = PathBuf::from("/proc").join(pid.to_string());
    let part = marked_part(&fs::read(folder.join("environ")).ok()?, &state.to_string_lossy())?;
    if !is_alive(&fs::read_to_string(folder.join("stat")).ok()?) {
        return None;
    }
    let exe = fs::read_link(folder.join("exe")).ok()?;
    let program = exe.file_name()?.to_string_lossy().trim_end_matches(" (deleted)").to_owned();
    Some(Found { pid, part, program })
}

/// The part in the environment of a process, if it belongs to the cluster of this state folder.
fn marked_part(environ: &[u8], state: &str) -> Option<String> {
    let value = |name: &str| {
        environ.split(|byte| *byte == 0).find_map(|entry| {
            let entry = std::str::from_utf8(entry).ok()?;
            entry.strip_prefix(name)?.strip_prefix('=')
        })
    };
    if value(STATE_VARIABLE)? != state {
        return None;
    }
    value(PART_VARIABLE).map(str::to_owned)
}

/// Whether `/proc/PID/stat` tells of a process that still runs: one that waits for its parent's notice does not.
fn is_alive(stat: &str) -> bool {
    // The command name stands in parentheses and may hold anything, so the state is what follows the last one.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// What to tell about a part that should run and does not.
pub(crate) fn died(layout: &Layout, part: &str) -> String {
    let log = layout.log_of(part);
    format!("{part} has ended, see {}:\n{}", log.display(), tool::tail(&log))
}

fn check_free(port: u16, part: &str) -> Result<()> {
    if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
        return Ok(());
    }
    let owner =
        tool::capture(Command::new("ss").args(["-Hltnp", &format!("sport = :{port}")])).unwrap_or_default();
    bail!(
        "port {port}, which {part} needs, is taken by another program{}; stop it and run this again",
        owner.split_once("users:").map(|(_, users)| format!(" {}", users.trim())).unwrap_or_default()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_mark(environ: &str, expected: Option<&str>) {
        assert_eq!(marked_part(environ.replace(' ', "\0").as_bytes(), "/state").as_deref(), expected);
    }

    #[test]
    fn only_processes_of_this_state_folder_are_ours() {
        check_mark("A=1 KRUISE_RS_CLUSTER_PART=etcd KRUISE_RS_CLUSTER_STATE=/state B=2", Some("etcd"));
        check_mark("KRUISE_RS_CLUSTER_PART=etcd KRUISE_RS_CLUSTER_STATE=/other", None);
        check_mark("KRUISE_RS_CLUSTER_PART=etcd", None);
        check_mark("KRUISE_RS_CLUSTER_STATE=/state", None);
        check_mark("X_KRUISE_RS_CLUSTER_PART=etcd KRUISE_RS_CLUSTER_STATE=/state", None);
        check_mark("", None);
    }

    #[test]
    fn a_process_nobody_has_collected_does_not_run() {
        assert!(is_alive("12 (etcd) S 1 12 12 0"));
        assert!(is_alive("12 (odd) Z) name) R 1 12 12 0"));
        assert!(!is_alive("12 (etcd) Z 1 12 12 0"));
        assert!(!is_alive(""));
    }

    #[test]
    fn a_started_process_is_found_by_its_mark_and_killed() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout {
            cache: folder.path().join("cache"),
            state: folder.path().to_path_buf(),
            run: folder.path().join("run"),
        };
        let part = Part {
            name: "sleeper".to_owned(),
            program: tool::find("sleep").expect("every machine has it").canonicalize().expect("a file"),
            args: vec!["60".to_owned()],
            env: BTreeMap::new(),
            tmp: None,
            ports: Vec::new(),
        };
        assert_eq!(start(&layout, &part).expect("starts"), Started::Now);
        assert_eq!(start(&layout, &part).expect("runs"), Started::Before);
        let pid = pid_of(&layout, &part).expect("runs");
        kill(pid);
        wait_for("its end", Duration::from_secs(10), || Ok(all(&layout).is_empty().then_some(())))
            .expect("ends");
        assert!(check_alive(&layout, &part).is_err());
    }

    #[test]
    fn a_port_of_another_program_is_named_in_the_error() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = taken.local_addr().expect("bound").port();
        let error = check_free(port, "etcd").expect_err("taken").to_string();
        assert!(
            error.starts_with(&format!("port {port}, which etcd needs, is taken by another program")),
            "{error}"
        );
    }
}
