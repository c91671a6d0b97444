//! A memory that outlives the process: what a store tells it, and what a store begins with.
//!
//! The store stays in memory and answers from there. A journal is told every change in the order of versions; it
//! writes in its own time and says up to which version everything is safe. Only answers to those who write wait
//! for that. As changes become safe in order, nothing safe can stand on something that is lost.

use std::fmt::Debug;

use bytes::Bytes;
use futures::future::BoxFuture;

use super::Event;

/// Keeps the objects of a store.
pub trait Journal: Debug + Send + Sync {
    /// What was kept, once: later calls give nothing.
    fn saved(&self) -> Saved;

    /// Something happened. Called in the order of versions while the store is locked, so it must be quick; it may
    /// wait only to keep what is not yet safe within bounds.
    fn note(&self, table: &str, event: &Event);

    /// Waits until everything up to this version is safe. The text says why it never will be.
    fn safe(&self, version: u64) -> BoxFuture<'_, Result<(), String>>;
}

/// What a store begins with.
#[derive(Debug, Default)]
pub struct Saved {
    /// The version to go on from. Nobody has seen this version or a later one. 0 when nothing was kept.
    pub version: u64,
    /// The objects: their table and their JSON.
    pub objects: Vec<(String, Bytes)>,
}
