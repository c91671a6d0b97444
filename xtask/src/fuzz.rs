//! `cargo xtask fuzz`: random input for the embedded API server.
//!
//! The targets are an example of `kruise-apiserver`, so that they need no compiler but the one of the workspace.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// What to try, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The target; without one, the targets are listed.
    target: Option<String>,
    /// For how long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The number of the first case.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args([
        "run",
        "--quiet",
        "--package",
        "kruise-apiserver",
        "--example",
        "fuzz",
        "--",
    ]);
    let Some(target) = &options.target else {
        // The program says what it has, and that it had nothing to do.
        command.status().context("cargo does not start")?;
        return Ok(());
    };
    command.args([target, "--seconds", &options.seconds.to_string(), "--seed", &options.seed.to_string()]);
    let status = command.status().context("cargo does not start")?;
    anyhow::ensure!(status.success(), "the target {target} found something");
    Ok(())
}
