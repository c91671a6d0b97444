//! AdvancedCronJob: makes a Job, a BroadcastJob or an ImageListPullJob whenever its schedule says so.

pub mod validate;
