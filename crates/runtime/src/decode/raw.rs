//! A part of a text as it is.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

/// How serde_json is asked for a part of its text. Where it does not know that name (or what reads is not serde_json, as for
/// an event of a watch whose type comes behind its object), the part is read as a tree and written again.
const TOKEN: &str = "$serde_json::private::RawValue";

/// A part of a text, or the same written anew. Any JSON is one.
pub(crate) struct Raw<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Raw<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let found = map.next_entry::<IgnoredAny, Part<'de>>()?;
                Ok(Raw(found.map_or(Cow::Borrowed("null"), |(_, Part(text))| text)))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Self::Value, D::Error> {
                Ok(Raw(Value::deserialize(deserializer)?.to_string().into()))
            }
        }
        deserializer.deserialize_newtype_struct(TOKEN, Reader)
    }
}

/// A text that is borrowed where it can be: a tree that is asked for its text writes it anew.
struct Part<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Part<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Part<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Part(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Part(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Reader)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_stays_as_it_is_or_is_written_again() {
        let parts: Vec<Raw<'_>> = serde_json::from_str(r#"[ {"a" : 1e999}, "\ud800", 7 ]"#).unwrap();
        let texts: Vec<&str> = parts.iter().map(|part| &*part.0).collect();
        assert_eq!(texts, [r#"{"a" : 1e999}"#, r#""\ud800""#, "7"]);
        assert!(parts.iter().all(|part| matches!(part.0, Cow::Borrowed(_))), "nothing is copied");
        let part = json!({"a": [1]});
        assert_eq!(Raw::deserialize(&part).unwrap().0, r#"{"a":[1]}"#);
    }

    /// Servers write the type first, others need not.
    #[test]
    fn an_event_of_a_watch_may_name_its_object_first() {
        struct Owned(String);
        impl<'de> Deserialize<'de> for Owned {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self(Raw::deserialize(deserializer)?.0.into_owned()))
            }
        }
        #[derive(Deserialize)]
        #[serde(tag = "type", content = "object")]
        enum Event {
            Added(Owned),
        }
        for text in [r#"{"type":"Added","object":{"a":1}}"#, r#"{"object":{"a":1},"type":"Added"}"#] {
            let Event::Added(Owned(part)) = serde_json::from_str(text).unwrap();
            assert_eq!(part, r#"{"a":1}"#);
        }
    }
}
