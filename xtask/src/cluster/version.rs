//! Kubernetes versions, and what their binaries want to be told: flags come and go between releases.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::tool;

/// The programs that a folder of Kubernetes binaries must hold.
pub(crate) const PROGRAMS: [&str; 5] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubemark"];

/// A release of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

impl Version {
    /// The first `1.2.3` in a text such as `Kubernetes v1.20.2` or `v1.35.0-rc.1+abc`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| {
            let word = word.trim_start_matches('v');
            let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
            let mut numbers = word.get(..end)?.split('.').map(str::parse::<u32>);
            let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            let patch = numbers.next().and_then(Result::ok).unwrap_or(0);
            Some(Self { major, minor, patch })
        })
    }

    /// The release inside a Debian version. `1.20.5+really1.20.2-1.1` is 1.20.2: Debian went back and could not lower
    /// the number in front.
    pub(crate) fn of_debian(text: &str) -> Option<Self> {
        let without_epoch = text.split_once(':').map_or(text, |(_, rest)| rest);
        Self::parse(without_epoch.split_once("really").map_or(without_epoch, |(_, really)| really))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What one release wants that another one does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// `--port=0` closes the plain HTTP port of the controller manager and the scheduler.
    pub(crate) insecure_port_closed: bool,
    /// Ephemeral containers are behind a gate.
    pub(crate) ephemeral_containers_gate: bool,
    /// The hollow kubelet asks a real containerd about images unless told not to.
    pub(crate) fake_images_flag: bool,
    /// The hollow kubelet can be told how often it may call the API server. Its default is a fifth of a kubelet's.
    pub(crate) hollow_rates: bool,
    /// The kubelet takes the runtime by `--container-runtime…` flags, not by its configuration file.
    pub(crate) runtime_by_flags: bool,
    /// The kubelet can be told where pod logs go.
    pub(crate) pod_logs_dir: bool,
    /// The kubelet refuses cgroup v1 unless told not to.
    pub(crate) cgroup_v1_allowed: bool,
}

/// The table: each row is the range of minor releases of Kubernetes 1 that has the need.
pub(crate) fn needs(version: Version) -> Needs {
    let minor = if version.major > 1 { u32::MAX } else { version.minor };
    Needs {
        insecure_port_closed: minor < 24,
        ephemeral_containers_gate: minor < 25,
        fake_images_flag: minor >= 22,
        hollow_rates: minor >= 31,
        runtime_by_flags: minor < 27,
        pod_logs_dir: minor >= 30,
        cgroup_v1_allowed: minor >= 35,
    }
}

/// A folder of Kubernetes binaries.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    pub(crate) dir: PathBuf,
    pub(crate) version: Version,
}

impl Binaries {
    /// Looks into `dir`: all programs must be there, and tell their version.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().with_context(|| format!("cannot read the folder {}", dir.display()))?;
        let missing: Vec<_> = PROGRAMS.into_iter().filter(|name| !dir.join(name).is_file()).collect();
        if !missing.is_empty() {
            bail!("{} has no {}", dir.display(), missing.join(", "));
        }
        let told = tool::capture(Command::new(dir.join("kube-apiserver")).arg("--version"))?;
        let version = Version::parse(&told).with_context(|| {
            format!("cannot read a version in {told:?} of {}/kube-apiserver", dir.display())
        })?;
        Ok(Self { dir, version })
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn needs(&self) -> Needs {
        needs(self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_needs(version: &str, expected: &str) {
        let Needs {
            insecure_port_closed,
            ephemeral_containers_gate,
            fake_images_flag,
            hollow_rates,
            runtime_by_flags,
            pod_logs_dir,
            cgroup_v1_allowed,
        } = needs(Version::parse(version).expect("a version"));
        let told: Vec<_> = [
            (insecure_port_closed, "port"),
            (ephemeral_containers_gate, "ephemeral"),
            (fake_images_flag, "images"),
            (hollow_rates, "rates"),
            (runtime_by_flags, "runtime"),
            (pod_logs_dir, "logs"),
            (cgroup_v1_allowed, "cgroup"),
        ]
        .into_iter()
        .filter_map(|(needed, name)| needed.then_some(name))
        .collect();
        assert_eq!(told.join(" "), expected, "{version}");
    }

    #[test]
    fn each_release_gets_the_flags_it_knows() {
        check_needs("v1.20.2", "port ephemeral runtime");
        check_needs("v1.21.14", "port ephemeral runtime");
        check_needs("v1.22.0", "port ephemeral images runtime");
        check_needs("v1.23.17", "port ephemeral images runtime");
        check_needs("v1.24.0", "ephemeral images runtime");
        check_needs("v1.25.0", "images runtime");
        check_needs("v1.26.9", "images runtime");
        check_needs("v1.27.0", "images");
        check_needs("v1.30.1", "images logs");
        check_needs("v1.31.0", "images rates logs");
        check_needs("v1.34.0", "images rates logs");
        check_needs("v1.35.0", "images rates logs cgroup");
        check_needs("v2.0.0", "images rates logs cgroup");
    }

    #[track_caller]
    fn check_parse(parsed: Option<Version>, expected: &str) {
        assert_eq!(parsed.map(|version| version.to_string()).unwrap_or_default(), expected);
    }

    #[test]
    fn versions_are_found_in_what_programs_print() {
        check_parse(Version::parse("Kubernetes v1.20.2"), "1.20.2");
        check_parse(Version::parse("Kubernetes v1.35.0-rc.1+0fdc5e"), "1.35.0");
        check_parse(Version::parse("etcd Version: 3.4.23\nGit SHA: Not provided"), "3.4.23");
        check_parse(Version::parse("no number here"), "");
    }

    #[test]
    fn a_debian_version_that_went_back_counts_as_what_it_really_is() {
        check_parse(Version::of_debian("1.20.5+really1.20.2-1.1+deb12u1"), "1.20.2");
        check_parse(Version::of_debian("1.32.3+ds-2"), "1.32.3");
        check_parse(Version::of_debian("2:1.19~1"), "1.19.0");
    }
}
