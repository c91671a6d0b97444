//! The acceptance scenarios of updates in place, life-cycle hooks, revisions and orders, with a CloneSet as the workload.

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
#[path = "../cloneset/policy.rs"]
mod policy;

mod batches;
mod completion;
mod faults;
mod grace;
mod hooks;
mod images;
mod input;
mod metadata;
mod node_daemon;
mod orders;
mod pre_delete;
mod pre_download;
mod refused;
mod resources;
mod revisions;
mod takeover;
mod words;
