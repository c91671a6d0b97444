//! `cargo xtask ci`: what must hold before a change lands. Ends with exactly `cargo xtask test`.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{
    attack, fuzz, generate, summary,
    test::{self, cargo, step},
};

/// How long `fuzz objects` runs in CI.
const FUZZ_SECONDS: u64 = 60;
/// How long `attack` runs in CI.
const ATTACK_SECONDS: u64 = 60;

/// Runs every check, the cheap ones first, and prints how long each took.
pub(crate) fn run(root: &Path) -> Result<()> {
    let outcome = checks(root);
    summary::durations();
    outcome
}

fn checks(root: &Path) -> Result<()> {
    step("format");
    cargo(root, &["fmt", "--all", "--check"], None, None)?;
    step("generated files");
    generate::check(root)?;
    compare_with_reference(root)?;
    step("lints");
    cargo(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"], None, None)?;
    step("dependencies");
    deny(root)?;
    step("documentation");
    document(root)?;
    step("random garbage in stored objects");
    // Another part of the cases than those that are tests.
    fuzz::objects(root, FUZZ_SECONDS, 1_000)?;
    step("attacks on the ports of the manager");
    attack::run(root, &attack::Options { seconds: ATTACK_SECONDS, release: false })?;
    test::run(root, &test::Options::default())
}

/// Rustdoc with warnings as errors: a broken link in the documentation is a broken promise.
fn document(root: &Path) -> Result<()> {
    let status = Command::new("cargo")
        .current_dir(root)
        .env("RUSTDOCFLAGS", "-D warnings")
        .args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"])
        .status()
        .context("failed to start cargo doc")?;
    ensure!(status.success(), "cargo doc failed");
    Ok(())
}

/// Licences, bans and sources. Advisories too, where their database can be had.
fn deny(root: &Path) -> Result<()> {
    let installed =
        Command::new("cargo").args(["deny", "--version"]).output().is_ok_and(|out| out.status.success());
    if !installed {
        println!("installing cargo-deny (once, some minutes)");
        cargo(root, &["install", "--quiet", "--locked", "cargo-deny"], None, None)?;
    }
    let check = ["deny", "--log-level", "error", "check", "--hide-inclusion-graph"];
    cargo(root, &[&check[..], &["licenses", "bans", "sources"]].concat(), None, None)?;
    let database = Command::new("cargo")
        .current_dir(root)
        .args(["deny", "--log-level", "off", "fetch", "db"])
        .output()
        .context("failed to start cargo deny")?;
    if !database.status.success() {
        println!("left out: advisories (their database cannot be fetched from here)");
        return Ok(());
    }
    cargo(root, &[&check[..], &["advisories"]].concat(), None, None)
}

/// Where the product's documents stand beside the checkout, the CRDs must equal the reference.
fn compare_with_reference(root: &Path) -> Result<()> {
    let tool = root.join("../shared/tools/crd-parity");
    if !tool.is_file() {
        println!("left out: comparison of the CRDs with the reference (no ../shared here)");
        return Ok(());
    }
    let status = Command::new(&tool).arg(root.join("charts/kruise/crds")).status();
    let status = status.with_context(|| format!("failed to start {}", tool.display()))?;
    ensure!(status.success(), "the CRDs differ from the reference");
    Ok(())
}
