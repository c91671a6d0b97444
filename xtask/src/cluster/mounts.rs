//! The machine's mounts: which of them are below our folders, and their unmounting.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::mount::{UnmountFlags, unmount};

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    pub(crate) kind: String,
}

/// All mounts, in the order they were made.
pub(crate) fn all() -> Result<Vec<Mount>> {
    let text = fs::read_to_string("/proc/self/mountinfo").context("cannot read the mounts")?;
    Ok(text.lines().filter_map(parse).collect())
}

/// The kind of file system that `path` is on.
pub(crate) fn kind_at(mounts: &[Mount], path: &Path) -> Option<String> {
    let holding = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    // Of two mounts on the same point the later one is seen.
    holding.max_by_key(|mount| mount.point.components().count()).map(|mount| mount.kind.clone())
}

/// Unmounts everything below these folders, the inner mounts first.
pub(crate) fn unmount_below(folders: &[&Path]) -> Result<()> {
    for mount in below(&all()?, folders) {
        unmount(&mount.point, UnmountFlags::DETACH)
            .with_context(|| format!("cannot unmount {}", mount.point.display()))?;
    }
    Ok(())
}

fn below<'a>(mounts: &'a [Mount], folders: &[&Path]) -> Vec<&'a Mount> {
    mounts.iter().rev().filter(|mount| folders.iter().any(|folder| mount.point.starts_with(folder))).collect()
}

/// A line is `id parent device root point options tags… - kind source options`.
fn parse(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let point = unescape(front.split(' ').nth(4)?);
    Some(Mount { point: PathBuf::from(point), kind: back.split(' ').next()?.to_owned() })
}

/// The kernel writes blanks and backslashes as three octal digits.
fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (code, after.get(3..)) {
            (Some(code), Some(tail)) => {
                plain.push(char::from(code));
                rest = tail;
            }
            _ => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /sys/fs/cgroup rw shared:9 - tmpfs tmpfs rw
40 22 0:50 / /run/kruise-rs/containerd/a/rootfs rw - overlay overlay rw,lowerdir=/x
41 40 0:51 / /run/kruise-rs/containerd/a/rootfs/tmp rw - tmpfs tmpfs rw
42 22 0:52 / /run/kruise-rs-other rw - tmpfs tmpfs rw
43 22 0:53 / /state/with\\040blank rw master:3 propagate_from:2 - tmpfs tmpfs rw";

    fn table() -> Vec<Mount> {
        TABLE.lines().filter_map(parse).collect()
    }

    #[test]
    fn inner_mounts_go_first_and_neighbours_stay() {
        let mounts = table();
        let points: Vec<_> = below(&mounts, &[Path::new("/run/kruise-rs"), Path::new("/state")])
            .into_iter()
            .map(|mount| mount.point.display().to_string())
            .collect();
        assert_eq!(
            points,
            [
                "/state/with blank",
                "/run/kruise-rs/containerd/a/rootfs/tmp",
                "/run/kruise-rs/containerd/a/rootfs"
            ]
        );
    }

    #[test]
    fn the_file_system_of_a_path_is_that_of_its_nearest_mount() {
        let mounts = table();
        assert_eq!(kind_at(&mounts, Path::new("/root/x")).as_deref(), Some("ext4"));
        assert_eq!(
            kind_at(&mounts, Path::new("/run/kruise-rs/containerd/a/rootfs/bin")).as_deref(),
            Some("overlay")
        );
    }

    #[test]
    fn escapes_of_the_kernel_are_undone() {
        assert_eq!(unescape("a\\040b\\134c"), "a b\\c");
        assert_eq!(unescape("plain"), "plain");
        assert_eq!(unescape("odd\\9"), "odd\\9");
    }
}
