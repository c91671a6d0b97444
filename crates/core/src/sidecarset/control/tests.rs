//! Stories on a small model of a cluster, what must hold for every input, and what the original left behind.

mod hot;
mod kit;
mod properties;
mod standing;
mod takeover;
mod updating;
