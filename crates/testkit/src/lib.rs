//! Scenarios written once, run on an embedded and on a real cluster.
//!
//! A scenario is an async function of a [`Cluster`]. It makes its own [`Sandbox`] (a namespace that is cleaned up
//! whatever happens), puts objects into it, and says what must happen [eventually](Sandbox::eventually) or hold
//! [always](Sandbox::always). Both print what was awaited and what was seen last, so that a failure can be read
//! without running it again.
//!
//! ```no_run
//! use kruise_testkit::{Cluster, Outcome, pod, scenario, wait::seen};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! async fn a_pod_runs(cluster: Cluster) -> Outcome {
//!     let sandbox = cluster.sandbox("pod").await;
//!     sandbox.create::<Pod>(pod::named("web").container("app", &cluster.image("app:v1"))).await;
//!     sandbox.eventually("the pod is ready", async || {
//!         let pod: Pod = sandbox.get("web").await;
//!         seen(pod::is_ready(&pod), format!("{:?}", pod.status))
//!     }).await;
//!     Ok(())
//! }
//!
//! scenario!(a_pod_runs);
//! ```

pub mod cluster;
pub mod embedded;
pub mod events;
pub mod pod;
pub mod registry;
pub mod sandbox;
pub mod scenario;
pub mod wait;
pub mod writes;

pub use cluster::{Backend, Cluster};
pub use sandbox::Sandbox;
pub use scenario::{Outcome, Skip};
