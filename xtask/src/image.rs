//! `cargo xtask image`: the images of an installation, as OCI archives, without Docker.
//!
//! There is no base: an image holds static programs and a few small files. Nothing in it depends on the time or on the
//! machine that packs it, so the same programs always give the same digest.

mod elf;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::cluster::archive::Archive;
use crate::cluster::images::Blob;

/// What is built.
#[derive(Args)]
pub(crate) struct Options {
    /// The architecture of the nodes.
    #[arg(long, value_enum, default_value_t = Architecture::Amd64)]
    arch: Architecture,
    /// Where the archives are written.
    #[arg(long, default_value = "target/images", value_name = "FOLDER")]
    out: PathBuf,
    /// A folder with static programs `kruise-manager` and `kruise-daemon`, instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Architecture {
    Amd64,
    Arm64,
}

impl Architecture {
    fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// The number of the machine in ELF files.
    fn machine(self) -> u16 {
        match self {
            Self::Amd64 => 62,
            Self::Arm64 => 183,
        }
    }
}

/// The crate of each program, and where it is in the image.
const MANAGER: (&str, &str) = ("kruise-manager", "manager");
const DAEMON: (&str, &str) = ("kruise-daemon", "kruise-daemon");

/// The name of each image and its programs; the first one runs unless a pod says otherwise.
const IMAGES: [(&str, &[(&str, &str)]); 2] =
    [("kruise-manager", &[MANAGER, DAEMON]), ("kruise-daemon", &[DAEMON])];

/// Who runs the programs unless a pod says otherwise.
const NOBODY: &str = "65534:65534";

/// Builds the programs, packs the images and prints their digests.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let arch = options.arch;
    let programs = match &options.programs {
        Some(folder) => folder.clone(),
        None => build(root, arch)?,
    };
    let out = root.join(&options.out);
    fs::create_dir_all(&out).with_context(|| format!("failed to make {}", out.display()))?;
    for (name, parts) in IMAGES {
        let mut files = Vec::new();
        for (program, path) in parts {
            let from = programs.join(program);
            let content = fs::read(&from).with_context(|| format!("failed to read {}", from.display()))?;
            elf::check(&content, arch.machine()).with_context(|| from.display().to_string())?;
            files.push((*path, content));
        }
        let image = pack(arch.name(), name, &files)?;
        let file = out.join(format!("{name}-{}.tar", arch.name()));
        fs::write(&file, &image.archive).with_context(|| format!("failed to write {}", file.display()))?;
        println!("{} {} ({} MiB)", image.digest, file.display(), image.archive.len() >> 20);
    }
    Ok(())
}

/// Builds both programs without libraries; the answer is where they are.
fn build(root: &Path, arch: Architecture) -> Result<PathBuf> {
    let target = arch.target();
    // Paths of this machine are not for an image.
    let flags = format!("-C target-feature=+crt-static --remap-path-prefix={}=.", root.display());
    let status = Command::new("cargo")
        .current_dir(root)
        .env("RUSTFLAGS", flags)
        .args(["build", "--locked", "--profile", "small", "--target", target])
        .args(["-p", MANAGER.0, "-p", DAEMON.0])
        .status()
        .context("failed to start cargo")?;
    ensure!(
        status.success(),
        "cargo build for {target} failed; `rustup target add {target}` and a linker for it are needed"
    );
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(folder.join(target).join("small"))
}

/// An image as an OCI archive.
struct Image {
    /// Of its manifest: what a registry calls it.
    digest: String,
    archive: Vec<u8>,
}

/// The file system of an image: programs, and what a C library looks for.
fn layer(programs: &[(&str, Vec<u8>)]) -> Blob {
    let mut layer = Archive::default();
    layer.folder("etc/", 0o755);
    let users = "root:x:0:0:root:/root:/\nnobody:x:65534:65534:nobody:/:/\n";
    layer.file("etc/passwd", 0o644, users.as_bytes());
    layer.file("etc/nsswitch.conf", 0o644, b"hosts: files dns\n");
    // For certificates and for the log of refused deletions, where a pod mounts nothing there.
    layer.folder("log/", 0o1777);
    layer.folder("tmp/", 0o1777);
    for (path, content) in programs {
        layer.file(path, 0o755, content);
    }
    Blob::new(layer.finish())
}

