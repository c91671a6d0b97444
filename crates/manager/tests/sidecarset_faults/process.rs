//! The whole manager as a process that can die: its webhooks inject, its controllers update.

use futures::FutureExt as _;
use kruise_api::names;
use kruise_manager::inside::{Inside, Running, Surroundings};
use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::Sim;

pub(crate) struct Process(Running);

impl Process {
    /// Starts it with these times between two lists of everything.
    pub(crate) fn start(sim: &Sim, random: &Random, resync: &str) -> Self {
        let clock = *sim.clock();
        let surroundings = Surroundings {
            client: sim.faulty_client(),
            version: kruise_apiserver::discovery::GIT_VERSION.to_owned(),
            clock: Clock::from_fn(move || clock.now()),
            random: random.clone(),
        };
        // Faults may keep it from its first lists for longer than anyone would wait otherwise.
        let flags = ["--expectation-timeout=60s", "--controller-cache-sync-timeout=10h", resync];
        let inside = Inside::new(surroundings, &flags).unwrap();
        let (namespace, service) = (names::NAMESPACE, names::WEBHOOK_SERVICE);
        sim.server().register_webhook_service(namespace, service, inside.webhooks());
        Self(inside.start())
    }

    /// Whether all its parts go on.
    pub(crate) fn is_well(&mut self) -> Result<(), String> {
        match self.0.ended().now_or_never() {
            Some(error) => Err(format!("a part of the manager ended: {error}")),
            None => Ok(()),
        }
    }
}
