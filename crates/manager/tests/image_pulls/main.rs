//! Image pulls in virtual time: the controllers of NodeImages, ImagePullJobs and ImageListPullJobs as one process, and nodes
//! that answer as daemons do. Also under every class of faults, and with so many jobs that they have to take turns.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../runtime/tests/faults/classes.rs"]
mod classes;
#[path = "../cloneset_faults/settings.rs"]
mod settings;

mod faults;
mod process;
mod stories;
mod turns;
mod world;
