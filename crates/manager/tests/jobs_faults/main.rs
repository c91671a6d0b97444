//! BroadcastJobs and AdvancedCronJobs under every class of faults, in virtual time: both controllers as one process that may
//! die, beside a cluster whose nodes come and go.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../cloneset_faults/around.rs"]
#[allow(dead_code, reason = "shared with the faults of CloneSets")]
mod around;
#[path = "../../../runtime/tests/faults/classes.rs"]
mod classes;
#[path = "../cloneset_faults/settings.rs"]
#[allow(dead_code, reason = "shared with the faults of CloneSets")]
mod settings;

mod broadcast;
mod clocks;
mod process;
mod schedules;
mod stays;
mod world;
