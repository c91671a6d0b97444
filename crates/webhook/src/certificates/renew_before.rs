//! How long before its end a certificate is renewed.

use std::time::Duration;

use super::authority::LIFETIME;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What holds unless something else is asked for.
pub const DEFAULT: Duration = Duration::from_secs(180 * 24 * 60 * 60);

/// Reads `CERTS_RENEW_BEFORE`: a number with `d` (days), `m` (30 days) or `y` (365 days). The error says why the
/// default is better.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = |why: &str| {
        format!(
            "CERTS_RENEW_BEFORE={text:?}: {why}; using the default of {} days",
            DEFAULT.as_secs() / DAY.as_secs()
        )
    };
    let days = match text.chars().last() {
        Some('d') => 1,
        Some('m') => 30,
        Some('y') => 365,
        _ => return Err(wrong("expected a number with d, m or y behind it")),
    };
    let number = text.get(..text.len().saturating_sub(1)).unwrap_or_default();
    let number: i64 = number.parse().map_err(|_| wrong("expected a number with d, m or y behind it"))?;
    let number = u32::try_from(number).ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| wrong("expected a number above 0"))?;
    let asked = number.checked_mul(days).and_then(|days| DAY.checked_mul(days));
    // A certificate that is due when it is made would be made again and again.
    asked
        .filter(|asked| *asked <= LIFETIME - 30 * DAY)
        .ok_or_else(|| wrong("a certificate lives for 3650 days and would always be due"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_days_months_and_years() {
        for (text, days) in [("1d", 1), ("180d", 180), ("6m", 180), ("9y", 9 * 365), ("007d", 7)] {
            assert_eq!(parse(text), Ok(DAY * days), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        for text in [
            "",
            "d",
            "7",
            "-1d",
            "0d",
            "1w",
            "1.5y",
            "d1",
            "99999999999999999999d",
            "10y",
            "4294967295y",
            "é",
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with(&format!("CERTS_RENEW_BEFORE={text:?}: ")), "{why}");
            assert!(why.ends_with("; using the default of 180 days"), "{why}");
        }
    }
}
