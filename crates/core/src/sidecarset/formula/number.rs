//! Exact fractions.

use super::Error;

/// A fraction in its smallest form. The lower part is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    upper: i128,
    lower: i128,
}

impl Number {
    pub(super) const MINUS_ONE: Self = Self { upper: -1, lower: 1 };

    pub(super) fn new(upper: i128, lower: i128) -> Result<Self, Error> {
        if lower == 0 {
            return Err(Error::Zero);
        }
        let sign = if lower < 0 { -1 } else { 1 };
        let shared = divisor(upper, lower).max(1);
        let part = |value: i128| value.checked_mul(sign).map(|value| value / shared).ok_or(Error::Range);
        Ok(Self { upper: part(upper)?, lower: part(lower)? })
    }

    /// Digits before and after the point, times a power of ten.
    pub(super) fn decimal(whole: &str, fraction: &str, exponent: i32) -> Option<Self> {
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let power = 10_i128.checked_pow(shift.unsigned_abs())?;
        if shift < 0 { Self::new(digits, power).ok() } else { Self::new(digits.checked_mul(power)?, 1).ok() }
    }

    pub(super) fn plus(&self, other: &Self) -> Result<Self, Error> {
        let left = self.upper.checked_mul(other.lower);
        let right = other.upper.checked_mul(self.lower);
        let upper = left.zip(right).and_then(|(left, right)| left.checked_add(right)).ok_or(Error::Range)?;
        Self::new(upper, self.lower.checked_mul(other.lower).ok_or(Error::Range)?)
    }

    pub(super) fn product(&self, other: &Self) -> Result<Self, Error> {
        let upper = self.upper.checked_mul(other.upper).ok_or(Error::Range)?;
        Self::new(upper, self.lower.checked_mul(other.lower).ok_or(Error::Range)?)
    }

    pub(super) fn negative(&self) -> Result<Self, Error> {
        Self::new(self.upper.checked_neg().ok_or(Error::Range)?, self.lower)
    }

    pub(super) fn inverse(&self) -> Result<Self, Error> {
        Self::new(self.lower, self.upper)
    }

    pub(super) fn is_less(&self, other: &Self) -> Result<bool, Error> {
        Ok(self.plus(&other.negative()?)?.upper < 0)
    }

    /// That many times an amount, rounded towards zero.
    pub(super) fn times(&self, amount: i128) -> Result<i128, Error> {
        // What both share is taken out first: amounts are large and round.
        let shared = divisor(amount, self.lower).max(1);
        let product = (amount / shared).checked_mul(self.upper).ok_or(Error::Range)?;
        Ok(product / (self.lower / shared))
    }

    /// Thousandths, rounded towards zero.
    pub(super) fn millis(&self) -> Result<i128, Error> {
        self.times(1000)
    }
}

fn divisor(left: i128, right: i128) -> i128 {
    let (mut left, mut right) = (left.unsigned_abs(), right.unsigned_abs());
    while right != 0 {
        (left, right) = (right, left % right);
    }
    i128::try_from(left).unwrap_or(1)
}
