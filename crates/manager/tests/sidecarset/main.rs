//! The acceptance scenarios of SidecarSets, on the embedded cluster in virtual time and on a real one. Each says its
//! number in the specification.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

/// Whether its scenarios can run beside each other, with one manager on a real cluster.
pub(crate) const SHARES_A_MANAGER: bool = true;

#[path = "../platform/stage.rs"]
#[allow(dead_code, reason = "shared with the scenarios of the platform")]
mod stage;

#[path = "../cloneset/film.rs"]
#[allow(dead_code, reason = "shared with the scenarios of CloneSets")]
mod film;
#[path = "../cloneset/kit.rs"]
#[allow(dead_code, reason = "shared with the scenarios of CloneSets")]
mod kit;
#[path = "../cloneset/policy.rs"]
mod policy;

mod bad_input;
mod beside_others;
mod budget;
mod canary;
mod conflicts;
mod hot;
mod hot_client;
mod hot_trouble;
mod injection;
mod metadata;
mod native;
mod order;
mod refused;
mod resources;
mod revisions;
mod rollout;
mod scene;
mod sharing;
mod takeover;
mod upgradable;
mod versions;
mod which_revision;
mod words;
