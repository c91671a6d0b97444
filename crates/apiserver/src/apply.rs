//! Field management: who owns which field of an object, and what server-side apply makes of that.
//!
//! Everything here is a pure function on JSON and on sets of fields ([`Set`]). A [`Typed`] says how values of a kind merge:
//! from the shapes of the built-in kinds, or from the schema of a custom resource. [`compare()`] finds what a write changed,
//! [`update`] and [`apply`] say who owns what after it, and [`merge()`] makes the applied object.
//!
//! The sets are the real server's to the letter, since clients compare and edit them.

mod compare;
mod element;
mod fields;
mod managed;
mod merge;
mod rules;
mod set;
mod share;
mod types;
mod validate;
mod wire;

pub use compare::{Difference, compare};
pub use element::{Element, path_text};
pub use fields::{of as fields_of, with_named};
pub use managed::{Conflicts, Entry, Managed, Manager, Operation, is_reset};
pub use merge::{merge, remove};
pub use rules::{Applied, Reset, Write, apply, capped, update};
pub use set::{Member, Set};
pub use share::shared;
pub use types::{Schema, Typed};
pub use validate::errors;
