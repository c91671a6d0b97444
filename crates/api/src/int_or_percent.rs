//! Numbers that may be given as a share of the replicas: `3` or `"20%"`.
//!
//! [`IntOrString`] is the wire form and holds whatever was written. [`IntOrPercent`] is the same after parsing:
//! a rule works only with that. The arithmetic is exact (no floating point): `33.3%` of 9 is 3 when rounded up.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A whole number or a text, as a CRD field holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    /// A JSON number.
    Int(i64),
    /// A JSON string; percentages are written so.
    String(String),
}

/// A number of pods, or a share of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    /// Just this many.
    Int(i64),
    /// A share of the total.
    Percent(Percent),
}

/// A percentage with up to nine decimals, held exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent {
    /// In billionths of a percent.
    billionths: u64,
}

/// Which way a share that is no whole number of pods goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next larger whole number.
    Up,
    /// To the next smaller whole number.
    Down,
}

/// A text that is neither a number nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid value {value:?}: {problem}; allowed are a whole number such as 3 or a percentage such as \"20%\" or \"33.3%\""
)]
pub struct Error {
    /// What was written.
    pub value: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no `%` at the end. A number in quotes is refused too: it is a typing error more often than a number.
    NotAPercentage,
    /// What stands before the `%` is no decimal number of digits and one point.
    NotANumber,
    /// The share is below zero.
    Negative,
    /// More than nine digits before or after the point.
    TooManyDigits,
}

const SCALE: u64 = 1_000_000_000;
const DIGITS: usize = 9;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAPercentage => "invalid type: string is not a percentage",
            Self::NotANumber => "the part before % is not a number",
            Self::Negative => "a percentage must not be negative",
            Self::TooManyDigits => "a percentage has at most nine digits before and after the point",
        })
    }
}

impl IntOrString {
    /// The number or the percentage that was meant.
    pub fn parse(&self) -> Result<IntOrPercent, Error> {
        match self {
            Self::Int(number) => Ok(IntOrPercent::Int(*number)),
            Self::String(text) => text.parse().map(IntOrPercent::Percent),
        }
    }
}

impl IntOrPercent {
    /// The number of pods out of `total`. Numbers stand for themselves, also above the total and below zero.
    pub fn of(self, total: u32, rounding: Rounding) -> i64 {
        match self {
            Self::Int(number) => number,
            Self::Percent(percent) => i64::from(percent.of(total, rounding)),
        }
    }

    /// How many of `replicas` pods a partition keeps on the old revision.
    ///
    /// A share below 100 % always lets at least one pod through, so that a canary of `99%` shows something;
    /// with a single replica it keeps that one.
    pub fn kept_by_partition(self, replicas: u32) -> u32 {
        let kept = self.of(replicas, Rounding::Up).clamp(0, i64::from(replicas));
        let kept = u32::try_from(kept).unwrap_or(replicas);
        let below_all = matches!(self, Self::Percent(percent) if percent < Percent::HUNDRED);
        if below_all && replicas > 1 && kept == replicas { replicas - 1 } else { kept }
    }
}

impl Percent {
    /// All of it.
    pub const HUNDRED: Self = Self { billionths: 100 * SCALE };

    /// The share of `total`; saturates at the largest count.
    pub fn of(self, total: u32, rounding: Rounding) -> u32 {
        let product = u128::from(self.billionths) * u128::from(total);
        let whole = u128::from(Self::HUNDRED.billionths);
        let share = match rounding {
            Rounding::Up => product.div_ceil(whole),
            Rounding::Down => product / whole,
        };
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

impl std::str::FromStr for Percent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let error = |problem| Error { value: text.to_owned(), problem };
        let number = text.strip_suffix('%').ok_or_else(|| error(Problem::NotAPercentage))?;
        let (unsigned, negative) = match number.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (number, false),
        };
        let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            return Err(error(Problem::NotANumber));
        }
        if negative {
            return Err(error(Problem::Negative));
        }
        let whole = whole.trim_start_matches('0');
        let decimals = decimals.trim_end_matches('0');
        if whole.len() > DIGITS || decimals.len() > DIGITS {
            return Err(error(Problem::TooManyDigits));
        }
        let value = |part: &str| part.bytes().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        let billionths = value(whole) * SCALE + value(&format!("{decimals:0<DIGITS$}"));
        Ok(Self { billionths })
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:0DIGITS$}", self.billionths % SCALE);
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{}%", self.billionths / SCALE),
            decimals => write!(f, "{}.{decimals}%", self.billionths / SCALE),
        }
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}

