//! Every task of a developer, with nothing to install by hand: `cargo xtask --help` lists them.

mod cluster;
mod generate;

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
    /// Write the files that are made from the code (CRDs).
    Generate,
    /// A real Kubernetes on this machine, from Debian's packages.
    #[command(subcommand)]
    Cluster(cluster::Command),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Generate => generate::run(&root()?),
        Task::Cluster(command) => cluster::run(command),
    }
}

/// The root of the checkout.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().context("xtask has no parent folder")?;
    anyhow::ensure!(root.join("Cargo.toml").is_file(), "{} is no checkout of kruise-rs", root.display());
    Ok(root.to_owned())
}
