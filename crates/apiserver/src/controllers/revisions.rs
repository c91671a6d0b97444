//! Revisions: the templates that a set had, kept as ControllerRevisions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::deployment::hash;
use super::object::{controller_reference, merge, number, or_gone, text};
use super::{Context, claim};
use crate::registry::Resource;
use crate::selector::Labels;
use crate::status::Status;

/// What a user wrote for `kubectl apply` is no part of a revision.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The revisions of a set, the one of its template last.
pub(super) struct Revisions {
    /// The revision of the current template.
    pub(super) update: Value,
    /// All of them, by number.
    pub(super) all: Vec<Value>,
}

/// Finds or makes the revision of a set's template. `hash_label` is the label under which a revision has its hash.
pub(super) async fn settle(
    cx: &Context,
    sets: &Arc<Resource>,
    set: &Value,
    hash_label: &str,
) -> Result<Revisions, Status> {
    let resource = cx.client.resource("apps", "controllerrevisions")?;
    let selector =
        Labels::from_object(set.pointer("/spec/selector")).map_err(|error| Status::bad_request(error.0))?;
    let mut all = claim::objects(cx, sets, set, &selector, &resource).await?;
    all.sort_by_key(|revision| {
        (number(revision, "/revision").unwrap_or(0), text(revision, "/metadata/name").to_owned())
    });
    let template = set.pointer("/spec/template").cloned().unwrap_or_default();
    let next = all.last().map_or(0, |last| number(last, "/revision").unwrap_or(0)) + 1;
    let known = all.iter().rev().find(|revision| template_of(revision) == template).cloned();
    let update = match known {
        // The newest already, or one of before that comes back: it gets the highest number.
        Some(revision) if number(&revision, "/revision") == Some(next - 1) => revision,
        Some(revision) => {
            let name = text(&revision, "/metadata/name");
            let namespace = text(&revision, "/metadata/namespace");
            let patch = merge(json!({"revision": next}));
            cx.client.patch(&resource, namespace, name, None, &patch).await?.value()
        }
        None => create(cx, sets, &resource, set, (&template, next, hash_label)).await?,
    };
    all.retain(|known| text(known, "/metadata/name") != text(&update, "/metadata/name"));
    all.push(update.clone());
    Ok(Revisions { update, all })
}

/// The template inside a revision, without the directive that makes it a patch.
pub(super) fn template_of(revision: &Value) -> Value {
    let mut template = revision.pointer("/data/spec/template").cloned().unwrap_or_default();
    if let Some(map) = template.as_object_mut() {
        map.remove("$patch");
    }
    template
}

async fn create(
    cx: &Context,
    sets: &Arc<Resource>,
    resource: &Arc<Resource>,
    set: &Value,
    (template, number_, hash_label): (&Value, i64, &str),
) -> Result<Value, Status> {
    let mut data = template.clone();
    if let Some(map) = data.as_object_mut() {
        map.insert("$patch".to_owned(), json!("replace"));
    }
    let name = text(set, "/metadata/name");
    let namespace = text(set, "/metadata/namespace");
    let collisions = number(set, "/status/collisionCount").unwrap_or(0);
    let mut annotations = set.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({}));
    if let Some(map) = annotations.as_object_mut() {
        map.remove(LAST_APPLIED);
    }
    let mut extra = 0;
    loop {
        let hash = hash(template, Some(collisions + extra).filter(|count| *count > 0));
        let mut labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        if let Some(map) = labels.as_object_mut() {
            map.insert(hash_label.to_owned(), json!(hash));
        }
        let revision = json!({
            "metadata": {
                "name": format!("{name}-{hash}"), "labels": labels, "annotations": annotations,
                "ownerReferences": [controller_reference(sets, set)],
            },
            "data": {"spec": {"template": data}}, "revision": number_,
        });
        match cx.client.create(resource, namespace, revision).await {
            Ok(record) => return Ok(record.value()),
            Err(status) if status.reason == "AlreadyExists" && extra < 100 => extra += 1,
            Err(status) => return Err(status),
        }
    }
}

/// Keeps only as many unused revisions as the history may hold. `is_live` says which ones are used.
pub(super) async fn clean_up(
    cx: &Context,
    set: &Value,
    revisions: &Revisions,
    is_live: impl Fn(&Value) -> bool,
) -> Result<(), Status> {
    let limit = usize::try_from(number(set, "/spec/revisionHistoryLimit").unwrap_or(10)).unwrap_or(10);
    let current = text(&revisions.update, "/metadata/name");
    let unused: Vec<&Value> = revisions
        .all
        .iter()
        .filter(|revision| text(revision, "/metadata/name") != current && !is_live(revision))
        .collect();
    let resource = cx.client.resource("apps", "controllerrevisions")?;
    for revision in unused.iter().take(unused.len().saturating_sub(limit)) {
        let (namespace, name) = (text(revision, "/metadata/namespace"), text(revision, "/metadata/name"));
        or_gone(cx.client.delete(&resource, namespace, name, &Default::default()).await)?;
    }
    Ok(())
}

/// The values of a label of pods.
pub(super) fn labelled<'p>(pods: &'p [Arc<super::pods::Pod>], label: &str) -> BTreeSet<&'p str> {
    pods.iter().filter_map(|pod| pod.record.label(label)).collect()
}
