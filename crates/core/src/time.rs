//! Times as servers and people write them, also those that our calendar does not reach.

pub use kruise_api::time::saturating;
