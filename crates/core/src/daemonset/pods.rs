//! New pods: their names and their content.

use std::collections::BTreeSet;

use super::{placement, revisions, view::View};
use crate::{effect::Effect, new_pod::NewPod, random_id, text::Text};

/// A name with its random part is no longer than a label, as the server makes it from `generateName`.
const LONGEST_PREFIX: usize = 58;

/// Names of new pods. No two of one reconcile are equal, and none is that of a pod that exists.
pub(super) struct Names {
    prefix: String,
    seed: u64,
    taken: BTreeSet<Text>,
}

impl Names {
    pub(super) fn new(view: &View<'_>) -> Self {
        let taken = view.seen.pods.iter().map(|pod| pod.metadata.name.clone()).collect();
        let seed = random_id::mix(view.seen.seed, &view.set.uid);
        let mut prefix = format!("{}-", view.set.key.name);
        prefix.truncate(LONGEST_PREFIX);
        Self { prefix, seed, taken }
    }

    /// The name of the next pod on a node. With the same seed a node gets the same one, whatever other nodes there are.
    pub(super) fn next(&mut self, node: &str) -> Text {
        let mut ids = random_id::Ids::new(random_id::mix(self.seed, node));
        loop {
            let name = Text::from(format!("{}{}", self.prefix, ids.next_id()));
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The write that makes a pod on a node.
pub(super) fn create(view: &View<'_>, node: &str, name: &str) -> Effect {
    let template = &view.revisions.shared.update.template;
    let mut pod = NewPod::new(&view.set, template, name)
        .with_generate_name(&view.set)
        .with_labels(revisions::labels(&view.revisions.shared.update));
    for (member, value) in placement::members(template, node, view.seen.assign_by_scheduler) {
        pod = pod.with_spec(&[member], value);
    }
    if view.desired.rolling.as_ref().is_some_and(|rolling| rolling.in_place) {
        pod = pod.with_in_place_gate();
    }
    if let Some(generation) = &view.desired.template_generation {
        let label = (kruise_api::labels::POD_TEMPLATE_GENERATION.to_owned(), generation.as_str().into());
        pod = pod.with_labels(serde_json::Map::from_iter([label]));
    }
    pod.create(&view.set.key.namespace)
}
