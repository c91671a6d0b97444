//! The time zone of the process, as Go programs find it: schedules that name no zone are in it.

use std::path::Path;

use jiff::tz::TimeZone;
use kruise_api::cron;

/// The zone of a machine that says nothing else.
const LOCALTIME: &str = "/etc/localtime";

/// The zone that the variable `TZ` names: a name or, beginning with a slash, a file. Without the variable that of the machine. UTC
/// where there is no such zone. `read` reads files.
pub(super) fn of_process(variable: Option<&str>, read: impl Fn(&Path) -> Option<Vec<u8>>) -> TimeZone {
    let file = |path: &str| TimeZone::tzif("Local", &read(Path::new(path))?).ok();
    let zone = match variable.map(|text| text.strip_prefix(':').unwrap_or(text)) {
        None => file(LOCALTIME),
        Some(path) if path.starts_with('/') => file(path),
        Some(name) => cron::time_zone(name),
    };
    zone.unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// A file of a zone that is always eight hours ahead of UTC.
    fn eight_hours() -> Vec<u8> {
        let mut file = b"TZif2".to_vec();
        let header = |types: u8, letters: u8| {
            let counts = [0_u32, 0, 0, 0, types.into(), letters.into()];
            counts.iter().flat_map(|count| count.to_be_bytes()).collect::<Vec<u8>>()
        };
        let block = |file: &mut Vec<u8>| {
            file.extend([0; 15]);
            file.extend(header(1, 4));
            file.extend(28_800_i32.to_be_bytes());
            file.extend([0, 0]);
            file.extend(b"CST\0");
        };
        block(&mut file);
        file.extend(b"TZif2");
        block(&mut file);
        file.extend(b"\nCST-8\n");
        file
    }

    /// JOBS-47: a schedule without a zone follows that of the process; one that names UTC does not.
    #[test]
    fn the_zone_is_that_of_the_variable_or_of_the_machine() {
        let read = |path: &Path| {
            let is_known =
                [LOCALTIME, "/usr/share/zoneinfo/Asia/Shanghai"].iter().any(|one| path == Path::new(one));
            is_known.then(eight_hours)
        };
        let summer: Timestamp = "2026-07-01T00:00:00Z".parse().unwrap();
        for (variable, hours) in [
            (None, 8),
            (Some(""), 0),
            (Some("UTC"), 0),
            (Some("Etc/UTC"), 0),
            (Some("Asia/Shanghai"), 8),
            (Some(":Europe/Berlin"), 2),
            (Some("/usr/share/zoneinfo/Asia/Shanghai"), 8),
            (Some(":/etc/localtime"), 8),
            (Some("/nowhere"), 0),
            (Some("Mars/Base"), 0),
        ] {
            let zone = of_process(variable, read);
            assert_eq!(zone.to_offset(summer).seconds(), hours * 3_600, "{variable:?}");
        }
        assert_eq!(of_process(None, |_| None), TimeZone::UTC);
        assert_eq!(of_process(None, |_| Some(b"no zone".to_vec())), TimeZone::UTC);
    }
}
