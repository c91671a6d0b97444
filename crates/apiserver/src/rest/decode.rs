//! From a request's bytes to an object of the resource.

use serde_json::Value;

use super::Target;
use crate::field;
use crate::patch::{go_words, undecodable};
use crate::protobuf::{self, Fault};
use crate::registry::{Resource, split_api_version};
use crate::status::{GroupKind, Status};

/// The content types that bodies may have.
const BODY_TYPES: [&str; 3] = ["application/json", "application/yaml", protobuf::CONTENT_TYPE];

/// What a body must be.
#[derive(Debug)]
pub(crate) struct Expected {
    /// The version with its group.
    pub(crate) api_version: String,
    /// The kind.
    pub(crate) kind: String,
    /// Whether it is an object of a custom kind, which has no form in protobuf.
    pub(crate) custom: bool,
}

impl Expected {
    /// An object of a built-in kind.
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        Self { api_version: api_version.to_owned(), kind: kind.to_owned(), custom: false }
    }
}

/// Reads a body in JSON, YAML or protobuf.
pub(crate) fn parse(content_type: &str, body: &[u8], expected: &Expected) -> Result<Value, Status> {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let kind = expected.kind.as_str();
    match media_type {
        // Some clients send no type with a JSON body.
        "" | "application/json" | "*/*" => {
            let object = serde_json::from_slice(body).map_err(|error| {
                unrecognized(
                    kind,
                    body,
                    &format!("couldn't get version/kind; json parse error: {}", go_words(&error, body)),
                )
            })?;
            limited(object, body.len())
        }
        "application/yaml" | "application/x-yaml" => {
            let text = std::str::from_utf8(body)
                .map_err(|_| unrecognized(kind, body, "yaml: control characters are not allowed"))?;
            let object = serde_saphyr::from_str(text).map_err(|error| {
                unrecognized(kind, body, &format!("error converting YAML to JSON: yaml: {error}"))
            })?;
            // References make much of little.
            limited(object, usize::MAX)
        }
        protobuf::CONTENT_TYPE => read_protobuf(body, expected),
        _ => Err(Status::unsupported_media_type(&BODY_TYPES)),
    }
}

/// Bodies below this cannot hold so many values that it matters.
const COUNTED_FROM: usize = 1 << 20;

/// Refuses objects of very many small values, each of which takes much more room than its few bytes.
fn limited(object: Value, length: usize) -> Result<Value, Status> {
    if length > COUNTED_FROM && values(&object) > protobuf::MAX_VALUES {
        return Err(Status::too_large(format_args!(
            "the object has more than {} values",
            protobuf::MAX_VALUES
        )));
    }
    Ok(object)
}

fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

fn read_protobuf(body: &[u8], expected: &Expected) -> Result<Value, Status> {
    let Expected { api_version, kind, custom } = expected;
    let read = protobuf::decode(body, api_version, kind).and_then(|object| match custom {
        true => Err(Fault::Content {
            kind: text_of(&object, "kind"),
            version: split_api_version(&text_of(&object, "apiVersion")).1.to_owned(),
            why: "Object 'Kind' is missing in 'object has no kind field '".to_owned(),
        }),
        false => Ok(object),
    });
    read.map_err(|fault| match fault {
        Fault::Envelope(why) => unrecognized(kind, body, &why),
        Fault::Content { kind: given, version, why } => Status::bad_request(format!(
            "{given} in version {} cannot be handled as a {kind}: {why}",
            field::quote(&version)
        )),
    })
}

fn text_of(object: &Value, key: &str) -> String {
    object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn unrecognized(kind: &str, body: &[u8], why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(body)
    ))
}

/// The start of a body, as text if it looks like JSON.
fn summary(body: &[u8]) -> String {
    const MOST: usize = 30;
    let head = body.get(..MOST).unwrap_or(body);
    let more = if body.len() > MOST { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => {
            let hex: String = head.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}{more}")
        }
    }
}

/// Checks that the object is of the expected kind and version, and fills both in when they are left out.
pub(crate) fn decode(object: &mut Value, resource: &Resource) -> Result<(), Status> {
    expect_kind(object, &resource.api_version(), &resource.kind, resource.custom)
}

