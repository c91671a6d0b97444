//! Manager, node daemons and simulated nodes together, in virtual time: containers are recreated, images pulled, probes run.
//! The daemons are the real ones; only the container runtime below them is simulated.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod faults;
mod grace;
mod hooks;
mod images;
mod jobs;
mod lists;
mod liveness;
mod meta;
mod probes;
mod recreation;
mod secrets;
mod sidecars;
mod world;
