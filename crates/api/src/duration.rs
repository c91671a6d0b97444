//! Durations as flags write them, in the syntax of Go: `15s`, `2m`, `1h30m`, `1.5h`, `5ms`.

use std::{fmt, str::FromStr, time::Duration};

/// A duration that is read and written in the syntax of Go. Never negative.
///
/// ```
/// use std::time::Duration;
/// use kruise_api::duration::GoDuration;
///
/// let wait: GoDuration = "1h30m".parse()?;
/// assert_eq!(wait.0, Duration::from_secs(5400));
/// assert_eq!(wait.to_string(), "1h30m0s");
/// # Ok::<(), kruise_api::duration::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(pub Duration);

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {text:?}: {problem}; write it like 15s, 2m, 1h30m or 5ms")]
pub struct Error {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is nothing.
    Empty,
    /// It is below zero.
    Negative,
    /// A number is missing before a unit.
    NoNumber,
    /// A number has no unit.
    NoUnit,
    /// A unit that does not exist.
    Unit(String),
    /// Longer than Go can count, which is about 292 years.
    TooLong,
}

/// The units with their lengths in nanoseconds. The letter for a millionth exists twice in Unicode.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The longest duration of Go, in nanoseconds.
const LONGEST: u128 = i64::MAX as u128;

impl FromStr for GoDuration {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        nanoseconds(text)
            .map(|nanoseconds| Self(Duration::from_nanos(nanoseconds)))
            .map_err(|problem| Error { text: text.to_owned(), problem })
    }
}

fn nanoseconds(text: &str) -> Result<u64, Problem> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.is_empty() {
        return Err(Problem::Empty);
    }
    // Zero is the one number that needs no unit.
    if unsigned == "0" {
        return Ok(0);
    }
    let mut total: u128 = 0;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(Problem::NoNumber);
        }
        let end = after.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(end).unwrap_or((after, ""));
        total = total.saturating_add(length(whole, fraction, unit)?);
        if total > LONGEST {
            return Err(Problem::TooLong);
        }
        rest = after;
    }
    if text.starts_with('-') && total > 0 {
        return Err(Problem::Negative);
    }
    u64::try_from(total).map_err(|_| Problem::TooLong)
}

/// The digits at the start, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// One number with its unit, in nanoseconds. Parts of a nanosecond are dropped.
fn length(whole: &str, fraction: &str, unit: &str) -> Result<u128, Problem> {
    let unit = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, nanoseconds)) => u128::from(*nanoseconds),
        None if unit.is_empty() => return Err(Problem::NoUnit),
        None => return Err(Problem::Unit(unit.to_owned())),
    };
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| Problem::TooLong)? };
    // Digits further right are less than a nanosecond even of an hour.
    let fraction = fraction.get(..fraction.len().min(18)).unwrap_or_default();
    let scale = fraction.bytes().fold(1_u128, |scale, _| scale * 10);
    let fraction =
        fraction.bytes().fold(0_u128, |sum, digit| sum * 10 + u128::from(digit.saturating_sub(b'0')));
    Ok(u128::from(whole) * unit + fraction * unit / scale)
}

impl fmt::Display for GoDuration {
    /// As Go writes it: `0s`, `5ms`, `1.5s`, `15s`, `2m0s`, `1h30m0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        if nanoseconds == 0 {
            return f.write_str("0s");
        }
        for (unit, length) in [("ns", 1), ("\u{b5}s", 1_000), ("ms", 1_000_000)] {
            if nanoseconds < length * 1000 {
                return decimal(f, nanoseconds, length, unit);
            }
        }
        let minutes = self.0.as_secs() / 60;
        let (hours, minutes) = (minutes / 60, minutes % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        decimal(f, nanoseconds % 60_000_000_000, 1_000_000_000, "s")
    }
}

