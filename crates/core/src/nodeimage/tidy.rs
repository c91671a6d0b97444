//! Takes out of a NodeImage what is finished or belongs to nobody, and gives it the labels of its node.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    news::{Fate, fate},
    plan::Observed,
    steps::Steps,
    view::{Image, NodeImage, Tag},
};

/// The steps that bring labels and spec in order.
pub(super) fn tidy(seen: &Observed, object: &NodeImage) -> Steps {
    let mut steps = Steps::default();
    if let Some(node) = seen.node.as_ref().filter(|node| node.metadata.labels != object.metadata.labels) {
        let labels = node.metadata.labels.iter();
        let labels: Map<String, Value> =
            labels.map(|(key, value)| (key.to_string(), value.clone().into())).collect();
        steps.add(&["metadata", "labels"], labels);
    }
    for (name, image) in object.images() {
        tidy_image(seen, object, name, image, &mut steps);
    }
    steps
}

fn tidy_image(seen: &Observed, object: &NodeImage, name: &str, image: &Image, steps: &mut Steps) {
    let stays = |tag: &Tag| !is_over(seen, object, name, tag) && !lost_all_owners(seen, tag);
    if !image.tags.iter().any(stays) {
        steps.remove(&["spec", "images", name]);
        return;
    }
    // From the end, so that what comes before stays in its place.
    for (index, tag) in image.tags.iter().enumerate().rev() {
        let index = index.to_string();
        if !stays(tag) {
            steps.remove(&["spec", "images", name, "tags", &index]);
            continue;
        }
        for (number, owner) in tag.owner_references.iter().enumerate().rev() {
            if seen.gone_owners.contains(&owner.uid) {
                let number = number.to_string();
                steps.remove(&["spec", "images", name, "tags", &index, "ownerReferences", &number]);
            }
        }
    }
    for (index, secret) in image.pull_secrets.iter().enumerate().rev() {
        if seen.gone_secrets.contains(&secret.key()) && super::plan::is_tied_to_secret(secret) {
            steps.remove(&["spec", "images", name, "pullSecrets", &index.to_string()]);
        }
    }
}

fn is_over(seen: &Observed, object: &NodeImage, image: &str, tag: &Tag) -> bool {
    let is_past = |at: Timestamp| at <= seen.now;
    match fate(object, image, tag) {
        Fate::Useless => true,
        Fate::Expires(at) => is_past(at) && !seen.is_held(tag),
        Fate::Fails(..) | Fate::Stays => false,
    }
}

/// A tag that a person wrote has no owner, and none to lose.
fn lost_all_owners(seen: &Observed, tag: &Tag) -> bool {
    !tag.owner_references.is_empty()
        && tag.owner_references.iter().all(|owner| seen.gone_owners.contains(&owner.uid))
}
