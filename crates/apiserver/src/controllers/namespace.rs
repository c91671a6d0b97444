//! The life of namespaces: one that is being deleted is emptied, pods first, and then let go.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::graph::Meta;
use super::object::{deleting, is_gone, items, or_gone, text};
use super::{Context, Key, Outcome};
use crate::rest::{DeleteOptions, Propagation};

/// What is still there: by resource, and by finalizer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Remains {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
}

/// Empties a namespace that is being deleted. Whoever removes something in it brings the key back.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let namespaces = cx.client.resource("", "namespaces")?;
    let Some(record) = or_gone(cx.client.get(&namespaces, "", &key.name))? else { return Ok(None) };
    let mut namespace = record.value();
    if !deleting(&namespace) {
        return Ok(None);
    }
    let kept = || items(&namespace, "/spec/finalizers").iter().any(|name| name == "kubernetes");
    if !kept() {
        return Ok(None);
    }
    let mut remains = Remains::default();
    empty(cx, &key.name, true, &mut remains).await;
    // Pods may need what else is in the namespace until they have stopped.
    if remains.resources.is_empty() {
        empty(cx, &key.name, false, &mut remains).await;
    }
    let conditions = conditions(&remains, items(&namespace, "/status/conditions"), &cx.now_text());
    if items(&namespace, "/status/conditions") != conditions.as_slice() {
        if let Some(status) = namespace.get_mut("status").and_then(Value::as_object_mut) {
            status.insert("phase".to_owned(), json!("Terminating"));
            status.insert("conditions".to_owned(), json!(conditions));
        }
        let Some(written) = or_gone(cx.client.update(&namespaces, Some("status"), namespace).await)? else {
            return Ok(None);
        };
        namespace = written.value();
    }
    if !remains.resources.is_empty() || !remains.failures.is_empty() {
        return match remains.failures.first() {
            Some(why) => Err(crate::status::Status::internal(why)),
            None => Ok(None),
        };
    }
    let left: Vec<Value> =
        items(&namespace, "/spec/finalizers").iter().filter(|name| *name != "kubernetes").cloned().collect();
    if let Some(spec) = namespace.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("finalizers".to_owned(), json!(left));
    }
    or_gone(cx.client.update(&namespaces, Some("finalize"), namespace).await)?;
    Ok(None)
}

/// Deletes the pods, or everything else, and counts what is still there afterwards.
async fn empty(cx: &Context, namespace: &str, pods: bool, remains: &mut Remains) {
    let store = cx.client.server().store();
    for (table, resource) in cx.resources() {
        let is_pods = &*table == "/pods";
        if !resource.namespaced || !resource.verbs.contains(&"delete") || is_pods != pods {
            continue;
        }
        let options =
            DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
        for record in store.list(&table, Some(namespace)).1 {
            if record.deleting {
                continue;
            }
            match cx.client.delete(&resource, namespace, &record.name, &options).await {
                Ok(_) => {}
                Err(status) if is_gone(&status) => {}
                Err(status) => remains.failures.push(status.message),
            }
        }
        let left = store.list(&table, Some(namespace)).1;
        if left.is_empty() {
            continue;
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        remains.resources.insert(name, left.len());
        for record in left {
            for finalizer in Meta::of(&record).finalizers {
                *remains.finalizers.entry(finalizer).or_default() += 1;
            }
        }
    }
}

/// The conditions that tell what a deletion waits for.
fn conditions(remains: &Remains, before: &[Value], now: &str) -> Vec<Value> {
    let counted = |counts: &BTreeMap<String, usize>, verb: &str| {
        let parts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
        parts.join(", ")
    };
    let (resources, finalizers) = (counted(&remains.resources, "has"), counted(&remains.finalizers, "in"));
    let rows = [
        (
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".to_owned(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".to_owned(),
        ),
        match remains.failures.as_slice() {
            [] => (
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned(),
            ),
            failures => (
                "NamespaceDeletionContentFailure",
                true,
                "ContentDeletionFailed",
                format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    failures.len(),
                    failures.join(", ")
                ),
            ),
        },
        if resources.is_empty() {
            (
                "NamespaceContentRemaining",
                false,
                "ContentRemoved",
                "All content successfully removed".to_owned(),
            )
        } else {
            (
                "NamespaceContentRemaining",
                true,
                "SomeResourcesRemain",
                format!("Some resources are remaining: {resources}"),
            )
        },
        if finalizers.is_empty() {
            (
                "NamespaceFinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished".to_owned(),
            )
        } else {
            (
                "NamespaceFinalizersRemaining",
                true,
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {finalizers}"),
            )
        },
    ];
    rows.into_iter()
        .map(|(kind, holds, reason, message)| {
            let status = if holds { "True" } else { "False" };
            let known = before.iter().find(|condition| text(condition, "/type") == kind);
            let since = known.filter(|known| text(known, "/status") == status);
            let since = since.map_or(now, |known| text(known, "/lastTransitionTime"));
            json!({
                "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_what_is_left_and_keep_their_times() {
        let mut remains = Remains::default();
        remains.resources.insert("pods.".to_owned(), 2);
        remains.finalizers.insert("example.com/keep".to_owned(), 1);
        let first = conditions(&remains, &[], "2026-01-01T00:00:00Z");
        assert_eq!(first[3]["message"], "Some resources are remaining: pods. has 2 resource instances");
        assert_eq!(
            first[4]["message"],
            "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances"
        );
        let then = conditions(&Remains::default(), &first, "2026-01-01T00:01:00Z");
        assert_eq!(then[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(then[3]["lastTransitionTime"], "2026-01-01T00:01:00Z");
        assert_eq!((&then[3]["status"], &then[3]["reason"]), (&json!("False"), &json!("ContentRemoved")));
    }
}
