//! Reads of an older state.

use std::ops::ControlFlow;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::BodyExt as _;
use kruise_apiserver::ApiServer;
use kruise_apiserver::body::ApiBody;
use kruise_apiserver::store::Scan;
use kube::client::Body;
use serde_json::{Value, json};

use super::Broken;
use super::service::call;

/// Whether a query asks for a watch.
pub(super) fn is_watch(query: &str) -> bool {
    query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"))
}

/// Answers a get or list with the state at an older version. What has no such state (discovery, say) is
/// answered as it is.
pub(super) async fn read(
    server: &ApiServer,
    request: Request<Body>,
    version: u64,
) -> Result<Response<ApiBody>, Broken> {
    let (head, _) = request.into_parts();
    let again = |uri: Uri| {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = uri;
        *request.headers_mut() = head.headers.clone();
        request
    };
    let fresh = call(server, again(head.uri.clone())).await;
    let path = head.uri.path();
    let list = fresh.status().is_success() && is_collection(server, path);
    let name = path.rsplit('/').next().unwrap_or_default();
    let (collection, filter) = if list {
        (path.to_owned(), String::new())
    } else if let Some(parent) = parent_collection(server, path) {
        (parent, format!("fieldSelector=metadata.name%3D{name}&"))
    } else {
        return Ok(fresh);
    };
    // Where the history does not reach back that far, its beginning must do.
    let scan = Scan { at: Some(version), ..Scan::default() };
    let resource = resource_of(server, path);
    let seen = resource.map(|found| server.store().scan(&found.table, scan, |_| ControlFlow::Break(())));
    let version = match seen {
        Some(Err(old)) => old.oldest,
        _ => version,
    }
    .max(1);
    let query = head.uri.query().unwrap_or_default();
    if query.contains("continue=") {
        return Ok(fresh);
    }
    let kept: String = query
        .split('&')
        .filter(|part| !part.is_empty() && !part.starts_with("resourceVersion"))
        .map(|part| format!("{part}&"))
        .collect();
    let text = format!("{collection}?{kept}{filter}resourceVersion={version}&resourceVersionMatch=Exact");
    let Ok(uri) = text.parse() else { return Ok(fresh) };
    let old = call(server, again(uri)).await;
    if !old.status().is_success() {
        return Ok(fresh);
    }
    if list {
        return Ok(old);
    }
    Ok(one(server, old, path).await)
}

/// The only item of a list as an object of its own, or its absence.
async fn one(server: &ApiServer, response: Response<ApiBody>, path: &str) -> Response<ApiBody> {
    let bytes = match response.into_body().collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(never) => match never {},
    };
    let mut list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let kind =
        list.get("kind").and_then(Value::as_str).unwrap_or_default().trim_end_matches("List").to_owned();
    let api_version = list.get("apiVersion").cloned().unwrap_or_default();
    let item = list.get_mut("items").and_then(Value::as_array_mut).and_then(Vec::pop);
    let Some(Value::Object(mut item)) = item else {
        let name = path.rsplit('/').next().unwrap_or_default();
        let resource = resource_of(server, path);
        let status = match &resource {
            Some(resource) => kruise_apiserver::status::Status::not_found(resource.group_resource(), name),
            None => kruise_apiserver::status::Status::resource_not_found(),
        };
        return super::service::refusal(&status);
    };
    item.entry("kind").or_insert_with(|| json!(kind));
    item.entry("apiVersion").or_insert(api_version);
    let mut response = Response::new(ApiBody::full(Value::Object(item).to_string()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The parts of a path behind the group and version, and the group and version.
fn parts(path: &str) -> Option<(String, String, Vec<&str>)> {
    let words: Vec<&str> = path.trim_matches('/').split('/').collect();
    match words.as_slice() {
        ["api", version, rest @ ..] => Some((String::new(), (*version).to_owned(), rest.to_vec())),
        ["apis", group, version, rest @ ..] => {
            Some(((*group).to_owned(), (*version).to_owned(), rest.to_vec()))
        }
        _ => None,
    }
}

fn resource_of(
    server: &ApiServer,
    path: &str,
) -> Option<std::sync::Arc<kruise_apiserver::registry::Resource>> {
    let (group, version, rest) = parts(path)?;
    let plural = match rest.as_slice() {
        ["namespaces", _, plural, ..] => plural,
        [plural, ..] => plural,
        [] => return None,
    };
    server.registry().find(&group, &version, plural)
}

fn is_collection(server: &ApiServer, path: &str) -> bool {
    let Some((_, _, rest)) = parts(path) else { return false };
    let shape = matches!(rest.as_slice(), [_] | ["namespaces", _, _]);
    shape && resource_of(server, path).is_some()
}

/// The collection of a single object; none for subresources.
fn parent_collection(server: &ApiServer, path: &str) -> Option<String> {
    let (_, _, rest) = parts(path)?;
    let shape = match rest.as_slice() {
        ["namespaces", _] | ["namespaces", _, _, _] => true,
        [plural, _] => *plural != "namespaces",
        _ => false,
    };
    (shape && resource_of(server, path).is_some())
        .then(|| path.rsplit_once('/').map(|(parent, _)| parent.to_owned()))?
}
