//! The manager: controllers and webhooks.

pub mod certificates;
pub mod controllers;
pub mod endpoints;
pub mod logging;
pub mod options;
pub mod protection_log;
pub mod shared;
