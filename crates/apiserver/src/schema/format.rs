//! The string formats that the server checks. Others, `int32` and `int64` among them, are accepted and not checked,
//! as on the real server.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A format that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    DateTime,
    Date,
    Duration,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid(Option<char>),
    Byte,
    Hostname,
    Email,
    Uri,
    BsonObjectId,
    HexColor,
    Ssn,
    Isbn10,
    Isbn13,
    Isbn,
    /// Any string.
    Password,
}

impl Format {
    /// Dashes in the name do not count.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "datetime" => Self::DateTime,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid(None),
            "uuid3" => Self::Uuid(Some('3')),
            "uuid4" => Self::Uuid(Some('4')),
            "uuid5" => Self::Uuid(Some('5')),
            "byte" => Self::Byte,
            "hostname" => Self::Hostname,
            "email" => Self::Email,
            "uri" => Self::Uri,
            "bsonobjectid" => Self::BsonObjectId,
            "hexcolor" => Self::HexColor,
            "ssn" => Self::Ssn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "isbn" => Self::Isbn,
            "password" => Self::Password,
            _ => return None,
        })
    }

    /// The name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Duration => "duration",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Cidr => "cidr",
            Self::Mac => "mac",
            Self::Uuid(None) => "uuid",
            Self::Uuid(Some('3')) => "uuid3",
            Self::Uuid(Some('4')) => "uuid4",
            Self::Uuid(Some(_)) => "uuid5",
            Self::Byte => "byte",
            Self::Hostname => "hostname",
            Self::Email => "email",
            Self::Uri => "uri",
            Self::BsonObjectId => "bsonobjectid",
            Self::HexColor => "hexcolor",
            Self::Ssn => "ssn",
            Self::Isbn10 => "isbn10",
            Self::Isbn13 => "isbn13",
            Self::Isbn => "isbn",
            Self::Password => "password",
        }
    }

    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Self::DateTime => is_date_time(text),
            Self::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Self::Duration => is_duration(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Mac => is_mac(text),
            Self::Uuid(version) => is_uuid(text, version),
            Self::Byte => is_base64(text),
            Self::Hostname => is_hostname(text),
            Self::Email => text.rsplit_once('@').is_some_and(|(user, host)| {
                !user.is_empty() && !host.is_empty() && !text.contains(char::is_whitespace)
            }),
            Self::Uri => is_uri(text),
            Self::BsonObjectId => text.len() == 24 && is_hex(text),
            Self::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && is_hex(digits)
            }
            Self::Ssn => {
                let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
                digits.len() == 9 && is_digits(&digits)
            }
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::Password => true,
        }
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_date_time(text: &str) -> bool {
    // RFC 3339 wants the seconds and an offset; the library alone would accept less.
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    date.len() == 10 && time.split(':').count() >= 3 && text.parse::<jiff::Timestamp>().is_ok()
}

/// Go's durations (`1h30m`) and the words of Scala (`3 seconds`).
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 32] = [
        "ns",
        "us",
        "µs",
        "μs",
        "ms",
        "s",
        "m",
        "h",
        "d",
        "w",
        "nano",
        "nanos",
        "nanosecond",
        "nanoseconds",
        "micro",
        "micros",
        "microsecond",
        "microseconds",
        "milli",
        "millis",
        "millisecond",
        "milliseconds",
        "sec",
        "secs",
        "second",
        "seconds",
        "min",
        "mins",
        "minute",
        "minutes",
        "hr",
        "hour",
    ];
    const MORE: [&str; 6] = ["hours", "hrs", "day", "days", "week", "weeks"];
    let mut rest = text.trim().trim_start_matches(['+', '-']);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_end);
        if number.is_empty() || number.parse::<f64>().is_err() {
            return false;
        }
        let after = after.trim_start();
        let unit_end =
            after.find(|c: char| c.is_ascii_digit() || c == '.' || c == ' ').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        if !UNITS.contains(&unit) && !MORE.contains(&unit) {
            return false;
        }
        rest = next.trim_start();
    }
    true
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    is_digits(bits) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

fn is_mac(text: &str) -> bool {
    [':', '-'].iter().any(|separator| {
        let parts: Vec<&str> = text.split(*separator).collect();
        matches!(parts.len(), 6 | 8 | 20) && parts.iter().all(|part| part.len() == 2 && is_hex(part))
    })
}

/// Dashes are optional, but only at their places.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let dashes_fit = text.len() == 32
        || (text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-')));
    let nth = |at: usize| digits.chars().nth(at).map(|c| c.to_ascii_lowercase());
    let version_fits = version.is_none_or(|version| {
        nth(12) == Some(version) && (version == '3' || matches!(nth(16), Some('8' | '9' | 'a' | 'b')))
    });
    digits.len() == 32 && is_hex(&digits) && dashes_fit && version_fits
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    text.len() <= 255 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.contains(|c: char| c.is_control() || c == ' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            && !rest.is_empty()
    })
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let value = |c: char| if matches!(c, 'X' | 'x') { Some(10) } else { c.to_digit(10) };
    let mut sum = 0;
    for (weight, c) in (1..=10).rev().zip(&digits) {
        match value(*c) {
            Some(digit) if digit < 10 || weight == 1 => sum += digit * weight,
            _ => return false,
        }
    }
    digits.len() == 10 && sum % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let mut sum = 0;
    for (i, c) in digits.iter().enumerate() {
        let Some(digit) = c.to_digit(10) else { return false };
        sum += if i % 2 == 0 { digit } else { digit * 3 };
    }
    digits.len() == 13 && sum % 10 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, good: &[&str], bad: &[&str]) {
        let format = Format::named(format).unwrap();
        for text in good {
            assert!(format.accepts(text), "{} should accept {text}", format.name());
        }
        for text in bad {
            assert!(!format.accepts(text), "{} should refuse {text}", format.name());
        }
    }

    #[test]
    fn formats_accept_what_they_should() {
        check(
            "date-time",
            &["2024-01-02T03:04:05Z", "2024-01-02T03:04:05.123+02:00"],
            &["2024-01-02", "x", "2024-01-02T03:04Z"],
        );
        check("date", &["2024-01-02"], &["2024-13-02", "2024-1-2"]);
        check("duration", &["1h30m", "3 seconds", "-5ms", "0"], &["", "1", "h", "1 year"]);
        check("ipv4", &["1.2.3.4"], &["1.2.3", "::1"]);
        check("ipv6", &["::1"], &["1.2.3.4"]);
        check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]);
        check("mac", &["00:11:22:aa:bb:cc"], &["00:11:22"]);
        check("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123e4567"]);
        check("byte", &["YQ=="], &["YQ=", "!"]);
        check("hostname", &["a.example.com"], &["-a", "a..b", ""]);
        check("uri", &["https://a/b", "/x"], &["a b", "abc"]);
        check("isbn", &["0321751043", "978-0321751041"], &["0321751042"]);
    }

    #[test]
    fn number_formats_are_not_checked() {
        assert_eq!(Format::named("int32"), None);
        assert_eq!(Format::named("double"), None);
    }
}
