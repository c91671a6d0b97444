//! Which ordinals the pods of a StatefulSet have: the first ones from a start that are not reserved.
//!
//! Reserved ordinals are kept as intervals, so that `"0-2000000000"` costs as much as a single number.

use kruise_api::int_or_percent::IntOrString;

/// The largest ordinal that a pod's name can hold.
pub const LARGEST: i64 = i32::MAX as i64;

/// The ordinals of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordinals {
    start: i64,
    /// Closed intervals, sorted, none touching another.
    reserved: Vec<(i64, i64)>,
    /// The last ordinal, if there is any.
    last: Option<i64>,
}

/// Why an entry of `reserveOrdinals` is none. Each text is the end of the message that users know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A number below zero.
    #[error("is negative: {0}")]
    Negative(i64),
    /// A number that no pod can have.
    #[error("is larger than {LARGEST}: {0}")]
    TooLarge(String),
    /// Not two numbers with a hyphen between them.
    #[error("is not a valid range: {0}")]
    NotARange(String),
    /// A range that ends before it begins, or whose numbers do not parse.
    #[error("is invalid: {text}, err = {problem}")]
    Invalid {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads an entry of `reserveOrdinals`: a number, or a closed range such as `"3-5"`.
pub fn reserved(entry: &IntOrString) -> Result<(i64, i64), Error> {
    let text = match entry {
        IntOrString::Int(number) if *number < 0 => return Err(Error::Negative(*number)),
        IntOrString::Int(number) if *number > LARGEST => return Err(Error::TooLarge(number.to_string())),
        IntOrString::Int(number) => return Ok((*number, *number)),
        IntOrString::String(text) => text,
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((first, last)) =
        text.split_once('-').filter(|(first, last)| is_number(first) && is_number(last))
    else {
        return Err(Error::NotARange(text.clone()));
    };
    let number = |part: &str| {
        part.parse::<i64>().map_err(|_| Error::Invalid {
            text: text.clone(),
            problem: format!("strconv.Atoi: parsing {part:?}: value out of range"),
        })
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(Error::Invalid { text: text.clone(), problem: format!("invalid range {text}") });
    }
    if last > LARGEST {
        return Err(Error::TooLarge(text.clone()));
    }
    Ok((first, last))
}

impl Ordinals {
    /// The first `replicas` ordinals from `start` that are in none of the closed intervals.
    pub fn new(start: i64, mut intervals: Vec<(i64, i64)>, replicas: i64) -> Self {
        intervals.sort_unstable();
        let mut reserved: Vec<(i64, i64)> = Vec::new();
        for (first, last) in intervals.into_iter().filter(|(_, last)| *last >= start) {
            match reserved.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => reserved.push((first, last)),
            }
        }
        let mut ordinals = Self { start, reserved, last: None };
        ordinals.last = ordinals.last_of(replicas);
        ordinals
    }

    /// The ordinal of the last of so many pods.
    fn last_of(&self, replicas: i64) -> Option<i64> {
        if replicas <= 0 {
            return None;
        }
        let mut last = self.start.saturating_add(replicas - 1);
        for (first, end) in &self.reserved {
            if *first > last {
                break;
            }
            last = last.saturating_add(end - (*first).max(self.start) + 1);
        }
        Some(last.min(LARGEST)).filter(|last| *last >= self.start)
    }

    fn reservation(&self, ordinal: i64) -> Option<(i64, i64)> {
        let place = self.reserved.partition_point(|(_, last)| *last < ordinal);
        self.reserved.get(place).copied().filter(|(first, _)| *first <= ordinal)
    }

    /// Whether a pod of the set has this ordinal.
    pub fn contains(&self, ordinal: i64) -> bool {
        self.last.is_some_and(|last| (self.start..=last).contains(&ordinal))
            && self.reservation(ordinal).is_none()
    }

    /// All of them, from the lowest to the highest.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        let mut next = self.last.map(|_| self.start);
        std::iter::from_fn(move || {
            let mut ordinal = next?;
            if let Some((_, end)) = self.reservation(ordinal) {
                ordinal = end.saturating_add(1);
            }
            next = ordinal.checked_add(1);
            Some(ordinal).filter(|ordinal| self.last.is_some_and(|last| *ordinal <= last))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(text: &str) -> IntOrString {
        text.parse().map_or_else(|_| IntOrString::from(text), IntOrString::Int)
    }

    /// Reserved ordinals are separated by spaces.
    #[track_caller]
    fn check(replicas: i64, start: i64, reserve: &str, expected: &[i64]) {
        let intervals = reserve.split_whitespace().map(|text| reserved(&entry(text)).unwrap()).collect();
        let ordinals = Ordinals::new(start, intervals, replicas);
        assert_eq!(ordinals.iter().collect::<Vec<_>>(), expected);
        let last = expected.last().copied().unwrap_or(start);
        let contained: Vec<i64> =
            (0..=last.saturating_add(3).min(1000)).filter(|n| ordinals.contains(*n)).collect();
        assert_eq!(contained, expected);
    }

    /// STATEFULSET-10 and STATEFULSET-11, and the table of the specification, most of it seen on the running original.
    #[test]
    fn pods_take_the_first_ordinals_that_are_not_reserved() {
        check(4, 0, "1", &[0, 2, 3, 4]);
        check(4, 0, "1 3", &[0, 2, 4, 5]);
        check(3, 0, "1 3", &[0, 2, 4]);
        check(4, 0, "2-5 7", &[0, 1, 6, 8]);
        check(3, 2, "", &[2, 3, 4]);
        check(3, 2, "0 4", &[2, 3, 5]);
        check(3, 2, "0 2 3 4 5", &[6, 7, 8]);
        check(4, 2, "1 3", &[2, 4, 5, 6]);
        check(2, 5, "5-6", &[7, 8]);
        check(3, 0, "0 2-5", &[1, 6, 7]);
        check(3, 0, "0003-004 1 1 99", &[0, 2, 5]);
        check(0, 0, "1", &[]);
        check(3, 3, "0-4", &[5, 6, 7]);
        check(2, 0, "", &[0, 1]);
    }

    #[test]
    fn a_huge_range_costs_as_much_as_a_number_and_no_ordinal_is_larger_than_a_name_can_hold() {
        let ordinals = Ordinals::new(0, vec![(0, 2_000_000_000)], 2);
        assert_eq!(ordinals.iter().collect::<Vec<_>>(), [2_000_000_001, 2_000_000_002]);
        let ordinals = Ordinals::new(0, vec![(0, LARGEST)], 2);
        assert_eq!(ordinals.iter().count(), 0);
        let ordinals = Ordinals::new(LARGEST, vec![], 5);
        assert_eq!(ordinals.iter().collect::<Vec<_>>(), [LARGEST]);
    }

    /// STATEFULSET-11: what is no entry, in the words of the original.
    #[test]
    fn entries_that_are_no_ordinals_are_refused() {
        for (text, expected) in [
            ("-1", "is negative: -1"),
            ("12x", "is not a valid range: 12x"),
            ("a-b", "is not a valid range: a-b"),
            ("3-", "is not a valid range: 3-"),
            ("1-2-3", "is not a valid range: 1-2-3"),
            ("5-2", "is invalid: 5-2, err = invalid range 5-2"),
            (
                "99999999999999999999-1",
                "is invalid: 99999999999999999999-1, err = strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            ("1-2147483648", "is larger than 2147483647: 1-2147483648"),
            ("2147483648", "is larger than 2147483647: 2147483648"),
        ] {
            assert_eq!(reserved(&entry(text)).unwrap_err().to_string(), expected);
        }
        let quoted = IntOrString::String("12".to_owned());
        assert_eq!(reserved(&quoted).unwrap_err().to_string(), "is not a valid range: 12");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn intervals_mean_what_their_numbers_mean(
            start in 0..8_i64,
            replicas in 0..12_i64,
            intervals in prop::collection::vec((0..20_i64, 0..6_i64), 0..5),
        ) {
            let intervals: Vec<(i64, i64)> =
                intervals.into_iter().map(|(first, length)| (first, first + length)).collect();
            let is_reserved = |n: &i64| intervals.iter().any(|(first, last)| (first..=last).contains(&n));
            let expected: Vec<i64> = (start..)
                .filter(|n| !is_reserved(n))
                .take(usize::try_from(replicas).unwrap())
                .collect();
            let ordinals = Ordinals::new(start, intervals.clone(), replicas);
            prop_assert_eq!(ordinals.iter().collect::<Vec<_>>(), expected.clone());
            for ordinal in 0..60 {
                prop_assert_eq!(ordinals.contains(ordinal), expected.contains(&ordinal));
            }
        }
    }
}
