//! A real Kubernetes on this machine.

use clap::Subcommand;

/// What to do with the cluster.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Install, build and start.
    Up,
}

pub(crate) fn run(_command: Command) -> anyhow::Result<()> {
    Ok(())
}
