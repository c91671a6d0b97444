//! The tag of an image reference, and the pull policy that follows from it.

/// `Always` when the tag is `latest` or when there is neither tag nor digest, else `IfNotPresent`. A reference that
/// cannot be read counts as tagged, as on a server.
pub fn pull_policy(image: &str) -> &'static str {
    match tag(image) {
        Some("latest") => "Always",
        _ => "IfNotPresent",
    }
}

/// The tag; `latest` when neither a tag nor a digest is there; nothing for a bad reference or a digest alone.
fn tag(image: &str) -> Option<&str> {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    let last_segment = named.rfind('/').map_or(0, |slash| slash + 1);
    let colon = named.get(last_segment..)?.find(':').map(|at| last_segment + at);
    let (name, tag) = match colon {
        // `host:5000` alone has no path, so what follows the colon is a tag there as well.
        Some(colon) => (named.get(..colon)?, named.get(colon + 1..)),
        None => (named, None),
    };
    if !is_name(name) || tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    match (tag, digest) {
        (Some(tag), _) => Some(tag),
        (None, Some(_)) => None,
        // Sixty-four hex digits are an image id, which is no name.
        (None, None) if name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) => {
            None
        }
        (None, None) => Some("latest"),
    }
}

fn is_name(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((host, path)) if is_host(host) => path,
        _ => name,
    };
    path.split('/').all(is_path_component)
}

/// Whether the first segment names a registry and not a folder of the default one.
fn is_host(segment: &str) -> bool {
    segment.contains(['.', ':']) || segment == "localhost" || segment.bytes().any(|b| b.is_ascii_uppercase())
}

/// Lower-case letters and digits, separated by `.`, `_`, `__` or dashes.
fn is_path_component(component: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = component.as_bytes();
    let edges =
        bytes.first().copied().is_some_and(alphanumeric) && bytes.last().copied().is_some_and(alphanumeric);
    edges
        && bytes.iter().all(|b| alphanumeric(*b) || matches!(b, b'.' | b'_' | b'-'))
        && component
            .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            .all(|gap| matches!(gap, "" | "." | "_" | "__") || gap.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= 128 && tag.starts_with(word) && tag.chars().all(|c| word(c) || c == '.' || c == '-')
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        algorithm.starts_with(|c: char| c.is_ascii_alphabetic())
            && hex.len() >= 32
            && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn the_policy_goes_by_the_tag() {
        let digest = "a".repeat(64);
        for (image, policy) in [
            ("app", "Always"),
            ("app:latest", "Always"),
            ("app:1", "IfNotPresent"),
            ("registry.example:5000/app", "Always"),
            ("registry.example:5000/app:2", "IfNotPresent"),
            ("localhost/app", "Always"),
            (&format!("app@sha256:{digest}"), "IfNotPresent"),
            (&format!("app:latest@sha256:{digest}"), "Always"),
            (&format!("reg.io/x:1@sha256:{digest}"), "IfNotPresent"),
            ("", "IfNotPresent"),
            ("App", "IfNotPresent"),
            ("app:", "IfNotPresent"),
            ("a//b", "IfNotPresent"),
            ("Registry/app", "Always"),
            (&digest, "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
