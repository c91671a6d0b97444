//! Pulling images ahead of their use: ImagePullJob and ImageListPullJob.

pub mod validate;
