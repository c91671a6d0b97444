//! Our manager in the same process.

use kruise_api::{
    gates::{self, Gates},
    names,
};
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

const FEATURE_GATES: &str = "--feature-gates=";

/// The flags of the manager with more feature gates, such as `ResourceDistributionGate=true`. Where they name a gate of
/// [`FLAGS`], they win.
pub fn flags(feature_gates: &str) -> Vec<String> {
    let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    if !feature_gates.is_empty() {
        flags.push(format!("{FEATURE_GATES}{feature_gates}"));
    }
    flags
}

/// The gates that the manager and the daemons have with these gates on top.
pub fn gates(feature_gates: &str) -> Result<Gates, gates::Error> {
    let flags = flags(feature_gates);
    let named: Vec<&str> = flags.iter().filter_map(|flag| flag.strip_prefix(FEATURE_GATES)).collect();
    Gates::parse(&named.join(","), &gates::Options::default()).map(|(gates, _)| gates)
}

/// A manager for this cluster. From now on the cluster asks its webhooks.
pub fn inside(sim: &Sim, seed: u64, feature_gates: &str) -> Result<Inside, String> {
    let clock = *sim.clock();
    let surroundings = Surroundings {
        client: sim.client(),
        version: kruise_apiserver::discovery::GIT_VERSION.to_owned(),
        clock: Clock::from_fn(move || clock.now()),
        random: Random::seeded(seed),
    };
    let flags = flags(feature_gates);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let inside = Inside::new(surroundings, &flags)?;
    let (namespace, service) = (names::NAMESPACE, names::WEBHOOK_SERVICE);
    sim.server().register_webhook_service(namespace, service, inside.webhooks());
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use kruise_api::gates::Gate;

    use super::*;

    #[test]
    fn more_gates_are_added_and_win() {
        let gates = |more: &str| gates(more).unwrap();
        assert!(
            gates("").enabled(Gate::SidecarTerminator) && !gates("").enabled(Gate::ResourceDistributionGate)
        );
        let more = gates("ResourceDistributionGate=true,SidecarTerminator=false");
        assert!(more.enabled(Gate::ResourceDistributionGate) && !more.enabled(Gate::SidecarTerminator));
        assert!(more.enabled(Gate::ResourcesDeletionProtection));
        assert!(super::gates("NoSuchGate=true").unwrap_err().to_string().contains("NoSuchGate"));
    }
}
