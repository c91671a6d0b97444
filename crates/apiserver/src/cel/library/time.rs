//! Times and durations.

use jiff::civil::Weekday;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

use super::super::eval::{Fault, Outcome};
use super::super::value::Value;

pub(super) fn call(name: &str, args: &[Value]) -> Option<Outcome> {
    let overflow = |kind: &str| Fault::error(format!("{kind} overflow"));
    match (name, args) {
        ("duration", [Value::Duration(_)]) | ("timestamp", [Value::Timestamp(_)]) => args.first().cloned().map(Ok),
        ("duration", [Value::Text(text)]) => Some(duration(text).map(Value::Duration).ok_or_else(|| {
            Fault::error(format!("time: invalid duration \"{text}\""))
        })),
        ("timestamp", [Value::Text(text)]) => Some(timestamp(text).map(Value::Timestamp).ok_or_else(|| {
            Fault::error(format!(
                "parsing time \"{text}\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"{text}\" as \"2006\""
            ))
        })),
        ("timestamp", [Value::Int(seconds)]) => {
            Some(Timestamp::from_second(*seconds).map(Value::Timestamp).map_err(|_| overflow("timestamp")))
        }
        ("_+_", [Value::Timestamp(at), Value::Duration(by)] | [Value::Duration(by), Value::Timestamp(at)]) => {
            Some(at.checked_add(*by).map(Value::Timestamp).map_err(|_| overflow("timestamp")))
        }
        ("_-_", [Value::Timestamp(at), Value::Duration(by)]) => {
            Some(at.checked_sub(*by).map(Value::Timestamp).map_err(|_| overflow("timestamp")))
        }
        ("_-_", [Value::Timestamp(at), Value::Timestamp(since)]) => {
            Some(Ok(Value::Duration(at.duration_since(*since))))
        }
        ("_+_", [Value::Duration(one), Value::Duration(other)]) => {
            Some(one.checked_add(*other).map(Value::Duration).ok_or_else(|| overflow("duration")))
        }
        ("_-_", [Value::Duration(one), Value::Duration(other)]) => {
            Some(one.checked_sub(*other).map(Value::Duration).ok_or_else(|| overflow("duration")))
        }
        (part, [Value::Duration(length)]) => {
            let number = match part {
                "getHours" => length.as_hours(),
                "getMinutes" => length.as_mins(),
                "getSeconds" => length.as_secs(),
                "getMilliseconds" => i64::try_from(length.as_millis()).unwrap_or(i64::MAX),
                _ => return None,
            };
            Some(Ok(Value::Int(number)))
        }
        (part, [Value::Timestamp(at)]) => of(part, &at.to_zoned(TimeZone::UTC)),
        (part, [Value::Timestamp(at), Value::Text(zone)]) => match time_zone(zone) {
            Some(zone) => of(part, &at.to_zoned(zone)),
            None => Some(Err(Fault::error(format!("unknown time zone {zone}")))),
        },
        _ => None,
    }
}

fn of(part: &str, at: &Zoned) -> Option<Outcome> {
    let number = match part {
        "getFullYear" => i64::from(at.year()),
        // Months, days of the year and days of the month count from 0; dates from 1.
        "getMonth" => i64::from(at.month()) - 1,
        "getDayOfYear" => i64::from(at.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(at.day()) - 1,
        "getDate" => i64::from(at.day()),
        "getDayOfWeek" => i64::from(at.weekday().since(Weekday::Sunday)),
        "getHours" => i64::from(at.hour()),
        "getMinutes" => i64::from(at.minute()),
        "getSeconds" => i64::from(at.second()),
        "getMilliseconds" => i64::from(at.millisecond()),
        _ => return None,
    };
    Some(Ok(Value::Int(number)))
}

/// `UTC`, or an offset such as `+02:00`. Names of places need a database that this server does not carry.
fn time_zone(text: &str) -> Option<TimeZone> {
    if matches!(text, "UTC" | "") {
        return Some(TimeZone::UTC);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok().map(Offset::to_time_zone)
}

/// A time as RFC 3339 has it.
pub(in crate::cel) fn timestamp(text: &str) -> Option<Timestamp> {
    let has_zone = text.ends_with(['Z', 'z']) || text.get(19..).is_some_and(|rest| rest.contains(['+', '-']));
    has_zone.then(|| text.parse().ok()).flatten()
}

pub(super) fn timestamp_text(at: Timestamp) -> String {
    let mut text = String::new();
    let _ = DateTimePrinter::new().print_timestamp(&at, &mut text);
    text
}

/// A duration as Go writes it: `1h30m`, `1.5s`, `-2ms`.
pub(in crate::cel) fn duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0_i128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        nanos = nanos.checked_add(whole.checked_mul(unit)?)?;
        if !fraction.is_empty() {
            let digits = fraction.get(..fraction.len().min(12))?;
            let scale = 10_i128.checked_pow(u32::try_from(digits.len()).ok()?)?;
            nanos = nanos.checked_add(digits.parse::<i128>().ok()?.checked_mul(unit)? / scale)?;
        }
        rest = behind;
    }
    let nanos = i64::try_from(if negative { -nanos } else { nanos }).ok()?;
    Some(SignedDuration::from_nanos(nanos))
}

/// Seconds, as protobuf's JSON has them.
pub(super) fn duration_text(length: SignedDuration) -> String {
    let sign = if length.is_negative() { "-" } else { "" };
    let nanos = length.as_nanos().unsigned_abs();
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}
