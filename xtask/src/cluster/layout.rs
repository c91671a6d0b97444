//! Where everything of the local cluster lives: folders, sockets, ports, address ranges and names.
//!
//! All of it is fixed, so that a second run finds what the first one left behind.

use std::env;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The API server, on all addresses: pods reach it by the node's address.
pub(crate) const API_SERVER_PORT: u16 = 21443;
pub(crate) const ETCD_CLIENT_PORT: u16 = 21379;
pub(crate) const ETCD_PEER_PORT: u16 = 21380;
pub(crate) const CONTROLLER_MANAGER_PORT: u16 = 21257;
pub(crate) const SCHEDULER_PORT: u16 = 21259;
pub(crate) const KUBELET_PORT: u16 = 21250;
pub(crate) const KUBELET_HEALTH_PORT: u16 = 21248;
/// The registry that everybody may pull from.
pub(crate) const REGISTRY_PORT: u16 = 21500;
/// The registry that asks for a user and a password.
pub(crate) const PRIVATE_REGISTRY_PORT: u16 = 21501;
/// Hollow node `i` listens on this port plus `i`.
pub(crate) const FIRST_HOLLOW_PORT: u16 = 21600;
/// Hollow ports end before the range that the kernel hands out by itself.
pub(crate) const MAX_HOLLOW: u16 = 1000;

const _: () = assert!(PRIVATE_REGISTRY_PORT < FIRST_HOLLOW_PORT);
const _: () = assert!(FIRST_HOLLOW_PORT + MAX_HOLLOW < 32768);

/// Addresses of pods on the real node.
pub(crate) const POD_RANGE: &str = "10.221.0.0/20";
pub(crate) const SERVICE_RANGE: &str = "10.222.0.0/16";
/// The address of the `kubernetes` service: the first one of the range.
pub(crate) const SERVICE_ADDRESS: &str = "10.222.0.1";
pub(crate) const DNS_ADDRESS: &str = "10.222.0.10";

/// The bridge of the real node's pods; also the name prefix of what the network plugins store.
pub(crate) const BRIDGE: &str = "kruise0";
pub(crate) const NETWORK: &str = "kruise-rs";
/// The parent of all container cgroups.
pub(crate) const CGROUP: &str = "kruise-rs";
pub(crate) const REAL_NODE: &str = "real-0";
pub(crate) const SANDBOX_IMAGE: &str = "kruise-rs.io/pause:1";

/// The label that tells real nodes from hollow ones.
pub(crate) const NODE_TYPE_LABEL: &str = "kruise-rs.io/node-type";
pub(crate) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The folders of one machine's cluster.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Packages and binaries: kept by `down`.
    pub(crate) cache: PathBuf,
    /// Certificates, data, logs: one cluster's life.
    pub(crate) state: PathBuf,
    /// Sockets and mounts, under a short path because socket paths are limited to 107 bytes.
    pub(crate) run: PathBuf,
}

impl Layout {
    /// The folders by the XDG rules.
    pub(crate) fn of_this_machine() -> Result<Self> {
        let home = env::var_os("HOME").map(PathBuf::from);
        let base = |variable: &str, below_home: &str| -> Result<PathBuf> {
            match env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute()) {
                Some(path) => Ok(path),
                None => {
                    Ok(home.as_ref().context("neither HOME nor the XDG folders are set")?.join(below_home))
                }
            }
        };
        Ok(Self {
            cache: base("XDG_CACHE_HOME", ".cache")?.join("kruise-rs"),
            state: base("XDG_STATE_HOME", ".local/state")?.join("kruise-rs").join("cluster"),
            run: PathBuf::from("/run/kruise-rs"),
        })
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }

    /// The output of installing and building.
    pub(crate) fn setup_log(&self) -> PathBuf {
        self.logs().join("setup.log")
    }

    pub(crate) fn log_of(&self, part: &str) -> PathBuf {
        self.logs().join(format!("{part}.log"))
    }

    pub(crate) fn pki(&self) -> PathBuf {
        self.state.join("pki")
    }

    pub(crate) fn containerd_socket(&self) -> PathBuf {
        self.run.join("containerd.sock")
    }

    /// Beside the state folder, not in it: `down` removes that one.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.state.with_extension("lock")
    }

    pub(crate) fn packages(&self) -> PathBuf {
        self.cache.join("packages")
    }
}

/// The name of hollow node `index`.
pub(crate) fn hollow_name(index: u16) -> String {
    format!("hollow-{index}")
}

/// Three zones, so that spreading over zones can be seen with the three hollow nodes of the default.
pub(crate) fn zone_of(index: u16) -> &'static str {
    match index % 3 {
        0 => "zone-a",
        1 => "zone-b",
        _ => "zone-c",
    }
}

/// The value of `--node-labels` for a node.
pub(crate) fn node_labels(node_type: &str, zone: &str) -> String {
    format!("{NODE_TYPE_LABEL}={node_type},{ZONE_LABEL}={zone}")
}

/// The machine's own address: a kubelet takes the one of the default route, and so do we.
pub(crate) fn machine_address() -> Result<IpAddr> {
    // Connecting a datagram socket sends nothing; it only looks up the route. 192.0.2.1 is reserved for documentation.
    let socket = UdpSocket::bind("0.0.0.0:0").context("failed to open a socket")?;
    socket.connect("192.0.2.1:9").context(
        "this machine has no default route, and a kubelet takes its address from there: add one, for example \
         on an interface of its own",
    )?;
    Ok(socket.local_addr()?.ip())
}

/// `path` as the text that flags and configuration files need.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_hollow_nodes_stand_in_three_zones() {
        let zones: Vec<_> = (0..4).map(zone_of).collect();
        assert_eq!(zones, ["zone-a", "zone-b", "zone-c", "zone-a"]);
    }
}
