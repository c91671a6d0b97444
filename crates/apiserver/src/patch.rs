//! Patches: a change of an object that a client sends instead of the whole object.
//!
//! Three kinds are carried out here as pure functions on JSON: JSON patch ([`json`], RFC 6902), merge patch
//! ([`merge`], RFC 7386) and Kubernetes' own strategic merge patch ([`strategic`]), which knows the keys of
//! lists. The fourth kind, server-side apply, is read here and carried out by [`crate::apply`].
//!
//! The result may have any content; whether it is still a valid object of the same name is the caller's check.

mod applying;
pub mod json;
pub mod merge;
pub mod shapes;
pub mod strategic;

use serde_json::{Map, Value};

pub use applying::Applying;

use crate::status::{GroupKind, Status};

/// The deepest nesting that a patch may build. It is below what the JSON reader accepts, so that every stored
/// object can be read again.
pub const MAX_DEPTH: usize = 120;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Which patches a resource takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Built-in kinds know the merge keys of their lists and take all patches.
    All,
    /// Custom resources take all but strategic merge patches.
    NoStrategic,
}

impl Accepts {
    /// Whether a body of this type is a server-side apply.
    pub fn is_apply(self, content_type: &str) -> bool {
        content_type.split(';').next().unwrap_or_default().trim() == APPLY
    }

    /// The content types, in the order the real server lists them.
    pub fn content_types(self) -> &'static [&'static str] {
        match self {
            Self::All => &[JSON, MERGE, STRATEGIC, APPLY],
            Self::NoStrategic => &[JSON, MERGE, APPLY],
        }
    }
}

/// A patch, decoded but not yet applied. It can be applied again after a conflict.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// A list of operations.
    Json(json::Operations),
    /// An object whose fields replace or, where null, remove.
    Merge(Map<String, Value>),
    /// Like a merge patch, but lists merge by key and directives are obeyed.
    Strategic(Map<String, Value>),
    /// An object whose fields the client wants to own.
    Apply(Applying),
}

impl Patch {
    /// Decodes a request body by its content type.
    pub fn parse(content_type: &str, body: &[u8], accepts: Accepts) -> Result<Self, Status> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if !accepts.content_types().contains(&media_type) {
            return Err(match accepts {
                // The real server's router refuses it before anybody who could list what is taken.
                Accepts::All => Status::unroutable(415, "UnsupportedMediaType", "Unsupported Media Type"),
                Accepts::NoStrategic => Status::unsupported_media_type(accepts.content_types()),
            });
        }
        match media_type {
            JSON => json::Operations::parse(body).map(Self::Json),
            MERGE => object(body).map(Self::Merge).map_err(|why| decoding(&why)),
            STRATEGIC => object(body).map(Self::Strategic).map_err(Status::bad_request),
            _ => Applying::parse(body).map(Self::Apply),
        }
    }

    /// What a refusal for unknown fields shows: the patched object or, for a strategic patch, the patch.
    pub fn shown(&self, patched: &Value) -> String {
        match self {
            Self::Json(_) | Self::Merge(_) | Self::Apply(_) => patched.to_string(),
            Self::Strategic(patch) => go_map(patch),
        }
    }

    /// Fields of the patch itself that mean nothing, as `fieldValidation` reports them.
    pub fn unknown_fields(&self) -> &[String] {
        match self {
            Self::Json(operations) => operations.unknown_fields(),
            Self::Merge(_) | Self::Strategic(_) | Self::Apply(_) => &[],
        }
    }

    /// Whether the patch is about `metadata.managedFields`, which objects are stored without.
    pub fn touches_managed(&self) -> bool {
        match self {
            Self::Json(operations) => operations.touch("/metadata/managedFields"),
            Self::Merge(fields) | Self::Strategic(fields) => {
                fields.get("metadata").is_some_and(|meta| meta.get("managedFields").is_some())
            }
            Self::Apply(_) => false,
        }
    }

    /// The object after the patch. `kind` chooses the merge keys of a strategic patch.
    pub fn apply(&self, object: Value, kind: GroupKind<'_>) -> Result<Value, Status> {
        match self {
            Self::Json(operations) => {
                let patched = operations.apply(object).map_err(|_| Status::unprocessable())?;
                if patched.is_object() {
                    Ok(patched)
                } else {
                    Err(undecodable(
                        patched.to_string(),
                        &unmarshal_error(&patched, "map[string]interface {}"),
                    ))
                }
            }
            Self::Merge(patch) => Ok(merge::apply(object, patch)),
            Self::Apply(applying) => Ok(applying.object.clone()),
            Self::Strategic(patch) => {
                let Value::Object(object) = object else {
                    return Err(Status::bad_request("invalid JSON document"));
                };
                let merged = strategic::apply(object, patch.clone(), shapes::of(kind))?;
                Ok(Value::Object(merged))
            }
        }
    }
}

