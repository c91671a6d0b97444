//! Debian's packages: tools are installed, servers are only unpacked.
//!
//! Installing `containerd`, `etcd-server`, `docker-registry` or `busybox-static` would start services, and would replace
//! another container runtime or busybox that the machine uses. They are therefore downloaded and unpacked into the cache.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::layout::Layout;
use super::progress::Progress;
use super::{sources, tool};

/// Packages that are unpacked, each with a program that proves it is there.
const UNPACKED: [(&str, &str); 7] = [
    ("etcd-server", "etcd"),
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("containernetworking-plugins", "bridge"),
    ("docker-registry", "docker-registry"),
    ("busybox-static", "busybox"),
    ("kubernetes-client", "kubectl"),
];

/// Where a package puts programs.
const PROGRAM_FOLDERS: [&str; 5] = ["usr/bin", "usr/sbin", "bin", "sbin", "usr/lib/cni"];

/// Programs a running cluster needs from the machine, with their packages.
pub(crate) const RUN_TOOLS: [(&str, &str); 2] =
    [("/usr/sbin/ip", "iproute2"), ("/usr/bin/setsid", "util-linux")];

/// What a build needs, with the packages. Debian's own compiler: a newer one refuses old sources.
pub(crate) const BUILD_TOOLS: [(&str, &str); 6] = [
    ("/usr/lib/go/bin/go", "golang-go"),
    ("/usr/bin/rsync", "rsync"),
    ("/usr/bin/jq", "jq"),
    ("/usr/bin/make", "make"),
    ("/usr/bin/dpkg-source", "dpkg-dev"),
    super::repair::REFLECT,
];

/// The unpacked packages.
#[derive(Debug, Clone)]
pub(crate) struct Packages {
    root: PathBuf,
}

impl Packages {
    /// The cache, if it is complete.
    pub(crate) fn cached(layout: &Layout) -> Option<Self> {
        let packages = Self { root: layout.packages() };
        UNPACKED.iter().all(|(_, program)| packages.find(program).is_some()).then_some(packages)
    }

    /// A program of an unpacked package.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        self.find(name).with_context(|| format!("{} has no {name}", self.root.display()))
    }

    /// The folder of the network plugins.
    pub(crate) fn network_plugins(&self) -> PathBuf {
        self.root.join("usr/lib/cni")
    }

    /// A `PATH` with the packages' own programs only.
    pub(crate) fn path(&self) -> String {
        let folders: Vec<_> =
            PROGRAM_FOLDERS.iter().map(|folder| self.root.join(folder).display().to_string()).collect();
        folders.join(":")
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        PROGRAM_FOLDERS
            .iter()
            .map(|folder| self.root.join(folder).join(program))
            .find(|file| tool::is_program(file))
    }
}

/// Whether every tool is on the machine.
pub(crate) fn have(tools: &[(&str, &str)]) -> bool {
    missing(tools).is_empty()
}

/// Package management in one run of a command.
#[derive(Debug)]
pub(crate) struct Apt<'a> {
    layout: &'a Layout,
    progress: &'a Progress,
    /// The machine's package lists are updated at most once, and only when something is wanted.
    is_updated: Cell<bool>,
    /// The same for our lists of source packages.
    are_sources_known: Cell<bool>,
}

impl<'a> Apt<'a> {
    pub(crate) fn new(layout: &'a Layout, progress: &'a Progress) -> Self {
        Self { layout, progress, is_updated: Cell::new(false), are_sources_known: Cell::new(false) }
    }

    /// Installs the tools that are missing.
    pub(crate) fn install(&self, tools: &[(&str, &str)]) -> Result<()> {
        let missing = missing(tools);
        if missing.is_empty() {
            return Ok(());
        }
        self.update()?;
        self.progress.say(format!("installing packages: {}", missing.join(", ")));
        let mut command = apt(&[]);
        command.args(["install", "-y", "--no-install-recommends"]).args(&missing);
        if self.run(tool::APT, "installing packages", &mut command).is_err() {
            // A run that was killed while it installed leaves packages half-way; dpkg wants this before anything else.
            let mut repair = Command::new("dpkg");
            repair.args(["--configure", "-a"]).env("DEBIAN_FRONTEND", "noninteractive");
            self.run(tool::APT, "repairing half-installed packages", &mut repair)?;
            self.run(tool::APT, "installing packages", &mut command)?;
        }
        Ok(())
    }

