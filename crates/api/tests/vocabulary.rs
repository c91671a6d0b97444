//! Every name that users see is written once and is a name that Kubernetes takes.

/// The texts of all constants of a file, with the names of the constants.
fn constants(source: &str) -> Vec<(&str, &str)> {
    source
        .split("pub const ")
        .skip(1)
        .filter_map(|part| {
            let (name, rest) = part.split_once(": &str =")?;
            Some((name, rest.trim_start().strip_prefix('"')?.split_once('"')?.0))
        })
        .collect()
}

const LABELS: &str = include_str!("../src/labels.rs");
const ANNOTATIONS: &str = include_str!("../src/annotations.rs");

const FILES: &[(&str, &str)] = &[
    ("labels", LABELS),
    ("annotations", ANNOTATIONS),
    ("env", include_str!("../src/env.rs")),
    ("conditions", include_str!("../src/conditions.rs")),
    ("finalizers", include_str!("../src/finalizers.rs")),
    ("components", include_str!("../src/components.rs")),
    ("names", include_str!("../src/names.rs")),
    ("environment", include_str!("../src/environment.rs")),
];

#[test]
fn each_text_stands_once_in_its_file() {
    for (file, source) in FILES {
        let mut texts: Vec<&str> = constants(source).into_iter().map(|(_, text)| text).collect();
        assert!(!texts.is_empty(), "{file} has no constants");
        texts.sort_unstable();
        let twice: Vec<_> = texts.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{file}: {twice:?}");
    }
}

/// `prefix/name` with at most 63 characters in the name, which starts and ends with a letter or digit.
fn is_key(text: &str) -> bool {
    let (prefix, name) = text.rsplit_once('/').unwrap_or(("", text));
    let edge = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
    let inside = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    prefix.len() <= 253
        && prefix.split('.').all(|part| text == name || (!part.is_empty() && part == part.to_lowercase()))
        && (1..=63).contains(&name.len())
        && name.chars().all(inside)
        && edge(name.chars().next())
        && edge(name.chars().last())
}

#[test]
fn labels_and_annotations_are_valid_keys() {
    for (name, text) in [LABELS, ANNOTATIONS].into_iter().flat_map(constants) {
        // A prefix becomes a key with whatever follows it.
        let key = if name.ends_with("_PREFIX") { format!("{text}x") } else { text.to_owned() };
        assert!(is_key(&key), "{name} is {text:?}");
    }
}
