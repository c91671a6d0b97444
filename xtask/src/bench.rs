//! `cargo xtask bench NAME`: figures for decisions and for the budgets. Never a test: machines differ.
//!
//! Every benchmark ends with one line of JSON whose names carry the units, so that runs can be compared.

mod convert;

use anyhow::Result;
use clap::Subcommand;

/// What is measured.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Conversion of a CloneSet of 20 KB between its versions.
    Convert,
}

/// Runs one benchmark and prints its figures.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    let figures = match bench {
        Bench::Convert => convert::run()?,
    };
    println!("{figures}");
    Ok(())
}
