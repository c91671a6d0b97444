//! A cluster in one process: the embedded API server, a scheduler, simulated nodes, virtual time and faults.
//!
//! [`Sim`] is the cluster. Under tokio's paused time it lives in virtual time, an hour within milliseconds, and
//! one seed gives one history, byte for byte. In real time it serves people, as fast as they like.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use kruise_sim::Sim;
//! use std::time::Duration;
//!
//! let sim = Sim::builder().seed(7).nodes(3).start();
//! let client: kube::Client = sim.client(); // give it to a controller
//! sim.advance(Duration::from_secs(60)).await;
//! # drop(client);
//! # }
//! ```
//!
//! What lives in it:
//!
//! - the built-in controllers of the API server;
//! - a scheduler (selectors, affinity, taints, resources, spread; it does not preempt);
//! - nodes, all driven by one task. What a kubelet does and how long it takes is a table ([`steps`]); what a
//!   container does follows from its [`image`] (any name runs, some names crash, fail or dawdle) and from its command, if
//!   that is one of a small shell;
//! - logs, for `kubectl logs`, and [`load`], for `kubectl top` and autoscalers;
//! - [`Machine`]: a node as programs on it see it, with its containers and images;
//! - [`faults`], between a client and the server, and at the nodes.
//!
//! How a story is told: start a [`Sim`], hand [`Sim::faulty_client`] to the controller under test and
//! [`Sim::client`] to the test, turn switches of [`Sim::faults`], let time pass with [`Sim::advance`] or
//! [`Sim::settle`], and look at the objects. [`Sim::history`] has everything that happened.
//!
//! Nothing here knows the controllers that it tests.

mod connections;
mod events;
pub mod faults;
pub mod history;
pub mod image;
mod json;
mod kubelet;
pub mod load;
mod logs;
pub mod machine;
mod node;
mod scheduler;
mod sim;
pub mod steps;
mod time;

pub use machine::{Machine, Machines};
pub use node::Node;
pub use sim::{Builder, Sim};
