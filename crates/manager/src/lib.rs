//! The manager: controllers and webhooks.

pub mod logging;
pub mod options;
