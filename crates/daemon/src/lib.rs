//! The program `kruise-daemon`, one on each node: restarts containers, pulls images, runs probes and tells what the
//! kubelet started.

pub mod cri;
pub mod http_get;
pub mod recreation;
pub mod stopping;
