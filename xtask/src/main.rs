//! Every task of a developer, with nothing to install by hand: `cargo xtask --help` lists them.

#[cfg(test)]
mod arrows;
mod attack;
mod bench;
#[cfg(test)]
mod chart;
mod ci;
#[cfg(test)]
mod claims;
mod cluster;
mod coverage;
mod fuzz;
mod generate;
mod image;
mod installation;
mod summary;
mod test;
#[cfg(test)]
mod words;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};

/// Tasks of kruise-rs.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all tests; on a real cluster too, where root and apt are there or KUBECONFIG names one.
    Test(test::Options),
    /// Run what must hold before a change lands: format, lints, dependencies, generated files, then `test`.
    Ci,
    /// Write the files that are made from the code: CRDs, roles, webhook configurations, templates of the chart.
    Generate,
    /// Pack the images of manager and daemon as OCI archives, without Docker.
    Image(image::Options),
    /// A real Kubernetes on this machine, from Debian's packages.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// List which acceptance scenarios of the specification have a test.
    Coverage,
    /// Send hostile input without end to the embedded API server; without a name, list the targets.
    Fuzz(fuzz::Options),
    /// Attack the ports of a running manager, on loopback; prints the worst admission and the most memory.
    Attack(attack::Options),
    /// Measure; prints figures as JSON on the last line.
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Test(options) => test::run(&root()?, &options),
        Task::Ci => ci::run(&root()?),
        Task::Generate => generate::run(&root()?),
        Task::Image(options) => image::run(&root()?, &options),
        Task::Cluster(command) => cluster::run(command),
        Task::Coverage => coverage::run(&root()?),
        Task::Fuzz(options) => fuzz::run(&root()?, &options),
        Task::Attack(options) => attack::run(&root()?, &options),
        Task::Bench(bench) => bench::run(&root()?, bench),
    }
}

/// The root of the checkout.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    // Checkouts that share a build cache share this program: the one that cargo runs it for counts.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = PathBuf::from(here);
    let root = here.parent().context("xtask has no parent folder")?;
    anyhow::ensure!(root.join("Cargo.toml").is_file(), "{} is no checkout of kruise-rs", root.display());
    Ok(root.to_owned())
}
