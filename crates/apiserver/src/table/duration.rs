//! Durations and ages as kubectl prints them: two units at most, and only one when that is precise enough.

use jiff::Timestamp;
use serde_json::Value;

/// `119s`, `2m`, `9m59s`, `2h10m`, `47h`, `7d23h`, `729d`, `2y1d`, `8y`.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |unit: i64, name: &str, small: i64, small_name: &str| {
        let (big, rest) = (seconds / unit, (seconds % unit) / small);
        if rest == 0 { format!("{big}{name}") } else { format!("{big}{name}{rest}{small_name}") }
    };
    match seconds {
        // A clock that is a second off is no error.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The age of a moment; `<unknown>` when there is none.
pub(super) fn since(moment: Option<Timestamp>, now: Timestamp) -> String {
    match moment {
        Some(moment) => human_duration(between(moment, now)),
        None => "<unknown>".to_owned(),
    }
}

/// Whole seconds from one moment to another.
pub(super) fn between(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs()
}

/// The moment in a text member.
pub(super) fn moment(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::human_duration;

    #[test]
    fn durations_print_as_in_kubectl() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (123, "2m3s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_460, "3h11m"),
            (28_799, "7h59m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (266_400, "3d2h"),
            (691_199, "7d23h"),
            (691_200, "8d"),
            (63_071_999, "729d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ] {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }
}
