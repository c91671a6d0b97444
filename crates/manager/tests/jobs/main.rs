//! The acceptance scenarios of BroadcastJobs and AdvancedCronJobs, on the embedded cluster in virtual time, and on a real one
//! where a kubelet matters. Each says its number in the specification.

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
mod input;
mod nodes;
mod policies;
mod room;
mod schedules;
mod takeover;
mod waits;
