//! Volumes that are made of other objects: no container starts before all of them are there.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pass::{Pass, Said};
use super::pod::Pod;
use crate::json::{list, text};
use crate::time::later;

/// How long a mount that failed waits for the next try; each time twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(122);

/// An object that a volume is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    volume: String,
    /// `configmaps` or `secrets`.
    plural: &'static str,
    name: String,
    /// What must be in it.
    keys: Vec<String>,
}

/// What a pod's volumes need.
pub(super) fn sources(pod: &Value) -> Vec<Source> {
    let mut all = Vec::new();
    for volume in list(pod, "/spec/volumes") {
        let mut add = |plural, source: Option<&Value>, name: &str| {
            let Some(source) = source.filter(|source| source.get("optional") != Some(&json!(true))) else {
                return;
            };
            all.push(Source {
                volume: text(volume, "/name").to_owned(),
                plural,
                name: text(source, name).to_owned(),
                keys: list(source, "/items").iter().map(|item| text(item, "/key").to_owned()).collect(),
            });
        };
        add("configmaps", volume.get("configMap"), "/name");
        add("secrets", volume.get("secret"), "/secretName");
        for source in list(volume, "/projected/sources") {
            add("configmaps", source.get("configMap"), "/name");
            add("secrets", source.get("secret"), "/name");
        }
    }
    all
}

/// How far a pod is with its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mounts {
    /// Not all are there; tried again at the time given, if there was a try.
    Missing { again: Option<Timestamp>, pause: Duration },
    /// All are there, for good.
    Done,
}

impl Mounts {
    pub(super) const NONE: Self = Self::Missing { again: None, pause: FIRST_PAUSE };

    /// When to try again.
    pub(super) fn again(self) -> Option<Timestamp> {
        match self {
            Self::Missing { again, .. } => again,
            Self::Done => None,
        }
    }
}

impl Pod {
    /// Whether all volumes are there. If not, the pod says why and tries again later.
    pub(super) fn mount(&mut self, pass: &mut Pass<'_>) -> bool {
        let Mounts::Missing { again, pause } = self.mounts else { return true };
        if again.is_some_and(|again| again > pass.now) {
            return false;
        }
        let why = self.spec.sources.iter().find_map(|source| {
            let why = lacking(pass, &self.namespace, source)?;
            Some(format!("MountVolume.SetUp failed for volume \"{}\" : {why}", source.volume))
        });
        let Some(message) = why else {
            self.mounts = Mounts::Done;
            return true;
        };
        let again = Some(later(pass.now, pause));
        self.mounts = Mounts::Missing { again, pause: (pause * 2).min(LONGEST_PAUSE) };
        pass.said.push(Said { warning: true, reason: "FailedMount", message, field: String::new() });
        false
    }
}

/// What is missing, in the words of a kubelet.
fn lacking(pass: &Pass<'_>, namespace: &str, source: &Source) -> Option<String> {
    let secret = source.plural == "secrets";
    let Some(record) = pass.store.get(&format!("/{}", source.plural), namespace, &source.name) else {
        let kind = if secret { "secret" } else { "configmap" };
        return Some(format!("{kind} \"{}\" not found", source.name));
    };
    let object = record.value();
    let has = |key: &String| {
        ["data", "binaryData"].iter().any(|part| object.get(part).is_some_and(|data| data.get(key).is_some()))
    };
    let key = source.keys.iter().find(|key| !has(key))?;
    Some(match secret {
        true => format!("references non-existent secret key: {key}"),
        false => format!("configmap references non-existent config key: {key}"),
    })
}
