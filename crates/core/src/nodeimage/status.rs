//! Speaks for a node that does not answer, and takes out of the status what nobody wants any more.
//!
//! The daemon writes the same status. Steps touch only what has to change, so that what the daemon told about other tags
//! stays as it is, and a write that crosses one of the daemon does not happen.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kruise_api::nodeimage::v1beta1::Phase;
use serde_json::{Map, Value, json};

use super::{
    PULL_IMAGE_FAILED,
    news::{Fate, fate, has_leftovers, is_first_end},
    steps::Steps,
    view::{Answer, ImageStatus, NodeImage, Tag},
};
use crate::{
    effect::{Effect, Event, Level},
    object::ObjectRef,
    pre_download::IMAGE_PULL_JOB,
    readiness::seconds,
    text::Text,
};

/// A tag that counts as failed from now on.
struct Failure<'a> {
    image: &'a Text,
    tag: &'a Tag,
    why: &'static str,
}

/// The writes that bring a status in order: none where it is.
pub(super) fn correct(object: &NodeImage, now: Timestamp) -> Vec<Effect> {
    let failures: Vec<Failure<'_>> = object
        .tags()
        .filter_map(|(image, tag)| match fate(object, image, tag) {
            Fate::Fails(at, why) if at <= now => Some(Failure { image, tag, why }),
            _ => None,
        })
        .collect();
    if failures.is_empty() && !has_leftovers(object) && !is_first_end(object) {
        return Vec::new();
    }
    let mut steps = Steps::default();
    let mut status = Map::new();
    if object.status.is_none() {
        steps.add(&["status"], json!({}));
    }
    images(object, &failures, now, &mut steps);
    for (name, number) in counts(object, &failures) {
        status.insert(name.to_owned(), number.into());
    }
    if object.status.as_ref().is_none_or(|status| status.first_sync_status.is_none())
        && let Some(first) = first_end(object, &failures, now)
    {
        status.insert("firstSyncStatus".to_owned(), first);
    }
    for (name, value) in status {
        steps.add(&["status", &name], value);
    }
    let mut effects = vec![steps.on_status(&object.reference(), &object.metadata.resource_version)];
    effects.extend(failures.iter().flat_map(|failure| events(object, failure)).map(Effect::Event));
    effects
}

