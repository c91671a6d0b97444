//! The manager's side of what daemons of nodes carry out: requests to recreate containers, probes, and jobs of ephemeral
//! containers. What a daemon would say is said by the test.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

/// Whether its scenarios can run beside each other, with one manager on a real cluster.
pub(crate) const SHARES_A_MANAGER: bool = true;

#[path = "../platform/stage.rs"]
#[allow(dead_code, reason = "shared with the scenarios of the platform")]
mod stage;

mod jobs;
mod probes;
mod recreation;
mod words;
