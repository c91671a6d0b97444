//! The manager: controllers and webhooks.
//!
//! [`manager::Manager`] is all of it around one client, without sockets. [`program`] adds flags, sockets, certificates
//! and leader election, which makes it `kruise-manager`.

pub mod budgets;
pub mod caches;
pub mod certificates;
pub mod configuration;
pub mod controllers;
pub mod copies;
pub mod definitions;
pub mod distributions;
pub mod inside;
pub mod kinds;
pub mod listed_workloads;
pub mod manager;
pub mod migrate;
pub mod options;
pub mod own_namespace;
pub mod program;
pub mod protection_log;
pub mod shared;
pub mod sidecar_sets;
pub mod spreads;
pub mod waiting;
mod watch;
pub mod webhooks;
pub mod workloads;
