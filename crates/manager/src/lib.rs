//! The manager: controllers and webhooks.