/// The same for any kind, for example that of a subresource.
pub(super) fn expect_kind(
    object: &mut Value,
    api_version: &str,
    kind: &str,
    custom: bool,
) -> Result<(), Status> {
    let Some(map) = object.as_object_mut() else {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; \
             json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            json_type(object)
        )));
    };
    let text = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (given_version, given_kind) = (text("apiVersion"), text("kind"));
    if custom && (given_version.is_empty() || given_kind.is_empty()) {
        let missing = if given_kind.is_empty() { "kind" } else { "apiVersion" };
        let body = Value::Object(map.clone()).to_string();
        let why = format!("Object '{}' is missing in '{body}'", capital(missing));
        return Err(unrecognized(kind, body.as_bytes(), &why));
    }
    if custom && given_kind != kind && given_version == api_version {
        let name = map.get("metadata").and_then(|meta| meta.get("name")).and_then(Value::as_str);
        let error = field::Error::invalid("kind", given_kind.as_str(), format!("must be {kind}"));
        let found = GroupKind::new(split_api_version(api_version).0, &given_kind);
        return Err(Status::invalid(found, name.unwrap_or_default(), vec![error]));
    }
    if !custom && !is_registered(&given_version, &given_kind, api_version, kind) {
        let version = if given_version.is_empty() { api_version } else { &given_version };
        return Err(Status::bad_request(format!(
            "{given_kind} in version \"{}\" cannot be handled as a {kind}: no kind \"{given_kind}\" is registered for \
             version \"{version}\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            split_api_version(version).1
        )));
    }
    if !given_kind.is_empty() && given_kind != kind {
        let (expected_group, expected_version) = split_api_version(api_version);
        let (group, version) = match given_version.as_str() {
            "" => (expected_group, expected_version),
            given => split_api_version(given),
        };
        return Err(Status::bad_request(format!(
            "{given_kind} in version \"{version}\" cannot be handled as a {kind}: \
             converting ({}.{given_kind}) to ({}.{kind}): unknown conversion",
            go_package(group, version),
            internal_package(expected_group),
        )));
    }
    if !given_version.is_empty() && given_version != api_version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )));
    }
    map.insert("apiVersion".to_owned(), Value::String(api_version.to_owned()));
    map.insert("kind".to_owned(), Value::String(kind.to_owned()));
    Ok(())
}

/// Whether a real server would know what the body says it is. What is left out is what the path says.
fn is_registered(given_version: &str, given_kind: &str, api_version: &str, kind: &str) -> bool {
    let given_version = if given_version.is_empty() { api_version } else { given_version };
    let given_kind = if given_kind.is_empty() { kind } else { given_kind };
    if (given_version, given_kind) == (api_version, kind) {
        return true;
    }
    let mut known = crate::registry::builtin::resources();
    known.any(|resource| resource.kind == given_kind && resource.api_version() == given_version)
}

fn capital(word: &str) -> &str {
    if word == "kind" { "Kind" } else { "apiVersion" }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn go_package<'v>(_group: &str, version: &'v str) -> &'v str {
    version
}

fn internal_package(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) }
}

/// The namespace of the request and of the object must agree; the object's is filled in.
pub(super) fn settle_namespace(object: &mut Value, target: &Target) -> Result<(), Status> {
    let Some(meta) = metadata(object) else {
        return Err(Status::bad_request("metadata must be an object"));
    };
    let given = meta.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if target.resource.namespaced {
        if given.is_empty() {
            meta.insert("namespace".to_owned(), Value::String(target.namespace.clone()));
        } else if given != target.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    } else {
        // The real server drops a namespace of a cluster-scoped object silently.
        meta.remove("namespace");
    }
    Ok(())
}

/// The metadata of an object; created when absent.
pub(super) fn metadata(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let meta =
        object.as_object_mut()?.entry("metadata").or_insert_with(|| Value::Object(serde_json::Map::new()));
    if meta.is_null() {
        *meta = Value::Object(serde_json::Map::new());
    }
    meta.as_object_mut()
}

/// Brings an object into the stored form and fills in its defaults. Returns the paths of unknown fields.
pub(crate) fn settle_shape(resource: &Resource, object: &mut Value) -> Result<Vec<String>, Status> {
    shaped(resource, object).map_err(|why| {
        Status::bad_request(format!(
            "{kind} in version \"{}\" cannot be handled as a {kind}: {why}",
            resource.version,
            kind = resource.kind
        ))
    })
}

/// The same for what a patch made: then the patch is to blame.
pub(super) fn settle_patched(resource: &Resource, object: &mut Value) -> Result<Vec<String>, Status> {
    shaped(resource, object).map_err(|why| undecodable(object.to_string(), &why))
}

fn shaped(resource: &Resource, object: &mut Value) -> Result<Vec<String>, String> {
    let unknown = resource.rules.canonical(resource, object)?;
    resource.rules.default(resource, object);
    Ok(unknown)
}
