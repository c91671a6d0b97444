//! A cluster for a person to try things on: `cargo run --release`.
//!
//! One process holds the embedded API server behind TLS on loopback, its built-in controllers, a scheduler and
//! simulated nodes, our kinds, our manager and our daemon on the nodes. What it holds ends with
//! it, unless it is given a folder to keep it in ([`data`]). [`cluster::start`] puts the parts
//! together; the program around it only reads options and prints.

pub mod certificates;
pub mod cluster;
mod connections;
pub mod daemons;
pub mod data;
pub mod demo;
pub mod identity;
pub mod kubeconfig;
pub mod manager;
pub mod options;
pub mod serve;
