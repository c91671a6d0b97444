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

/// What a node itself knows of registries.
#[derive(Debug, Default)]
pub struct Sources {
    /// Files of the form of docker.
    pub files: Vec<PathBuf>,
    /// Programs that a cloud provides.
    pub plugins: Option<Plugins>,
}

impl Sources {
    /// The files in which a node keeps credentials.
    pub fn default_files(home: Option<&str>) -> Vec<PathBuf> {
        let mut files = vec![PathBuf::from("/var/lib/kubelet/config.json")];
        files.extend(home.map(|home| PathBuf::from(home).join(".docker/config.json")));
        files.push(PathBuf::from("/.docker/config.json"));
        files.dedup();
        files
    }
}

/// Who knows the credentials of registries. Clones are the same.
#[derive(Clone)]
pub struct Credentials(Arc<Inner>);

struct Inner {
    client: kube::Client,
    random: Random,
    sources: Sources,
    secrets: Mutex<Read>,
}

impl Credentials {
    /// Reads secrets through this client, which must not wait for ever, and asks these sources.
    pub fn new(client: kube::Client, random: Random, sources: Sources) -> Self {
        Self(Arc::new(Inner { client, random, sources, secrets: Mutex::default() }))
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
        let mut node = match &self.0.sources.plugins {
            Some(plugins) => plugins.keyring(reference, repository).await,
            None => Keyring::default(),
        };
        for file in &self.0.sources.files {
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

    /// A secret as it is now, or as it was when it was read last where nobody can tell: an attempt without any credentials
    /// would be lost.
    async fn secret(&self, key: &ObjectKey, anew: bool) -> Option<Arc<Secret>> {
        let now = Instant::now();
        let known = self.secrets().get(key).cloned();
        if let Some((_, secret)) = known.as_ref().filter(|(until, _)| !anew && *until > now) {
            return Some(secret.clone());
        }
        match live::get::<Secret>(&self.0.client, SECRET, key).await {
            Ok(Some(secret)) => {
                let secret = Arc::new(secret);
                let until = now + BELIEVED + Duration::from_secs(self.0.random.below(MORE_SECONDS));
                let mut secrets = self.secrets();
                secrets.retain(|_, (until, _)| *until > now);
                secrets.insert(key.clone(), (until, secret.clone()));
                Some(secret)
            }
            // One that is missing may come at any time, so only what is there is believed.
            Ok(None) => {
                self.secrets().remove(key);
                tracing::warn!(secret = %key, "a pull secret does not exist");
                None
            }
            Err(error) => {
                let is_known = known.is_some();
                tracing::warn!(secret = %key, %error, is_known, "failed to read a pull secret");
                known.map(|(_, secret)| secret)
            }
        }
    }

    fn secrets(&self) -> MutexGuard<'_, Read> {
        self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
