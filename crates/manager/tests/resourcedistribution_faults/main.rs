//! ResourceDistributions under every class of faults, in virtual time: the controller as a process that may die, beside people
//! who change namespaces, copies and specs. `KRUISE_SEEDS` says how many seeds each class has.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../runtime/tests/faults/classes.rs"]
mod classes;
#[path = "../cloneset_faults/settings.rs"]
#[allow(dead_code, reason = "shared with the faults of CloneSets")]
mod settings;

mod cost;
mod lasting;
mod process;
mod truth;
mod world;
