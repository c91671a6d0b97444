//! Scenarios, each written once and run on every kind of cluster that there is.
//!
//! A test that covers an acceptance scenario of the specification carries its number in its doc comment.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

mod kinds;
mod manifests;
mod nodes;
