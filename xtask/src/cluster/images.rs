//! The test images, assembled from a static busybox: a shared layer of programs and one script each.

use std::env::consts::ARCH;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::archive::Archive;
use super::layout::{Layout, SANDBOX_IMAGE};
use super::packages::Packages;
use super::tool;

pub(crate) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";

/// Serves its version over HTTP and stops at once when asked to. A second one in the same pod finds the port taken and
/// just keeps running, unless it is given another `PORT`.
const APP: &str = r#"echo "app $IMAGE_VERSION started"
trap 'echo "app $IMAGE_VERSION stops"; exit 0' TERM INT
httpd -f -p "${PORT:-8080}" -h /www &
while :; do sleep 1000 & wait $!; done
"#;
/// Serves HTTP, and ends when its server ends.
const HTTP: &str = r#"httpd -f -p "${PORT:-8080}" -h /www &
server=$!
trap 'kill $server; exit 0' TERM INT
wait $server
"#;
const FAIL: &str = r#"echo "this image always fails"
exit "${EXIT_CODE:-1}"
"#;
const STUBBORN: &str = r#"trap '' TERM INT
echo "this image does not stop when asked to"
while :; do sleep 1; done
"#;
const JOB: &str = r#"trap 'exit 143' TERM INT
echo "job started"
sleep "${RUN_SECONDS:-1}" &
wait $!
echo "job done"
exit "${EXIT_CODE:-0}"
"#;
const PAUSE: &str = r"trap 'exit 0' TERM INT
while :; do sleep 1000 & wait $!; done
";

/// A test image by its name and what it runs.
#[derive(Debug, Clone, Copy)]
struct Recipe {
    name: &'static str,
    tag: &'static str,
    script: &'static str,
}

const fn recipe(name: &'static str, tag: &'static str, script: &'static str) -> Recipe {
    Recipe { name, tag, script }
}

/// The images of the registry.
const RECIPES: [Recipe; 7] = [
    recipe("app", "v1", APP),
    recipe("app", "v2", APP),
    recipe("app", "v3", APP),
    recipe("http", "v1", HTTP),
    recipe("fail", "v1", FAIL),
    recipe("stubborn", "v1", STUBBORN),
    recipe("job", "v1", JOB),
];

/// Bytes with their content address.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) digest: String,
    pub(crate) bytes: Vec<u8>,
}

impl Blob {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { digest: format!("sha256:{hex}"), bytes }
    }
}

/// An assembled image.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) name: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) manifest: Blob,
    /// Layers and configuration.
    pub(crate) blobs: Vec<Blob>,
}

/// All images of the registry.
pub(crate) fn assemble(packages: &Packages) -> Result<Vec<Image>> {
    let base = base_layer(packages)?;
    RECIPES.iter().map(|recipe| image(*recipe, &base)).collect()
}

/// Writes the sandbox image as an archive that containerd imports under its name.
pub(crate) fn write_sandbox_archive(layout: &Layout, packages: &Packages) -> Result<PathBuf> {
    let image = image(recipe("pause", "1", PAUSE), &base_layer(packages)?)?;
    let file = layout.state.join("pause.tar");
    tool::write_atomically(&file, archive(&image, SANDBOX_IMAGE)?)?;
    Ok(file)
}

fn base_layer(packages: &Packages) -> Result<Blob> {
    let busybox = packages.program("busybox")?;
    let applets = tool::capture(Command::new(&busybox).arg("--list"))?;
    let program = fs::read(&busybox).with_context(|| format!("cannot read {}", busybox.display()))?;
    let mut layer = Archive::default();
    for folder in ["bin/", "etc/", "www/", "root/"] {
        layer.folder(folder, 0o755);
    }
    layer.folder("tmp/", 0o1777);
    layer.file(
        "etc/passwd",
        0o644,
        b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    );
    layer.file("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n");
    layer.file("bin/busybox", 0o755, &program);
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        layer.link(&format!("bin/{applet}"), "busybox");
    }
    Ok(Blob::new(layer.finish()))
}

fn image(recipe: Recipe, base: &Blob) -> Result<Image> {
    let Recipe { name, tag, script } = recipe;
    let mut layer = Archive::default();
    layer.file("run.sh", 0o755, script.as_bytes());
    layer.folder("www/", 0o755);
    layer.file("www/index.html", 0o644, format!("{name} {tag}\n").as_bytes());
    layer.file("www/healthz", 0o644, b"ok\n");
    let own = Blob::new(layer.finish());
    let config = Blob::new(serde_json::to_vec(&json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Env": ["PATH=/bin", format!("IMAGE_NAME={name}"), format!("IMAGE_VERSION={tag}")],
            "Entrypoint": ["/bin/sh", "/run.sh"],
            "WorkingDir": "/",
        },
        "rootfs": { "type": "layers", "diff_ids": [base.digest, own.digest] },
    }))?);
    let describe = |media_type: &str, blob: &Blob| json!({ "mediaType": media_type, "digest": blob.digest, "size": blob.bytes.len() });
    let manifest = Blob::new(serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": describe(CONFIG_TYPE, &config),
        "layers": [describe(LAYER_TYPE, base), describe(LAYER_TYPE, &own)],
    }))?);
    Ok(Image { name, tag, manifest, blobs: vec![base.clone(), own, config] })
}

/// An image layout in one archive.
fn archive(image: &Image, full_name: &str) -> Result<Vec<u8>> {
    let index = json!({
        "schemaVersion": 2,
        "manifests": [{
            "mediaType": MANIFEST_TYPE,
            "digest": image.manifest.digest,
            "size": image.manifest.bytes.len(),
            "annotations": { "io.containerd.image.name": full_name },
        }],
    });
    let mut archive = Archive::default();
    archive.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#);
    archive.file("index.json", 0o644, &serde_json::to_vec(&index)?);
    for blob in image.blobs.iter().chain([&image.manifest]) {
        archive.file(&format!("blobs/{}", blob.digest.replace(':', "/")), 0o644, &blob.bytes);
    }
    Ok(archive.finish())
}

fn architecture() -> &'static str {
    match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_an_image_share_programs_and_differ_in_digest() {
        let base = Blob::new(vec![1, 2, 3]);
        let first = image(recipe("app", "v1", APP), &base).expect("made");
        let second = image(recipe("app", "v2", APP), &base).expect("made");
        assert_eq!(first.blobs[0].digest, second.blobs[0].digest);
        assert_ne!(first.manifest.digest, second.manifest.digest);
        let again = image(recipe("app", "v1", APP), &base).expect("made");
        assert_eq!(first.manifest.digest, again.manifest.digest);
    }

    #[test]
    fn a_digest_is_the_sha256_of_the_bytes() {
        let known = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Blob::new(b"abc".to_vec()).digest, known);
    }
}
