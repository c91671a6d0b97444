//! Images that nobody has seen before.

use std::{
    env::consts::ARCH,
    hash::{BuildHasher as _, RandomState},
};

use serde_json::json;
use sha2::{Digest as _, Sha256};

pub(super) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";

/// The size of the file in an image: more than what networks hold on the way.
const SIZE: usize = 4 << 20;
const BLOCK: usize = 512;

/// Bytes with their content address.
pub(super) struct Blob {
    pub(super) digest: String,
    pub(super) bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { digest: format!("sha256:{hex}"), bytes }
    }
}

/// An image with one layer.
pub(super) struct Image {
    pub(super) name: String,
    pub(super) tag: String,
    pub(super) manifest: Blob,
    pub(super) config: Blob,
    pub(super) layer: Blob,
}

impl Image {
    pub(super) fn new(name: &str, tag: &str) -> Self {
        let layer = Blob::new(archive("content", &bytes()));
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
        });
        let config = Blob::new(config.to_string().into_bytes());
        let describe = |media_type: &str, blob: &Blob| json!({"mediaType": media_type, "digest": blob.digest, "size": blob.bytes.len()});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": describe(CONFIG_TYPE, &config),
            "layers": [describe(LAYER_TYPE, &layer)],
        });
        let manifest = Blob::new(manifest.to_string().into_bytes());
        Self { name: name.to_owned(), tag: tag.to_owned(), manifest, config, layer }
    }
}

/// Bytes that differ each time, and that nobody can make smaller.
fn bytes() -> Vec<u8> {
    let random = RandomState::new();
    (0..SIZE / 8).flat_map(|index| random.hash_one(index).to_le_bytes()).collect()
}

/// A tar archive with one file.
fn archive(path: &str, content: &[u8]) -> Vec<u8> {
    let header = |checksum: &str| {
        let mut header = Vec::with_capacity(BLOCK);
        let mut field =
            |text: &str, width: usize| header.extend(text.bytes().chain(std::iter::repeat(0)).take(width));
        field(path, 100);
        field("0000644", 8);
        field("0000000", 8);
        field("0000000", 8);
        field(&format!("{:011o}", content.len()), 12);
        field("00000000000", 12);
        field(checksum, 8);
        field("0", 1);
        field("", 100);
        field("ustar\0", 6);
        field("00", 2);
        header.resize(BLOCK, 0);
        header
    };
    // The checksum counts its own field as blanks.
    let sum: u32 = header("        ").iter().map(|byte| u32::from(*byte)).sum();
    let mut archive = header(&format!("{sum:06o}\0 "));
    archive.extend(content);
    // Whole blocks, and two empty ones at the end.
    archive.resize(archive.len().next_multiple_of(BLOCK) + 2 * BLOCK, 0);
    archive
}

fn architecture() -> &'static str {
    match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
