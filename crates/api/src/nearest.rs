//! The known name that a mistyped one looks most like, for "did you mean".

/// The known name that is nearest to what was written, when it is near enough to be what was meant: at most a third
/// of it differs. Upper and lower case count as equal.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written: Vec<char> = written.to_lowercase().chars().collect();
    if written.len() > LONGEST {
        return None;
    }
    known
        .into_iter()
        .map(|name| (distance(&written, &name.to_lowercase().chars().collect::<Vec<_>>()), name))
        .filter(|(distance, name)| distance * 3 <= name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Nobody means a name when he writes more than this.
const LONGEST: usize = 100;

/// How many letters must be put in, taken out or changed.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.iter().enumerate() {
        let mut left = line + 1;
        let mut next = vec![left];
        for (other, pair) in to.iter().zip(row.windows(2)) {
            let (diagonal, above) = match pair {
                [diagonal, above] => (*diagonal, *above),
                _ => continue,
            };
            let changed = diagonal + usize::from(letter != other);
            left = changed.min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: Option<&str>) {
        assert_eq!(nearest(written, ["PodWebhook", "KruiseDaemon", "WorkloadSpread"]), expected);
    }

    #[test]
    fn a_typing_error_finds_its_name_and_nonsense_finds_none() {
        check("PodWebhok", Some("PodWebhook"));
        check("podwebhooks", Some("PodWebhook"));
        check("WorkLoadSpreed", Some("WorkloadSpread"));
        check("Something", None);
        check("", None);
        check(&"PodWebhook".repeat(50), None);
    }

    #[test]
    fn the_distance_counts_letters() {
        let count =
            |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
        assert_eq!(count("abc", "axc"), 1);
        assert_eq!(count("kitten", "sitting"), 3);
    }
}
