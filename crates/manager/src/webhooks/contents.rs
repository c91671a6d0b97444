//! What a protected namespace or definition holds, counted when somebody wants to delete it.
//!
//! Asked for live, because the decision cannot be taken back; only for objects that carry the label.

use kruise_api::json;
use kruise_core::admission::{Request, protection::Contents};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::Value;

use crate::shared::Shared;

/// More than this need not be counted: one is enough to refuse.
const ENOUGH: u32 = 500;

pub(super) async fn count(shared: &Shared, request: &Request) -> Contents {
    match request.kind.kind.as_str() {
        "Namespace" => Contents {
            active_pods: list(shared, "", "v1", "Pod", "pods", &request.name, is_active).await,
            bound_claims: list(
                shared,
                "",
                "v1",
                "PersistentVolumeClaim",
                "persistentvolumeclaims",
                &request.name,
                |claim| json::text(claim, &["status", "phase"]) == Some("Bound"),
            )
            .await,
            ..Contents::default()
        },
        "CustomResourceDefinition" => {
            Contents { objects: of_definition(shared, &request.old_object).await, ..Contents::default() }
        }
        _ => Contents::default(),
    }
}

async fn of_definition(shared: &Shared, definition: &Value) -> Result<usize, String> {
    let text = |path: &[&str]| json::text(definition, path).unwrap_or_default();
    let versions = json::at(definition, &["spec", "versions"]).and_then(Value::as_array);
    let served =
        versions.into_iter().flatten().find(|version| version.get("served") == Some(&Value::Bool(true)));
    let Some(version) = served.and_then(|version| version.get("name")).and_then(Value::as_str) else {
        return Ok(0);
    };
    let (group, kind, plural) =
        (text(&["spec", "group"]), text(&["spec", "names", "kind"]), text(&["spec", "names", "plural"]));
    list(shared, group, version, kind, plural, "", |_| true).await
}

/// How many objects count that are not on their way out. An empty namespace means all.
async fn list(
    shared: &Shared,
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    namespace: &str,
    counts: impl Fn(&Value) -> bool,
) -> Result<usize, String> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let client = shared.client.clone();
    let api: Api<DynamicObject> = match namespace {
        "" => Api::all_with(client, &resource),
        namespace => Api::namespaced_with(client, namespace, &resource),
    };
    let mut found = 0;
    let mut page = ListParams::default().limit(ENOUGH);
    loop {
        let listed = api.list(&page).await.map_err(|error| error.to_string())?;
        let stays =
            |object: &&DynamicObject| object.metadata.deletion_timestamp.is_none() && counts(&object.data);
        found += listed.items.iter().filter(stays).count();
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = ListParams::default().limit(ENOUGH).continue_token(&token),
            None => return Ok(found),
        }
    }
}

fn is_active(pod: &Value) -> bool {
    !matches!(json::text(pod, &["status", "phase"]), Some("Succeeded" | "Failed"))
}
