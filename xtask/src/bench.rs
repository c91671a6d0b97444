//! `cargo xtask bench NAME`: figures for decisions and for the budgets. Never a test: machines differ.
//!
//! Every benchmark ends with one line of JSON whose names carry the units, so that runs can be compared.

mod convert;
mod local;
mod manager;

use std::path::Path;

use anyhow::Result;
use clap::{Subcommand, ValueEnum as _};

use crate::test::cargo;

/// What is measured.
#[derive(Clone, Copy, Subcommand, clap::ValueEnum)]
pub(crate) enum Bench {
    /// Conversion of a CloneSet of 20 KB between its versions.
    Convert,
    /// Start, nodes, pods and memory of `cargo run --release`.
    Local,
    /// Memory, start, idle CPU and admission of the manager, with 10,000, 50,000 and 150,000 pods.
    Manager,
}

/// Runs one benchmark and prints its figures. Figures of an unoptimised build say nothing: such a build starts an
/// optimised one.
pub(crate) fn run(root: &Path, bench: Bench) -> Result<()> {
    if cfg!(debug_assertions) {
        let value = bench.to_possible_value();
        let name = value.as_ref().map_or("", |value| value.get_name());
        return cargo(
            root,
            &["run", "--quiet", "--release", "--package", "xtask", "--", "bench", name],
            None,
            None,
        );
    }
    let figures = match bench {
        Bench::Convert => convert::run()?,
        Bench::Local => local::run(root)?,
        Bench::Manager => manager::run(root)?,
    };
    println!("{figures}");
    Ok(())
}
