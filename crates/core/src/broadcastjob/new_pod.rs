//! New pods: the template, bound to one node.

use std::collections::BTreeSet;

use kruise_api::labels::{BROADCASTJOB_CONTROLLER_UID, BROADCASTJOB_NAME};
use serde_json::{Map, Value, json};

use super::Observed;
use crate::{effect::Effect, hash, new_pod::NewPod, object::ObjectRef, text::Text};

/// The server cuts what it makes names from to this length.
const LONGEST_PREFIX: usize = 58;
const SUFFIX: usize = 5;

/// Names for new pods that no known pod has. Equal seeds give equal names.
pub(super) struct Names<'a> {
    job: &'a ObjectRef,
    seed: u64,
    used: BTreeSet<Text>,
}

impl<'a> Names<'a> {
    pub(super) fn new(job: &'a ObjectRef, seen: &Observed) -> Self {
        let used = seen.pods.iter().map(|pod| pod.metadata.name.clone()).collect();
        Self { job, seed: seen.seed, used }
    }

    /// The name of the next pod for a node.
    pub(super) fn next(&mut self, node: &str) -> Text {
        let prefix = prefix(&self.job.key.name);
        let mut attempt = 0_u32;
        loop {
            let text = format!("{}/{node}/{}/{attempt}", self.job.uid, self.seed);
            let name = Text::from(format!("{prefix}{}", suffix(hash::fnv1a(text.bytes()))));
            // There are millions of suffixes, so this ends.
            if self.used.insert(name.clone()) || attempt == u32::MAX {
                return name;
            }
            attempt += 1;
        }
    }
}

fn prefix(job: &str) -> String {
    let mut prefix = format!("{job}-");
    prefix.truncate(LONGEST_PREFIX);
    prefix
}

fn suffix(mut number: u32) -> String {
    let letters = hash::safe_letters();
    let count = u32::try_from(letters.len()).unwrap_or(u32::MAX);
    let mut suffix = String::with_capacity(SUFFIX);
    for _ in 0..SUFFIX {
        let at = usize::try_from(number % count).unwrap_or(0);
        suffix.push(char::from(letters.get(at).copied().unwrap_or(b'b')));
        number /= count;
    }
    suffix
}

/// The write that makes the pod of a node.
pub(super) fn create(seen: &Observed, job: &ObjectRef, name: &Text, node: &Text) -> Effect {
    let mut labels = Map::new();
    labels.insert(BROADCASTJOB_NAME.to_owned(), json!(job.key.name));
    labels.insert(BROADCASTJOB_CONTROLLER_UID.to_owned(), json!(job.uid));
    let pod = NewPod::new(job, &seen.job.spec.template.0, name).with_generate_name(job).with_labels(labels);
    let pod = match seen.assign_by_scheduler {
        true => pod.with_spec(&REQUIRED, only(node)),
        false => pod.with_spec(&["nodeName"], json!(node)),
    };
    pod.create(&job.key.namespace)
}

const REQUIRED: [&str; 3] = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

/// The demand for one node by its name: the scheduler still looks at taints and at what else is there.
fn only(node: &Text) -> Value {
    let name = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    json!({"nodeSelectorTerms": [{"matchFields": [name]}]})
}
