//! What extends the server: custom resource definitions, policies and webhooks, through a kube client and in virtual time.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod conversion;
mod definitions;
mod kit;
mod kruise;
mod policies;
mod rules;
mod webhooks;
