//! NodeImage: which images one node is to pull.

pub mod validate;
