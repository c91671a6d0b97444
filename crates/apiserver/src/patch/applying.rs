//! The body of a server-side apply: an object in YAML or JSON.

use serde_json::Value;

use crate::field;
use crate::rest::duplicates;
use crate::status::Status;

/// An object whose fields the client wants to own.
#[derive(Clone, Debug, PartialEq)]
pub struct Applying {
    /// What the client sent.
    pub object: Value,
    /// Whether fields are taken from others.
    pub force: bool,
    /// What strict reading says about keys that are there twice.
    pub repeated: Option<String>,
}

impl Applying {
    /// Reads a body. Of keys that are there twice the last one counts.
    pub fn parse(body: &[u8]) -> Result<Self, Status> {
        let is_json = body.trim_ascii_start().starts_with(b"{");
        let (object, repeated) = match serde_json::from_slice::<Value>(body) {
            Ok(object) if is_json => (object, repeated_in_json(body)),
            _ => yaml(body)?,
        };
        let object = match object {
            Value::Object(_) => object,
            Value::Null => Value::Object(serde_json::Map::new()),
            other => {
                let why = super::unmarshal_error(&other, "map[string]interface {}");
                return Err(undecodable(&format!("error unmarshaling JSON: while decoding JSON: {why}")));
            }
        };
        Ok(Self { object, force: false, repeated })
    }
}

fn undecodable(why: &str) -> Status {
    Status::bad_request(format!("error decoding YAML: {why}"))
}

fn yaml(body: &[u8]) -> Result<(Value, Option<String>), Status> {
    let broken = |why: &str| undecodable(&format!("error converting YAML to JSON: yaml: {why}"));
    let text = std::str::from_utf8(body).map_err(|_| broken("control characters are not allowed"))?;
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let object: Value =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| broken(&error.to_string()))?;
    let repeated = match serde_saphyr::from_str::<Value>(text) {
        Ok(_) => None,
        Err(error) => {
            let line = error.location().map_or(0, |place| place.line());
            let key = repeated_key(&error);
            Some(strict(&[format!("line {line}: key {} already set in map", field::quote(&key))]))
        }
    };
    Ok((object, repeated))
}

/// The key that an error is about; the reader may have wrapped it.
fn repeated_key(error: &serde_saphyr::Error) -> String {
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key, .. } => key.clone().unwrap_or_default(),
        _ => String::new(),
    }
}

/// JSON of clients is one line.
fn repeated_in_json(body: &[u8]) -> Option<String> {
    let found = duplicates(body);
    if found.is_empty() {
        return None;
    }
    let lines: Vec<String> = found
        .iter()
        .map(|path| {
            let key = path.rsplit(['.', ']']).next().unwrap_or(path);
            format!("line 1: key {} already set in map", field::quote(key))
        })
        .collect();
    Some(strict(&lines))
}

fn strict(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("\n  {line}")).collect();
    format!("error converting YAML to JSON: yaml: unmarshal errors:{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_are_read_and_repeated_keys_are_told() {
        for (body, object, repeated) in [
            ("kind: A\nspec:\n  a: 1\n", json!({"kind": "A", "spec": {"a": 1}}), None),
            ("{\"a\":1}", json!({"a": 1}), None),
            ("", json!({}), None),
            ("a: 1\nb: 2\na: 3\n", json!({"a": 3, "b": 2}), Some("line 3: key \"a\" already set in map")),
            (
                "{\"a\":{\"b\":1,\"b\":2}}",
                json!({"a": {"b": 2}}),
                Some("line 1: key \"b\" already set in map"),
            ),
        ] {
            let found = Applying::parse(body.as_bytes()).unwrap();
            assert_eq!(found.object, object, "{body}");
            let prefix = "error converting YAML to JSON: yaml: unmarshal errors:\n  ";
            assert_eq!(found.repeated, repeated.map(|line| format!("{prefix}{line}")), "{body}");
        }
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let refused = Applying::parse(b"[1]").unwrap_err();
        assert_eq!(
            (refused.code, refused.message.as_str()),
            (
                400,
                "error decoding YAML: error unmarshaling JSON: while \
            decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"
            )
        );
        assert_eq!(Applying::parse(b"a: [").unwrap_err().code, 400);
    }
}
