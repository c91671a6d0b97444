//! A cluster to try things on.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::Namespace;
use kruise_api::version::Version;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams},
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::{
    Sandbox, Skip,
    scenario::fail,
    wait::{Look, eventually},
    writes::Writes,
};

/// Label of nodes that tells real kubelets from hollow ones.
pub const NODE_TYPE: &str = "kruise-rs.io/node-type";
/// Nodes that run real containers.
pub const REAL_NODES: (&str, &str) = (NODE_TYPE, "real");
/// Nodes on which containers are only names.
pub const HOLLOW_NODES: (&str, &str) = (NODE_TYPE, "hollow");

/// Where test images come from when `KRUISE_TEST_REGISTRY` does not say.
const REGISTRY: &str = "127.0.0.1:21500";

/// What a cluster is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A Kubernetes with kubelets, in real time.
    Real,
    /// Our own API server and simulated nodes, in this process.
    Embedded,
}

/// A cluster to try things on. Clones share everything.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    once: Client,
    backend: Backend,
    version: String,
    writes: Writes,
    sandboxes: Mutex<Vec<String>>,
}

/// Why there is no cluster to try things on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody said which cluster.
    #[error(
        "KUBECONFIG is not set; run `cargo xtask cluster up` and use the kubeconfig it prints, or name the kubeconfig of a cluster for tests"
    )]
    NoKubeconfig,
    /// The file cannot be used.
    #[error("the kubeconfig {path:?} cannot be used ({problem}); name an existing kubeconfig in KUBECONFIG")]
    Kubeconfig {
        /// What `KUBECONFIG` says.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The server does not answer.
    #[error(
        "the API server of {path:?} does not answer ({problem}); is the cluster up? `cargo xtask cluster status` tells"
    )]
    Unreachable {
        /// What `KUBECONFIG` says.
        path: String,
        /// What went wrong.
        problem: String,
    },
}

impl Cluster {
    /// The cluster that `KUBECONFIG` names.
    pub async fn real() -> Result<Self, Error> {
        let path =
            std::env::var("KUBECONFIG").ok().filter(|path| !path.is_empty()).ok_or(Error::NoKubeconfig)?;
        let unusable = |problem: String| Error::Kubeconfig { path: path.clone(), problem };
        let kubeconfig = Kubeconfig::read_from(&path).map_err(|error| unusable(chain(&error)))?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| unusable(chain(&error)))?;
        let writes = Writes::default();
        let client = |config| {
            let builder = ClientBuilder::try_from(config).map_err(|error| unusable(chain(&error)))?;
            Ok(builder.with_layer(&writes).build())
        };
        let mut without_retries = config.clone();
        without_retries.default_retry = false;
        let once = client(without_retries)?;
        let client = client(config)?;
        let unreachable =
            |error: kube::Error| Error::Unreachable { path: path.clone(), problem: chain(&error) };
        let version = client.apiserver_version().await.map_err(unreachable)?.git_version;
        let sandboxes = Mutex::default();
        let shared =
            Shared { client, once, backend: Backend::Real, version, writes: writes.clone(), sandboxes };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A cluster behind any client.
    pub async fn new(client: Client, backend: Backend, writes: Writes) -> Result<Self, kube::Error> {
        let version = client.apiserver_version().await?.git_version;
        let once = client.clone();
        let shared = Shared { client, once, backend, version, writes, sandboxes: Mutex::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The client of this cluster.
    pub fn client(&self) -> Client {
        self.shared.client.clone()
    }

    /// A client that sends each request once. The usual one tries again for minutes after 429, which an eviction that a
    /// budget refuses is answered with.
    pub fn client_without_retries(&self) -> Client {
        self.shared.once.clone()
    }

    /// What the cluster is made of.
    pub fn backend(&self) -> Backend {
        self.shared.backend
    }

    /// The server's version, as it calls itself.
    pub fn version(&self) -> &str {
        &self.shared.version
    }

    /// Whether the server is of this version of Kubernetes or a later one.
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        Version::parse(self.version()).is_some_and(|version| (version.major, version.minor) >= (major, minor))
    }

    /// Everything that was written through this handle.
    pub fn writes(&self) -> &Writes {
        &self.shared.writes
    }

    /// The full name of a test image, such as `app:v1`.
    pub fn image(&self, name: &str) -> String {
        format!("{}/{name}", registry())
    }

    /// Goes on only where the server has this resource (`pods/resize` of `v1`), found by discovery.
    pub async fn require(&self, group_version: &str, resource: &str) -> Result<(), Skip> {
        if self.kinds_of(group_version, resource).await.next().is_some() {
            return Ok(());
        }
        Err(Skip { needs: format!("{resource} in {group_version}"), server: self.version().to_owned() })
    }

    /// Goes on only where this resource reads and writes objects of this kind: what stands below pods was at times of another
    /// one in older servers.
    pub async fn require_kind(&self, group_version: &str, resource: &str, kind: &str) -> Result<(), Skip> {
        if self.kinds_of(group_version, resource).await.any(|found| found == kind) {
            return Ok(());
        }
        let needs = format!("{resource} of kind {kind} in {group_version}");
        Err(Skip { needs, server: self.version().to_owned() })
    }

    /// The kind of a resource, if the server has it.
    async fn kinds_of(&self, group_version: &str, resource: &str) -> impl Iterator<Item = String> {
        let resources = if group_version.contains('/') {
            self.client().list_api_group_resources(group_version).await
        } else {
            self.client().list_core_api_resources(group_version).await
        };
        let all = resources.map(|list| list.resources).unwrap_or_default();
        all.into_iter().filter(move |found| found.name == resource).map(|found| found.kind)
    }

    /// Goes on only where a node carries this label.
    pub async fn require_nodes(&self, (key, value): (&str, &str)) -> Result<(), Skip> {
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client());
        let list = nodes.list(&kube::api::ListParams::default().labels(&format!("{key}={value}"))).await;
        if list.is_ok_and(|list| !list.items.is_empty()) {
            return Ok(());
        }
        Err(Skip { needs: format!("a node labelled {key}={value}"), server: self.version().to_owned() })
    }

