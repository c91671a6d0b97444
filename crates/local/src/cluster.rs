//! The parts, put together.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kruise_api::catalogue::CRDS;
use kruise_api::labels::{CONTROL_PLANE, CONTROL_PLANE_VALUE};
use kruise_api::names;
use kruise_apiserver::client::Local;
use kruise_apiserver::registry::Resource;
use kruise_apiserver::webhook::https::Https;
use kruise_apiserver::{ApiServer, controllers, status};
use kruise_manager::inside::{Inside, Running};
use kruise_sim::Sim;
use rustls::crypto::CryptoProvider;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::certificates::Certificates;
use crate::daemons::{Daemons, When};
use crate::data::{self, Data};
use crate::identity::{self, Known};
use crate::kubeconfig;
use crate::manager;
use crate::serve::{self, Stop};

/// The port that people expect.
const USUAL_PORT: u16 = 6443;

/// How long workloads rest between looks: too short for people to see, long enough for hundreds of pods to change.
const REST: Duration = Duration::from_millis(20);

/// What a cluster is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port on loopback; 0 for any free one, `None` for the usual one or else a free one.
    pub port: Option<u16>,
    /// Where the kubeconfig goes.
    pub kubeconfig: PathBuf,
    /// Where the cluster is kept; `None` to keep nothing.
    pub data_dir: Option<PathBuf>,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many times faster than real time it lives.
    pub speed: f64,
    /// The seed of names, uids and luck.
    pub seed: u64,
    /// The time at the start.
    pub now: Timestamp,
    /// Whether our manager runs in it.
    pub with_manager: bool,
    /// When a node has our daemon.
    pub daemons: When,
    /// Feature gates of the manager and the daemons, over [`crate::manager::FLAGS`].
    pub feature_gates: String,
}

