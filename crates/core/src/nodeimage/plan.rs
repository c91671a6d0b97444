//! The next step for the NodeImage of a node.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::labels::FAKE_NODE_IMAGE;
use serde_json::{Map, Value, json};

use super::{NODE_IMAGE, NodeImage, PullSecret, Tag, TagOwner, news::wait, status::correct, tidy::tidy};
use crate::{
    effect::{Effect, Target},
    node::Node,
    object::ObjectKey,
    text::Text,
};

/// Everything a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The node, if there is one.
    pub node: Option<Arc<Node>>,
    /// Its NodeImage, if there is one.
    pub image: Option<Arc<NodeImage>>,
    /// The uids of those of its [`owners`] that are certainly gone. One that could not be asked for is not among them.
    pub gone_owners: BTreeSet<Text>,
    /// The uids of those of its [`owners`] that run and will end. Their tags stay until then: a job that takes longer than the
    /// time of its tags would otherwise ask the same nodes again and again.
    pub busy_owners: BTreeSet<Text>,
    /// Those of its [`secrets`] that are certainly gone.
    pub gone_secrets: BTreeSet<ObjectKey>,
    /// Flag `--nodeimage-creation-delay`.
    pub creation_delay: Duration,
    /// The time.
    pub now: Timestamp,
}

impl Observed {
    /// Whether a tag stays after its time.
    pub(super) fn is_held(&self, tag: &Tag) -> bool {
        tag.owner_references.iter().any(|owner| self.busy_owners.contains(&owner.uid))
    }
}

/// What to do next, as data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes. An event is told when the write before it happened.
    pub effects: Vec<Effect>,
    /// When to look again, if nothing happens before.
    pub wake_after: Option<Duration>,
    /// What it waits for, made for people.
    pub reason: Option<String>,
}

/// The jobs that a NodeImage names: whether they are still there decides about their tags.
pub fn owners(object: &NodeImage) -> impl Iterator<Item = &TagOwner> {
    object.tags().flat_map(|(_, tag)| &*tag.owner_references).filter(|owner| owner.is_job())
}

/// The secrets that a NodeImage names and that are taken out when they are gone.
pub fn secrets(object: &NodeImage) -> impl Iterator<Item = &PullSecret> {
    object.images().flat_map(|(_, image)| &*image.pull_secrets).filter(|secret| is_tied_to_secret(secret))
}

pub(super) fn is_tied_to_secret(secret: &PullSecret) -> bool {
    secret.mode != "batch"
}

/// Decides the next step for a node.
pub fn plan(seen: &Observed) -> Plan {
    let node = seen.node.as_ref().filter(|node| !node.metadata.is_deleting());
    if node.is_some_and(|node| node.is_virtual()) {
        return Plan::default();
    }
    match (node, &seen.image) {
        (None, None) => Plan::default(),
        (Some(node), None) => create(seen, node),
        (_, Some(object)) if object.metadata.is_deleting() => Plan::default(),
        (None, Some(object)) if !object.metadata.labels.contains(FAKE_NODE_IMAGE) => delete(object),
        (_, Some(object)) => maintain(seen, object),
    }
}

/// A node that has just become ready may not stay so, and its daemon needs a while to start.
fn create(seen: &Observed, node: &Node) -> Plan {
    let name = &node.metadata.name;
    let Some(since) = node.status.ready_since else {
        return Plan { reason: Some(format!("node {name} is not ready")), ..Plan::default() };
    };
    let ready_for = Duration::try_from(seen.now.duration_since(since)).unwrap_or_default();
    let left = seen.creation_delay.saturating_sub(ready_for);
    if !left.is_zero() {
        let reason = format!(
            "node {name} is ready for {}s, and its NodeImage is made after {}s (--nodeimage-creation-delay)",
            ready_for.as_secs(),
            seen.creation_delay.as_secs(),
        );
        return Plan { wake_after: Some(left), reason: Some(reason), ..Plan::default() };
    }
    let labels = node.metadata.labels.iter();
    let labels: Map<String, Value> =
        labels.map(|(key, value)| (key.to_string(), value.clone().into())).collect();
    let object = json!({
        "apiVersion": NODE_IMAGE.api_version(),
        "kind": NODE_IMAGE.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {},
    });
    let create = Effect::Create { resource: NODE_IMAGE, namespace: Text::default(), object };
    Plan { effects: vec![create], ..Plan::default() }
}

fn delete(object: &NodeImage) -> Plan {
    let target = Target::with_uid(NODE_IMAGE, object.metadata.key(), object.metadata.uid.clone());
    Plan { effects: vec![Effect::Delete { target, grace: None, follows: false }], ..Plan::default() }
}

/// The spec first. The status is looked at when the new spec is seen.
fn maintain(seen: &Observed, object: &NodeImage) -> Plan {
    let steps = tidy(seen, object);
    let effects = if steps.is_empty() {
        correct(object, seen.now)
    } else {
        vec![steps.on_generation(&object.reference(), object.metadata.generation)]
    };
    Plan { wake_after: wait(object, |tag| seen.is_held(tag), seen.now), effects, reason: None }
}
