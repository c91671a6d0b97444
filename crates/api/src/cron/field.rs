//! One field of a schedule: a set of small numbers, and whether everything was asked for.

use super::Error;

/// The numbers that a field may have, and names for them.
pub(super) struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

pub(super) const MINUTE: Bounds = Bounds { least: 0, most: 59, names: &[] };
pub(super) const HOUR: Bounds = Bounds { least: 0, most: 23, names: &[] };
pub(super) const DAY: Bounds = Bounds { least: 1, most: 31, names: &[] };
pub(super) const MONTH: Bounds = Bounds { least: 1, most: 12, names: &MONTHS };
pub(super) const WEEKDAY: Bounds = Bounds { least: 0, most: 6, names: &DAYS };

/// A set of numbers below 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    numbers: u64,
    /// Whether it was a star, which leaves the choice of days to the other field.
    pub(super) star: bool,
}

impl Field {
    /// Reads a list of ranges, separated by commas.
    pub(super) fn parse(text: &str, bounds: &Bounds) -> Result<Self, Error> {
        let mut field = Self { numbers: 0, star: false };
        for range in text.split(',').filter(|range| !range.is_empty()) {
            let (numbers, star) = parse_range(range, bounds)?;
            field.numbers |= numbers;
            field.star |= star;
        }
        Ok(field)
    }

    pub(super) fn has(self, number: i8) -> bool {
        u32::try_from(number)
            .ok()
            .and_then(|number| self.numbers.checked_shr(number))
            .is_some_and(|bits| bits & 1 == 1)
    }

    pub(super) fn is_empty(self) -> bool {
        self.numbers == 0
    }
}

/// `5`, `1-5`, `*`, `1-30/5`, `*/10` or `5/10`; the numbers, and whether it was a star.
fn parse_range(text: &str, bounds: &Bounds) -> Result<(u64, bool), Error> {
    let (range, step) = match text.split_once('/') {
        None => (text, None),
        Some((_, step)) if step.contains('/') => return Err(Error::Slashes(text.to_owned())),
        Some((range, step)) => (range, Some(step)),
    };
    let star = matches!(range, "*" | "?") || range.starts_with("*-") || range.starts_with("?-");
    let (first, last) = if star {
        (bounds.least, bounds.most)
    } else {
        match range.split_once('-') {
            None => {
                let only = number_or_name(range, bounds)?;
                // A step from one number on goes up to the end.
                (only, if step.is_some() { bounds.most } else { only })
            }
            Some((_, last)) if last.contains('-') => return Err(Error::Hyphens(text.to_owned())),
            Some((first, last)) => (number_or_name(first, bounds)?, number_or_name(last, bounds)?),
        }
    };
    let step = step.map_or(Ok(1), number)?;
    if first < bounds.least {
        return Err(Error::Low(first, bounds.least, text.to_owned()));
    }
    if last > bounds.most {
        return Err(Error::High(last, bounds.most, text.to_owned()));
    }
    if first > last {
        return Err(Error::Backwards(first, last, text.to_owned()));
    }
    let Some(step) = usize::try_from(step).ok().filter(|step| *step > 0) else {
        return Err(Error::Step(text.to_owned()));
    };
    let numbers = (first..=last).step_by(step).fold(0, |bits, number| bits | 1 << number);
    Ok((numbers, star && step == 1))
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, Error> {
    let named = bounds.names.iter().position(|name| name.eq_ignore_ascii_case(text));
    match named.and_then(|at| u64::try_from(at).ok()) {
        Some(at) => Ok(bounds.least + at),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, Error> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::Number(text.to_owned(), "invalid syntax"));
    }
    let number: i64 = text.parse().map_err(|_| Error::Number(text.to_owned(), "value out of range"))?;
    u64::try_from(number).map_err(|_| Error::Negative(number))
}
