//! The object of a question.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Reads an object, but for its `metadata.managedFields`. No rule looks at them, no patch touches them, and they are half
/// of what a server sends for a pod that runs.
pub(super) fn without_managers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Level::Object.deserialize(deserializer)
}

/// How deep we are.
#[derive(Clone, Copy, Debug)]
enum Level {
    Object,
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            match (self, key.as_str()) {
                (Self::Object, "metadata") => {
                    let metadata = members.next_value_seed(Self::Metadata)?;
                    object.insert(key, metadata);
                }
                (Self::Metadata, "managedFields") => {
                    members.next_value::<IgnoredAny>()?;
                }
                _ => {
                    object.insert(key, members.next_value()?);
                }
            }
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(sent: &Value, expected: &Value) {
        let text = sent.to_string();
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        assert_eq!(without_managers(&mut deserializer).unwrap(), *expected);
    }

    #[test]
    fn managers_of_fields_are_left_out_and_nothing_else() {
        check(
            &json!({
                "metadata": {"name": "a", "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}], "labels": {"managedFields": "x"}},
                "spec": {"managedFields": [1, -2, 1.5, true, null, "text"], "metadata": {"managedFields": []}},
            }),
            &json!({
                "metadata": {"name": "a", "labels": {"managedFields": "x"}},
                "spec": {"managedFields": [1, -2, 1.5, true, null, "text"], "metadata": {"managedFields": []}},
            }),
        );
    }

    #[test]
    fn what_is_no_object_is_read_as_it_is() {
        for value in [
            json!(null),
            json!(true),
            json!(-1),
            json!(1),
            json!(0.5),
            json!("text"),
            json!([{"metadata": 1}]),
        ] {
            check(&value, &value);
            check(&json!({"metadata": value}), &json!({"metadata": value}));
        }
    }
}
