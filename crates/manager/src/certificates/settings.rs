//! What the certificates are for and where they are kept.

use std::collections::BTreeSet;
use std::path::PathBuf;

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
    /// The paths that have a handler.
    pub paths: BTreeSet<String>,
}

impl Settings {
    /// From the variables of the manager. `is_external` is the gate `EnableExternalCerts`.
    pub fn new(variables: &options::Environment, is_external: bool, paths: BTreeSet<String>) -> Self {
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
            paths,
        }
    }
}
