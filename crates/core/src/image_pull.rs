//! Pulling images ahead of their use: what ImagePullJob and ImageListPullJob share.

mod pace;
pub mod validate;

pub use pace::Pace;
