//! What Kubernetes and the network plugins change outside our folders, noted before and undone after.
//!
//! A kubelet sets kernel parameters, and it and the controller manager write to a few fixed folders. The parameters get their old values back, and
//! folders that were not there before are removed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::layout::{Layout, NETWORK};
use super::tool;

/// Kernel parameters that a kubelet or the bridge plugin sets.
const PARAMETERS: [&str; 7] = [
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/kernel/keys/root_maxkeys",
    "/proc/sys/kernel/keys/root_maxbytes",
    "/proc/sys/net/ipv4/ip_forward",
];

/// Folders that old releases write to whatever they are told.
const FOLDERS: [&str; 7] = [
    "/var/log/pods",
    "/var/log/containers",
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/run/kubernetes",
    "/usr/libexec/kubernetes",
    "/opt/containerd",
];

/// How the machine was before.
#[derive(Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
struct Footprint {
    parameters: BTreeMap<PathBuf, String>,
    absent: Vec<PathBuf>,
}

/// Notes how the machine is, once per cluster.
pub(crate) fn note(layout: &Layout) -> Result<()> {
    let file = file(layout);
    if file.exists() {
        return Ok(());
    }
    let seen = look(&PARAMETERS, &FOLDERS);
    tool::write_atomically(&file, serde_json::to_string(&seen)?)
}

/// Puts everything back as it was noted.
pub(crate) fn undo(layout: &Layout) -> Result<()> {
    let file = file(layout);
    if let Ok(content) = fs::read_to_string(&file) {
        let noted: Footprint =
            serde_json::from_str(&content).with_context(|| format!("cannot read {}", file.display()))?;
        restore(&noted)?;
    }
    forget_networks(Path::new("/var/lib/cni"))
}

/// Where the note is.
pub(crate) fn file(layout: &Layout) -> PathBuf {
    layout.state.join("footprint.json")
}

fn look(parameters: &[&str], folders: &[&str]) -> Footprint {
    let value = |path: &&str| Some((PathBuf::from(path), fs::read_to_string(path).ok()?));
    let is_absent = |path: &&&str| !Path::new(path).exists();
    Footprint {
        parameters: parameters.iter().filter_map(value).collect(),
        absent: folders.iter().filter(is_absent).map(PathBuf::from).collect(),
    }
}

fn restore(noted: &Footprint) -> Result<()> {
    for (path, value) in &noted.parameters {
        if fs::read_to_string(path).is_ok_and(|now| now != *value) {
            fs::write(path, value).with_context(|| format!("cannot set {} back", path.display()))?;
        }
    }
    noted.absent.iter().try_for_each(|folder| tool::remove(folder))
}

/// The network plugins' library remembers each container's addresses in a fixed folder, by the name of the network.
fn forget_networks(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder.join("results")).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(&format!("{NETWORK}-")) {
            tool::remove(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_folders_come_back_as_they_were() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("panic"), "0\n").expect("written");
        fs::create_dir(path("old")).expect("created");
        let (panic, old, new) = (path("panic"), path("old"), path("new"));
        let noted = look(
            &[panic.to_str().expect("text"), "/nonexistent/parameter"],
            &[old.to_str().expect("text"), new.to_str().expect("text")],
        );

        fs::write(&panic, "10\n").expect("written");
        fs::create_dir_all(new.join("deep")).expect("created");
        restore(&noted).expect("restored");

        assert_eq!(fs::read_to_string(&panic).expect("there"), "0\n");
        assert!(old.exists());
        assert!(!new.exists());
    }

    #[test]
    fn only_our_networks_are_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let results = folder.path().join("results");
        fs::create_dir(&results).expect("created");
        for name in ["kruise-rs-abc-eth0", "other-abc-eth0"] {
            fs::write(results.join(name), "").expect("written");
        }
        forget_networks(folder.path()).expect("forgotten");
        assert!(!results.join("kruise-rs-abc-eth0").exists());
        assert!(results.join("other-abc-eth0").exists());
    }
}
