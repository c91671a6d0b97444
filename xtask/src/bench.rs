//! `cargo xtask bench NAME`: figures for decisions and for the budgets. Never a test: machines differ.
//!
//! Every benchmark ends with one line of JSON whose names carry the units, so that runs can be compared.

mod convert;
mod daemon;
mod images;
mod local;
mod manager;
mod rollout;
mod webhook;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;

use crate::test::cargo;
pub(crate) use local::Clock;
pub(crate) use manager::Manager;

/// What is measured.
#[derive(Clone, Copy, Subcommand)]
pub(crate) enum Bench {
    /// Conversion of a CloneSet of 20 KB between its versions.
    Convert,
    /// Memory and idle CPU of the node daemon with 110 pods, beside an embedded cluster and a runtime that pretends.
    Daemon,
    /// 198 ImagePullJobs on 989 nodes: reconciles, CPU, memory and requests of the manager.
    Images,
    /// Start, nodes, pods, watches, pages and memory of `cargo run --release`, up to 100,000 pods.
    Local {
        /// Few nodes and pods, in this very build: shows that the benchmark works, and no figure worth having.
        #[arg(long)]
        small: bool,
    },
    /// Memory, start, idle CPU and admission of the manager, with 10,000, 50,000 and 150,000 pods.
    Manager,
    /// Creating, updating and removing the pods of one CloneSet on the cluster of KUBECONFIG, which should have hollow
    /// nodes: seconds, CPU and memory of the manager, its requests by verb and code.
    Rollout {
        /// How many pods.
        #[arg(long, default_value_t = 1000)]
        replicas: u32,
    },
    /// Pod admissions of the manager with 200 SidecarSets and with none: times and CPU at 500 per second, the largest rate,
    /// memory before and after 100,000.
    Webhook,
}

/// Runs one benchmark and prints its figures. Figures of an unoptimised build say nothing: such a build starts an
/// optimised one.
pub(crate) fn run(root: &Path, bench: Bench) -> Result<()> {
    let is_trial = matches!(bench, Bench::Local { small: true });
    if cfg!(debug_assertions) && !is_trial {
        let own: Vec<String> = std::env::args().skip(1).collect();
        let mut args = vec!["run", "--quiet", "--release", "--package", "xtask", "--"];
        args.extend(own.iter().map(String::as_str));
        // The cluster that the caller chose is meant for that build too.
        let kubeconfig = std::env::var_os("KUBECONFIG").map(PathBuf::from);
        return cargo(root, &args, None, kubeconfig.as_deref());
    }
    let figures = match bench {
        Bench::Convert => convert::run()?,
        Bench::Daemon => daemon::run(root)?,
        Bench::Images => images::run(root)?,
        Bench::Local { small } => local::run(root, small)?,
        Bench::Manager => manager::run(root)?,
        Bench::Rollout { replicas } => rollout::run(root, replicas)?,
        Bench::Webhook => webhook::run(root)?,
    };
    println!("{figures}");
    Ok(())
}
