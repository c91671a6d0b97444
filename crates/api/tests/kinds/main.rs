//! What holds for every kind and every version, tried on objects made from the schemas themselves.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

mod arbitrary;
mod conversion;
mod defaults;
mod recorded;
mod schemas;
mod types;
