//! The two revisions of a StatefulSet that count: the one its pods had, and the one they get.

use std::sync::Arc;

use serde_json::Value;

use super::super::Context;
use super::super::object::text;
use super::super::pods::Pod;
use super::super::revisions::{self, labelled, template_of};
use super::REVISION_LABEL;
use crate::registry::Resource;
use crate::status::Status;

/// The two revisions, by name and template.
pub(super) struct Revisions {
    pub(super) current: (String, Value),
    pub(super) update: (String, Value),
    kept: revisions::Revisions,
}

/// Finds or makes the revision of the current template.
pub(super) async fn settle(cx: &Context, sets: &Arc<Resource>, set: &Value) -> Result<Revisions, Status> {
    let kept = revisions::settle(cx, sets, set, "controller.kubernetes.io/hash").await?;
    let current = text(set, "/status/currentRevision");
    let current =
        kept.all.iter().find(|revision| text(revision, "/metadata/name") == current).unwrap_or(&kept.update);
    let part = |revision: &Value| (text(revision, "/metadata/name").to_owned(), template_of(revision));
    Ok(Revisions { current: part(current), update: part(&kept.update), kept })
}

/// Keeps only as many unused revisions as the history may hold.
pub(super) async fn clean_up(
    cx: &Context,
    set: &Value,
    pods: &[Arc<Pod>],
    revisions: &Revisions,
) -> Result<(), Status> {
    let live = labelled(pods, REVISION_LABEL);
    let is_live = |revision: &Value| {
        let name = text(revision, "/metadata/name");
        live.contains(name) || name == revisions.current.0
    };
    super::super::revisions::clean_up(cx, set, &revisions.kept, is_live).await
}
