//! Values that JSON and the wire hold differently: times, and the types that stand for two.

use jiff::Timestamp;
use serde_json::Value;

use super::wire::{Forward, Payload};
use crate::clock::{micros_text, seconds_text};

const SECONDS: u32 = 1;
const NANOS: u32 = 2;
/// Midnight before the first of January of the year one, in seconds: what Go calls no time.
const NO_TIME: i64 = -62_135_596_800;

/// Seconds and nanoseconds of a time; `None` when it is none.
pub(super) fn time(text: &str) -> Option<(i64, i32)> {
    let time: Timestamp = text.parse().ok()?;
    Some((time.as_second(), time.subsec_nanosecond()))
}

/// The seconds that stand for no time.
pub(super) fn is_no_time(seconds: i64, nanos: i32) -> bool {
    seconds == NO_TIME && nanos == 0
}

/// A time of whole seconds, as JSON.
pub(super) fn read_time(bytes: &[u8]) -> Result<Value, String> {
    let (seconds, _) = timestamp(bytes)?;
    moment(bytes, seconds, 0).map(|time| time.map_or(Value::Null, |time| seconds_text(time).into()))
}

/// A time of whole microseconds, as JSON.
pub(super) fn read_micro_time(bytes: &[u8]) -> Result<Value, String> {
    let (seconds, nanos) = timestamp(bytes)?;
    let micros = nanos / 1000 * 1000;
    moment(bytes, seconds, micros).map(|time| time.map_or(Value::Null, |time| micros_text(time).into()))
}

fn timestamp(bytes: &[u8]) -> Result<(i64, i32), String> {
    let (mut seconds, mut nanos) = (0_i64, 0_i32);
    let mut rest = Forward::new(bytes);
    while !rest.is_empty() {
        let Some(part) = rest.part("Timestamp")? else { continue };
        match (part.number, part.payload) {
            (SECONDS, Payload::Varint(number)) => seconds = number.cast_signed(),
            #[expect(clippy::cast_possible_truncation, reason = "numbers of 32 bit are cut, as elsewhere")]
            (NANOS, Payload::Varint(number)) => nanos = number as i32,
            (SECONDS | NANOS, _) => return Err("proto: wrong wireType for field Timestamp".to_owned()),
            _ => {}
        }
    }
    Ok((seconds, nanos))
}

fn moment(bytes: &[u8], seconds: i64, nanos: i32) -> Result<Option<Timestamp>, String> {
    if bytes.is_empty() || is_no_time(seconds, nanos) {
        return Ok(None);
    }
    let time = Timestamp::new(seconds, nanos);
    time.map(Some).map_err(|_| format!("the time of {seconds} seconds is not in the calendar"))
}
