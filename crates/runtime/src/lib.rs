//! What every controller stands on: caches, queue, freshness, effects, lease, metrics.
//!
//! Nothing here reads a wall clock or draws a random number by itself: a [`clock::Clock`] and a [`random::Random`] come
//! in as values, and all waiting goes through tokio's clock. Under paused time and with a seed, a program made of these
//! parts does the same in every run.

pub mod cache;
pub mod client;
pub mod clock;
pub mod controller;
pub mod decode;
pub mod effects;
pub mod endpoints;
pub mod events;
pub mod freshness;
pub mod lease;
pub mod live;
pub mod logging;
pub mod metrics;
pub mod queue;
pub mod random;
pub mod scope;
pub mod signals;
pub mod version;