/// Writes `amount / unit` without zeros at the end.
fn decimal(f: &mut fmt::Formatter<'_>, amount: u128, unit: u128, name: &str) -> fmt::Result {
    write!(f, "{}", amount / unit)?;
    let rest = amount % unit;
    if rest > 0 {
        let width = unit.checked_ilog10().unwrap_or_default() as usize;
        let digits = format!("{rest:0width$}");
        write!(f, ".{}", digits.trim_end_matches('0'))?;
    }
    f.write_str(name)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Negative => f.write_str("it must not be negative"),
            Self::NoNumber => f.write_str("a number is missing"),
            Self::NoUnit => f.write_str("a unit is missing (ns, us, ms, s, m or h)"),
            Self::Unit(unit) => write!(f, "there is no unit {unit:?} (ns, us, ms, s, m or h)"),
            Self::TooLong => f.write_str("it is longer than 292 years"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Duration, written: &str) {
        let read: GoDuration = text.parse().unwrap();
        assert_eq!(read.0, expected, "{text:?}");
        assert_eq!(read.to_string(), written, "{text:?}");
    }

    #[track_caller]
    fn refused(text: &str, problem: &str) {
        let error = text.parse::<GoDuration>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("invalid duration {text:?}: {problem}; write it like 15s, 2m, 1h30m or 5ms")
        );
    }

    #[test]
    fn durations_are_read_and_written_as_go_does_it() {
        check("15s", Duration::from_secs(15), "15s");
        check("2m", Duration::from_secs(120), "2m0s");
        check("1h30m", Duration::from_secs(5400), "1h30m0s");
        check("5ms", Duration::from_millis(5), "5ms");
        check("1000s", Duration::from_secs(1000), "16m40s");
        check("1.5h", Duration::from_secs(5400), "1h30m0s");
        check(".5s", Duration::from_millis(500), "500ms");
        check("1.s", Duration::from_secs(1), "1s");
        check("+3s", Duration::from_secs(3), "3s");
        check("1500ms", Duration::from_millis(1500), "1.5s");
        check("1h2m3.004s", Duration::from_millis(3_723_004), "1h2m3.004s");
        check("10us", Duration::from_micros(10), "10\u{b5}s");
        check("10\u{3bc}s", Duration::from_micros(10), "10\u{b5}s");
        check("1100ns", Duration::from_nanos(1100), "1.1\u{b5}s");
        check("7ns", Duration::from_nanos(7), "7ns");
        check("0", Duration::ZERO, "0s");
        check("-0s", Duration::ZERO, "0s");
        check("2562047h47m16.854775807s", Duration::from_nanos(i64::MAX as u64), "2562047h47m16.854775807s");
    }

    #[test]
    fn a_text_that_is_no_duration_is_refused_with_the_reason() {
        refused("", "it is empty");
        refused("-", "it is empty");
        refused("-5s", "it must not be negative");
        refused("s", "a number is missing");
        refused(".s", "a number is missing");
        refused("15", "a unit is missing (ns, us, ms, s, m or h)");
        refused("1h30", "a unit is missing (ns, us, ms, s, m or h)");
        refused("3d", "there is no unit \"d\" (ns, us, ms, s, m or h)");
        refused("5 s", "there is no unit \" s\" (ns, us, ms, s, m or h)");
        refused("2562047h47m16.854775808s", "it is longer than 292 years");
        refused("99999999999999999999999s", "it is longer than 292 years");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(nanoseconds in 0..=i64::MAX as u64) {
            let duration = GoDuration(Duration::from_nanos(nanoseconds));
            prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
        }

        #[test]
        fn short_durations_are_read_back_too(nanoseconds in 0..200_000_000_000_u64) {
            let duration = GoDuration(Duration::from_nanos(nanoseconds));
            prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", near in "[-+]?([0-9]{0,25}\\.?[0-9]{0,25}(ns|us|ms|s|m|h|x)?){0,3}") {
            let _ = text.parse::<GoDuration>();
            let _ = near.parse::<GoDuration>();
        }
    }
}
