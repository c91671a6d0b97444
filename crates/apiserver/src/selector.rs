//! Label and field selectors: which objects a list, a watch or a workload means.
//!
//! [`Labels`] is a selector on labels, read from a query string or from a `LabelSelector` object. [`Fields`]
//! is a selector on the few fields a resource offers. Both say what is wrong in the real server's words.

mod fields;
mod labels;
mod parse;
pub mod syntax;

pub use fields::{Fields, Term};
pub use labels::{Labels, Operator, Requirement, validate};

/// A selector that cannot be read; the text is what the client gets with `400`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);
