//! What a run of checks ends with: how long each part took, and which scenarios were skipped and why.
//!
//! A scenario that a cluster cannot run counts as passed for the test runner. So that nobody takes it for tested, each one
//! writes a line into a file (see `kruise_testkit::scenario`), and CI fails when one skips for a reason that
//! `.config/allowed-skips.txt` does not list.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};

use crate::bench::Clock;

/// The variable that names the file. The test kit reads it.
pub(crate) const SKIPS: &str = "KRUISE_TEST_SKIPS";
/// The list of skips that CI accepts, below the root of the checkout.
const ALLOWED: &str = ".config/allowed-skips.txt";

static PARTS: Mutex<Vec<(String, Clock)>> = Mutex::new(Vec::new());

/// Notes that a part begins. It lasts until the next one begins.
pub(crate) fn begins(part: &str) {
    let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    parts.push((part.to_owned(), Clock::new()));
}

/// Prints how long each part took.
pub(crate) fn durations() {
    let parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let since_next = parts.iter().skip(1).map(|(_, next)| next.elapsed()).chain([Duration::ZERO]);
    println!("\n==> how long each part took");
    for ((part, began), since_next) in parts.iter().zip(since_next) {
        println!("{:>9} min  {part}", minutes(began.elapsed().saturating_sub(since_next)));
    }
}

fn minutes(taken: Duration) -> String {
    let seconds = taken.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// The skips of one run of tests.
pub(crate) struct Skips;

impl Skips {
    /// Where tests write theirs.
    pub(crate) fn file() -> PathBuf {
        env::temp_dir().join(format!("kruise-rs-skips-{}", std::process::id()))
    }

    /// None so far.
    pub(crate) fn begin() -> Self {
        let _ = fs::remove_file(Self::file());
        Self
    }

    /// Prints them, grouped by reason. After a run that passed in CI, fails when the list of the checkout lacks a reason.
    pub(crate) fn report(self, root: &Path, passed: bool) -> Result<()> {
        let written = fs::read_to_string(Self::file()).unwrap_or_default();
        let _ = fs::remove_file(Self::file());
        let list =
            fs::read_to_string(root.join(ALLOWED)).with_context(|| format!("failed to read {ALLOWED}"))?;
        let skips = by_reason(&written);
        let all: usize = skips.values().map(Vec::len).sum();
        println!("\n==> skipped: {all}");
        for (reason, scenarios) in &skips {
            println!("{:>5}  {reason}: {}", scenarios.len(), scenarios.join(", "));
        }
        let unknown = |reason: &&str| !allowed(&list).any(|known| fits(known, reason));
        let unknown: Vec<&str> = skips.keys().copied().filter(unknown).collect();
        ensure!(
            !passed || unknown.is_empty() || env::var_os("CI").is_none(),
            "scenarios were skipped for reasons that {ALLOWED} does not list: {}",
            unknown.join("; ")
        );
        Ok(())
    }
}

/// The scenarios of each reason, from lines of `scenario: reason`.
fn by_reason(written: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut skips: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (scenario, reason) in written.lines().filter_map(|line| line.split_once(": ")) {
        skips.entry(reason).or_default().push(scenario);
    }
    for scenarios in skips.values_mut() {
        scenarios.sort_unstable();
    }
    skips
}

/// The patterns of the list: one a line, before ` # ` and why it is accepted.
fn allowed(list: &str) -> impl Iterator<Item = &str> {
    let patterns =
        list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(" # ").next());
    patterns.map(str::trim).filter(|pattern| !pattern.is_empty())
}

/// Whether a reason is the pattern, in which `*` stands for any text.
fn fits(pattern: &str, reason: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = reason.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_grouped_by_reason() {
        let written =
            "b: needs x, which Kubernetes 1 does not have\na: needs x, which Kubernetes 1 does not have\nodd";
        let expected = [("needs x, which Kubernetes 1 does not have", vec!["a", "b"])];
        assert_eq!(by_reason(written), BTreeMap::from(expected));
    }

    #[test]
    fn a_reason_is_accepted_by_a_pattern_of_the_list_and_by_nothing_else() {
        let list = "# head\nneeds pods/resize in v1, which Kubernetes 1.20* does not have # older\n\n";
        let accepts = |reason| allowed(list).any(|pattern| fits(pattern, reason));
        assert!(accepts("needs pods/resize in v1, which Kubernetes 1.20.2 does not have"));
        assert!(!accepts("needs pods/resize in v1, which Kubernetes 1.35.8 does not have"));
        assert!(!accepts("needs pods/resize in v1, which Kubernetes 1.20.2 does not have today"));
        assert!(!accepts(""));
    }
}
