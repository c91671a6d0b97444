//! What one look at a pod may use, and what it leaves behind.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kruise_apiserver::random::Random;
use kruise_apiserver::store::Store;

use super::spec::Reference;
use crate::image::{Images, hex};
use crate::machine::Machines;
use crate::steps::{Steps, Then, When};
use crate::time::{later, stamp};

/// The world around a pod during one look.
pub(super) struct Pass<'a> {
    pub(super) now: Timestamp,
    pub(super) skew: SignedDuration,
    pub(super) images: &'a Images,
    pub(super) steps: &'a Steps,
    /// The images on the node.
    pub(super) pulled: &'a mut BTreeSet<String>,
    pub(super) random: &'a mut Random,
    pub(super) store: &'a Store,
    /// All nodes, for commands in containers.
    pub(super) machines: &'a Machines,
    pub(super) said: Vec<Said>,
}

/// Something to report as an event about the pod.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) warning: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// The part of the pod, as `spec.containers{app}`.
    pub(super) field: String,
}

impl Pass<'_> {
    /// The time on the node's clock.
    pub(super) fn stamp(&self) -> String {
        stamp(self.now, self.skew)
    }

    /// When the next step happens, and which it is.
    pub(super) fn next(&mut self, when: When) -> (Timestamp, Then) {
        let (after, then) = self.steps.next(when, self.random.next_u64());
        (later(self.now, after), then)
    }

    /// Whether an image is on the node, by any of its names.
    pub(super) fn has_image(&self, image: &str) -> bool {
        self.pulled.contains(&crate::image::normalized(image))
    }

    /// The values of labels and annotations that a container is started with now.
    pub(super) fn values_of_metadata(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
    ) -> BTreeMap<String, String> {
        let Some(record) = self.store.get("/pods", namespace, pod) else { return BTreeMap::new() };
        super::inside::from_metadata(&record.value(), container)
    }

    /// A new container's id.
    pub(super) fn container_id(&mut self) -> String {
        let mut bytes = Vec::with_capacity(32);
        for _ in 0..4 {
            bytes.extend_from_slice(&self.random.next_u64().to_be_bytes());
        }
        format!("containerd://{}", hex(&bytes))
    }

    /// Why the environment cannot be made, in the kubelet's words.
    pub(super) fn missing(&self, namespace: &str, references: &[Reference]) -> Option<String> {
        references.iter().find_map(|reference| {
            let (kind, title) = match reference.plural {
                "secrets" => ("secret", "Secret"),
                _ => ("configmap", "ConfigMap"),
            };
            let table = format!("/{}", reference.plural);
            let Some(record) = self.store.get(&table, namespace, &reference.name) else {
                return Some(format!("{kind} \"{}\" not found", reference.name));
            };
            let key = reference.key.as_ref()?;
            let object = record.value();
            let has = ["data", "binaryData"]
                .iter()
                .any(|part| object.get(part).is_some_and(|data| data.get(key).is_some()));
            (!has).then(|| format!("couldn't find key {key} in {title} {namespace}/{}", reference.name))
        })
    }
}
