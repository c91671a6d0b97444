//! The search for the next time that a clock shows, and for the latest one.

use jiff::{Timestamp, ToSpan as _, Zoned, civil::Date, tz::TimeZone};

use super::Clock;

/// How many years the search goes on.
const YEARS: i16 = 5;

impl Clock {
    /// The first full minute after a time at which the clocks of a zone show what is asked for.
    pub(super) fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.asks_for_nothing() {
            return None;
        }
        let minute = after.as_second().div_euclid(60).checked_add(1)?;
        let mut now = Timestamp::from_second(minute.checked_mul(60)?).ok()?.to_zoned(zone.clone());
        let last_year = now.year().checked_add(YEARS)?;
        while now.year() <= last_year {
            now = if !self.month.has(now.month()) {
                let month = now.date().first_of_month().checked_add(1.month()).ok()?;
                later(begin_of(month, zone)?, &now)?
            } else if !self.is_day(now.date()) {
                later(begin_of(now.date().tomorrow().ok()?, zone)?, &now)?
            } else if !self.hour.has(now.hour()) {
                next_hour(&now)?
            } else if !self.minute.has(now.minute()) {
                now.checked_add(1.minute()).ok()?
            } else {
                return Some(now.timestamp());
            };
        }
        None
    }

    /// The last full minute that is after `start` and not after `now` at which the clocks of a zone show what is asked for.
    pub(super) fn latest(&self, start: Timestamp, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if self.asks_for_nothing() {
            return None;
        }
        let minute = Timestamp::from_second(now.as_second().div_euclid(60).checked_mul(60)?).ok()?;
        let mut now = minute.to_zoned(zone.clone());
        let first_year = now.year().checked_sub(YEARS)?;
        while now.timestamp() > start && now.year() >= first_year {
            now = if !self.month.has(now.month()) {
                minute_before(&begin_of(now.date().first_of_month(), zone)?)?
            } else if !self.is_day(now.date()) {
                minute_before(&begin_of(now.date(), zone)?)?
            } else if !self.hour.has(now.hour()) {
                end_of_hour_before(&now)?
            } else if !self.minute.has(now.minute()) {
                minute_before(&now)?
            } else {
                return Some(now.timestamp());
            };
        }
        None
    }

    fn asks_for_nothing(&self) -> bool {
        [self.minute, self.hour, self.day, self.month, self.weekday].iter().any(|field| field.is_empty())
    }

    /// Where both fields of days ask for something, one of them is enough.
    fn is_day(&self, date: Date) -> bool {
        let day = self.day.has(date.day());
        let weekday = self.weekday.has(date.weekday().to_sunday_zero_offset());
        if self.day.star || self.weekday.star { day && weekday } else { day || weekday }
    }
}

/// The first moment of a day; midnight, unless clocks are set forward then.
fn begin_of(date: Date, zone: &TimeZone) -> Option<Zoned> {
    date.to_zoned(zone.clone()).ok()?.start_of_day().ok()
}

/// A time that is later than `now`. A midnight that comes twice, because clocks go back past it, may already have been.
fn later(time: Zoned, now: &Zoned) -> Option<Zoned> {
    if time > *now { Some(time) } else { now.checked_add(1.minute()).ok() }
}

/// The next full hour. Minute by minute where clocks are set in between.
fn next_hour(now: &Zoned) -> Option<Zoned> {
    let hour = now.checked_add((60 - i64::from(now.minute())).minutes()).ok()?;
    if hour.offset() == now.offset() { Some(hour) } else { now.checked_add(1.minute()).ok() }
}

fn minute_before(time: &Zoned) -> Option<Zoned> {
    time.checked_sub(1.minute()).ok()
}

/// The last minute before the full hour. Minute by minute where clocks are set in between.
fn end_of_hour_before(now: &Zoned) -> Option<Zoned> {
    let end = now.checked_sub((i64::from(now.minute()) + 1).minutes()).ok()?;
    if end.offset() == now.offset() { Some(end) } else { minute_before(now) }
}
