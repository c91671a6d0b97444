//! Whatever is stored, the manager and the daemons go on: objects that nobody could write through an API, put straight into
//! the store of the cluster. One that cannot be read is left alone, and all others are served.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod fuzz;
mod mutate;
mod scene;
mod unread;
#[path = "../node_daemon/world.rs"]
#[allow(dead_code, reason = "words of other tests")]
mod world;
