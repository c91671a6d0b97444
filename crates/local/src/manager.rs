//! Our manager in the same process.

use kruise_api::names;
use kruise_manager::inside::{Inside, Surroundings};
use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::Sim;

/// What a newcomer wants to try: the defaults, pulling images, jobs with sidecars, and deletion protection. Nodes are here to
/// stay, so their NodeImages need not wait.
pub const FLAGS: &[&str] = &[
    "--feature-gates=ImagePullJobGate=true,SidecarTerminator=true,ResourcesDeletionProtection=true,\
     DeletionProtectionForCRDCascadingGate=true",
    "--nodeimage-creation-delay=0s",
];

/// A manager for this cluster. From now on the cluster asks its webhooks.
pub fn inside(sim: &Sim, seed: u64) -> Result<Inside, String> {
    let clock = *sim.clock();
    let surroundings = Surroundings {
        client: sim.client(),
        version: kruise_apiserver::discovery::GIT_VERSION.to_owned(),
        clock: Clock::from_fn(move || clock.now()),
        random: Random::seeded(seed),
    };
    let inside = Inside::new(surroundings, FLAGS)?;
    let (namespace, service) = (names::NAMESPACE, names::WEBHOOK_SERVICE);
    sim.server().register_webhook_service(namespace, service, inside.webhooks());
    Ok(inside)
}
