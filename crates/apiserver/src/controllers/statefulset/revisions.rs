//! The revisions of a StatefulSet: its templates, kept as ControllerRevisions.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::deployment::hash;
use super::super::object::{controller_reference, merge, number, or_gone, text};
use super::super::pods::Pod;
use super::super::{Context, claim};
use super::REVISION_LABEL;
use crate::registry::Resource;
use crate::selector::Labels;
use crate::status::Status;

/// The two revisions that count, by name and template.
pub(super) struct Revisions {
    pub(super) current: (String, Value),
    pub(super) update: (String, Value),
    all: Vec<Value>,
}

/// Finds or makes the revision of the current template.
pub(super) async fn settle(
    cx: &Context,
    sets: &Arc<Resource>,
    set: &Value,
    _pods: &[Arc<Pod>],
) -> Result<Revisions, Status> {
    let resource = cx.client.resource("apps", "controllerrevisions")?;
    let selector =
        Labels::from_object(set.pointer("/spec/selector")).map_err(|error| Status::bad_request(error.0))?;
    let mut all = claim::objects(cx, sets, set, &selector, &resource).await?;
    sort(&mut all);
    let template = set.pointer("/spec/template").cloned().unwrap_or_default();
    let next = all.last().map_or(0, |last| number(last, "/revision").unwrap_or(0)) + 1;
    let known = all.iter().position(|revision| template_of(revision) == template);
    let update = match known.and_then(|at| all.get(at).cloned()) {
        // The newest already, or one of before that comes back: it gets the highest number.
        Some(revision) if number(&revision, "/revision") == Some(next - 1) => revision,
        Some(revision) => {
            let name = text(&revision, "/metadata/name");
            let namespace = text(&revision, "/metadata/namespace");
            let patch = merge(json!({"revision": next}));
            cx.client.patch(&resource, namespace, name, None, &patch).await?.value()
        }
        None => create(cx, sets, &resource, set, &template, next).await?,
    };
    all.retain(|known| text(known, "/metadata/name") != text(&update, "/metadata/name"));
    all.push(update.clone());
    let current = text(set, "/status/currentRevision");
    let current = all.iter().find(|revision| text(revision, "/metadata/name") == current).unwrap_or(&update);
    let part = |revision: &Value| (text(revision, "/metadata/name").to_owned(), template_of(revision));
    Ok(Revisions { current: part(current), update: part(&update), all: all.clone() })
}

fn sort(all: &mut [Value]) {
    all.sort_by_key(|revision| {
        (number(revision, "/revision").unwrap_or(0), text(revision, "/metadata/name").to_owned())
    });
}

/// The template inside a revision, without the directive that makes it a patch.
fn template_of(revision: &Value) -> Value {
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
    template: &Value,
    number_: i64,
) -> Result<Value, Status> {
    let mut data = template.clone();
    if let Some(map) = data.as_object_mut() {
        map.insert("$patch".to_owned(), json!("replace"));
    }
    let name = text(set, "/metadata/name");
    let namespace = text(set, "/metadata/namespace");
    let collisions = number(set, "/status/collisionCount").unwrap_or(0);
    let mut extra = 0;
    loop {
        let hash = hash(template, Some(collisions + extra).filter(|count| *count > 0));
        let mut labels = set.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
        if let Some(map) = labels.as_object_mut() {
            map.insert("controller.kubernetes.io/hash".to_owned(), json!(hash));
        }
        let revision = json!({
            "metadata": {
                "name": format!("{name}-{hash}"), "labels": labels,
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

/// Keeps only as many unused revisions as the history may hold.
pub(super) async fn clean_up(
    cx: &Context,
    set: &Value,
    pods: &[Arc<Pod>],
    revisions: &Revisions,
) -> Result<(), Status> {
    let limit = usize::try_from(number(set, "/spec/revisionHistoryLimit").unwrap_or(10)).unwrap_or(10);
    let mut live: BTreeSet<&str> = pods.iter().filter_map(|pod| pod.record.label(REVISION_LABEL)).collect();
    live.insert(&revisions.current.0);
    live.insert(&revisions.update.0);
    let mut unused: Vec<&Value> =
        revisions.all.iter().filter(|revision| !live.contains(text(revision, "/metadata/name"))).collect();
    unused.sort_by_key(|revision| number(revision, "/revision").unwrap_or(0));
    let resource = cx.client.resource("apps", "controllerrevisions")?;
    for revision in unused.iter().take(unused.len().saturating_sub(limit)) {
        let (namespace, name) = (text(revision, "/metadata/namespace"), text(revision, "/metadata/name"));
        or_gone(cx.client.delete(&resource, namespace, name, &Default::default()).await)?;
    }
    Ok(())
}
