//! Stories of a small model of a cluster, states recorded from the original, and what holds for every state.

mod kit;
mod properties;
mod scaling;
mod standing;
mod takeover;
mod updating;
