//! Credentials from plugins: programs that a cloud provides, called as the kubelet calls them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_api::duration::GoDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    sync::Mutex as Lock,
    time::{Instant, timeout},
};

use super::keyring::{Keyring, Pattern};
use crate::cri::Auth;

/// How long a plugin may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// For how long an answer may be believed at most, whatever it says.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Why plugins are not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("failed to read {path}")]
    Read {
        /// Which file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It is no configuration.
    #[error("{path} is no CredentialProviderConfig: {problem}")]
    Parse {
        /// Which file.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    kind: String,
    #[serde(default)]
    providers: Vec<Provider>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provider {
    name: String,
    match_images: Vec<String>,
    #[serde(default)]
    default_cache_duration: Option<String>,
    api_version: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<Variable>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Variable {
    name: String,
    value: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    cache_key_type: String,
    #[serde(default)]
    cache_duration: Option<String>,
    #[serde(default)]
    auth: BTreeMap<String, Account>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Account {
    username: String,
    password: String,
}

/// For which images an answer of a plugin holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Image(String),
    Registry(String),
    Global,
}

/// What plugins have said, by plugin and by what it is good for, and until when it holds.
type Answers = BTreeMap<(String, Reach), (Instant, Response)>;

/// Whose turn it is to run a plugin for a registry.
type Turns = BTreeMap<(String, String), Arc<Lock<()>>>;

/// The plugins of a node.
#[derive(Debug)]
pub struct Plugins {
    folder: PathBuf,
    providers: Vec<Provider>,
    /// Never held while a plugin runs: a slow one concerns only its own registries.
    answers: Mutex<Answers>,
    /// One run at a time of a plugin for a registry, so that many pulls from it ask once.
    turns: Mutex<Turns>,
}

impl Plugins {
    /// Those of a configuration file; nothing if there is no such file.
    pub fn read(file: &Path, folder: &Path) -> Result<Option<Self>, Error> {
        let path = file.display().to_string();
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Read { path, source }),
        };
        let config: Config = match serde_saphyr::from_str(&text) {
            Ok(config) => config,
            Err(error) => return Err(Error::Parse { path, problem: error.to_string() }),
        };
        if config.kind != "CredentialProviderConfig" {
            let problem = format!("its kind is {:?}", config.kind);
            return Err(Error::Parse { path, problem });
        }
        let (answers, turns) = Default::default();
        Ok(Some(Self { folder: folder.to_owned(), providers: config.providers, answers, turns }))
    }

    /// What plugins know for an image.
    pub async fn keyring(&self, image: &str, repository: &str) -> Keyring {
        let mut keyring = Keyring::default();
        let wanted = Pattern::parse(repository);
        for provider in &self.providers {
            if !provider.match_images.iter().any(|pattern| Pattern::parse(pattern).matches(&wanted)) {
                continue;
            }
            match self.ask(provider, image, repository).await {
                Ok(response) => {
                    for (pattern, Account { username, password }) in response.auth {
                        keyring.add(&pattern, Auth { username, password, ..Auth::default() });
                    }
                }
                Err(problem) => {
                    tracing::warn!(plugin = %provider.name, image, %problem, "a credential plugin failed");
                }
            }
        }
        keyring
    }

    async fn ask(&self, provider: &Provider, image: &str, repository: &str) -> Result<Response, String> {
        let registry = repository.split('/').next().unwrap_or_default().to_owned();
        if let Some(known) = self.known(provider, image, &registry) {
            return Ok(known);
        }
        let turn = self.turn(provider, &registry);
        let _turn = turn.lock().await;
        // Whoever had the turn before may have asked for us.
        if let Some(known) = self.known(provider, image, &registry) {
            return Ok(known);
        }
        let response = timeout(PATIENCE, self.run(provider, image))
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {PATIENCE:?}")))?;
        let reach = match response.cache_key_type.as_str() {
            "Image" => Reach::Image(image.to_owned()),
            "Registry" => Reach::Registry(registry),
            "Global" => Reach::Global,
            other => return Err(format!("unknown cacheKeyType {other:?}")),
        };
        let text = response.cache_duration.as_ref().or(provider.default_cache_duration.as_ref());
        let lasts =
            text.and_then(|text| text.parse::<GoDuration>().ok()).map_or(Duration::ZERO, |time| time.0);
        if !lasts.is_zero() {
            let until = Instant::now() + lasts.min(LONGEST);
            self.answers().insert((provider.name.clone(), reach), (until, response.clone()));
        }
        Ok(response)
    }

    fn known(&self, provider: &Provider, image: &str, registry: &str) -> Option<Response> {
        let mut answers = self.answers();
        answers.retain(|_, (until, _)| *until > Instant::now());
        let reaches = [Reach::Image(image.to_owned()), Reach::Registry(registry.to_owned()), Reach::Global];
        reaches.into_iter().find_map(|reach| Some(answers.get(&(provider.name.clone(), reach))?.1.clone()))
    }

    fn turn(&self, provider: &Provider, registry: &str) -> Arc<Lock<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry((provider.name.clone(), registry.to_owned())).or_default().clone()
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, provider: &Provider, image: &str) -> Result<Response, String> {
        let api_version = &provider.api_version;
        let request = json!({"apiVersion": api_version, "kind": "CredentialProviderRequest", "image": image});
        let mut child = tokio::process::Command::new(self.folder.join(&provider.name))
            .args(&provider.args)
            .envs(provider.env.iter().map(|variable| (&variable.name, &variable.value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("it does not start: {error}"))?;
        if let Some(mut input) = child.stdin.take() {
            // One that does not read its input may still answer.
            let _ = input.write_all(request.to_string().as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(|error| error.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("it ended with {}: {}", output.status, said.trim()));
        }
        let answer: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        if answer.get("kind").and_then(Value::as_str) != Some("CredentialProviderResponse") {
            return Err("its answer is no CredentialProviderResponse".to_owned());
        }
        Response::deserialize(answer).map_err(|error| error.to_string())
    }
}
