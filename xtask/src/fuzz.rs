//! `cargo xtask fuzz`: random input for the embedded API server, and for those who read what is stored.
//!
//! The targets are an example of `kruise-apiserver`, so that they need no compiler but the one of the workspace. The target
//! `objects` is a test of `kruise-manager` that goes on for longer: it spoils stored objects while a manager and daemons run.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// What to try, and for how long.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The target (`objects`, or one of the embedded server); without one, those are listed.
    target: Option<String>,
    /// For how long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The number of the first case.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// The test behind the target `objects`.
const OBJECTS: &str = "whatever_is_stored_the_manager_leads_its_caches_agree_and_others_converge";

/// Spoils stored objects for so many seconds. A finding names the block of cases that plays it again.
pub(crate) fn objects(root: &Path, seconds: u64, seed: u64) -> anyhow::Result<()> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args([
            "test",
            "--quiet",
            "--package",
            "kruise-manager",
            "--test",
            "objects",
            "--",
            "--nocapture",
            OBJECTS,
        ])
        .env("KRUISE_FUZZ_SECONDS", seconds.to_string())
        .env("KRUISE_FUZZ_SEED", seed.to_string())
        .status()
        .context("cargo does not start")?;
    anyhow::ensure!(status.success(), "the target objects found something");
    Ok(())
}

pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    if options.target.as_deref() == Some("objects") {
        return objects(root, options.seconds, options.seed);
    }
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
