//! Connections within bounds, for every port that anyone in the cluster can reach.
//!
//! - [`places`]: a fixed number of connections. A new one always gets in; when all places are taken, the connection that
//!   deserves its place least is closed.
//! - [`paced`]: a stream whose writes fail when the client does not read.

pub mod paced;
pub mod places;