    /// A namespace of its own for one test, deleted when the scenario ends.
    pub async fn sandbox(&self, purpose: &str) -> Sandbox {
        let namespaces: Api<Namespace> = Api::all(self.client());
        let namespace: Namespace = from_json(json!({
            "metadata": { "generateName": format!("test-{purpose}-"), "labels": { "kruise-rs.io/test": purpose } },
        }));
        let made = match namespaces.create(&PostParams::default(), &namespace).await {
            Ok(made) => made,
            Err(error) => fail(&format!("failed to make a namespace for {purpose}: {}", chain(&error))),
        };
        let name = made.metadata.name.unwrap_or_default();
        self.shared.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        Sandbox::new(self.clone(), name).await
    }

    /// Installs all our CRDs and waits until the server serves them.
    pub async fn install_crds(&self) {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        ));
        let crds: Api<DynamicObject> = Api::all_with(self.client(), &resource);
        for crd in kruise_api::catalogue::CRDS {
            let name = crd.name();
            let what = format!("the server takes the CRD {name}");
            let taken =
                eventually(&what, Duration::from_secs(20), async || put(&crds, &name, crd.object()).await);
            if let Err(message) = taken.await {
                fail(&message);
            }
        }
        for crd in kruise_api::catalogue::CRDS {
            let name = crd.name();
            let what = format!("CRD {name} is established");
            let established =
                eventually(&what, Duration::from_secs(60), async || match crds.get(&name).await {
                    Ok(object) if is_established(&object.data) => Look::Yes(()),
                    Ok(object) => {
                        Look::No(object.data.get("status").map(Value::to_string).unwrap_or_default())
                    }
                    Err(error) => Look::No(chain(&error)),
                });
            if let Err(message) = established.await {
                fail(&message);
            }
        }
    }

    /// Prints what the sandboxes hold, for a scenario that failed.
    pub async fn describe_sandboxes(&self) {
        for name in self.sandboxes() {
            eprintln!("{}", Sandbox::existing(self.clone(), name).describe().await);
        }
    }

    /// Deletes the sandboxes. Does not wait until they are gone.
    pub async fn clean_up(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client());
        for name in self.sandboxes() {
            if let Err(error) = namespaces.delete(&name, &DeleteParams::background()).await {
                eprintln!("namespace {name} was not deleted: {}", chain(&error));
            }
        }
    }

    fn sandboxes(&self) -> Vec<String> {
        self.shared.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Creates an object or makes an existing one equal to it. Other tests may do the same at the same time.
async fn put(api: &Api<DynamicObject>, name: &str, object: Value) -> Look<()> {
    let mut object: DynamicObject = from_json(object);
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => return Look::Yes(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Look::No(chain(&error)),
    }
    let existing = match api.get(name).await {
        Ok(existing) => existing,
        Err(error) => return Look::No(chain(&error)),
    };
    object.metadata.resource_version = existing.metadata.resource_version;
    match api.replace(name, &PostParams::default(), &object).await {
        Ok(_) => Look::Yes(()),
        Err(error) => Look::No(chain(&error)),
    }
}

fn is_established(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let states: BTreeMap<&str, &str> = conditions
        .into_iter()
        .flatten()
        .filter_map(|condition| Some((condition.get("type")?.as_str()?, condition.get("status")?.as_str()?)))
        .collect();
    states.get("Established") == Some(&"True") && states.get("NamesAccepted") == Some(&"True")
}

/// An error with all its sources in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let next = inner.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        source = inner.source();
    }
    text
}

/// An object written down as JSON in a test.
pub(crate) fn from_json<K: serde::de::DeserializeOwned>(value: Value) -> K {
    match serde_json::from_value(value) {
        Ok(object) => object,
        Err(error) => fail(&format!("this is no {}: {error}", std::any::type_name::<K>())),
    }
}

/// The registry of the test images.
pub(crate) fn registry() -> String {
    std::env::var("KRUISE_TEST_REGISTRY").unwrap_or_else(|_| REGISTRY.to_owned())
}
