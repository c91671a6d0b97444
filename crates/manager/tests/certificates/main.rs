//! Certificates of managers on a cluster: several replicas behind one Service, an API server that calls them over TLS
//! and trusts what it finds in its own objects.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

mod cluster;
mod network;
mod stories;
