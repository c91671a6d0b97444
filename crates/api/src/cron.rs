//! Schedules as cron writes them: five fields, or a word such as `@hourly`, or `@every 90s`.
//!
//! A pure function from a time to the next one. The rules are those of CronJobs: names of months and days, ranges and
//! steps; a day is right when either its number or its weekday is asked for and right, or both where one of them is a star.
//! Where clocks are set forward, times that do not exist are left out; where they are set back, a time that comes twice
//! counts twice.

mod field;
mod next;

use jiff::{Timestamp, tz::TimeZone};

use crate::duration::{self, GoDuration, Problem};
use field::{DAY, Field, HOUR, MINUTE, MONTH, WEEKDAY};

/// When something is due.
///
/// ```
/// use kruise_api::cron::Schedule;
///
/// let schedule = Schedule::parse("*/15 9-17 * * mon-fri").unwrap();
/// let friday_evening = "2026-01-02T17:50:00Z".parse().unwrap();
/// let monday_morning = "2026-01-05T09:00:00Z".parse().unwrap();
/// assert_eq!(schedule.next(friday_evening), Some(monday_morning));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    rule: Rule,
    zone: TimeZone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// So many seconds after the last time.
    Every(i64),
    /// When the clock on the wall shows this.
    Clock(Clock),
}

/// The five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

/// Why a text is no schedule. The texts are those of Kubernetes, for users know them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing is there.
    #[error("empty spec string")]
    Empty,
    /// Too few or too many fields.
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    Count(Vec<String>),
    /// A word that begins with `@` and is none of ours.
    #[error("unrecognized descriptor: {0}")]
    Word(String),
    /// `@every` with something that is no duration.
    #[error("failed to parse duration {0}: {1}")]
    Every(String, String),
    /// A time zone that nobody knows.
    #[error("provided bad location {0}: unknown time zone {0}")]
    Zone(String),
    /// A time zone and nothing behind it.
    #[error("time zone without a schedule: {0}")]
    OnlyZone(String),
    /// More than one hyphen in a range.
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// More than one step.
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// Neither a number nor a name.
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {0:?}: {1}")]
    Number(String, &'static str),
    /// A number below zero.
    #[error("negative number ({0}) not allowed: {0}")]
    Negative(i64),
    /// A range that begins too low.
    #[error("beginning of range ({0}) below minimum ({1}): {2}")]
    Low(u64, u64, String),
    /// A range that ends too high.
    #[error("end of range ({0}) above maximum ({1}): {2}")]
    High(u64, u64, String),
    /// A range that ends before it begins.
    #[error("beginning of range ({0}) beyond end of range ({1}): {2}")]
    Backwards(u64, u64, String),
    /// A step of nothing.
    #[error("step of range should be a positive number: {0}")]
    Step(String),
}

impl Schedule {
    /// Reads a schedule. Without a time zone of its own it is in UTC.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Empty);
        }
        let named = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (zone, text) = match named {
            None => (TimeZone::UTC, text),
            Some(rest) => {
                let (name, text) = rest.split_once(' ').ok_or_else(|| Error::OnlyZone(text.to_owned()))?;
                (time_zone(name).ok_or_else(|| Error::Zone(name.to_owned()))?, text.trim())
            }
        };
        let rule = if text.starts_with('@') { word(text)? } else { Rule::Clock(clock(text)?) };
        Ok(Self { rule, zone })
    }

    /// The same schedule by the clocks of a time zone.
    #[must_use]
    pub fn in_zone(self, zone: TimeZone) -> Self {
        Self { zone, ..self }
    }

    /// The latest time that is after `start` and not after `now`. Times at an interval count from `start`.
    ///
    /// However long ago the start is, this takes a bounded time: it goes back from `now`.
    pub fn latest(&self, start: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(seconds) => {
                let passed = rounds(start, now, *seconds);
                (passed > 0).then(|| at_round(start, passed, *seconds)).flatten()
            }
            Rule::Clock(clock) => clock.latest(start, now, &self.zone),
        }
    }

    /// The first time after `start` and `now`, or nothing where none comes within five years. Times at an interval count from
    /// `start`.
    pub fn upcoming(&self, start: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(seconds) => at_round(start, rounds(start, now, *seconds).checked_add(1)?, *seconds),
            Rule::Clock(clock) => clock.next(now.max(start), &self.zone),
        }
    }

    /// The first time after this one, or nothing where none comes within five years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Every(seconds) => Timestamp::from_second(after.as_second().checked_add(*seconds)?).ok(),
            Rule::Clock(clock) => clock.next(after, &self.zone),
        }
    }
}

/// How many intervals have passed between two times.
fn rounds(start: Timestamp, now: Timestamp, seconds: i64) -> i64 {
    now.as_second().saturating_sub(start.as_second()).max(0).checked_div(seconds).unwrap_or(0)
}

/// The end of an interval.
fn at_round(start: Timestamp, round: i64, seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(start.as_second().checked_add(round.checked_mul(seconds)?)?).ok()
}

/// A time zone by its IANA name; the empty name and `UTC` are UTC.
pub fn time_zone(name: &str) -> Option<TimeZone> {
    if matches!(name, "" | "UTC") {
        return Some(TimeZone::UTC);
    }
    TimeZone::get(name).ok()
}

/// Schedules that have a name.
fn word(text: &str) -> Result<Rule, Error> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let Some(length) = text.strip_prefix("@every ") else { return Err(Error::Word(text.to_owned())) };
            let seconds = match length.parse::<GoDuration>() {
                Ok(length) => i64::try_from(length.0.as_secs()).unwrap_or(i64::MAX),
                // Less than nothing is as often as it can be.
                Err(duration::Error { problem: Problem::Negative, .. }) => 0,
                Err(duration::Error { problem, .. }) => return Err(every(text, length, &problem)),
            };
            // Parts of a second do not count, and nothing comes more often than each second.
            return Ok(Rule::Every(seconds.max(1)));
        }
    };
    clock(fields).map(Rule::Clock)
}

/// Why the time after `@every` is none, as Go says it.
fn every(text: &str, length: &str, problem: &Problem) -> Error {
    let cause = match problem {
        Problem::NoUnit => format!("time: missing unit in duration {length:?}"),
        Problem::Unit(unit) => format!("time: unknown unit {unit:?} in duration {length:?}"),
        _ => format!("time: invalid duration {length:?}"),
    };
    Error::Every(text.to_owned(), cause)
}

fn clock(text: &str) -> Result<Clock, Error> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let &[minute, hour, day, month, weekday] = fields.as_slice() else {
        return Err(Error::Count(fields.into_iter().map(str::to_owned).collect()));
    };
    Ok(Clock {
        minute: Field::parse(minute, &MINUTE)?,
        hour: Field::parse(hour, &HOUR)?,
        day: Field::parse(day, &DAY)?,
        month: Field::parse(month, &MONTH)?,
        weekday: Field::parse(weekday, &WEEKDAY)?,
    })
}

#[cfg(test)]
mod tests;
