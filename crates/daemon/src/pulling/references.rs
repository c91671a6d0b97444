//! How an image of a NodeImage is named towards the runtime and its registry.

/// What the runtime is asked for. A tag may be a digest.
pub fn full_reference(name: &str, tag: &str) -> String {
    let separator = if is_digest(tag) { '@' } else { ':' };
    format!("{name}{separator}{tag}")
}

/// The name with its registry, as credentials are kept: `docker.io/library/nginx`.
pub fn repository(name: &str) -> String {
    let normalised = kruise_core::in_place::normalised(name);
    normalised.rsplit_once(':').map_or(normalised.clone(), |(path, _)| path.to_owned())
}

pub(super) fn is_digest(tag: &str) -> bool {
    tag.contains(':')
}
