//! What a controller is given that runs beside a cluster with faults.

use kruise_api::gates::Gates;
use kruise_manager::{
    options::{Environment, Options},
    shared::{Settings, Shared},
};
use kruise_runtime::{clock::Clock, lease::Fence, metrics::Registry, random::Random};
use kruise_sim::Sim;

/// The parts of a manager that talks to the cluster through its faults and is started with these flags.
pub(crate) fn shared(sim: &Sim, random: &Random, flags: &[&str]) -> Shared {
    through(sim.faulty_client(), sim, random, flags)
}

/// The same with another way to the cluster.
pub(crate) fn through(client: kube::Client, sim: &Sim, random: &Random, flags: &[&str]) -> Shared {
    let now = *sim.clock();
    timed(client, Clock::from_fn(move || now.now()), random, flags)
}

/// The same with a clock of its own.
pub(crate) fn timed(client: kube::Client, clock: Clock, random: &Random, flags: &[&str]) -> Shared {
    let words = ["kruise-manager", "--expectation-timeout=60s"].into_iter().chain(flags.iter().copied());
    let settings = Settings {
        options: Options::read(words).unwrap(),
        environment: Environment::read(|_| None).unwrap(),
        gates: Gates::default(),
        clock,
        random: random.clone(),
    };
    Shared::new(client, settings, "v1.35.0", Fence::default(), Registry::default())
}