/// Why a cluster does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else listens there.
    #[error("port {port} of 127.0.0.1 is taken; stop what listens there, or name another with --port")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// The system gives no socket.
    #[error("cannot listen on port {port} of 127.0.0.1")]
    Listen {
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the kubeconfig {}; name another place with --kubeconfig", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No certificates.
    #[error("cannot make certificates")]
    Certificates(#[from] rcgen::Error),
    /// No TLS.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The server refuses something that belongs to every cluster.
    #[error("cannot install {what}: {}", status.message)]
    Install {
        /// What it is.
        what: String,
        /// What the server said.
        status: Box<status::Status>,
    },
    /// The data folder.
    #[error(transparent)]
    Data(#[from] data::Error),
    /// The disk is full or broken.
    #[error("{0}; what was answered before is kept")]
    NotKept(String),
    /// The listener ended, which it never should.
    #[error("the listener ended")]
    Ended(#[source] tokio::task::JoinError),
    /// Our manager does not start.
    #[error("cannot start the manager: {0}")]
    Manager(String),
    /// Our manager ended, which it never should.
    #[error("the manager ended; this is a bug")]
    ManagerEnded(#[source] kruise_runtime::scope::Error),
    /// A controller, the scheduler or a node panicked.
    #[error("a part of the simulated cluster broke down; this is a bug")]
    Broken(#[source] tokio::task::JoinError),
}

/// A running cluster.
pub struct Cluster {
    address: SocketAddr,
    sim: Sim,
    listening: JoinSet<()>,
    stop: watch::Sender<bool>,
    manager: Option<Running>,
    data: Option<Arc<Data>>,
    taken_port: Option<u16>,
}

/// Starts a cluster. When this returns, the API answers and the kubeconfig is written.
pub async fn start(settings: &Settings) -> Result<Cluster, Error> {
    let data = settings.data_dir.as_deref().map(Data::open).transpose()?.map(Arc::new);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let Identity { certificates, token, token_key, port: kept_port } = match &data {
        Some(data) => Identity::kept(data, &provider)?,
        None => Identity::fresh(&provider)?,
    };
    let usual_port = kept_port.unwrap_or(USUAL_PORT);
    let listener = listen(settings.port, usual_port).await?;
    let port = settings.port.unwrap_or(usual_port);
    let address = listener.local_addr().map_err(|source| Error::Listen { port, source })?;
    let taken_port = Some(port).filter(|port| settings.port.is_none() && *port != address.port());
    if let Some(data) = &data {
        data.keep(&[(PORT, address.port().to_string().into_bytes())])?;
    }
    let tls = serve::tls(&certificates, provider.clone())?;
    let known = Known::new(&certificates.authority, token.clone(), provider)?;

    let Settings { nodes, speed, .. } = *settings;
    // One seed would give the names and uids of the last run again.
    let seed = settings.seed.wrapping_add(data.as_ref().map_or(0, |data| data.version()));
    // A cluster that lived faster than the world is ahead of it, and its time does not go back.
    let now = data.as_ref().and_then(|data| data.time()).map_or(settings.now, |time| time.max(settings.now));
    let root_ca = Some(certificates.authority.clone());
    let options = controllers::Options { root_ca, rest: REST, ..controllers::Options::default() };
    let builder = Sim::builder().seed(seed).nodes(nodes).start_time(now).speed(speed).parallel();
    let builder = builder.controllers(options);
    let mut sim = match &data {
        Some(data) => builder.journal(data.clone()).build(),
        None => builder.build(),
    };
    if let Some(data) = &data {
        data.follow(*sim.clock());
    }
    let server = sim.server().clone();
    // Tokens of service accounts are valid as long as the cluster is kept.
    server.set_token_key(&token_key);
    // A manager outside of this process, or somebody's own webhook on this machine.
    server.set_webhook_caller(Arc::new(Https));
    install_kinds(&server.local()).await?;
    let gates = manager::gates(&settings.feature_gates).map_err(|error| Error::Manager(error.to_string()))?;
    let inside = match settings.with_manager {
        true => Some(manager::inside(&sim, seed, &settings.feature_gates).map_err(Error::Manager)?),
        false => None,
    };
    if let Some(inside) = &inside {
        install_webhooks(&server.local(), inside.configurations()).await?;
    }

    let text = kubeconfig::text(address, &certificates, &token);
    kubeconfig::write(&settings.kubeconfig, &text)
        .map_err(|source| Error::Kubeconfig { path: settings.kubeconfig.clone(), source })?;

    let (sender, stop) = Stop::new();
    let mut listening = JoinSet::new();
    listening.spawn(serve::serve(listener, tls, known, server, stop));
    sim.run();
    if settings.daemons != When::Never {
        let daemons = Daemons::new(&sim, seed, settings.daemons, gates).map_err(refused("daemons"))?;
        sim.spawn(daemons.run());
    }
    let manager = inside.map(Inside::start);
    Ok(Cluster { address, sim, listening, stop: sender, manager, data, taken_port })
}

/// Waits until the manager breaks down. Without one that is never.
async fn broken(manager: &mut Option<Running>) -> kruise_runtime::scope::Error {
    match manager {
        Some(manager) => manager.ended().await,
        None => std::future::pending().await,
    }
}

/// Waits until the data folder can no longer be written. Without one that is never.
async fn not_kept(data: Option<&Data>) -> String {
    match data {
        Some(data) => data.failed().await,
        None => std::future::pending().await,
    }
}

/// What makes a kubeconfig valid.
struct Identity {
    certificates: Certificates,
    token: String,
    /// What signs tokens of service accounts.
    token_key: Vec<u8>,
    /// The port of the last run.
    port: Option<u16>,
}

/// The names under which they are kept.
const TOKEN: &str = "token";
const TOKEN_KEY: &str = "token-key";
const PORT: &str = "port";

impl Identity {
    fn fresh(provider: &CryptoProvider) -> Result<Self, Error> {
        let certificates = Certificates::make(identity::USER, identity::GROUP)?;
        let token_key = rcgen::KeyPair::generate()?.serialize_der();
        Ok(Self { certificates, token: identity::token(provider)?, token_key, port: None })
    }

    /// That of the last run, or a fresh one that is kept for the next.
    fn kept(data: &Data, provider: &CryptoProvider) -> Result<Self, Error> {
        let text = |name: &str| -> Result<Option<String>, data::Error> {
            Ok(data.kept(name)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        };
        if let (Some(certificates), Some(token)) =
            (Certificates::of_parts(|part| data.kept(part))?, text(TOKEN)?)
        {
            let port = text(PORT)?.and_then(|port| port.parse().ok());
            let token_key = match data.kept(TOKEN_KEY)? {
                Some(kept) => kept,
                // The folder is of a time before there was one.
                None => {
                    let fresh = rcgen::KeyPair::generate()?.serialize_der();
                    data.keep(&[(TOKEN_KEY, fresh.clone())])?;
                    fresh
                }
            };
            return Ok(Self { certificates, token, token_key, port });
        }
        let fresh = Self::fresh(provider)?;
        let mut parts = fresh.certificates.parts().to_vec();
        parts.push((TOKEN, fresh.token.clone().into_bytes()));
        parts.push((TOKEN_KEY, fresh.token_key.clone()));
        data.keep(&parts)?;
        Ok(fresh)
    }
}

async fn listen(wanted: Option<u16>, usual: u16) -> Result<TcpListener, Error> {
    let at = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let port = wanted.unwrap_or(usual);
    match at(port).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => Err(Error::Listen { port, source: error }),
        Err(_) if wanted.is_some() => Err(Error::PortTaken { port }),
        Err(_) => at(0).await.map_err(|source| Error::Listen { port: 0, source }),
    }
}

fn refused(what: &str) -> impl FnOnce(status::Status) -> Error {
    let what = what.to_owned();
    move |status| Error::Install { what, status: Box::new(status) }
}

/// Our kinds, and the namespaces of our manager and of what daemons may read.
async fn install_kinds(local: &Local) -> Result<(), Error> {
    let namespaces = local.resource("", "namespaces").map_err(refused("namespaces"))?;
    let labels = json!({ CONTROL_PLANE: CONTROL_PLANE_VALUE });
    let namespace = json!({ "metadata": { "name": names::NAMESPACE, "labels": labels } });
    let config = json!({ "metadata": { "name": names::DAEMON_CONFIG_NAMESPACE } });
    for (name, namespace) in [(names::NAMESPACE, namespace), (names::DAEMON_CONFIG_NAMESPACE, config)] {
        if local.get(&namespaces, "", name).is_err() {
            local.create(&namespaces, "", namespace).await.map_err(refused(name))?;
        }
    }
    let definitions = local
        .resource("apiextensions.k8s.io", "customresourcedefinitions")
        .map_err(refused("customresourcedefinitions"))?;
    for crd in CRDS {
        install(local, &definitions, crd.object()).await.map_err(refused(&crd.name()))?;
    }
    Ok(())
}

/// When the cluster asks our manager.
async fn install_webhooks(local: &Local, [mutating, validating]: [Value; 2]) -> Result<(), Error> {
    for (plural, object) in
        [("mutatingwebhookconfigurations", mutating), ("validatingwebhookconfigurations", validating)]
    {
        let resource = local.resource("admissionregistration.k8s.io", plural).map_err(refused(plural))?;
        install(local, &resource, object).await.map_err(refused(plural))?;
    }
    Ok(())
}

/// Creates an object of the whole cluster, or replaces what an earlier run left by what this build has.
async fn install(local: &Local, resource: &Arc<Resource>, mut object: Value) -> Result<(), status::Status> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    match local.get(resource, "", &name) {
        Ok(before) => {
            kruise_api::json::set(&mut object, &["metadata", "resourceVersion"], before.rv.to_string());
            local.update(resource, None, object).await.map(drop)
        }
        Err(_) => local.create(resource, "", object).await.map(drop),
    }
}

impl Cluster {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port that was meant and taken.
    pub fn taken_port(&self) -> Option<u16> {
        self.taken_port
    }

    /// The API, without the network.
    pub fn server(&self) -> &ApiServer {
        self.sim.server()
    }

    /// Waits until the listener ends or a part of the cluster breaks down, which should not happen before
    /// [`Self::stop`].
    pub async fn ended(&mut self) -> Result<(), Error> {
        tokio::select! {
            ended = self.listening.join_next() => match ended {
                Some(Err(error)) => Err(Error::Ended(error)),
                _ => Ok(()),
            },
            error = self.sim.failed() => Err(Error::Broken(error)),
            error = broken(&mut self.manager) => Err(Error::ManagerEnded(error)),
            why = not_kept(self.data.as_deref()) => Err(Error::NotKept(why)),
        }
    }

    /// Ends watches and connections, then all that lives in the cluster.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.stop.send_replace(true);
        let mut outcome = Ok(());
        while let Some(ended) = self.listening.join_next().await {
            outcome = outcome.and(ended.map_err(Error::Ended));
        }
        if let Some(data) = &self.data {
            data.close();
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_cluster_with_a_broken_part_ends_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            port: Some(0),
            kubeconfig: folder.path().join("kubeconfig"),
            data_dir: None,
            nodes: 1,
            speed: 1.0,
            seed: 1,
            now: Timestamp::UNIX_EPOCH,
            with_manager: true,
            daemons: When::ThereIsWork,
            feature_gates: String::new(),
        };
        let mut cluster = start(&settings).await.unwrap();
        cluster.sim.spawn(async { panic!("a node lost its mind") });
        let error = cluster.ended().await.unwrap_err();
        assert!(matches!(&error, Error::Broken(why) if why.to_string().contains("a node lost its mind")));
        cluster.stop().await.unwrap();
    }
}
