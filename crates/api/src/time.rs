//! A point in time as Kubernetes writes it: RFC 3339, whole seconds, UTC.
//!
//! Kubernetes stores any time up to the last second of the year 9999. The calendar here ends a day earlier, so such a
//! time is read as the last one that there is: what lies so far away is never reached either way.

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
        if let Some(time) = saturating(&text) {
            return Ok(Self(time));
        }
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

/// Reads a time of RFC 3339. One before or after the calendar is the first or the last of it; what is no time at all is
/// nothing.
///
/// ```
/// use jiff::Timestamp;
/// use kruise_api::time::saturating;
///
/// assert_eq!(saturating("9999-12-31T23:59:59Z"), Some(Timestamp::MAX));
/// assert_eq!(saturating("2026-01-01T00:00:00Z"), "2026-01-01T00:00:00Z".parse().ok());
/// assert_eq!(saturating("soon"), None);
/// ```
pub fn saturating(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (year, rest) = unsigned.split_once('-')?;
    let is_year = year.len() >= 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    // The same moment of a year that the calendar has: of all else that may be wrong nothing is forgiven. 2000 is a leap
    // year, as those are in which the 29th of February would matter.
    if !is_year || format!("2000-{rest}").parse::<Timestamp>().is_err() {
        return None;
    }
    // A year with more digits than a number has is far away in any case.
    let year = year.parse::<u64>().unwrap_or(u64::MAX);
    match (is_negative, year) {
        (false, 9999..) => Some(Timestamp::MAX),
        (true, 9999..) => Some(Timestamp::MIN),
        _ => None,
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

    #[test]
    fn times_beyond_the_calendar_saturate() {
        for (text, expected) in [
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z".parse().ok()),
            ("9999-12-31T23:59:59Z", Some(Timestamp::MAX)),
            ("9999-12-31T23:59:59-12:00", Some(Timestamp::MAX)),
            ("9999-12-31T00:00:00.123456789+00:00", Some(Timestamp::MAX)),
            ("10000-01-01T00:00:00Z", Some(Timestamp::MAX)),
            ("+292277026596-12-04T15:30:07Z", Some(Timestamp::MAX)),
            ("99999999999999999999999-01-01T00:00:00Z", Some(Timestamp::MAX)),
            ("-9999-01-01T00:00:00+14:00", Some(Timestamp::MIN)),
            ("-290307-01-01T00:00:00Z", Some(Timestamp::MIN)),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z".parse().ok()),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z".parse().ok()),
            ("9999-13-31T23:59:59Z", None),
            ("9999-12-31T25:59:59Z", None),
            ("9999-12-31", None),
            ("10000-01-01", None),
            ("99-01-01T00:00:00Z", None),
            ("", None),
            ("-", None),
            ("never", None),
        ] {
            assert_eq!(saturating(text), expected, "{text}");
        }
    }
}
