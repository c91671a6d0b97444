//! The acceptance scenarios of the sidecar terminator. Each says its number in the specification.
//!
//! What kills containers is the daemon of their node, at the request of the manager. Scenarios that need it run on simulated
//! nodes only, where the [test plays its part](daemon); all others also run on a real cluster.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

/// Whether its scenarios can run beside each other, with one manager on a real cluster.
pub(crate) const SHARES_A_MANAGER: bool = true;

#[path = "../platform/stage.rs"]
#[allow(dead_code, reason = "shared with the scenarios of the platform")]
mod stage;

#[path = "../cloneset/film.rs"]
#[allow(dead_code, reason = "shared with the scenarios of CloneSets")]
mod film;
#[path = "../cloneset/kit.rs"]
#[allow(dead_code, reason = "shared with the scenarios of CloneSets")]
mod kit;

mod broadcast;
mod codes;
mod daemon;
mod jobs;
mod kinds_of_nodes;
mod left_alone;
mod repeated;
mod words;
