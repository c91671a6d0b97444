//! `cargo xtask test`: everything that must hold, on every cluster that this machine can offer.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::{
    cluster,
    installation::Installation,
    summary::{self, Skips},
};

/// Ignored tests that want a real cluster.
struct Round {
    /// Which test binaries. They are built as in the rounds before: with all features that the workspace asks for.
    tests: &'static [&'static str],
    /// How many of them may run at once.
    at_once: &'static str,
    /// Whose manager is on the cluster: `own` if each test starts one and has the cluster for itself (definitions and
    /// webhook configurations exist once), `shared` if all of them use the same.
    manager: Option<&'static str>,
    /// More flags for the manager that all of them use.
    flags: &'static [&'static str],
    /// Only when it is asked for.
    long: bool,
}

/// The scenarios of workloads.
const WORKLOADS: &[&str] = &[
    "cloneset",
    "inplace",
    "sidecarset",
    "launch_priority",
    "sidecar_terminator",
    "statefulset",
    "daemonset",
    "jobs",
    "protection",
    "persistentpodstate",
    "resourcedistribution",
    "workloadspread",
    "uniteddeployment",
];

/// The scenarios of the node daemon, which they want beside the manager.
const NODE_DAEMON: &str = "node_daemon_real";
/// What is off by default and needs a node daemon.
const NODE_FEATURES: &[&str] = &["--feature-gates=ImagePullJobGate=true,SidecarTerminator=true"];

const ALONE: &[&str] = &["platform", "certificates", NODE_DAEMON];

const ROUNDS: [Round; 5] = [
    Round { tests: &["scenarios", "compare"], at_once: "4", manager: None, flags: &[], long: false },
    Round { tests: ALONE, at_once: "1", manager: Some("own"), flags: &[], long: false },
    Round { tests: &[NODE_DAEMON], at_once: "6", manager: Some("shared"), flags: NODE_FEATURES, long: false },
    Round { tests: WORKLOADS, at_once: "1", manager: Some("own"), flags: &[], long: true },
    Round { tests: WORKLOADS, at_once: "6", manager: Some("shared"), flags: &[], long: true },
];

/// Which tests run.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Leave out the scenarios on a real cluster.
    #[arg(long)]
    no_real: bool,
    /// Also play the scenarios of workloads on the real cluster, which take most of an hour.
    #[arg(long)]
    workloads: bool,
    /// Only play the scenarios of these test binaries on the real cluster, such as `cloneset`.
    #[arg(long, value_name = "BINARY")]
    only: Vec<String>,
    /// Of the scenarios on the real cluster, only those with this manager: `own` (each starts one) or `shared`.
    #[arg(long, value_name = "WHOSE")]
    manager: Option<String>,
    /// Run only tests whose name contains this.
    filter: Option<String>,
}

/// Runs the tests that need nothing, then the scenarios on a real cluster, and prints what was skipped.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let skips = Skips::begin();
    let outcome = all(root, options);
    skips.report(root, outcome.is_ok()).and(outcome)
}

fn all(root: &Path, options: &Options) -> Result<()> {
    if options.only.is_empty() {
        without_cluster(root, options.filter.as_deref())?;
    }
    if options.no_real {
        println!("left out: scenarios on a real cluster (--no-real)");
        return Ok(());
    }
    if let Some(kubeconfig) = given_kubeconfig()? {
        step(&format!("scenarios on the cluster of {}", kubeconfig.display()));
        return scenarios(root, options, &kubeconfig);
    }
    if let Err(sentence) = cluster::can_run_here() {
        println!("left out: scenarios on a real cluster. {sentence}");
        return Ok(());
    }
    step("scenarios on a real cluster");
    let running = cluster::up(&cluster::Options::default())?;
    let outcome = scenarios(root, options, &running.kubeconfig);
    if running.started_here {
        cluster::down()?;
    }
    outcome
}

fn without_cluster(root: &Path, filter: Option<&str>) -> Result<()> {
    step("tests that need no real cluster");
    if !has_nextest() {
        return cargo(root, &["test", "--workspace"], filter, None);
    }
    cargo(root, &["nextest", "run", "--workspace", "--no-fail-fast", "--no-tests=warn"], filter, None)?;
    match filter {
        None => cargo(root, &["test", "--quiet", "--workspace", "--doc"], None, None),
        Some(_) => Ok(()),
    }
}

