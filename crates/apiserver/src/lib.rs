//! An embedded Kubernetes API server.
//!
//! It is a tower service without sockets: tests hand it to `kube::Client::new`, a program puts a TLS listener
//! in front of it. Objects live in memory under one monotonic resource version; everything that happens is a
//! function of the seed, the (virtual) clock and the requests, so that one seed gives one history.
//!
//! How a write travels: bytes are decoded, defaulted, passed through admission, validated, and stored; watchers
//! then read the event from one bounded history. The rules on objects (defaults, validation, patches, schemas)
//! are pure functions on JSON and know neither HTTP nor the store.

pub mod access;
pub mod admission;
pub mod apply;
pub mod body;
mod bootstrap;
mod cel;
pub mod client;
pub mod clock;
pub mod connect;
pub mod controllers;
mod crd;
pub mod discovery;
pub mod field;
pub mod jsonpath;
pub mod kinds;
pub mod metrics;
pub mod openapi;
pub mod patch;
pub mod protobuf;
pub mod random;
pub mod registry;
pub mod rest;
pub mod schema;
pub mod selector;
pub mod server;
mod service;
pub mod status;
pub mod store;
pub mod table;
pub mod webhook;

pub use server::ApiServer;
