//! Certificates from an empty cluster to a renewal under load, on a cluster that consists of a few JSON values.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

mod clients;
mod external;
mod load;
mod races;
mod ready;
mod rules;
mod world;
