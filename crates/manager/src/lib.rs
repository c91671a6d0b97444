//! The manager: controllers and webhooks.
pub mod options;
