//! Builds Kubernetes from Debian's source package, once.
//!
//! The build happens in a folder of its own and is renamed into the cache when all programs are there. A build that
//! was killed is taken up again: the compiler's own cache is kept until the end.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::layout::Layout;
use super::packages::{self, Apt};
use super::progress::Progress;
use super::repair;
use super::tool;
use super::version::{Binaries, PROGRAMS, Version};

const SOURCE_PACKAGE: &str = "kubernetes";
/// Raised when a build must not be taken from an older cache: 3 repaired what broke custom resources.
const RECIPE: u32 = 3;
/// Where Go looks for the sources below its `GOPATH`.
const IMPORT_PATH: &str = "src/k8s.io/kubernetes";
/// Go packages that hold the version a program tells.
const VERSION_PACKAGES: [&str; 4] = [
    "k8s.io/component-base/version",
    "k8s.io/client-go/pkg/version",
    "k8s.io/kubernetes/vendor/k8s.io/component-base/version",
    "k8s.io/kubernetes/vendor/k8s.io/client-go/pkg/version",
];

/// The newest build in the cache.
pub(crate) fn cached(layout: &Layout) -> Option<Binaries> {
    let folders = fs::read_dir(&layout.cache).ok()?;
    let newest = folders
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let version = version_of_folder(path.file_name()?.to_str()?)?;
            Some((version, path))
        })
        .max()?;
    Binaries::open(&newest.1).ok()
}

/// Builds all programs, unless the cache has them.
pub(crate) fn build(layout: &Layout, progress: &Progress, apt: &Apt<'_>) -> Result<Binaries> {
    if let Some(binaries) = cached(layout) {
        return Ok(binaries);
    }
    apt.install(&packages::BUILD_TOOLS)?;
    let told = apt.source_version(SOURCE_PACKAGE)?;
    let version = Version::of_debian(&told).with_context(|| format!("cannot read the version {told:?}"))?;
    let work = layout.cache.join(format!("build-{version}"));
    let tree = work.join(IMPORT_PATH);
    if !tree.is_dir() {
        progress.say(format!("unpacking the sources of Kubernetes {version}"));
        let partial = work.join("partial");
        tool::remove(&partial)?;
        let unpacked = apt.unpack_source(SOURCE_PACKAGE, &partial)?;
        fs::create_dir_all(tree.parent().context("the path has several parts")?)?;
        fs::rename(unpacked, &tree)?;
        tool::remove(&partial)?;
    }
    repair::run(&tree)?;
    fs::create_dir_all(work.join("tmp"))?;
    let generated = work.join("generated");
    if !generated.exists() {
        progress.say("generating the API description of Kubernetes");
        let mut make = go_command("make", &work, &tree);
        make.args(["gen_openapi", "UPDATE_API_KNOWN_VIOLATIONS=true"]);
        tool::run(layout, progress, tool::TASK, "generating the API description", &mut make)?;
        tool::write_atomically(&generated, "")?;
    }
    let output = work.join("bin");
    for program in PROGRAMS {
        let what = format!("building {program} {version}");
        progress.say(&what);
        let mut go = go_command("go", &work, &tree);
        go.args(["build", "-trimpath", "-ldflags", &linker_flags(version), "-o"])
            .arg(output.join(program))
            .arg(format!("./cmd/{program}"));
        tool::run(layout, progress, tool::TASK, &what, &mut go)?;
    }
    let place = layout.cache.join(folder_of_version(version));
    tool::remove(&place)?;
    fs::rename(&output, &place)?;
    tool::remove(&work)?;
    tool::remove(&layout.cache.join("apt"))?;
    Binaries::open(&place)
}

fn go_command(program: &str, work: &Path, tree: &Path) -> Command {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [PathBuf::from("/usr/lib/go/bin")].into_iter().chain(env::split_paths(&path));
    let mut command = Command::new(program);
    if let Ok(path) = env::join_paths(folders) {
        command.env("PATH", path);
    }
    command
        .current_dir(tree)
        .env_remove("GOROOT")
        .env_remove("GOFLAGS")
        .env("GOPATH", work)
        .env("GOCACHE", work.join("cache"))
        // A killed compiler leaves files behind; there they go with the folder.
        .env("GOTMPDIR", work.join("tmp"))
        // Go 1.19 refuses the tree in module mode.
        .env("GO111MODULE", "off")
        .env("GOTOOLCHAIN", "local")
        .env("CGO_ENABLED", "0");
    command
}

/// Without these the server calls itself v0.0.0.
fn linker_flags(version: Version) -> String {
    let mut flags = "-s -w".to_owned();
    for package in VERSION_PACKAGES {
        let Version { major, minor, .. } = version;
        flags.push_str(&format!(
            " -X {package}.gitVersion=v{version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        ));
    }
    flags
}

fn folder_of_version(version: Version) -> String {
    format!("kubernetes-{version}-r{RECIPE}")
}

fn version_of_folder(name: &str) -> Option<Version> {
    let (version, _) = name.strip_prefix("kubernetes-")?.split_once("-r")?;
    let version = Version::parse(version)?;
    // A name with anything behind the version is not a finished build.
    (folder_of_version(version) == name).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finished_builds_are_taken_from_the_cache() {
        let version = version_of_folder("kubernetes-1.20.2-r3").expect("a build");
        assert_eq!(version.to_string(), "1.20.2");
        assert_eq!(version_of_folder("kubernetes-1.20.2-r3.partial"), None);
        assert_eq!(version_of_folder("kubernetes-1.20.2-r2"), None, "built before the repairs");
        assert_eq!(version_of_folder("packages"), None);
    }

    #[test]
    fn every_place_of_the_version_is_set() {
        let flags = linker_flags(Version { major: 1, minor: 20, patch: 2 });
        assert_eq!(flags.matches(".gitVersion=v1.20.2").count(), 4);
        assert_eq!(flags.matches(".gitMinor=20").count(), 4);
    }
}
