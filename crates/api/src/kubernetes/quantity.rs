//! Resource quantities: `100m`, `1.5Gi`, `1e3`.
//!
//! A quantity is kept as an exact number of billionths, which is also the precision Kubernetes keeps. The
//! canonical form has no fraction and the largest suffix that leaves a whole number.

use std::cmp::Ordering;
use std::fmt;

const NANOS: i128 = 1_000_000_000;
/// Binary quantities are capped here, as Kubernetes does.
const MAX: i128 = (i64::MAX as i128) * NANOS;

/// How a quantity was written, which decides how it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    Decimal,
    /// `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    Binary,
    /// `e3`, `E6`.
    Exponent,
}

/// An amount of a resource.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is no quantity, in the words of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a number with a suffix at all.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// A suffix that is not known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number itself is wrong, for example with two dots.
    #[error("unable to parse numeric part of quantity")]
    Number,
}

impl Quantity {
    /// Zero, printed as `0`.
    pub const ZERO: Self = Self { nanos: 0, format: Format::Decimal };

    /// Reads a quantity as Kubernetes does.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let negative = text.starts_with('-');
        let number_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at_checked(number_end).ok_or(Error::Format)?;
        if number.is_empty() || number == "." {
            return Err(Error::Format);
        }
        let known = |c: char| c.is_ascii_digit() || "eEinumkKMGTP+-".contains(c);
        if !suffix.chars().all(known) {
            return Err(Error::Format);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') {
            return Err(Error::Number);
        }
        let (scale, format) = suffix_scale(suffix).ok_or(Error::Suffix)?;
        let mut nanos = scaled(whole, fraction, scale);
        if format == Format::Binary {
            nanos = nanos.min(MAX);
        }
        Ok(Self { nanos: if negative { -nanos } else { nanos }, format })
    }

    /// Reads a quantity from JSON, where both a string and a plain number are allowed.
    pub fn from_json(value: &serde_json::Value) -> Result<Self, Error> {
        match value {
            serde_json::Value::String(text) => Self::parse(text.trim()),
            serde_json::Value::Number(number) => Self::parse(&number.to_string()),
            _ => Err(Error::Format),
        }
    }

    /// A whole number.
    pub fn from_integer(value: i64) -> Self {
        Self { nanos: i128::from(value) * NANOS, format: Format::Decimal }
    }

    /// The value in billionths.
    pub fn nanos(&self) -> i128 {
        self.nanos
    }

    /// The value in thousandths, rounded up; what Kubernetes calls `MilliValue`.
    pub fn millis(&self) -> i128 {
        div_up(self.nanos, NANOS / 1000)
    }

    /// The value as a whole number, rounded up; what Kubernetes calls `Value`.
    pub fn value(&self) -> i128 {
        div_up(self.nanos, NANOS)
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// The sum; it prints in the format of `self`, or of `other` when `self` is zero.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format }
    }

    /// The difference, in the format of `self`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos), format: self.format }
    }

    /// Rounded away from zero to thousandths: resource lists of pods keep no more.
    #[must_use]
    pub fn round_up_to_milli(&self) -> Self {
        let milli = NANOS / 1000;
        Self { nanos: div_away(self.nanos, milli) * milli, format: self.format }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos % NANOS == 0;
        let small = self.nanos.abs() < 1024 * NANOS;
        match self.format {
            Format::Binary if whole && !small => {
                const SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
                let mut mantissa = self.nanos / NANOS;
                let mut suffix = "";
                for next in SUFFIXES {
                    if mantissa % 1024 != 0 {
                        break;
                    }
                    mantissa /= 1024;
                    suffix = next;
                }
                write!(f, "{mantissa}{suffix}")
            }
            format => {
                const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
                let (mut mantissa, mut step) = (self.nanos, 0_usize);
                while mantissa % 1000 == 0 && step + 1 < SUFFIXES.len() {
                    mantissa /= 1000;
                    step += 1;
                }
                let exponent = i32::try_from(step).unwrap_or(0) * 3 - 9;
                match format {
                    Format::Exponent if exponent != 0 => write!(f, "{mantissa}e{exponent}"),
                    Format::Exponent => write!(f, "{mantissa}"),
                    _ => write!(f, "{mantissa}{}", SUFFIXES.get(step).copied().unwrap_or("")),
                }
            }
        }
    }
}

