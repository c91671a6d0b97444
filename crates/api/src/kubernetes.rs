//! What a Kubernetes API server does to the core types our kinds embed.
//!
//! Pod templates and claims stay JSON in our kinds. Several things happen to them on a real server, and they
//! change bytes that revision hashes are made of: fields get [`defaults`], quantities become canonical
//! ([`quantity`]), and decoding into typed structs drops and adds members ([`shape`]). What a
//! server refuses is in [`validation`].
//!
//! Everything here is pure and never panics, whatever the JSON looks like: a value of the wrong type is left
//! alone by `defaults` and reported by `shape`.

pub mod defaults;
pub mod quantity;
pub mod shape;
pub mod validation;
