//! BroadcastJob: runs a pod to its end on every node that fits.

pub mod validate;
