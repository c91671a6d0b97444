//! Every task of a developer, with nothing to install by hand: `cargo xtask --help` lists them.

mod cluster;

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
    /// A real Kubernetes on this machine, from Debian's packages.
    #[command(subcommand)]
    Cluster(cluster::Command),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Cluster(command) => cluster::run(command),
    }
}
