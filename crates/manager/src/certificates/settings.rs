//! What the certificates are for and where they are kept.

use std::path::PathBuf;

use kruise_api::gates::Gates;
use kruise_core::features::{self, Side, webhooks};
use kruise_webhook::certificates::registration::{Needed, Wanted};
use kruise_webhook::certificates::{Environment, Mode, renew_before};

use crate::options;

/// What the certificates are for and where they are kept.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the webhooks are.
    pub environment: Environment,
    /// Who makes the certificates.
    pub mode: Mode,
    /// The Secret, in the namespace of the environment.
    pub secret: String,
    /// The folder of the files.
    pub folder: PathBuf,
    /// What belongs into the webhook configurations.
    pub wanted: Wanted,
}

impl Settings {
    /// From the variables of the manager. `is_external` is the gate `EnableExternalCerts`.
    pub fn new(variables: &options::Environment, is_external: bool, wanted: Wanted) -> Self {
        let certificates = &variables.certificates;
        let renew_before = match certificates.renew_before.as_deref().map(renew_before::parse) {
            Some(Ok(asked)) => asked,
            None => renew_before::DEFAULT,
            Some(Err(why)) => {
                tracing::error!("{why}");
                renew_before::DEFAULT
            }
        };
        Self {
            environment: Environment {
                namespace: variables.namespace.clone(),
                service: certificates.service.clone(),
                host: certificates.host.clone(),
                port: certificates.port,
                renew_before,
            },
            mode: match (is_external, certificates.on_disk) {
                (true, _) => Mode::External,
                (false, true) => Mode::Files,
                (false, false) => Mode::Secret,
            },
            secret: certificates.secret.clone(),
            folder: certificates.folder.clone(),
            wanted,
        }
    }
}

/// What belongs into the webhook configurations with these gates.
pub fn wanted(variables: &options::Environment, gates: &Gates) -> Wanted {
    let options = webhooks::Options {
        namespace: variables.namespace.clone(),
        service: variables.certificates.service.clone(),
        ..webhooks::Options::default()
    };
    let needed = |side: Side| {
        let webhooks = webhooks::registered(gates, side);
        let needed = webhooks.map(|webhook| {
            let paths = std::iter::once(&webhook.path).chain(webhook.aliases);
            let paths = paths.map(|path| (*path).to_owned()).collect();
            Needed { entry: webhooks::entry(webhook, &options), paths }
        });
        needed.collect::<Vec<Needed>>()
    };
    let all = || features::ALL.iter().flat_map(|feature| feature.webhooks);
    let (mutating, validating) = (needed(Side::Mutating), needed(Side::Validating));
    let paths = |needed: &Needed| needed.paths.clone();
    Wanted {
        open: mutating.iter().chain(&validating).flat_map(paths).collect(),
        known: features::paths(gates).into_iter().map(|path| path.path.to_owned()).collect(),
        names: all().map(|webhook| webhook.name.to_owned()).collect(),
        mutating,
        validating,
    }
}
