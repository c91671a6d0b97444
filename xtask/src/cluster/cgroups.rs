//! The cgroup that holds all containers of the cluster, in each hierarchy of the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::layout::CGROUP;
use super::mounts::{self, Mount};
use super::progress::wait_for;

/// Creates the cgroup: a kubelet refuses a parent that does not exist.
pub(crate) fn create() -> Result<()> {
    let mounts = mounts::all()?;
    for (hierarchy, ours) in hierarchies(&mounts) {
        fs::create_dir_all(&ours).with_context(|| format!("cannot create {}", ours.display()))?;
        // With cgroup v1 a new cpuset is empty, and no process may enter it.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let (from, to) = (hierarchy.join(file), ours.join(file));
            if hierarchy.join("cgroup.procs").exists()
                && from.exists()
                && to.exists()
                && !is_unified(&hierarchy)
            {
                let value = fs::read_to_string(&from)?;
                fs::write(&to, value.trim()).with_context(|| format!("cannot write {}", to.display()))?;
            }
        }
        if is_unified(&hierarchy) {
            delegate(&hierarchy);
            delegate(&ours);
        }
    }
    Ok(())
}

/// All processes in containers.
pub(crate) fn processes() -> Result<Vec<i32>> {
    let mounts = mounts::all()?;
    let mut pids = Vec::new();
    for (_, ours) in hierarchies(&mounts) {
        for group in groups(&ours) {
            let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            pids.extend(listed.lines().filter_map(|line| line.parse::<i32>().ok()));
        }
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// Removes the cgroup with all below it; it holds no process any more.
pub(crate) fn remove() -> Result<()> {
    let mounts = mounts::all()?;
    for (_, ours) in hierarchies(&mounts) {
        // The kernel needs a moment after the last process.
        wait_for(&format!("the removal of {}", ours.display()), Duration::from_secs(10), || {
            for group in groups(&ours) {
                let _ = fs::remove_dir(group);
            }
            Ok((!ours.exists()).then_some(()))
        })?;
    }
    Ok(())
}

/// Each hierarchy with our cgroup in it.
fn hierarchies(mounts: &[Mount]) -> Vec<(PathBuf, PathBuf)> {
    mounts
        .iter()
        .filter(|mount| matches!(mount.kind.as_str(), "cgroup" | "cgroup2"))
        .map(|mount| (mount.point.clone(), mount.point.join(CGROUP)))
        .collect()
}

fn is_unified(hierarchy: &Path) -> bool {
    hierarchy.join("cgroup.controllers").exists()
}

/// Hands all controllers on to the children, one by one: one that cannot be handed on must not hold up the others.
fn delegate(group: &Path) {
    let controllers = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    for controller in controllers.split_whitespace() {
        let _ = fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

/// A cgroup and all below it, the inner ones first.
fn groups(group: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(group)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .flat_map(|entry| groups(&entry.path()))
        .collect();
    if group.is_dir() {
        found.push(group.to_path_buf());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_groups_come_before_outer_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("a/b")).expect("created");
        fs::write(folder.path().join("cgroup.procs"), "").expect("written");
        let found = groups(folder.path());
        assert_eq!(found, [folder.path().join("a/b"), folder.path().join("a"), folder.path().to_path_buf()]);
        assert!(groups(&folder.path().join("none")).is_empty());
    }

    #[test]
    fn every_hierarchy_of_both_versions_counts() {
        let mount = |point: &str, kind: &str| Mount { point: point.into(), kind: kind.to_owned() };
        let mounts = [mount("/c/cpu", "cgroup"), mount("/c/unified", "cgroup2"), mount("/c", "tmpfs")];
        let ours: Vec<_> = hierarchies(&mounts).into_iter().map(|(_, ours)| ours).collect();
        assert_eq!(ours, [PathBuf::from("/c/cpu/kruise-rs"), PathBuf::from("/c/unified/kruise-rs")]);
    }
}
