//! The revisions of a DaemonSet. Its pods carry the hash of theirs.

use std::sync::Arc;

use serde_json::Value;

use super::super::Context;
use super::super::object::text;
use super::super::pods::Pod;
use super::super::revisions::{self, labelled};
use super::REVISION_LABEL;
use crate::registry::Resource;
use crate::status::Status;

/// The revisions, and the hash of the current one.
pub(super) struct Revisions {
    pub(super) hash: String,
    kept: revisions::Revisions,
}

fn hash_of(revision: &Value) -> &str {
    let labels = revision.pointer("/metadata/labels");
    labels.and_then(|labels| labels.get(REVISION_LABEL)).and_then(Value::as_str).unwrap_or_default()
}

/// Finds or makes the revision of the current template.
pub(super) async fn settle(cx: &Context, sets: &Arc<Resource>, set: &Value) -> Result<Revisions, Status> {
    let kept = revisions::settle(cx, sets, set, REVISION_LABEL).await?;
    let hash = match hash_of(&kept.update) {
        "" => text(&kept.update, "/metadata/name").to_owned(),
        hash => hash.to_owned(),
    };
    Ok(Revisions { hash, kept })
}

/// Keeps only as many unused revisions as the history may hold.
pub(super) async fn clean_up(
    cx: &Context,
    set: &Value,
    pods: &[Arc<Pod>],
    revisions: &Revisions,
) -> Result<(), Status> {
    let live = labelled(pods, REVISION_LABEL);
    super::super::revisions::clean_up(cx, set, &revisions.kept, |revision| live.contains(hash_of(revision)))
        .await
}