    /// Downloads and unpacks the servers, unless they are in the cache.
    pub(crate) fn unpack(&self) -> Result<Packages> {
        if let Some(packages) = Packages::cached(self.layout) {
            return Ok(packages);
        }
        self.update()?;
        let names: Vec<_> = UNPACKED.iter().map(|(package, _)| *package).collect();
        self.progress.say(format!("unpacking packages: {}", names.join(", ")));
        let partial = self.layout.cache.join("packages.partial");
        let downloads = partial.join("downloads");
        tool::remove(&partial)?;
        fs::create_dir_all(&downloads)?;
        let mut download = apt(&[]);
        download.arg("download").args(&names).current_dir(&downloads);
        self.run(tool::TASK, "downloading packages", &mut download)?;
        for entry in fs::read_dir(&downloads)? {
            let mut unpack = Command::new("dpkg-deb");
            unpack.arg("-x").arg(entry?.path()).arg(&partial);
            self.run(tool::TASK, "unpacking a package", &mut unpack)?;
        }
        tool::remove(&downloads)?;
        tool::remove(&self.layout.packages())?;
        fs::rename(&partial, self.layout.packages())?;
        Packages::cached(self.layout).with_context(|| {
            let programs: Vec<_> = UNPACKED.iter().map(|(_, program)| *program).collect();
            format!("the packages do not hold all of {}", programs.join(", "))
        })
    }

    /// Downloads and unpacks the source package `name` into `folder`; the answer is the unpacked folder.
    pub(crate) fn unpack_source(&self, name: &str, folder: &Path) -> Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let mut source = apt(&self.source_options()?);
        source.args(["source", "--only-source", name]).current_dir(folder);
        self.run(tool::TASK, "downloading the source package", &mut source)?;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                return Ok(path);
            }
        }
        bail!("the source package {name} unpacked no folder in {}", folder.display());
    }

    /// The version of a source package.
    pub(crate) fn source_version(&self, name: &str) -> Result<String> {
        let mut show = Command::new("apt-cache");
        show.args(self.source_options()?).args(["showsrc", "--only-source", name]);
        let told = tool::capture(&mut show)?;
        // Newest first, as apt would take it.
        told.lines()
            .find_map(|line| line.strip_prefix("Version: "))
            .map(str::to_owned)
            .with_context(|| format!("apt knows no source package {name}"))
    }

    /// Options that make apt read our lists of sources only, with its state in our cache: the machine's own
    /// configuration and lists stay as they are.
    fn source_options(&self) -> Result<Vec<String>> {
        let folder = self.layout.cache.join("apt");
        let (parts, lists, cache) = (folder.join("parts"), folder.join("lists"), folder.join("cache"));
        let option = |name: &str, path: &Path| ["-o".to_owned(), format!("{name}={}", path.display())];
        let options: Vec<_> = [
            option("Dir::Etc::SourceList", Path::new("/dev/null")),
            option("Dir::Etc::SourceParts", &parts),
            option("Dir::State::lists", &lists),
            option("Dir::Cache", &cache),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !self.are_sources_known.get() {
            self.progress.say("looking up source packages");
            let derived = sources::of_this_machine()?;
            fs::create_dir_all(lists.join("partial"))?;
            fs::create_dir_all(cache.join("archives/partial"))?;
            fs::create_dir_all(&parts)?;
            for (name, content) in [("derived.list", derived.list), ("derived.sources", derived.sources)] {
                tool::write_atomically(&parts.join(name), content)?;
            }
            self.run(tool::TASK, "looking up source packages", apt(&options).arg("update"))?;
            self.are_sources_known.set(true);
        }
        Ok(options)
    }

    fn update(&self) -> Result<()> {
        if !self.is_updated.replace(true) {
            self.progress.say("updating the package lists");
            self.run(tool::APT, "updating the package lists", apt(&[]).arg("update"))?;
        }
        Ok(())
    }

    fn run(&self, kind: &str, what: &str, command: &mut Command) -> Result<()> {
        tool::run(self.layout, self.progress, kind, what, command)
    }
}

fn missing<'a>(tools: &[(&str, &'a str)]) -> Vec<&'a str> {
    tools.iter().filter(|(file, _)| !Path::new(file).is_file()).map(|(_, package)| *package).collect()
}

fn apt(options: &[String]) -> Command {
    let mut command = Command::new("apt-get");
    // Another run of apt, or one that outlived a killed run of ours, is waited for.
    command
        .args(["-q", "-o", "DPkg::Lock::Timeout=180", "-o", "APT::Sandbox::User=root"])
        .args(options)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C.UTF-8");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_missing_tools_are_installed() {
        let tools = [("/bin/sh", "dash"), ("/nonexistent/tool", "tools")];
        assert_eq!(missing(&tools), ["tools"]);
        assert!(!have(&tools));
        assert!(have(&[("/bin/sh", "dash")]));
    }

    #[test]
    fn a_cache_with_a_missing_program_is_not_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout {
            cache: folder.path().to_path_buf(),
            state: folder.path().join("state"),
            run: folder.path().join("run"),
        };
        fs::create_dir_all(layout.packages().join("usr/bin")).expect("created");
        assert!(Packages::cached(&layout).is_none());
    }
}
