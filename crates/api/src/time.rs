//! A point in time as Kubernetes writes it: RFC 3339, whole seconds, UTC.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A point in time. Reads any RFC 3339 text, writes whole seconds with `Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.strftime("%Y-%m-%dT%H:%M:%SZ"))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse()
            .map(Self)
            .map_err(|error| de::Error::custom(format!("{text:?} is no RFC 3339 time: {error}")))
    }
}

impl JsonSchema for Time {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_any_offset_and_written_in_whole_seconds() {
        let time: Time = serde_json::from_str("\"2026-11-15T20:00:00.75+01:00\"").unwrap();
        assert_eq!(serde_json::to_string(&time).unwrap(), "\"2026-11-15T19:00:00Z\"");
    }

    #[test]
    fn a_text_that_is_no_time_is_named_in_the_error() {
        let error = serde_json::from_str::<Time>("\"yesterday\"").unwrap_err();
        assert!(error.to_string().contains("\"yesterday\" is no RFC 3339 time"), "{error}");
    }
}