fn scenarios(root: &Path, options: &Options, kubeconfig: &Path) -> Result<()> {
    let mut outcome = Ok(());
    for round in &ROUNDS {
        if options.manager.is_some() && options.manager.as_deref() != round.manager {
            continue;
        }
        let is_named = |test: &&str| options.only.iter().any(|only| only == test);
        let tests: Vec<&str> = match options.only.as_slice() {
            [] if round.long && !options.workloads => continue,
            [] => round.tests.to_vec(),
            _ => round.tests.iter().copied().filter(is_named).collect(),
        };
        if !tests.is_empty() {
            outcome = outcome.and(play(root, options.filter.as_deref(), kubeconfig, round, &tests));
        }
    }
    if !options.workloads && options.only.is_empty() {
        println!("left out: scenarios of workloads on a real cluster (--workloads)");
    }
    outcome
}

fn play(root: &Path, filter: Option<&str>, kubeconfig: &Path, round: &Round, tests: &[&str]) -> Result<()> {
    let Round { at_once, manager, flags, .. } = *round;
    step(&format!("real cluster: {} ({} manager)", tests.join(", "), manager.unwrap_or("no")));
    let with_daemon = tests.contains(&NODE_DAEMON);
    if with_daemon {
        cargo(root, &["build", "--quiet", "--workspace", "--bin", "kruise-daemon"], None, None)?;
    }
    let installation = match manager {
        Some("shared") => {
            cargo(root, &["build", "--quiet", "--workspace", "--bin", "kruise-manager"], None, None)?;
            let mut installation = Installation::start_with(root, kubeconfig, flags)?;
            if with_daemon && let Err(error) = installation.start_daemon() {
                installation.end(false);
                return Err(error);
            }
            Some(installation)
        }
        _ => None,
    };
    let binaries = tests.iter().flat_map(|test| ["--test", *test]);
    let binaries = ["--workspace"].into_iter().chain(binaries);
    let args: Vec<&str> = if has_nextest() {
        let run =
            ["nextest", "run", "--run-ignored", "only", "--no-fail-fast", "--no-tests=warn", "-j", at_once];
        run.into_iter().chain(binaries).chain(filter).collect()
    } else {
        // Without a filter of its own, libtest takes the name of the tests on real clusters.
        let name = [filter.unwrap_or("real"), "--", "--ignored", "--test-threads", at_once];
        ["test"].into_iter().chain(binaries).chain(name).collect()
    };
    let variables = manager.map(|whose| ("KRUISE_TEST_MANAGER", whose));
    let ran = cargo_with(root, &args, Some(kubeconfig), variables);
    if let Some(installation) = installation {
        installation.end(ran.is_ok());
    }
    ran
}

/// The cluster that the caller chose, if any. A path that leads nowhere is a mistake worth a word.
fn given_kubeconfig() -> Result<Option<PathBuf>> {
    let Some(path) = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Ok(None);
    };
    ensure!(
        path.is_file(),
        "KUBECONFIG names {path:?}, which is no file; name an existing kubeconfig, or unset it to test on a local cluster",
    );
    Ok(Some(path))
}

fn has_nextest() -> bool {
    let probe = Command::new("cargo").args(["nextest", "--version"]).output();
    probe.is_ok_and(|output| output.status.success())
}

/// Runs cargo and shows what it says.
pub(crate) fn cargo(
    root: &Path,
    args: &[&str],
    filter: Option<&str>,
    kubeconfig: Option<&Path>,
) -> Result<()> {
    let args: Vec<&str> = args.iter().copied().chain(filter).collect();
    cargo_with(root, &args, kubeconfig, None)
}

fn cargo_with(
    root: &Path,
    args: &[&str],
    kubeconfig: Option<&Path>,
    variable: Option<(&str, &str)>,
) -> Result<()> {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(args).envs(variable);
    match kubeconfig {
        Some(path) => command.env("KUBECONFIG", path),
        None => command.env_remove("KUBECONFIG"),
    };
    command.env(summary::SKIPS, Skips::file());
    let status = command.status().with_context(|| format!("failed to start cargo {}", args.join(" ")))?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}

/// Reports which part of a task begins.
pub(crate) fn step(what: &str) {
    summary::begins(what);
    println!("==> {what}");
}
