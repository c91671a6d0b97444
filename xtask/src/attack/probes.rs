//! What must go on while a manager is attacked, and what was seen of it.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::locked;
use super::sockets::Targets;
use crate::bench::local::Clock;
use crate::bench::local::http::Connection;
use crate::bench::manager::{Manager, get};
use crate::bench::webhook::review;

/// How often a probe asks.
const EVERY: Duration = Duration::from_millis(50);
/// How long a probe waits for an answer before it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What was seen, by attack.
#[derive(Default)]
pub(super) struct Seen {
    parts: Vec<Part>,
    /// Requests of ours that were not answered as they should be.
    pub(super) failures: Vec<String>,
    /// Reviews that were too large and got 413 with a reason.
    pub(super) too_large: usize,
}

#[derive(Default)]
struct Part {
    name: &'static str,
    admissions: usize,
    worst_admission: Duration,
    worst_health: Duration,
    peak: u64,
    /// Connections that the attack made.
    connections: usize,
}

impl Seen {
    pub(super) fn begin(&mut self, name: &'static str) {
        self.parts.push(Part { name, ..Part::default() });
    }

    fn now(&mut self, change: impl FnOnce(&mut Part)) {
        if let Some(part) = self.parts.last_mut() {
            change(part);
        }
    }

    pub(super) fn connected(&mut self) {
        self.now(|part| part.connections += 1);
    }

    fn failed(&mut self, what: &str, error: &anyhow::Error) {
        let part = self.parts.last().map_or("", |part| part.name);
        self.failures.push(format!("{what} during {part}: {error:#}"));
    }

    pub(super) fn admissions(&self) -> usize {
        self.parts.iter().map(|part| part.admissions).sum()
    }

    pub(super) fn worst_admission(&self) -> Duration {
        self.parts.iter().map(|part| part.worst_admission).max().unwrap_or_default()
    }

    pub(super) fn worst_health(&self) -> Duration {
        self.parts.iter().map(|part| part.worst_health).max().unwrap_or_default()
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Part { name, admissions, worst_admission, worst_health, peak, connections } in &self.parts {
            writeln!(
                formatter,
                "{name}: {connections} connections; {admissions} admissions, the worst took {worst_admission:.1?}, \
                 health {worst_health:.1?}; {} MiB",
                peak >> 20
            )?;
        }
        Ok(())
    }
}

/// Sends pods for admission as an API server does: over a connection that is kept, and over a new one where that is gone.
pub(super) fn admissions(targets: &Targets, seen: &Mutex<Seen>, is_over: &AtomicBool) {
    let mut kept = None;
    let mut number = 0_u32;
    while !is_over.load(Ordering::Relaxed) {
        // Every other one comes from an API server that has no connection yet.
        if number.is_multiple_of(2) {
            kept = None;
        }
        number += 1;
        let clock = Clock::new();
        let answered = admission(targets, &mut kept);
        let took = clock.elapsed();
        let mut seen = locked(seen);
        match answered {
            Ok(()) => seen.now(|part| {
                part.admissions += 1;
                part.worst_admission = part.worst_admission.max(took);
            }),
            Err(error) => seen.failed("an admission", &error),
        }
        drop(seen);
        thread::sleep(EVERY);
    }
}

fn admission(targets: &Targets, kept: &mut Option<Connection>) -> Result<()> {
    let review = review();
    let ask = |connection: &mut Connection| connection.send("POST", "/mutate-pod", Some(&review));
    let answer = match kept.as_mut().map(ask) {
        Some(Ok(answer)) => answer,
        _ => {
            let mut connection = targets.caller()?.within(TIMEOUT)?;
            let answer = ask(&mut connection)?;
            *kept = Some(connection);
            answer
        }
    };
    ensure!(answer.pointer("/response/allowed") == Some(&json!(true)), "{answer}");
    Ok(())
}

/// Asks for health as a kubelet does.
pub(super) fn health(targets: &Targets, seen: &Mutex<Seen>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let clock = Clock::new();
        let answered = get(targets.health, "/healthz").and_then(|answer| {
            ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            Ok(())
        });
        let took = clock.elapsed();
        let mut seen = locked(seen);
        match answered {
            Ok(()) => seen.now(|part| part.worst_health = part.worst_health.max(took)),
            Err(error) => seen.failed("health", &error),
        }
        drop(seen);
        thread::sleep(EVERY);
    }
}

/// Reads the memory of the manager.
pub(super) fn memory(manager: &Manager, seen: &Mutex<Seen>, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let read = manager.memory("VmRSS");
        let mut seen = locked(seen);
        match read {
            Ok(bytes) => seen.now(|part| part.peak = part.peak.max(bytes)),
            Err(error) => seen.failed("reading the memory of the manager", &error),
        }
        drop(seen);
        thread::sleep(EVERY / 2);
    }
}