impl From<i64> for IntOrString {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl JsonSchema for IntOrString {
    fn schema_name() -> Cow<'static, str> {
        "IntOrString".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> IntOrString {
        text.parse().map_or_else(|_| IntOrString::from(text), IntOrString::Int)
    }

    #[track_caller]
    fn kept(replicas: u32, partition: &str, expected: u32) {
        let kept = value(partition).parse().unwrap().kept_by_partition(replicas);
        assert_eq!(kept, expected, "replicas {replicas} partition {partition}");
    }

    #[track_caller]
    fn share(text: &str, total: u32, up: i64, down: i64) {
        let share = value(text).parse().unwrap();
        assert_eq!(
            (share.of(total, Rounding::Up), share.of(total, Rounding::Down)),
            (up, down),
            "{text} of {total}"
        );
    }

    /// Measured on the original for each pair; `100.0%` deviates on purpose: it is all, as its number says.
    #[test]
    fn a_partition_keeps_as_many_old_pods_as_the_original() {
        for (replicas, rows) in [
            (1, "100%=1 1=1 50%=1 0.5%=1 0%=0 0=0"),
            (2, "100%=2 99%=1 50%=1 1%=1 0=0"),
            (3, "100%=3 3=3 99%=2 67%=2 2=2 34%=2 33.3%=1 33%=1 1=1 1%=1 0=0"),
            (4, "99%=3"),
            (5, "100%=5 7=5 5=5 99.9%=4 81%=4 80%=4 3=3 41%=3 0.1%=1 0=0"),
            (10, "100%=10 100.0%=10 95%=9 90%=9 55%=6 50%=5 15%=2 10%=1 1%=1 0=0"),
            (100, "99.5%=99 150%=100"),
        ] {
            for row in rows.split(' ') {
                let (partition, expected) = row.split_once('=').unwrap();
                kept(replicas, partition, expected.parse().unwrap());
            }
        }
    }

    /// The rounding that `maxUnavailable` (up without surge, down with it) and `maxSurge` (up) rest on.
    #[test]
    fn shares_round_exactly() {
        share("33.3%", 9, 3, 2);
        share("20%", 9, 2, 1);
        share("1%", 9, 1, 0);
        share("34%", 9, 4, 3);
        share("2", 9, 2, 2);
        share("25%", 4, 1, 1);
        share("26%", 4, 2, 1);
        share("20%", 3, 1, 0);
        share("20%", 10, 2, 2);
        share("49%", 4, 2, 1);
        share("50%", 9, 5, 4);
        share("10%", 9, 1, 0);
        share("40%", 5, 2, 2);
        share("0%", 5, 0, 0);
        share("100%", 5, 5, 5);
        share("150%", 4, 6, 6);
        share("0.1%", 1000, 1, 1);
        share("0.000000001%", 1, 1, 0);
        share("-3", 5, -3, -3);
    }

    #[test]
    fn what_is_no_number_and_no_percentage_is_refused_with_a_reason() {
        for (text, reason) in [
            ("5", "invalid type: string is not a percentage"),
            ("", "invalid type: string is not a percentage"),
            ("abc", "invalid type: string is not a percentage"),
            ("abc%", "the part before % is not a number"),
            ("%", "the part before % is not a number"),
            ("1.%", "the part before % is not a number"),
            ("1.2.3%", "the part before % is not a number"),
            ("5 %", "the part before % is not a number"),
            ("-1%", "a percentage must not be negative"),
            ("1234567890%", "a percentage has at most nine digits before and after the point"),
            ("0.0123456789%", "a percentage has at most nine digits before and after the point"),
        ] {
            let error = IntOrString::String(text.into()).parse().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "invalid value {text:?}: {reason}; allowed are a whole number such as 3 or a percentage such as \"20%\" or \"33.3%\""
                )
            );
        }
    }

    proptest! {
        #[test]
        fn a_percentage_prints_as_it_reads(billionths in 0..=200 * SCALE) {
            let percent = Percent { billionths };
            prop_assert_eq!(percent.to_string().parse::<Percent>().unwrap(), percent);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = IntOrString::String(text).parse();
        }

        #[test]
        fn a_share_below_all_lets_a_pod_through(replicas in 2..100_u32, billionths in 99 * SCALE..100 * SCALE) {
            let share = IntOrPercent::Percent(Percent { billionths });
            prop_assert!(share.kept_by_partition(replicas) < replicas);
        }
    }
}