/// What one unit of the suffix is worth.
enum Scale {
    Ten(i32),
    Two(u32),
}

fn suffix_scale(suffix: &str) -> Option<(Scale, Format)> {
    let decimal = |exponent| Some((Scale::Ten(exponent), Format::Decimal));
    let binary = |exponent| Some((Scale::Two(exponent), Format::Binary));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((Scale::Ten(exponent), Format::Exponent))
        }
    }
}

/// `whole.fraction × scale` in billionths, rounded up, saturating.
fn scaled(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let fraction = fraction.trim_end_matches('0');
    let digits: String = whole.chars().chain(fraction.chars()).collect();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    let Ok(mut mantissa) = digits.parse::<i128>() else { return MAX };
    let mut exponent = 9 - i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    match scale {
        Scale::Ten(ten) => exponent = exponent.saturating_add(ten),
        Scale::Two(bits) => match 1_i128.checked_shl(bits).and_then(|factor| mantissa.checked_mul(factor)) {
            Some(product) => mantissa = product,
            None => return MAX,
        },
    }
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    match (exponent >= 0, power) {
        (true, Some(power)) => mantissa.checked_mul(power).unwrap_or(i128::MAX / 2),
        (true, None) => i128::MAX / 2,
        (false, Some(power)) => div_up(mantissa, power),
        (false, None) => 1,
    }
}

fn div_up(value: i128, by: i128) -> i128 {
    let quotient = value / by;
    if value % by > 0 { quotient + 1 } else { quotient }
}

fn div_away(value: i128, by: i128) -> i128 {
    let quotient = value / by;
    match value % by {
        0 => quotient,
        rest if rest > 0 => quotient + 1,
        _ => quotient - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, canonical: &str) {
        assert_eq!(Quantity::parse(text).map(|q| q.to_string()), Ok(canonical.to_owned()));
    }

    #[test]
    fn quantities_print_in_canonical_form() {
        check("1000m", "1");
        check("0.05", "50m");
        check("0.5Gi", "512Mi");
        check("1024Ki", "1Mi");
        check("1.5Gi", "1536Mi");
        check("1024Mi", "1Gi");
        check("4294967296", "4294967296");
        check("1e3", "1e3");
        check("1.5", "1500m");
        check("2G", "2G");
        check("2000000", "2M");
        check("0", "0");
        check("0Mi", "0");
        check("-1000m", "-1");
        check("512", "512");
        check("1Ki", "1Ki");
        check("0.5Ki", "512");
        check("100.1Ki", "102502400m");
        check("1e-3", "1e-3");
        check("12E6", "12e6");
        check("0.1n", "1n");
    }

    #[test]
    fn bad_texts_are_refused_with_the_words_of_kubernetes() {
        assert_eq!(Quantity::parse("").map(|_| ()), Err(Error::Format));
        assert_eq!(Quantity::parse("abc").map(|_| ()), Err(Error::Format));
        assert_eq!(Quantity::parse("1Qi").map(|_| ()), Err(Error::Format));
        assert_eq!(Quantity::parse("1mm").map(|_| ()), Err(Error::Suffix));
        assert_eq!(Quantity::parse("1.2.3").map(|_| ()), Err(Error::Number));
    }

    #[test]
    fn resource_lists_round_up_to_thousandths() {
        let round = |text| Quantity::parse(text).map(|q| q.round_up_to_milli().to_string());
        assert_eq!(round("1234567n"), Ok("2m".to_owned()));
        assert_eq!(round("-1234567n"), Ok("-2m".to_owned()));
        assert_eq!(round("1500u"), Ok("2m".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,12}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let again = Quantity::parse(&quantity.to_string()).expect("canonical text is readable");
                prop_assert!(again == quantity || quantity.nanos().abs() >= MAX);
            }
        }
    }
}
