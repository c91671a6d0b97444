//! How sentences are written: numbers that agree, lists that stay short, times that do not change.

use jiff::Timestamp;

/// How many names a list has.
const NAMES: usize = 3;
/// How much of a text of others is shown.
const FOREIGN: usize = 200;

/// `1 pod`, `2 pods`.
pub fn pods(count: usize) -> String {
    format!("{count} {}", noun(count))
}

/// `1 pod is`, `2 pods are`.
pub fn pods_are(count: usize) -> String {
    format!("{} {}", pods(count), verb(count))
}

/// `1 of 5 pods is`, `2 of 5 pods are`.
pub fn of(some: usize, all: usize) -> String {
    format!("{some} of {} {}", pods(all), verb(some))
}

/// `1 of at most 1 pod is`, `2 of at most 3 pods are`.
pub fn of_at_most(some: usize, most: usize) -> String {
    format!("{some} of at most {} {}", pods(most), verb(some))
}

fn noun(count: usize) -> &'static str {
    if count == 1 { "pod" } else { "pods" }
}

fn verb(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// At most three names, sorted, then how many more.
pub fn names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    let first: Vec<&str> = names.iter().take(NAMES).copied().collect();
    match names.len().saturating_sub(first.len()) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// A point in time, in whole seconds.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A text of the server, the scheduler or a kubelet: one line of at most 200 characters without a full stop.
pub fn foreign(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    line.trim().chars().take(FOREIGN).collect::<String>().trim_end_matches(['.', ' ']).to_owned()
}
