//! One step of the way to a field: into a member, an item with a key, a member of a set.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::field;

/// A step. The order is the one in which a server writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// A member of an object.
    Field(Arc<str>),
    /// The item of a list whose key fields have these values. The fields are sorted by name.
    Key(Arc<[(Arc<str>, Value)]>),
    /// The item of a set that has this value.
    Value(Arc<Value>),
    /// The item at this place. Servers read it and never write it by themselves.
    Index(i64),
}

impl Element {
    /// A member of an object.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// An item by its key fields, in any order.
    pub fn key(mut fields: Vec<(Arc<str>, Value)>) -> Self {
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self::Key(fields.into())
    }

    /// Reads the form that stands in `fieldsV1`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((kind, rest)) = text.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
            return Err(match text.len() {
                0 | 1 => "key must be 2 characters long:".to_owned(),
                _ => format!("missing colon: {text}"),
            });
        };
        match kind {
            "f" => Ok(Self::field(rest)),
            "v" => {
                let value: Value = serde_json::from_str(rest).map_err(|error| error.to_string())?;
                Ok(Self::Value(Arc::new(value)))
            }
            "k" => {
                let fields: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|error| error.to_string())?;
                Ok(Self::key(fields.into_iter().map(|(name, value)| (name.into(), value)).collect()))
            }
            "i" => rest
                .parse()
                .map(Self::Index)
                .map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", field::quote(rest))),
            _ => Err("unknown path element type".to_owned()),
        }
    }

    /// Writes the form that stands in `fieldsV1`, without quotes around it.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(fields) => {
                out.push_str("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(&Value::from(name.as_ref()).to_string());
                    out.push(':');
                    out.push_str(&value.to_string());
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                out.push_str(&value.to_string());
            }
            Self::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
        }
    }

    /// A number that is the same for equal steps.
    pub(super) fn hash(&self) -> u64 {
        match self {
            Self::Field(name) => hash(name.as_bytes(), 1),
            _ => {
                let mut text = String::new();
                self.write(&mut text);
                hash(text.as_bytes(), 2)
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// FNV-1a.
pub(super) fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    bytes.iter().fold(start, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                let by_field = a
                    .iter()
                    .zip(b.iter())
                    .map(|((a_name, a), (b_name, b))| a_name.cmp(b_name).then_with(|| compare(a, b)));
                by_field.fold(Ordering::Equal, Ordering::then).then_with(|| a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// Numbers come first, then texts, then booleans.
fn compare(a: &Value, b: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => {
                let (a_float, b_float) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
                a_float.total_cmp(&b_float)
            }
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            a.to_string().cmp(&b.to_string())
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// The form in messages: `.spec`, `[name="web"]`, `[="a"]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| match value {
            Value::String(text) => field::quote(text),
            other => other.to_string(),
        };
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", text(value))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", text(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A whole way in messages: `.spec.containers[name="web"].image`.
pub fn path_text(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_written_and_read_in_the_servers_form() {
        for (text, shown) in [
            ("f:spec", ".spec"),
            ("f:app.kubernetes.io/name", ".app.kubernetes.io/name"),
            (r#"k:{"containerPort":80,"protocol":"TCP"}"#, r#"[containerPort=80,protocol="TCP"]"#),
            (r#"v:"example.com/a""#, r#"[="example.com/a"]"#),
            ("v:3", "[=3]"),
            ("i:4", "[4]"),
        ] {
            let element = Element::parse(text).unwrap();
            let mut written = String::new();
            element.write(&mut written);
            assert_eq!((written.as_str(), element.to_string().as_str()), (text, shown));
        }
    }

    #[test]
    fn broken_steps_are_refused() {
        for (text, why) in [
            ("", "key must be 2 characters long:"),
            ("fspec", "missing colon: fspec"),
            ("x:1", "unknown path element type"),
            ("i:x", "strconv.Atoi: parsing \"x\": invalid syntax"),
        ] {
            assert_eq!(Element::parse(text), Err(why.to_owned()), "{text}");
        }
        assert!(Element::parse("k:[").is_err() && Element::parse("v:").is_err());
    }

    #[test]
    fn numbers_of_keys_are_ordered_as_numbers() {
        let port = |port: i64| Element::key(vec![("port".into(), json!(port))]);
        assert!(port(80) < port(443));
        assert!(Element::field("z") < port(1));
        assert!(port(1) < Element::Value(Arc::new(json!(0))));
        assert!(Element::Value(Arc::new(json!(9))) < Element::Value(Arc::new(json!("1"))));
    }
}
