//! Takes the cluster away: processes, mounts, cgroups, the bridge, kernel parameters and files.
//!
//! Every step looks at the machine, not at notes, so it also works after a run that was killed, and when nothing is
//! there. Packages and binaries stay.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::layout::{BRIDGE, Layout};
use super::progress::wait_for;
use super::{cgroups, footprint, mounts, process, tool};

/// Where shims put their sockets, whatever containerd is told.
const SHIM_FOLDER: &str = "/run/containerd";

/// Removes everything but the caches and the logs.
pub(crate) fn everything(layout: &Layout) -> Result<()> {
    end_processes(layout)?;
    mounts::unmount_below(&[&layout.state, &layout.run])?;
    cgroups::remove()?;
    remove_bridge()?;
    footprint::undo(layout)?;
    remove_shim_sockets(layout, Path::new(SHIM_FOLDER))?;
    tool::remove(&layout.run)?;
    remove_state(layout)
}

/// Ends all processes with our mark and all processes in containers, again and again until none is left: a kubelet may
/// just start another one. The data is thrown away, so nobody needs time to say goodbye.
fn end_processes(layout: &Layout) -> Result<()> {
    wait_for("ending the cluster's processes", Duration::from_secs(30), || {
        let marked = process::all(layout).into_iter().filter(|found| found.part != tool::APT);
        let pids: Vec<_> = marked.map(|found| found.pid).chain(cgroups::processes()?).collect();
        pids.iter().for_each(|pid| process::kill(*pid));
        Ok(pids.is_empty().then_some(()))
    })
}

/// The other ends of its cables are gone with the network namespaces.
fn remove_bridge() -> Result<()> {
    if !Path::new("/sys/class/net").join(BRIDGE).exists() {
        return Ok(());
    }
    tool::capture(Command::new("ip").args(["link", "delete", BRIDGE]))
        .map(drop)
        .context("cannot remove the bridge")
}

/// Each container's folder names the socket of its shim. The folder of the sockets goes too when nobody else uses it.
fn remove_shim_sockets(layout: &Layout, folder: &Path) -> Result<()> {
    let tasks = layout.run.join("containerd/io.containerd.runtime.v2.task");
    for container in children(&tasks).iter().flat_map(|namespace| children(namespace)) {
        let address = fs::read_to_string(container.join("address")).unwrap_or_default();
        let socket = address.trim().strip_prefix("unix://").map(Path::new);
        if let Some(socket) = socket.filter(|socket| socket.starts_with(folder)) {
            tool::remove(socket)?;
        }
    }
    // Both fail when something else is in there, as they should.
    let _ = fs::remove_dir(folder.join("s")).and_then(|()| fs::remove_dir(folder));
    Ok(())
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// The logs stay, because whoever takes a broken cluster away wants to know why it broke. The note of the footprint
/// goes last: it is needed if this is interrupted.
fn remove_state(layout: &Layout) -> Result<()> {
    let note = footprint::file(layout);
    let kept = [layout.logs(), note.clone()];
    children(&layout.state)
        .iter()
        .filter(|path| !kept.contains(path))
        .try_for_each(|path| tool::remove(path))?;
    tool::remove(&note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(folder: &Path) -> Layout {
        Layout { cache: folder.join("cache"), state: folder.join("state"), run: folder.join("run") }
    }

    #[test]
    fn only_sockets_of_our_shims_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = layout(folder.path());
        let shims = folder.path().join("shims");
        let container = layout.run.join("containerd/io.containerd.runtime.v2.task/k8s.io/abc");
        fs::create_dir_all(&container).expect("created");
        fs::create_dir_all(shims.join("s")).expect("created");
        for name in ["ours", "other"] {
            fs::write(shims.join("s").join(name), "").expect("written");
        }
        let address = format!("unix://{}", shims.join("s/ours").display());
        fs::write(container.join("address"), address).expect("written");

        remove_shim_sockets(&layout, &shims).expect("removed");
        assert!(!shims.join("s/ours").exists());
        assert!(shims.join("s/other").exists());

        tool::remove(&shims.join("s/other")).expect("removed");
        remove_shim_sockets(&layout, &shims).expect("removed");
        assert!(!shims.exists());
    }

    #[test]
    fn logs_stay_when_the_state_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = layout(folder.path());
        fs::create_dir_all(layout.state.join("etcd/member")).expect("created");
        tool::write_atomically(&layout.log_of("etcd"), "line").expect("written");
        tool::write_atomically(&footprint::file(&layout), "{}").expect("written");
        remove_state(&layout).expect("removed");
        assert_eq!(children(&layout.state), [layout.logs()]);
        assert!(layout.log_of("etcd").exists());
    }
}
