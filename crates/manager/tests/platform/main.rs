//! The scenarios of the platform: what users of a manager see, on the embedded cluster with the manager in this process,
//! and on a real cluster with the manager as a process of its own.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

/// Whether its scenarios can run beside each other, with one manager on a real cluster.
pub(crate) const SHARES_A_MANAGER: bool = false;

mod admission;
mod certificates;
mod conversion;
mod gates;
mod leader;
mod migration;
mod missing;
mod permissions;
mod pods;
mod program;
#[allow(dead_code, reason = "shared with the scenarios of kinds")]
mod stage;
mod stored;
mod switch;
mod unreadable;
