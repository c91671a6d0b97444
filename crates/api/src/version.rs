//! The version of the cluster, read from whatever a provider made of it.

use std::fmt;

/// The version of an API server: three numbers, without what providers add to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number; zero when it is not told.
    pub patch: u32,
}

/// The first version whose pods are resized through `pods/resize`.
pub const RESIZE_SUBRESOURCE: Version = Version { major: 1, minor: 32, patch: 0 };

impl Version {
    /// Reads `v1.32.1-gke.100`, `1.33+` and the like: a leading `v` is dropped, and of each of the three parts only
    /// the leading digits count. `None` when there is no major or minor number.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let major = number(parts.next()?)?;
        let minor = number(parts.next()?)?;
        let patch = match parts.next() {
            Some(part) => number(part)?,
            None => 0,
        };
        Some(Self { major, minor, patch })
    }
}

/// Whether a server with this version resizes pods through `pods/resize`. A version that cannot be read counts as an
/// old one.
pub fn uses_resize_subresource(server: &str) -> bool {
    Version::parse(server).is_some_and(|version| version >= RESIZE_SUBRESOURCE)
}

fn number(part: &str) -> Option<u32> {
    let digits = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
    part.get(..digits)?.parse().ok()
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = Version::parse(text).map_or_else(|| "none".to_owned(), |version| version.to_string());
        assert_eq!(read, expected, "{text:?}");
    }

    #[test]
    fn what_providers_add_to_a_version_is_ignored() {
        check("v1.32.1-gke.100", "v1.32.1");
        check("1.33+", "v1.33.0");
        check("v1.32.4+k3s1", "v1.32.4");
        check("v1.34.0-alpha.1", "v1.34.0");
        check("v2.0", "v2.0.0");
    }

    #[test]
    fn a_text_without_two_numbers_is_no_version() {
        for text in ["", "v", "1", "v1", "1.", "one.two", "1.x.3", "v1.32.", "v1.32.x", "99999999999.1"] {
            check(text, "none");
            assert!(!uses_resize_subresource(text));
        }
    }

    /// PLATFORM-39
    #[test]
    fn the_resize_subresource_is_used_from_the_version_that_has_it() {
        assert!(uses_resize_subresource("v1.33.0-eks-abc"));
        assert!(uses_resize_subresource("v1.32.4+k3s1"));
        assert!(!uses_resize_subresource("v1.31.9-gke.1"));
        assert!(uses_resize_subresource("v1.32.0"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = uses_resize_subresource(&text);
        }

        #[test]
        fn a_plain_version_is_read_back(major in 0..100_u32, minor in 0..100_u32, patch in 0..100_u32) {
            let version = Version { major, minor, patch };
            prop_assert_eq!(Version::parse(&version.to_string()), Some(version));
        }
    }
}