fn pack(arch: &str, name: &str, programs: &[(&str, Vec<u8>)]) -> Result<Image> {
    let version = env!("CARGO_PKG_VERSION");
    let (first, _) = programs.first().context("an image has a program")?;
    let layer = layer(programs);
    let labels = json!({
        "org.opencontainers.image.title": name,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
        "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
    });
    let config = json!({
        "architecture": arch,
        "os": "linux",
        "config": {"User": NOBODY, "Entrypoint": [format!("/{first}")], "Env": ["PATH=/"], "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
    });
    let config = Blob::new(serde_json::to_vec(&config)?);
    let part = |kind: &str, blob: &Blob| -> Value {
        let media = format!("application/vnd.oci.image.{kind}");
        json!({"mediaType": media, "digest": blob.digest, "size": blob.bytes.len()})
    };
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": part("config.v1+json", &config),
        "layers": [part("layer.v1.tar", &layer)],
    });
    let manifest = Blob::new(serde_json::to_vec(&manifest)?);
    let mut entry = part("manifest.v1+json", &manifest);
    kruise_api::json::set(&mut entry, &["platform"], json!({"architecture": arch, "os": "linux"}));
    kruise_api::json::set(&mut entry, &["annotations", "org.opencontainers.image.ref.name"], version);
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    });
    let mut archive = Archive::default();
    archive.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#);
    archive.file("index.json", 0o644, &serde_json::to_vec(&index)?);
    for blob in [&layer, &config, &manifest] {
        archive.file(&format!("blobs/{}", blob.digest.replace(':', "/")), 0o644, &blob.bytes);
    }
    Ok(Image { digest: manifest.digest, archive: archive.finish() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> Vec<(&'static str, Vec<u8>)> {
        vec![("manager", b"one".to_vec()), ("kruise-daemon", vec![7; 1000])]
    }

    /// Unpacks an archive with the machine's `tar`; the answer is the folder and what `tar` lists.
    fn unpack(archive: &[u8]) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("archive");
        fs::write(&file, archive).unwrap();
        let tar = |args: &[&str]| {
            let output = Command::new("tar").current_dir(&folder).args(args).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        tar(&["-x", "-f", "archive"]);
        let listed = tar(&["-t", "-v", "--utc", "--numeric-owner", "-f", "archive"]);
        (folder, listed)
    }

    #[test]
    fn the_same_programs_give_the_same_image() {
        let (one, other) =
            (pack("amd64", "x", &programs()).unwrap(), pack("amd64", "x", &programs()).unwrap());
        assert_eq!(one.digest, other.digest);
        assert_eq!(one.archive, other.archive);
        assert_ne!(one.digest, pack("arm64", "x", &programs()).unwrap().digest);
    }

    #[test]
    fn an_image_is_an_oci_layout_whose_parts_have_their_digests() {
        let image = pack("amd64", "kruise-manager", &programs()).unwrap();
        let (folder, _) = unpack(&image.archive);
        let read = |path: &str| fs::read(folder.path().join(path)).unwrap();
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let blob = |part: &Value| {
            let bytes = read(&format!("blobs/{}", part["digest"].as_str().unwrap().replace(':', "/")));
            assert_eq!(part["size"], bytes.len());
            let blob = Blob::new(bytes);
            assert_eq!(part["digest"], blob.digest);
            blob.bytes
        };
        assert_eq!(parse(&read("oci-layout"))["imageLayoutVersion"], "1.0.0");
        let manifest = &parse(&read("index.json"))["manifests"][0];
        assert_eq!(manifest["digest"], image.digest.as_str());
        let manifest = parse(&blob(manifest));
        let config = parse(&blob(&manifest["config"]));
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        assert_eq!(config["config"]["User"], NOBODY);
        assert_eq!(config["config"]["Entrypoint"], json!(["/manager"]));
        let (files, listed) = unpack(&layer);
        assert_eq!(fs::read(files.path().join("kruise-daemon")).unwrap(), [7; 1000]);
        assert!(listed.contains("-rwxr-xr-x 0/0               3 1970-01-01 00:00 manager"), "{listed}");
        assert!(listed.contains("drwxrwxrwt 0/0               0 1970-01-01 00:00 tmp/"), "{listed}");
    }

    #[test]
    fn programs_that_need_a_loader_or_another_machine_are_refused() {
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        let refused = |program: &[u8], machine| elf::check(program, machine).unwrap_err().to_string();
        assert!(refused(b"#!/bin/sh", 62).contains("ELF"));
        let (machine, other) = if cfg!(target_arch = "x86_64") { (62, 183) } else { (183, 62) };
        assert!(refused(&own, other).contains("another machine"));
        assert!(refused(&own, machine).contains("+crt-static"));
        assert!(refused(&own[..40], machine).contains("too early"));
        let mut alone = own[..64].to_vec();
        alone[56..58].copy_from_slice(&[0, 0]);
        elf::check(&alone, machine).unwrap();
    }
}
