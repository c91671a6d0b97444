//! Keeping sidecars up to date: which pods get a new image next, step by step, and how things stand.
//!
//! A pass looks at everything ([`Observed`]), decides one safe step ([`plan()`]), and says how things stand
//! ([`status()`]); [`decide`] does both at once. Only images change in pods that run. What an update needs is in annotations of the pod and is written
//! together with the images, so a restart of the manager loses nothing and counts nothing twice.
//!
//! What plans keep, whatever they see: no more ready pods are taken down than `maxUnavailable` allows, no pod goes beyond
//! the partition, and of the two containers of a hot upgrade the one that serves is left alone until the other one does.

mod condition;
mod desired;
mod hot;
mod numbers;
mod observed;
mod patch;
mod plan;
mod pods;
mod purpose;
mod state;
mod status;
mod update;
mod wake;

pub use desired::{Desired, Error, Updates};
pub use numbers::{Limits, taken};
pub use observed::{Held, Observed, needs_namespaces};
pub use plan::{Plan, decide, plan};
pub use purpose::Purpose;
pub use state::is_settled;
pub use status::{status, status_write};
pub use wake::wakes;

#[cfg(test)]
mod tests;
