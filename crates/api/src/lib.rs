//! The kinds of kruise-rs and everything users see by name.
