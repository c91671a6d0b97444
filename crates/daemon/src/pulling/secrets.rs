//! Where the credentials of a pull come from: pull secrets, files of the node, plugins.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_api::nodeimage::v1beta1::PullSecret;
use kruise_core::object::{ObjectKey, SECRET};
use kruise_runtime::{live, random::Random};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{keyring::Keyring, plugins::Plugins};
use crate::cri::Auth;

/// How long a secret is believed, and how much longer at random.
const BELIEVED: Duration = Duration::from_secs(300);
const MORE_SECONDS: u64 = 300;

/// What we read of a secret.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Secret {
    r#type: String,
    data: BTreeMap<String, String>,
}

/// Secrets that were read, and until when they are believed.
type Read = BTreeMap<ObjectKey, (Instant, Arc<Secret>)>;

/// Who knows the credentials of registries. Clones are the same.
#[derive(Clone)]
pub struct Credentials(Arc<Inner>);

struct Inner {
    client: kube::Client,
    random: Random,
    files: Vec<PathBuf>,
    plugins: Option<Plugins>,
    secrets: Mutex<Read>,
}

impl Credentials {
    /// Reads secrets through this client, and these files of the form of docker.
    pub fn new(client: kube::Client, random: Random, files: Vec<PathBuf>, plugins: Option<Plugins>) -> Self {
        Self(Arc::new(Inner { client, random, files, plugins, secrets: Mutex::default() }))
    }

    /// The files in which a node keeps credentials.
    pub fn default_files(home: Option<&str>) -> Vec<PathBuf> {
        let mut files = vec![PathBuf::from("/var/lib/kubelet/config.json")];
        files.extend(home.map(|home| PathBuf::from(home).join(".docker/config.json")));
        files.push(PathBuf::from("/.docker/config.json"));
        files.dedup();
        files
    }

    /// The credentials for an image, secrets first. `anew` reads secrets again that may have changed.
    pub async fn find(
        &self,
        reference: &str,
        repository: &str,
        secrets: &[PullSecret],
        anew: bool,
    ) -> Vec<Auth> {
        let mut keyring = Keyring::default();
        for secret in secrets {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let key = ObjectKey::new(text(&secret.namespace), text(&secret.name));
            let Some(secret) = self.secret(&key, anew).await else { continue };
            if let Err(problem) = keyring.add_secret(&secret.r#type, &secret.data) {
                tracing::warn!(secret = %key, %problem, "left out a pull secret");
            }
        }
        let mut found = keyring.find(repository);
        let mut node = match &self.0.plugins {
            Some(plugins) => plugins.keyring(reference, repository).await,
            None => Keyring::default(),
        };
        for file in &self.0.files {
            let config =
                std::fs::read(file).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            if let Some(config) = config {
                node.add_config(&config);
            }
        }
        for auth in node.find(repository) {
            if !found.contains(&auth) {
                found.push(auth);
            }
        }
        found
    }

    async fn secret(&self, key: &ObjectKey, anew: bool) -> Option<Arc<Secret>> {
        let now = Instant::now();
        if !anew
            && let Some((until, secret)) = self.secrets().get(key)
            && *until > now
        {
            return Some(secret.clone());
        }
        match live::get::<Secret>(&self.0.client, SECRET, key).await {
            Ok(secret) => {
                // One that is missing may come at any time, so only what is there is believed.
                let Some(secret) = secret.map(Arc::new) else {
                    tracing::warn!(secret = %key, "a pull secret does not exist");
                    return None;
                };
                let until = now + BELIEVED + Duration::from_secs(self.0.random.below(MORE_SECONDS));
                let mut secrets = self.secrets();
                secrets.retain(|_, (until, _)| *until > now);
                secrets.insert(key.clone(), (until, secret.clone()));
                Some(secret)
            }
            Err(error) => {
                tracing::warn!(secret = %key, %error, "failed to read a pull secret");
                None
            }
        }
    }

    fn secrets(&self) -> MutexGuard<'_, Read> {
        self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
