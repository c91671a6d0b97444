//! The start order of containers: one starts only when all of higher priority are ready.
//!
//! A new pod [gets](mutate()) a variable in every container that is read from a key of a ConfigMap, the barrier. A kubelet
//! cannot start a container whose key is missing, and tries again. Keys are [added](plan()) in the order of priority as
//! containers become ready, and never taken away.

mod barrier;
pub mod mutate;
mod plan;

pub use barrier::Barrier;
pub use mutate::mutate;
pub use plan::{Observed, Plan, concerns, plan};

use kruise_api::env::{BARRIER_KEY_PREFIX, BARRIER_NAME_SUFFIX};

/// The name of the barrier of a pod.
pub fn barrier_name(pod: &str) -> String {
    format!("{pod}{BARRIER_NAME_SUFFIX}")
}

/// The key that lets containers of a priority start.
pub fn barrier_key(priority: i32) -> String {
    format!("{BARRIER_KEY_PREFIX}{priority}")
}
