//! DaemonSet: one pod on every node that fits, with updates in place, in parts, and with a surge.

pub mod validate;
