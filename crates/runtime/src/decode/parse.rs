//! JSON as a tree, whatever is in it.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use super::{Path, Step, Unread};

/// How deep we look for what is wrong. What fails deeper is left out as a whole.
const DEEPEST: usize = 48;

/// Reads a text that is JSON by its grammar.
pub(super) fn tree(text: &str, unread: &mut Vec<Unread>) -> Value {
    part(text, &mut Path::default(), unread)
}

fn part(text: &str, path: &mut Path, unread: &mut Vec<Unread>) -> Value {
    // Almost every part is fine, and those that are not are few.
    let why = match serde_json::from_str(text) {
        Ok(value) => return value,
        Err(error) => error.to_string(),
    };
    if path.0.len() < DEEPEST {
        if let Ok(Members(members)) = serde_json::from_str(text) {
            let read = |(key, value): (String, &RawValue)| {
                path.0.push(Step::Key(key.clone()));
                let value = part(value.get(), path, unread);
                path.0.pop();
                (key, value)
            };
            return Value::Object(members.into_iter().map(read).collect::<Map<_, _>>());
        }
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) {
            let read = |(index, value): (usize, &RawValue)| {
                path.0.push(Step::Index(index));
                let value = part(value.get(), path, unread);
                path.0.pop();
                value
            };
            return Value::Array(items.into_iter().enumerate().map(read).collect());
        }
        if let Ok(Lossy(text)) = serde_json::from_str(text) {
            return Value::String(text);
        }
    }
    unread.push(Unread::new(path.clone(), &why));
    Value::Null
}

/// The members of an object, each still a text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    let Lossy(key) = serde_json::from_str(key.get()).unwrap_or_default();
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// A text in which halves of characters are replaced by the sign for what cannot be read.
#[derive(Default)]
struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Lossy;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        deserializer.deserialize_bytes(Reader)
    }
}
