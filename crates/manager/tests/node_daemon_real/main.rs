//! The node daemon as a process beside a real kubelet and a real container runtime, with the manager as a process: what only
//! real containers, images and networks can prove. Each scenario says its number in the specification.
//!
//! All of it is skipped where the real node of the cluster is not this machine.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

/// Whether its scenarios can run beside each other, with one manager on a real cluster.
pub(crate) const SHARES_A_MANAGER: bool = true;

#[path = "../platform/stage.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "shared with the scenarios of the platform")]
mod stage;

mod deadlines;
mod hooks;
mod image_pulls;
mod jobs;
mod killed;
mod metadata;
mod node;
mod order;
mod probes;
mod recreation;
mod rights;
mod sidecars;
mod words;
