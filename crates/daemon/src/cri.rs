//! The container runtime of the node: what the daemon needs of it, as one small trait.
//!
//! [`Client`] speaks CRI v1 over a unix socket. Everything above knows only [`Runtime`], so that a simulated node can
//! stand in its place. A call that is dropped is cancelled on the other side too.

mod client;
pub mod discovery;
mod error;
#[cfg(test)]
mod fake;
#[cfg(test)]
pub(crate) mod simulated;
#[cfg(test)]
mod tests;
mod wire;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::http_get::{Network, Sockets};
pub use client::Client;
pub use error::{Error, Kind};

/// Labels and annotations that the kubelet writes on containers.
pub mod keys {
    /// The uid of the pod.
    pub const POD_UID: &str = "io.kubernetes.pod.uid";
    /// The name of the container in the pod.
    pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";
    /// The hash of the container in the spec, hexadecimal.
    pub const HASH: &str = "io.kubernetes.container.hash";
    /// How often the container was restarted.
    pub const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
    /// Seconds that the pod gives its containers to end.
    pub const TERMINATION_GRACE: &str = "io.kubernetes.pod.terminationGracePeriod";
    /// The same for a pod that is being deleted.
    pub const DELETION_GRACE: &str = "io.kubernetes.pod.deletionGracePeriod";
    /// What runs before the container ends, as JSON.
    pub const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";
    /// The ports of the container, as JSON.
    pub const PORTS: &str = "io.kubernetes.container.ports";
}

/// What a call gives, later.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// A container runtime.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// Its name: what container ids begin with, such as `containerd` in `containerd://0a1b`.
    fn name(&self) -> &str;

    /// Asks who is there.
    fn version(&self) -> Answer<'_, Version>;

    /// The containers of a pod in all states, or of all pods.
    fn containers<'a>(&'a self, pod_uid: Option<&'a str>) -> Answer<'a, Vec<Container>>;

    /// More about one container; nothing if it is gone.
    fn inspect<'a>(&'a self, id: &'a str, detail: Detail) -> Answer<'a, Option<Inspected>>;

    /// The addresses of a sandbox, the main one first; none for one in the network of the node, or that is gone.
    fn sandbox_addresses<'a>(&'a self, id: &'a str) -> Answer<'a, Vec<String>>;

    /// Ends a container: asks it to, and kills it after this time.
    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> Answer<'a, ()>;

    /// Runs a command in a container. Without a timeout it may take for ever.
    fn exec<'a>(
        &'a self,
        id: &'a str,
        command: &'a [String],
        timeout: Option<Duration>,
    ) -> Answer<'a, Output>;

    /// All images of the node.
    fn images(&self) -> Answer<'_, Vec<Image>>;

    /// Pulls an image and gives its id. Whoever calls bounds the time.
    fn pull<'a>(&'a self, pull: &'a Pull) -> Answer<'a, String>;

    /// How the pods of this runtime are reached.
    fn network(&self) -> &dyn Network {
        &Sockets
    }

    /// Where images lie, and how much they take.
    fn image_file_systems(&self) -> Answer<'_, Vec<FileSystem>>;
}

/// Who a runtime is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// `containerd`, `cri-o`, `docker`.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// The version of the API.
    pub api: String,
}

/// How much to ask about a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Its state.
    State,
    /// Also the environment of its process, which not every runtime tells.
    Environment,
}

/// What a container does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It was made and not started yet.
    Created,
    /// It runs.
    Running,
    /// It has ended.
    Exited,
    /// The runtime does not know.
    #[default]
    Unknown,
}

/// A container of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The id, without the name of the runtime.
    pub id: String,
    /// The sandbox that it shares with the other containers of its pod.
    pub sandbox: String,
    /// What it does.
    pub state: State,
    /// When it was made, in nanoseconds since 1970: containers of one name come in this order.
    pub created_at: i64,
    /// Labels of the kubelet.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the kubelet.
    pub annotations: BTreeMap<String, String>,
}

impl Container {
    /// The name that the pod gives it.
    pub fn name(&self) -> &str {
        self.labels.get(keys::CONTAINER_NAME).map_or("", String::as_str)
    }

    /// How often it was restarted before this instance.
    pub fn restart_count(&self) -> i32 {
        self.annotations.get(keys::RESTART_COUNT).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The hash that the kubelet gave its spec.
    pub fn hash(&self) -> Option<u64> {
        u64::from_str_radix(self.annotations.get(keys::HASH)?, 16).ok()
    }
}

/// The newest container of this name.
pub fn newest<'a>(containers: &'a [Container], name: &str) -> Option<&'a Container> {
    containers
        .iter()
        .filter(|container| container.name() == name)
        .max_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)))
}

/// More about one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// What it does.
    pub state: State,
    /// When it was started; nothing if it never was.
    pub started_at: Option<Timestamp>,
    /// The environment of its process, if asked for and told.
    pub environment: Option<BTreeMap<String, String>>,
}

/// What a command said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Zero when all is well.
    pub exit_code: i32,
}

/// An image of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The id.
    pub id: String,
    /// Names with tags.
    pub tags: Vec<String>,
    /// Names with digests.
    pub digests: Vec<String>,
}

/// What to pull, and in whose name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pull {
    /// The reference.
    pub image: String,
    /// Who asks; nobody unless given.
    pub auth: Option<Auth>,
    /// Labels for plugins of the runtime.
    pub labels: BTreeMap<String, String>,
    /// Annotations for plugins of the runtime.
    pub annotations: BTreeMap<String, String>,
}

/// A way to prove to a registry who asks.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Auth {
    /// The name of the account.
    pub username: String,
    /// Its password.
    pub password: String,
    /// A token of the account instead.
    pub identity_token: String,
    /// A token for this registry instead.
    pub registry_token: String,
}

impl fmt::Debug for Auth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Auth").field("username", &self.username).finish_non_exhaustive()
    }
}

/// Where images lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSystem {
    /// The folder on the node.
    pub mountpoint: String,
    /// What images take there, in bytes.
    pub used: u64,
}

/// The runtimes of a node, the preferred one first. Never empty.
#[derive(Clone, Debug)]
pub struct Runtimes(Arc<[Arc<dyn Runtime>]>);

impl Runtimes {
    /// These; nothing for an empty list.
    pub fn new(runtimes: Vec<Arc<dyn Runtime>>) -> Option<Self> {
        (!runtimes.is_empty()).then(|| Self(runtimes.into()))
    }

    /// The preferred one.
    pub fn first(&self) -> &Arc<dyn Runtime> {
        self.0.first().expect("there is at least one runtime")
    }

    /// The one of this name.
    pub fn named(&self, name: &str) -> Option<&Arc<dyn Runtime>> {
        self.0.iter().find(|runtime| runtime.name() == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Runtime>> {
        self.0.iter()
    }
}

/// The parts of an id as pods write it: `containerd://0a1b`.
pub fn split_id(id: &str) -> Option<(&str, &str)> {
    id.split_once("://").filter(|(runtime, rest)| !runtime.is_empty() && !rest.is_empty())
}
