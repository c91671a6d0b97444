//! Credentials of registries, found as the kubelet finds them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

use crate::cri::Auth;

/// The registry that is meant when an image names none, and the name under which its credentials are kept.
const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_REGISTRY_KEY: &str = "index.docker.io";

/// Credentials by the registry, or the part of it, that they are for.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    entries: Vec<(Pattern, Auth)>,
}

impl Keyring {
    /// Takes the credentials of a pull secret, by its type and data as the API has them.
    pub fn add_secret(&mut self, kind: &str, data: &BTreeMap<String, String>) -> Result<(), Malformed> {
        let (key, nested) = match kind {
            "kubernetes.io/dockerconfigjson" => (".dockerconfigjson", true),
            "kubernetes.io/dockercfg" => (".dockercfg", false),
            _ => return Err(Malformed::Kind(kind.to_owned())),
        };
        let Some(text) = data.get(key) else { return Err(Malformed::NoKey(key)) };
        let bytes = STANDARD.decode(text).map_err(|_| Malformed::Base64)?;
        let config: Value = serde_json::from_slice(&bytes).map_err(|_| Malformed::Json)?;
        match nested {
            true => self.add_config(&config),
            false => self.add_auths(&config),
        }
        Ok(())
    }

    /// Takes the credentials of a docker config file.
    pub fn add_config(&mut self, config: &Value) {
        self.add_auths(config.get("auths").unwrap_or(&Value::Null));
    }

    fn add_auths(&mut self, auths: &Value) {
        for (key, entry) in auths.as_object().into_iter().flatten() {
            // One entry that cannot be read does not spoil the others.
            if let Some(auth) = Entry::deserialize(entry).ok().and_then(Entry::auth) {
                self.add(key, auth);
            }
        }
    }

    /// Takes one credential.
    pub fn add(&mut self, key: &str, auth: Auth) {
        self.entries.push((Pattern::parse(key), auth));
    }

    /// The credentials for a repository such as `docker.io/library/nginx`, each once, the closest first.
    pub fn find(&self, repository: &str) -> Vec<Auth> {
        let wanted = Pattern::parse(repository);
        let mut found: Vec<&(Pattern, Auth)> =
            self.entries.iter().filter(|(pattern, _)| pattern.matches(&wanted)).collect();
        // Longer paths of a host come first; of equal ones the first that was added.
        found.sort_by(|a, b| b.0.text.cmp(&a.0.text));
        if found.is_empty() && wanted.host == DEFAULT_REGISTRY {
            found = self.entries.iter().filter(|(pattern, _)| pattern.text == DEFAULT_REGISTRY_KEY).collect();
        }
        let mut auths: Vec<Auth> = Vec::new();
        for (_, auth) in found {
            if !auths.contains(auth) {
                auths.push(auth.clone());
            }
        }
        auths
    }
}

/// Why a secret holds no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is something else.
    #[error("type {0} holds no registry credentials")]
    Kind(String),
    /// Its data lacks what its type promises.
    #[error("it has no key {0}")]
    NoKey(&'static str),
    /// Its data is no base64.
    #[error("its data is no base64")]
    Base64,
    /// Its content is no JSON.
    #[error("its content is no JSON")]
    Json,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    username: String,
    password: String,
    auth: String,
    identitytoken: String,
    registrytoken: String,
}

impl Entry {
    fn auth(self) -> Option<Auth> {
        let Self { mut username, mut password, auth, identitytoken, registrytoken } = self;
        if username.is_empty() && !auth.is_empty() {
            let bytes = STANDARD.decode(auth.trim()).ok()?;
            let text = String::from_utf8(bytes).ok()?;
            let (name, secret) = text.split_once(':')?;
            (username, password) = (name.to_owned(), secret.trim_matches('\0').to_owned());
        }
        let auth = Auth { username, password, identity_token: identitytoken, registry_token: registrytoken };
        (auth != Auth::default()).then_some(auth)
    }
}

/// A registry, or a part of it. Labels of the host may hold `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    text: String,
    host: String,
    port: Option<String>,
    path: String,
}

impl Pattern {
    pub(super) fn parse(key: &str) -> Self {
        let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
        let (authority, path) = match key.find('/') {
            Some(slash) => key.split_at(slash),
            None => (key, ""),
        };
        let path = ["/v1/", "/v2/"]
            .iter()
            .find_map(|version| path.strip_prefix(version).map(|rest| format!("/{rest}")))
            .unwrap_or_else(|| path.to_owned());
        let path = if path == "/" { String::new() } else { path };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port.to_owned())),
            _ => (authority, None),
        };
        Self { text: format!("{authority}{path}"), host: host.to_owned(), port, path }
    }

    /// Whether it covers a repository, or an image.
    pub(super) fn matches(&self, wanted: &Self) -> bool {
        let (ours, theirs) = (self.host.split('.'), wanted.host.split('.'));
        self.port == wanted.port
            && wanted.path.starts_with(&self.path)
            && ours.clone().count() == theirs.clone().count()
            && ours.zip(theirs).all(|(pattern, label)| glob(pattern.as_bytes(), label.as_bytes()))
    }
}

/// `*` is any text, `?` any letter.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), None) => glob(rest, text),
        (Some((b'*', rest)), Some((_, tail))) => glob(rest, text) || glob(pattern, tail),
        (Some((b'?', rest)), Some((_, tail))) => glob(rest, tail),
        (Some((letter, rest)), Some((other, tail))) => letter == other && glob(rest, tail),
        _ => false,
    }
}
