//! A request as webhooks and expressions see it: `AdmissionRequest`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Attributes, scope};
use crate::registry::{Resource, split_api_version};
use crate::rest;
use crate::status::Status;

/// Everything about a request but its objects. `resource` is the version in which it is shown, and `object` one of its
/// objects in that version.
pub(crate) fn about(attributes: &Attributes<'_>, resource: &Resource, object: Option<&Value>) -> Value {
    let own = attributes.resource;
    let kind = kind_of(object, resource);
    // Subresources with kinds of their own have one kind in all versions of the resource.
    let asked = if is_own_kind(attributes) {
        json!({"group": own.group, "version": own.version, "kind": own.kind})
    } else {
        kind.clone()
    };
    let named = |r: &Resource| json!({"group": r.group, "version": r.version, "resource": r.plural});
    let mut request = json!({
        "kind": kind,
        "resource": named(resource),
        "requestKind": asked,
        "requestResource": named(own),
        "operation": attributes.operation.as_str(),
        "userInfo": attributes.user.info(),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    });
    set(&mut request, "name", attributes.name);
    set(&mut request, "namespace", scope::namespace(attributes));
    set(&mut request, "subResource", attributes.subresource.unwrap_or_default());
    set(&mut request, "requestSubResource", attributes.subresource.unwrap_or_default());
    request
}

/// An object of the request in the version that somebody wants; `None` where that is the version at hand.
pub(crate) async fn in_version(
    wanted: &Arc<Resource>,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<Option<Value>, Status> {
    match object {
        Some(object) if !Arc::ptr_eq(wanted, attributes.resource) && is_own_kind(attributes) => {
            rest::convert(wanted, object.clone(), &wanted.api_version()).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether the request carries objects of the resource's own kind, not a `Scale` or an `Eviction`.
pub(crate) fn is_own_kind(attributes: &Attributes<'_>) -> bool {
    let sub = attributes.subresource.and_then(|name| attributes.resource.subresource(name));
    sub.is_none_or(|sub| sub.kind == attributes.resource.kind && sub.group_version.is_none())
}

fn kind_of(object: Option<&Value>, resource: &Resource) -> Value {
    let text = |key: &str| object.and_then(|object| object.get(key)).and_then(Value::as_str);
    let (group, version) =
        text("apiVersion").map_or((resource.group.as_ref(), resource.version.as_ref()), split_api_version);
    json!({"group": group, "version": version, "kind": text("kind").unwrap_or(&resource.kind)})
}

fn set(object: &mut Value, key: &str, text: &str) {
    if let Some(map) = object.as_object_mut()
        && !text.is_empty()
    {
        map.insert(key.to_owned(), json!(text));
    }
}