/// The answer when the patched object cannot be read as its kind any more.
pub fn undecodable(patched: String, why: &str) -> Status {
    Status::invalid(GroupKind::new("", ""), "", vec![crate::field::Error::invalid("patch", patched, why)])
}

/// A value as Go prints it: `map[a:1 b:[x y]]`.
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => go_map(fields),
        other => other.to_string(),
    }
}

fn go_map(fields: &Map<String, Value>) -> String {
    let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{key}:{}", go_text(value))).collect();
    format!("map[{}]", fields.join(" "))
}

/// How deeply a value is nested: 0 for a scalar, 1 for a flat list or object. Uses no recursion.
pub fn depth(value: &Value) -> usize {
    depth_and_size(value).0
}

/// The same, and how many values were looked at to know it.
fn depth_and_size(value: &Value) -> (usize, usize) {
    let (mut deepest, mut size) = (0, 0);
    let mut open = vec![(value, 0_usize)];
    while let Some((value, level)) = open.pop() {
        size += 1;
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => {
                deepest = deepest.max(level + 1);
                open.extend(items.iter().map(|item| (item, level + 1)));
            }
            Value::Object(fields) => {
                deepest = deepest.max(level + 1);
                open.extend(fields.values().map(|item| (item, level + 1)));
            }
            _ => {}
        }
    }
    (deepest, size)
}

fn decoding(why: &str) -> Status {
    Status::bad_request(format!("error decoding patch: {why}"))
}

fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(unmarshal_error(&other, "map[string]interface {}")),
        Err(error) => Err(go_words(&error, body)),
    }
}

/// What Go's JSON reader says, as far as clients can tell.
pub(crate) fn go_words(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = body.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    match line.get(error.column().saturating_sub(1)) {
        Some(byte) => format!("invalid character '{}' looking for beginning of value", char::from(*byte)),
        None => error.to_string(),
    }
}

/// What Go's decoder says about a value of the wrong type.
fn unmarshal_error(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: GroupKind<'_> = GroupKind::new("", "Pod");

    #[track_caller]
    fn refused(content_type: &str, body: &str, accepts: Accepts) -> (u16, String) {
        let status = Patch::parse(content_type, body.as_bytes(), accepts).unwrap_err();
        (status.code, status.message)
    }

    #[test]
    fn a_custom_resource_refuses_a_strategic_patch_and_says_what_it_takes() {
        assert_eq!(
            refused(STRATEGIC, "{}", Accepts::NoStrategic),
            (
                415,
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                    .to_owned()
            )
        );
        assert_eq!(refused("application/json", "{}", Accepts::All).0, 415);
    }

    #[test]
    fn malformed_patches_are_bad_requests() {
        for (content_type, body) in [
            (JSON, "{}"),
            (JSON, "[1]"),
            (JSON, "nope"),
            (MERGE, "[]"),
            (MERGE, "{"),
            (STRATEGIC, "null"),
            (STRATEGIC, ""),
        ] {
            assert_eq!(refused(content_type, body, Accepts::All).0, 400, "{content_type} {body}");
        }
        assert_eq!(
            refused(MERGE, "[]", Accepts::All).1,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
    }

    #[test]
    fn a_charset_parameter_is_ignored() {
        let patch = Patch::parse("application/merge-patch+json; charset=utf-8", b"{}", Accepts::All);
        assert_eq!(patch, Ok(Patch::Merge(Map::new())));
    }

    #[test]
    fn a_patch_that_leaves_no_object_is_invalid() {
        let patch = Patch::parse(JSON, br#"[{"op":"replace","path":"","value":1}]"#, Accepts::All).unwrap();
        assert_eq!(patch.apply(json!({"a": 1}), POD).unwrap_err().code, 422);
    }

    #[test]
    fn a_strategic_patch_is_shown_as_go_prints_it() {
        let patch =
            Patch::parse(STRATEGIC, br#"{"b":[1,"x y",{"c":null}],"a":{"d":true}}"#, Accepts::All).unwrap();
        assert_eq!(patch.shown(&json!({})), "map[a:map[d:true] b:[1 x y map[c:<nil>]]]");
    }

    #[test]
    fn depth_counts_levels() {
        assert_eq!(depth(&json!(1)), 0);
        assert_eq!(depth(&json!({})), 1);
        assert_eq!(depth(&json!({"a": [{"b": 1}]})), 3);
    }
}
