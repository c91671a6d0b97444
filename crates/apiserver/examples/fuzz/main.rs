//! Hostile input without end: random patches, selectors, schemas, expressions, bodies and schedules, and what must hold for all of them.
//!
//! `cargo xtask fuzz NAME --seconds N` runs a target; `cargo xtask fuzz` lists them. Cases are numbered: `--seed` begins
//! with a number, and a failure prints the number of its case, with which it happens again.

#![allow(clippy::print_stderr, reason = "a program for developers")]

mod expressions;
mod make;
mod schedules;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use make::Maker;
use targets::{Cluster, TARGETS};
use tokio::time::Instant;

/// More memory than this is a finding.
const MOST_MEMORY_KIB: u64 = 1 << 20;
/// How many cases between two looks at memory and clock.
const STRIDE: u64 = 100;

struct Options {
    target: String,
    seconds: u64,
    seed: u64,
}

fn options() -> Option<Options> {
    let mut options = Options { target: String::new(), seconds: 10, seed: 0 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => options.seconds = words.next()?.parse().ok()?,
            "--seed" => options.seed = words.next()?.parse().ok()?,
            _ => options.target = word,
        }
    }
    Some(options)
}

fn main() -> ExitCode {
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    let Some(options) = options() else {
        eprintln!("fuzz TARGET [--seconds N] [--seed N]");
        return ExitCode::FAILURE;
    };
    let Some((name, target)) = TARGETS.iter().find(|(name, _)| *name == options.target) else {
        eprintln!("targets: {}", names.join(", "));
        return ExitCode::FAILURE;
    };
    let mut cluster = Cluster::new();
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut case = options.seed;
    let mut accepted = 0_u64;
    loop {
        let mut maker = Maker::new(case);
        match catch_unwind(AssertUnwindSafe(|| target(&mut maker, &cluster))) {
            Ok(Ok(took)) => accepted += u64::from(took),
            Ok(Err(why)) => {
                eprintln!("{name}: case {case}: {why}");
                return ExitCode::FAILURE;
            }
            Err(_) => {
                eprintln!(
                    "{name}: case {case} panicked; `cargo xtask fuzz {name} --seed {case}` begins with it"
                );
                return ExitCode::FAILURE;
            }
        }
        case += 1;
        if case.is_multiple_of(STRIDE) {
            if let Some(peak) = peak_memory_kib().filter(|peak| *peak > MOST_MEMORY_KIB) {
                eprintln!("{name}: before case {case} the process held {peak} KiB");
                return ExitCode::FAILURE;
            }
            if Instant::now() >= end {
                break;
            }
        }
        // What targets leave behind shall not slow them down.
        if case.is_multiple_of(20_000) {
            cluster = Cluster::new();
        }
    }
    let cases = case - options.seed;
    let peak = peak_memory_kib().unwrap_or_default() / 1024;
    eprintln!("{name}: {cases} cases in {} s, {accepted} taken, at most {peak} MiB", options.seconds);
    ExitCode::SUCCESS
}

/// The most memory that the process held so far, where the system tells.
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
