//! Finds the runtimes of a node by their sockets.

use std::{path::Path, sync::Arc};

use super::{Client, Error as CallError, Runtime, Runtimes};

/// Where the folder of the node with the sockets is mounted.
pub const FOLDER: &str = "/hostvarrun";

/// Where runtimes listen below the folder, the preferred one first. Where K3s is, its kubelet uses no other containerd.
pub const CANDIDATES: [&str; 7] = [
    "k3s/containerd/containerd.sock",
    "containerd.sock",
    "containerd/containerd.sock",
    "crio.sock",
    "crio/crio.sock",
    "cri-dockerd.sock",
    "cri-dockerd/cri-dockerd.sock",
];

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// None of the sockets is there.
    #[error("not found container runtime sock: none of {tried} is in {folder}")]
    NoSocket {
        /// What was looked for.
        tried: String,
        /// Where.
        folder: String,
    },
    /// There are sockets, and nobody useful behind them.
    #[error("failed to use the container runtime at {socket}")]
    Unusable {
        /// The last one that was tried.
        socket: String,
        /// What it said.
        source: CallError,
    },
}

/// All runtimes that answer: the one behind `socket_file`, or all candidates. One that does not answer is left out.
pub async fn discover(folder: &Path, socket_file: Option<&str>) -> Result<Runtimes, Error> {
    let candidates: Vec<&str> = match socket_file {
        Some(file) => vec![file],
        None => CANDIDATES.to_vec(),
    };
    let mut found: Vec<Arc<dyn Runtime>> = Vec::new();
    let mut last = Error::NoSocket { tried: candidates.join(", "), folder: folder.display().to_string() };
    for candidate in candidates {
        let socket = folder.join(candidate);
        if !socket.exists() {
            continue;
        }
        match Client::connect(&socket).await {
            Ok(client) => {
                tracing::info!(runtime = client.name(), socket = %socket.display(), "found a container runtime");
                found.push(Arc::new(client));
            }
            Err(error) => {
                tracing::warn!(socket = %socket.display(), %error, "left out a container runtime");
                last = Error::Unusable { socket: socket.display().to_string(), source: error };
            }
        }
    }
    Runtimes::new(found).ok_or(last)
}
