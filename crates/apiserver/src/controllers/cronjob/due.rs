//! Which time of a schedule is due, and how many were missed before it.

use jiff::{SignedDuration, Timestamp};
use kruise_api::cron::Schedule;

/// More times than this were missed: somebody should look.
const MANY: i64 = 100;

/// How many times passed without a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    None,
    Few,
    Many,
}

/// What a look at the clock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Since when times count.
    pub(super) earliest: Timestamp,
    /// The latest time that has come.
    pub(super) recent: Option<Timestamp>,
    pub(super) missed: Missed,
}

/// A schedule that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// For example on 31 February only.
    #[error("time difference between two schedules is less than 1 second")]
    Never,
}

/// Looks from `earliest`, or from the deadline where that is later, up to now.
pub(super) fn due(
    schedule: &Schedule,
    earliest: Timestamp,
    deadline_seconds: Option<i64>,
    now: Timestamp,
) -> Result<Due, Error> {
    let deadline =
        deadline_seconds.and_then(|seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok());
    let earliest = deadline.map_or(earliest, |deadline| deadline.max(earliest));
    let none = Due { earliest, recent: None, missed: Missed::None };
    let first = schedule.next(earliest).ok_or(Error::Never)?;
    if now < first {
        return Ok(none);
    }
    let Some(second) = schedule.next(first).filter(|second| *second <= now) else {
        return Ok(Due { recent: Some(first), ..none });
    };
    let period = second.as_second() - first.as_second();
    if period < 1 {
        return Err(Error::Never);
    }
    // The number is a guess from the first two times; the search for the last one starts shortly before it.
    let passed = (now.as_second() - first.as_second()) / period + 1;
    let from =
        first.checked_add(SignedDuration::from_secs((passed - 2).saturating_mul(period))).unwrap_or(first);
    let mut recent = None;
    let mut at = schedule.next(from);
    while let Some(time) = at.filter(|time| *time <= now) {
        recent = Some(time);
        at = schedule.next(time);
    }
    let missed = if passed > MANY { Missed::Many } else { Missed::Few };
    Ok(Due { earliest, recent, missed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schedule: &str, earliest: &str, deadline: Option<i64>, now: &str, expected: (&str, Missed)) {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let due = due(&Schedule::parse(schedule).unwrap(), at(earliest), deadline, at(now)).unwrap();
        let recent = due.recent.map(|time| time.to_string()).unwrap_or_default();
        assert_eq!((recent.as_str(), due.missed), expected);
    }

    #[test]
    fn the_latest_time_that_came_is_due() {
        let hourly = "0 * * * *";
        check(hourly, "2026-01-01T10:30:00Z", None, "2026-01-01T10:59:59Z", ("", Missed::None));
        check(
            hourly,
            "2026-01-01T10:30:00Z",
            None,
            "2026-01-01T11:00:00Z",
            ("2026-01-01T11:00:00Z", Missed::None),
        );
        check(
            hourly,
            "2026-01-01T10:30:00Z",
            None,
            "2026-01-01T13:30:00Z",
            ("2026-01-01T13:00:00Z", Missed::Few),
        );
        check(
            hourly,
            "2026-01-01T10:30:00Z",
            None,
            "2026-02-01T13:30:00Z",
            ("2026-02-01T13:00:00Z", Missed::Many),
        );
        check(
            "30 6-16/4 * * 1-5",
            "2026-01-02T06:00:00Z",
            None,
            "2026-01-05T08:00:00Z",
            ("2026-01-05T06:30:00Z", Missed::Few),
        );
        check(
            "@every 7m",
            "2026-01-01T00:00:00Z",
            None,
            "2026-01-01T00:30:00Z",
            ("2026-01-01T00:28:00Z", Missed::Few),
        );
    }

    #[test]
    fn a_deadline_hides_what_is_too_old() {
        let hourly = "0 * * * *";
        check(hourly, "2026-01-01T10:30:00Z", Some(60), "2026-01-01T13:30:00Z", ("", Missed::None));
        check(
            hourly,
            "2026-01-01T10:30:00Z",
            Some(3600),
            "2026-01-01T13:30:00Z",
            ("2026-01-01T13:00:00Z", Missed::None),
        );
    }

    #[test]
    fn a_time_that_never_comes_is_an_error() {
        let never = Schedule::parse("59 23 31 2 *").unwrap();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(due(&never, now, None, now), Err(Error::Never));
    }
}
