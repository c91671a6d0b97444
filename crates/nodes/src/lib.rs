//! The node daemon on simulated nodes: the same code that runs on real ones, with a simulated machine in the place of the
//! container runtime.
//!
//! [`Simulated`] is the runtime of a simulated node as the daemon sees it. [`Daemon`] is a daemon that runs on one.

mod runtime;

use std::sync::Arc;

use kruise_api::gates::Gates;
use kruise_daemon::{
    cri::Runtimes,
    daemon,
    node::{Node, Settings},
    pulling::{Wanted, secrets::Sources},
};
use kruise_runtime::{clock::Clock, random::Random, scope::Scope};
use kruise_sim::Machine;

pub use runtime::Simulated;

/// What a daemon is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which features are on.
    pub gates: Gates,
    /// How many pulls may run at once; all, unless given.
    pub most_pulls: Option<usize>,
    /// Calls per second and at once, of each controller.
    pub rate: (f64, u32),
    /// The time on the clock of the node.
    pub clock: Clock,
    /// Random numbers.
    pub random: Random,
}

/// A daemon on a simulated node. Dropped, it ends at once, as a process that is killed.
pub struct Daemon {
    node: Node,
    _scope: Scope,
}

impl Daemon {
    /// Starts a daemon that talks to the cluster through this client.
    pub fn start(client: kube::Client, machine: Machine, options: Options) -> Self {
        let Options { gates, most_pulls, rate, clock, random } = options;
        let settings = Settings {
            node: machine.node().to_owned(),
            gates,
            rate,
            most_pulls,
            // A simulated node has no disk that could be full.
            space: Wanted { percent: 0 },
            clock,
            random,
        };
        let runtimes = Runtimes::new(vec![Arc::new(Simulated::new(machine))]);
        let runtimes = runtimes.expect("there is one runtime");
        let node = Node::new(client, runtimes, Sources::default(), settings);
        let mut scope = Scope::default();
        daemon::start(&node, &mut scope);
        Self { node, _scope: scope }
    }

    /// What its parts share.
    pub fn node(&self) -> &Node {
        &self.node
    }
}
