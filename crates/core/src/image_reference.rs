//! Names of images: what a registry, a node and a person call the same thing.
//!
//! `ubuntu`, `docker.io/library/ubuntu` and `docker.io/library/ubuntu:latest` are one image. A [`Reference`] has the short
//! name that people use, and the tag or the digest.

use std::fmt;

/// An image by name and by tag or digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The short name: `ubuntu`, `team/app`, `registry.example:5000/team/app`.
    pub name: String,
    /// Which of the images of this name. A tag that was given beside a digest is dropped: it says nothing more.
    pub version: Version,
}

/// Which of the images of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `1.27`.
    Tag(String),
    /// `sha256:...`.
    Digest(String),
}

impl Version {
    /// The tag, or the digest.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tag(text) | Self::Digest(text) => text,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Version::Tag(tag) => write!(formatter, "{}:{tag}", self.name),
            Version::Digest(digest) => write!(formatter, "{}@{digest}", self.name),
        }
    }
}

/// Why a text names no image, in the words that people know from container tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is written in no way that an image can be.
    #[error("invalid reference format")]
    Format,
    /// It would be fine in lower case.
    #[error("invalid reference format: repository name must be lowercase")]
    Uppercase,
    /// It is too long for registries.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// It is the id of an image and not a name.
    #[error("invalid repository name ({id}), cannot specify 64-byte hexadecimal strings")]
    ImageId {
        /// The id.
        id: String,
    },
    /// Nobody knows this way to make a digest.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
    /// A digest has not the length of its kind.
    #[error("invalid checksum digest length")]
    DigestLength,
}

const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_FOLDER: &str = "library/";

/// The image that a text names.
///
/// ```
/// use kruise_core::image_reference::parse;
/// assert_eq!(parse("docker.io/library/ubuntu").unwrap().to_string(), "ubuntu:latest");
/// assert!(parse("INVALID_IMAGE_REF").is_err());
/// ```
pub fn parse(text: &str) -> Result<Reference, Error> {
    if text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(Error::ImageId { id: text.to_owned() });
    }
    let (registry, rest) = split_registry(text);
    let repository = rest.split(':').next().unwrap_or_default();
    if repository.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(Error::Uppercase);
    }
    let (named, digest) = match rest.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match named.rsplit_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (named, None),
    };
    let well_formed = is_registry(registry)
        && path.split('/').all(is_path_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    if !well_formed {
        return Err(Error::Format);
    }
    let name = match registry {
        DEFAULT_REGISTRY => {
            path.strip_prefix(DEFAULT_FOLDER).filter(|short| !short.contains('/')).unwrap_or(path).to_owned()
        }
        _ => format!("{registry}/{path}"),
    };
    if registry.len() + 1 + path.len() > 255 {
        return Err(Error::TooLong);
    }
    let version = match digest {
        Some(digest) => {
            known_digest(digest)?;
            Version::Digest(digest.to_owned())
        }
        None => Version::Tag(tag.unwrap_or("latest").to_owned()),
    };
    Ok(Reference { name, version })
}

/// The registry and what follows it. The first part is one when it looks like a host; `index.docker.io` is an old name.
fn split_registry(text: &str) -> (&str, &str) {
    match text.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => match first {
            "index.docker.io" => (DEFAULT_REGISTRY, rest),
            _ => (first, rest),
        },
        _ => (DEFAULT_REGISTRY, text),
    }
}

fn is_registry(registry: &str) -> bool {
    let (host, port) = match registry.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (registry, None),
    };
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    host.split('.').all(is_part) && port.is_none_or(is_port)
}

/// Lower-case letters and digits, with `.`, `_`, `__` or hyphens between them.
fn is_path_component(component: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let (first, last) = (component.bytes().next(), component.bytes().next_back());
    first.is_some_and(is_inner)
        && last.is_some_and(is_inner)
        && component
            .split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit())
            .all(|gap| matches!(gap, "" | "." | "_" | "__") || gap.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let is_part = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_part)
        && hex.len() >= 32
        && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn known_digest(digest: &str) -> Result<(), Error> {
    let (algorithm, hex) = digest.split_once(':').unwrap_or_default();
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(Error::DigestAlgorithm),
    };
    match hex.len() == length {
        true if hex.bytes().any(|byte| byte.is_ascii_uppercase()) => Err(Error::Format),
        true => Ok(()),
        false => Err(Error::DigestLength),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, name: &str, version: &str) {
        let reference = parse(text).unwrap();
        assert_eq!((reference.name.as_str(), reference.version.as_str()), (name, version));
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }

    #[test]
    fn the_short_name_is_the_one_that_people_use() {
        let hex = "a".repeat(64);
        let digest = format!("sha256:{hex}");
        check("ubuntu", "ubuntu", "latest");
        check("docker.io/library/ubuntu:20.04", "ubuntu", "20.04");
        check("index.docker.io/library/ubuntu:20.04", "ubuntu", "20.04");
        check("docker.io/team/app", "team/app", "latest");
        check("library/ubuntu", "ubuntu", "latest");
        check("reg:5000/my/image:v1", "reg:5000/my/image", "v1");
        check("localhost/app", "localhost/app", "latest");
        check("127.0.0.1:5001/team/app:v2", "127.0.0.1:5001/team/app", "v2");
        check(&format!("ubuntu:20.04@{digest}"), "ubuntu", &digest);
        check(&format!("reg.io/a__b/c-.--d@{digest}").replace("-.--", "--"), "reg.io/a__b/c--d", &digest);
        assert_eq!(parse(&format!("ubuntu@{digest}")).unwrap().to_string(), format!("ubuntu@{digest}"));
    }

    #[test]
    fn what_names_no_image_is_refused_with_known_words() {
        let lower = "invalid reference format: repository name must be lowercase";
        refused("UPPER/x", lower);
        refused("A B", lower);
        refused("INVALID_IMAGE_REF", lower);
        let format = "invalid reference format";
        for text in [
            "", "a b", "a//b", "a:", "a:b:c", "/a", "a/", ":1", "-.io/a", "a..b", "a___b", "reg:x/a", "a@b",
            "é",
        ] {
            refused(text, format);
        }
        refused(&format!("a:{}", "b".repeat(129)), format);
        refused(
            &"a".repeat(64),
            &format!(
                "invalid repository name ({}), cannot specify 64-byte hexadecimal strings",
                "a".repeat(64)
            ),
        );
        refused(&format!("{}/b", "z".repeat(250)), "repository name must not be more than 255 characters");
        refused(&format!("a@md5:{}", "a".repeat(32)), "unsupported digest algorithm");
        refused(&format!("a@sha256:{}", "a".repeat(63)), "invalid checksum digest length");
    }

    proptest! {
        /// A name that was read and written is read again as the same, and nothing makes it fail otherwise.
        #[test]
        fn reading_what_was_written_changes_nothing(text in "[a-cA/.:@_ -]{0,12}") {
            if let Ok(reference) = parse(&text) {
                prop_assert_eq!(parse(&reference.to_string()), Ok(reference));
            }
        }
    }
}
