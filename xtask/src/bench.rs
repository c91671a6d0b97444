//! `cargo xtask bench NAME`: figures for decisions and for the budgets. Never a test: machines differ.
//!
//! Every benchmark ends with one line of JSON whose names carry the units, so that runs can be compared.

mod budgets;
mod convert;
mod daemon;
mod daemonset;
mod distribution;
mod images;
mod jobs;
pub(crate) mod local;
pub(crate) mod manager;
mod rollout;
mod stage;
pub(crate) mod webhook;

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
    /// A DaemonSet on many simulated nodes: created, updated in place, nodes that leave and return; seconds, CPU, memory,
    /// requests and reconciles of the manager.
    Daemonset {
        /// How many nodes.
        #[arg(long, default_value_t = 5_000)]
        nodes: usize,
    },
    /// One Secret in 10,000 namespaces beside 50,000 others: seconds, CPU, memory and requests of the manager.
    Distribution,
    /// 198 ImagePullJobs on 989 nodes: reconciles, CPU, memory and requests of the manager.
    Images,
    /// A BroadcastJob on many simulated nodes, and as many AdvancedCronJobs that are due in the same minute: seconds to the
    /// last start, CPU, memory, requests and reconciles of the manager.
    Jobs {
        /// How many nodes and schedules.
        #[arg(long, default_value_t = 5_000)]
        count: usize,
    },
    /// Start, nodes, pods, watches, pages and memory of `cargo run --release`, up to 100,000 pods.
    Local {
        /// Few nodes and pods, in this very build: shows that the benchmark works, and no figure worth having.
        #[arg(long)]
        small: bool,
    },
    /// Memory, start, idle CPU and admission of the manager, with 10,000, 50,000 and 150,000 pods.
    Manager,
    /// Creating, updating and removing the pods of one workload on the cluster of KUBECONFIG, which should have hollow
    /// nodes: seconds, CPU and memory of the manager, its requests by verb and code.
    Rollout {
        /// How many pods.
        #[arg(long, default_value_t = 1000)]
        replicas: u32,
        /// Which workload.
        #[arg(long, value_enum, default_value_t = rollout::Kind::Cloneset)]
        kind: rollout::Kind,
    },
    /// Pod admissions of the manager with 200 SidecarSets and with none: times and CPU at 500 per second, the largest rate,
    /// memory before and after 100,000.
    Webhook {
        /// Instead: deletions of pods under so many PodUnavailableBudgets with 20,000 pods, at 300 per second.
        #[arg(long)]
        budgets: Option<usize>,
    },
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
        Bench::Daemonset { nodes } => daemonset::run(root, nodes)?,
        Bench::Distribution => distribution::run(root)?,
        Bench::Images => images::run(root)?,
        Bench::Jobs { count } => jobs::run(root, count)?,
        Bench::Local { small } => local::run(root, small)?,
        Bench::Manager => manager::run(root)?,
        Bench::Rollout { replicas, kind } => rollout::run(root, kind, replicas)?,
        Bench::Webhook { budgets: None } => webhook::run(root)?,
        Bench::Webhook { budgets: Some(count) } => budgets::run(root, count)?,
    };
    println!("{figures}");
    Ok(())
}
