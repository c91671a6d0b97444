//! The acceptance scenarios of PersistentPodStates, on the embedded cluster in virtual time and on a real one. Each says its
//! number in the specification.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

/// Whether its scenarios can run beside each other, with one manager on a real cluster.
pub(crate) const SHARES_A_MANAGER: bool = true;

#[path = "../platform/stage.rs"]
#[allow(dead_code, reason = "shared with the scenarios of the platform")]
mod stage;

mod generated;
mod home;
mod input;
mod listed;
mod records;
mod takeover;
