//! The annotation itself.

use kruise_api::annotations::RUNTIME_CONTAINERS_META;
use kruise_core::pod::Pod;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is told of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// One entry for each container.
    #[serde(default)]
    pub containers: Vec<Entry>,
}

/// What is told of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The name in the pod.
    pub name: String,
    /// The id, with the name of the runtime.
    #[serde(rename = "containerID", default)]
    pub container_id: String,
    /// How often it was restarted.
    #[serde(default)]
    pub restart_count: i32,
    /// Fingerprints.
    #[serde(default)]
    pub hashes: Hashes,
}

/// Fingerprints of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashes {
    /// Of its spec, by the kubelet.
    #[serde(rename = "plainHash", default)]
    pub plain: u64,
    /// Of what its process got from labels and annotations; zero when nobody knows.
    #[serde(rename = "extractedEnvFromMetadataHash", default, skip_serializing_if = "is_zero")]
    pub env: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Meta {
    /// What a pod says. Something that cannot be read is nothing.
    pub fn read(pod: &Pod) -> Option<Self> {
        serde_json::from_str(pod.metadata.annotations.text(RUNTIME_CONTAINERS_META)?).ok()
    }

    /// The entry of a container.
    pub fn of(&self, name: &str) -> Option<&Entry> {
        self.containers.iter().find(|entry| entry.name == name)
    }

    /// The change of a pod that tells it.
    pub fn patch(&self) -> Value {
        let text = serde_json::to_string(self).unwrap_or_default();
        json!({"metadata": {"annotations": {RUNTIME_CONTAINERS_META: text}}})
    }
}
