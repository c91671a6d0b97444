//! All pods, page by page, as kubectl and client libraries ask for them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Clock;
use super::http::Connection;

const PAGE: usize = 500;

/// What it took.
pub(super) struct Listed {
    pub(super) pages: usize,
    pub(super) bytes: usize,
    pub(super) took: Duration,
    pub(super) slowest: Duration,
}

/// Lists every pod, whole objects, and checks that none is missing.
pub(super) fn measure(connection: &mut Connection, pods: u64) -> Result<Listed> {
    let mut listed = Listed { pages: 0, bytes: 0, took: Duration::ZERO, slowest: Duration::ZERO };
    let mut seen = 0;
    let mut token = String::new();
    loop {
        let clock = Clock::new();
        let path = format!("/api/v1/pods?limit={PAGE}&continue={token}");
        let (page, bytes) = connection.get_sized(&path)?;
        let took = clock.elapsed();
        listed.pages += 1;
        listed.bytes += bytes;
        listed.took += took;
        listed.slowest = listed.slowest.max(took);
        seen += page.get("items").and_then(Value::as_array).context("a page without items")?.len();
        match page.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(next) if !next.is_empty() => token = next.to_owned(),
            _ => break,
        }
    }
    ensure!(u64::try_from(seen)? == pods, "{seen} pods were listed, not {pods}");
    Ok(listed)
}
