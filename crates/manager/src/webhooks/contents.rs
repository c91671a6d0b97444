//! What a protected namespace or definition holds, counted when somebody wants to delete it.
//!
//! Asked for live, because the decision cannot be taken back; only for objects that carry the label. An API server that gets
//! no answer in time lets the deletion pass, so counting ends before that: what was found until then is enough to refuse, and
//! nothing found in time is an error, which refuses too.

use std::time::Duration;

use kruise_api::json;
use kruise_core::admission::{Request, protection::Contents};
use kruise_runtime::live;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::shared::Shared;

/// How long counting may take; API servers wait a second longer.
const WITHIN: Duration = Duration::from_secs(4);
/// Pods that have not ended.
const ACTIVE: &str = "status.phase!=Succeeded,status.phase!=Failed";

pub(super) async fn count(shared: &Shared, request: &Request) -> Contents {
    let until = Instant::now() + WITHIN;
    match request.kind.kind.as_str() {
        "Namespace" => {
            let namespace = format!("/api/v1/namespaces/{}", request.object_name());
            let active_pods = metadata(shared, &format!("{namespace}/pods"), ACTIVE, until).await;
            // Pods alone refuse.
            let bound_claims = match active_pods {
                Ok(0) => bound_claims(shared, &format!("{namespace}/persistentvolumeclaims"), until).await,
                _ => Ok(0),
            };
            Contents { active_pods, bound_claims, ..Contents::default() }
        }
        "CustomResourceDefinition" => {
            let objects = of_definition(shared, &request.old_object, until).await;
            Contents { objects, ..Contents::default() }
        }
        _ => Contents::default(),
    }
}

/// Objects of a CRD in the version that is stored; one that is stored and not served any more in one that is.
async fn of_definition(shared: &Shared, definition: &Value, until: Instant) -> Result<usize, String> {
    let text = |path: &[&str]| json::text(definition, path).unwrap_or_default();
    let versions = json::at(definition, &["spec", "versions"]).and_then(Value::as_array);
    let says = |version: &Value, what: &str| version.get(what) == Some(&Value::Bool(true));
    let served: Vec<&Value> =
        versions.into_iter().flatten().filter(|version| says(version, "served")).collect();
    let stored = served.iter().find(|version| says(version, "storage")).or_else(|| served.first());
    let named = stored.and_then(|version| version.get("name")).and_then(Value::as_str);
    // Old definitions have one version beside the list.
    let version = named.or_else(|| json::text(definition, &["spec", "version"]));
    let Some(version) = version else { return Ok(0) };
    let (group, plural) = (text(&["spec", "group"]), text(&["spec", "names", "plural"]));
    let found = metadata(shared, &format!("/apis/{group}/{version}/{plural}"), "", until).await;
    let kind = text(&["spec", "names", "kind"]);
    found.map_err(|error| format!("failed to list CRs of {group}/{version}, Kind={kind}: {error}"))
}

/// How many objects at a path are not on their way out. Only their metadata is sent: of a big kind that is much less.
async fn metadata(shared: &Shared, path: &str, fields: &str, until: Instant) -> Result<usize, String> {
    let mut found = 0;
    let all = live::each_metadata_at(&shared.client, path, fields, |object| {
        found += usize::from(!object.metadata.is_deleting());
    });
    let answer = timeout_at(until, all).await;
    in_time(answer, found)
}

async fn bound_claims(shared: &Shared, path: &str, until: Instant) -> Result<usize, String> {
    let mut found = 0;
    let all = live::each_at(&shared.client, path, |claim: Value| {
        let is_going =
            json::at(&claim, &["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
        found += usize::from(!is_going && json::text(&claim, &["status", "phase"]) == Some("Bound"));
    });
    let answer = timeout_at(until, all).await;
    in_time(answer, found)
}

/// What was found, as far as there was time.
fn in_time<L>(answer: Result<Result<(), kube::Error>, L>, found: usize) -> Result<usize, String> {
    match answer {
        Ok(Ok(())) => Ok(found),
        Ok(Err(_)) | Err(_) if found > 0 => Ok(found),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {WITHIN:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not known in time does not let a deletion pass.
    #[test]
    fn what_was_found_in_time_is_enough_to_refuse() {
        let broken = || Err(kube::Error::Service("gone".into()));
        assert_eq!(in_time::<()>(Ok(Ok(())), 0), Ok(0));
        assert_eq!(in_time(Err(()), 3), Ok(3));
        assert_eq!(in_time::<()>(Ok(broken()), 3), Ok(3));
        assert_eq!(in_time(Err(()), 0), Err("no answer within 4s".to_owned()));
        assert!(in_time::<()>(Ok(broken()), 0).is_err());
    }
}
