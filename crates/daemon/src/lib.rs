//! The program `kruise-daemon`, one on each node: restarts containers, pulls images, runs probes and tells what the
//! kubelet started.
//!
//! Rules are pure and stand in modules named after what they are about ([`recreation`], [`pulling`], [`container_meta`],
//! [`probing`]); [`controllers`] look, ask the rules and act. The container runtime is behind [`cri::Runtime`].

pub mod container_meta;
pub mod controllers;
pub mod cri;
pub mod daemon;
pub mod endpoints;
pub mod http_get;
pub mod node;
pub mod options;
pub mod probing;
pub mod program;
pub mod pulling;
pub mod recreation;
pub mod stopping;