/// The statuses of images: those of failed tags come in, those of tags that are gone go.
fn images(object: &NodeImage, failures: &[Failure<'_>], now: Timestamp, steps: &mut Steps) {
    let empty = BTreeMap::new();
    let statuses = object.status.as_ref().and_then(|status| status.image_statuses.as_ref());
    if statuses.is_none() && !failures.is_empty() {
        steps.add(&["status", "imageStatuses"], json!({}));
    }
    let statuses = statuses.unwrap_or(&empty);
    for (name, status) in statuses {
        known_image(object, name, status, failures, now, steps);
    }
    let mut new: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for failure in failures.iter().filter(|failure| !statuses.contains_key(failure.image)) {
        new.entry(failure.image.as_str()).or_default().push(entry(failure, now));
    }
    for (name, mut tags) in new {
        tags.sort_by(|left, right| name_of(left).cmp(name_of(right)));
        steps.add(&["status", "imageStatuses", name], json!({"tags": tags}));
    }
}

/// First what changes in its place, then what goes, from the end, then what comes, in the order of tags.
fn known_image(
    object: &NodeImage,
    name: &Text,
    status: &ImageStatus,
    failures: &[Failure<'_>],
    now: Timestamp,
    steps: &mut Steps,
) {
    let at = |rest: &[&str], apply: &mut dyn FnMut(&[&str])| {
        apply(&[&["status", "imageStatuses", name.as_str()], rest].concat());
    };
    let Some(image) = object.image(name) else {
        at(&[], &mut |path| steps.remove(path));
        return;
    };
    let own: Vec<&Failure<'_>> = failures.iter().filter(|failure| failure.image == name).collect();
    let is_wanted = |tag: &Text| image.tag(tag).is_some();
    if own.is_empty() && !status.tags.iter().any(|tag| is_wanted(&tag.tag)) {
        at(&[], &mut |path| steps.remove(path));
        return;
    }
    for (index, known) in status.tags.iter().enumerate() {
        if let Some(failure) = own.iter().find(|failure| failure.tag.tag == known.tag) {
            let index = index.to_string();
            if known.version == failure.tag.version {
                // When it began, the daemon has told: that stays.
                let now = seconds(now);
                let fields =
                    [("phase", "Failed".into()), ("completionTime", now), ("message", failure.why.into())];
                for (field, value) in fields {
                    at(&["tags", &index, field], &mut |path| steps.add(path, value.clone()));
                }
            } else {
                at(&["tags", &index], &mut |path| steps.replace(path, entry(failure, now)));
            }
        }
    }
    for (index, _) in status.tags.iter().enumerate().rev().filter(|(_, known)| !is_wanted(&known.tag)) {
        at(&["tags", &index.to_string()], &mut |path| steps.remove(path));
    }
    let mut names: Vec<&Text> =
        status.tags.iter().map(|known| &known.tag).filter(|tag| is_wanted(tag)).collect();
    for failure in own {
        if names.contains(&&failure.tag.tag) {
            continue;
        }
        let place = names.iter().take_while(|name| **name < &failure.tag.tag).count();
        names.insert(place, &failure.tag.tag);
        at(&["tags", &place.to_string()], &mut |path| steps.add(path, entry(failure, now)));
    }
}

fn entry(failure: &Failure<'_>, now: Timestamp) -> Value {
    let mut entry = json!({
        "tag": failure.tag.tag, "phase": "Failed", "completionTime": seconds(now), "message": failure.why,
    });
    if failure.tag.version != 0 {
        kruise_api::json::set(&mut entry, &["version"], failure.tag.version);
    }
    entry
}

fn name_of(entry: &Value) -> &str {
    entry.get("tag").and_then(Value::as_str).unwrap_or_default()
}

fn has_failed(failures: &[Failure<'_>], image: &Text, tag: &Tag) -> bool {
    failures.iter().any(|failure| failure.image == image && failure.tag.tag == tag.tag)
}

/// The numbers after the correction.
fn counts(object: &NodeImage, failures: &[Failure<'_>]) -> [(&'static str, i32); 5] {
    let (mut desired, mut pulling, mut waiting, mut succeeded, mut failed) = (0, 0, 0, 0, 0);
    for (image, tag) in object.tags() {
        desired += 1;
        let phase = object.current_status(image, tag).map(|status| &status.phase);
        match phase {
            _ if has_failed(failures, image, tag) => failed += 1,
            Some(Phase::Failed) => failed += 1,
            Some(Phase::Succeeded) => succeeded += 1,
            Some(Phase::Pulling) => pulling += 1,
            Some(Phase::Waiting) => waiting += 1,
            Some(Phase::Other(_)) | None => {}
        }
    }
    [
        ("desired", desired),
        ("pulling", pulling),
        ("waiting", waiting),
        ("succeeded", succeeded),
        ("failed", failed),
    ]
}

/// How the first list of a node ended, if every tag is done.
fn first_end(object: &NodeImage, failures: &[Failure<'_>], now: Timestamp) -> Option<Value> {
    let mut failed = Vec::new();
    let mut tags = object.tags().peekable();
    tags.peek()?;
    for (image, tag) in tags {
        match object.answer(image, tag) {
            _ if has_failed(failures, image, tag) => failed.push(format!("{image}:{}", tag.tag)),
            Answer::Failed => failed.push(format!("{image}:{}", tag.tag)),
            Answer::Succeeded => {}
            Answer::None | Answer::Begun => return None,
        }
    }
    Some(if failed.is_empty() {
        json!({"syncAt": seconds(now), "status": "Succeeded"})
    } else {
        json!({"syncAt": seconds(now), "status": "Failed", "message": format!("failed: {}", failed.join(", "))})
    })
}

/// What people are told of a failure: at every job that wants the tag, and at the node.
fn events(object: &NodeImage, failure: &Failure<'_>) -> Vec<Event> {
    let Failure { image, tag, why } = failure;
    let node = &object.metadata.name;
    let message = format!("Failed to pull image {image}:{} on node {node} for {why}", tag.tag);
    let jobs = tag.owner_references.iter().filter(|owner| owner.is_job());
    let jobs =
        jobs.map(|owner| ObjectRef { resource: IMAGE_PULL_JOB, key: owner.key(), uid: owner.uid.clone() });
    jobs.chain([object.reference()])
        .map(|regarding| Event {
            regarding,
            level: Level::Warning,
            reason: PULL_IMAGE_FAILED.into(),
            message: message.clone(),
        })
        .collect()
}
