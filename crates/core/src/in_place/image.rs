//! When two references mean the same image.

/// A reference with everything that is usually left out: registry, `library/`, `latest`.
pub fn normalised(reference: &str) -> String {
    let (rest, digest) = match reference.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (reference, None),
    };
    let (path, tag) = match rest.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (rest, None),
    };
    let has_registry =
        path.split_once('/').is_some_and(|(first, _)| first.contains(['.', ':']) || first == "localhost");
    let path = match (has_registry, path.contains('/')) {
        (true, _) => path.to_owned(),
        (false, true) => format!("docker.io/{path}"),
        (false, false) => format!("docker.io/library/{path}"),
    };
    match (digest, tag) {
        (Some(digest), _) => format!("{path}@{digest}"),
        (None, Some(tag)) => format!("{path}:{tag}"),
        (None, None) => format!("{path}:latest"),
    }
}

/// Whether two references mean the same image.
pub fn is_same(left: &str, right: &str) -> bool {
    left == right || normalised(left) == normalised(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_filled_in() {
        for (short, long) in [
            ("nginx", "docker.io/library/nginx:latest"),
            ("team/app:v1", "docker.io/team/app:v1"),
            ("registry:5000/app", "registry:5000/app:latest"),
            ("localhost/app", "localhost/app:latest"),
            ("127.0.0.1:5001/team/app:v1", "127.0.0.1:5001/team/app:v1"),
            ("app:v1@sha256:aa", "docker.io/library/app@sha256:aa"),
        ] {
            assert_eq!(normalised(short), long);
        }
        assert!(is_same("registry:5000/app", "registry:5000/app:latest") && !is_same("app:v1", "app:v2"));
    }
}
