//! Whether the node has an image already.

use kruise_core::image_reference;

use super::references::{full_reference, is_digest};
use crate::cri::Image;

/// The image that has this name and tag, or this name and digest.
pub fn present<'a>(images: &'a [Image], name: &str, tag: &str) -> Option<&'a Image> {
    let wanted = image_reference::parse(&full_reference(name, tag)).ok()?;
    images.iter().find(|image| {
        let names = if is_digest(tag) { &image.digests } else { &image.tags };
        names.iter().any(|text| image_reference::parse(text).is_ok_and(|known| known == wanted))
    })
}
