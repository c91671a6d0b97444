//! A namespace of one scenario, and everything a scenario does in it.

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{Event, Pod, ServiceAccount},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    Backend, Cluster,
    cluster::{chain, from_json},
    events::Seen,
    pod,
    scenario::fail,
    wait::{self, Look},
};

/// How long a scenario waits for something, unless it says otherwise.
const PATIENCE: Duration = Duration::from_secs(120);

/// A namespace of one scenario. Every method fails the test with the whole story when the server says no.
#[derive(Clone)]
pub struct Sandbox {
    cluster: Cluster,
    namespace: String,
}

/// A typed object that lives in a namespace.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize
{
}
impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
{
}

impl Sandbox {
    /// Waits until the namespace can take pods (its service account is made by a controller).
    pub(crate) async fn new(cluster: Cluster, namespace: String) -> Self {
        let sandbox = Self::existing(cluster, namespace);
        sandbox
            .eventually("the namespace has its default service account", async || {
                match sandbox.api::<ServiceAccount>().get_opt("default").await {
                    Ok(Some(_)) => Look::Yes(()),
                    Ok(None) => Look::No("no service account".into()),
                    Err(error) => Look::No(chain(&error)),
                }
            })
            .await;
        if sandbox.cluster.backend() == Backend::Real {
            sandbox.eventually("the server takes pods", async || sandbox.takes_pods().await).await;
        }
        sandbox
    }

    /// Old servers refuse pods until the service account has a token, and until their admission has heard of it. Whatever
    /// else they have against a pod is none of our business here.
    async fn takes_pods(&self) -> Look<()> {
        let pod: Pod = from_json(json!({
            "metadata": {"generateName": "none-"},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        }));
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        match self.api::<Pod>().create(&dry_run, &pod).await {
            Err(error) if chain(&error).contains("API token") => Look::No(chain(&error)),
            _ => Look::Yes(()),
        }
    }

    pub(crate) fn existing(cluster: Cluster, namespace: String) -> Self {
        Self { cluster, namespace }
    }

    /// The name of the namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The API of a kind in this namespace.
    pub fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.cluster.client(), &self.namespace)
    }

    /// Creates an object written as JSON.
    pub async fn create<K: Kind>(&self, object: impl Into<Value>) -> K {
        let object: K = from_json(object.into());
        self.ok("create", &object.name_any(), self.api::<K>().create(&PostParams::default(), &object).await)
    }

    /// Creates an object that the server must refuse, and returns its message.
    pub async fn refused<K: Kind>(&self, object: impl Into<Value>) -> String {
        let object: K = from_json(object.into());
        match self.api::<K>().create(&PostParams::default(), &object).await {
            Ok(made) => fail(&format!("the server accepted {made:?}, which it must refuse")),
            Err(kube::Error::Api(status)) => status.message,
            Err(error) => fail(&format!("no answer from the server: {}", chain(&error))),
        }
    }

    /// Reads an object that must exist.
    pub async fn get<K: Kind>(&self, name: &str) -> K {
        self.ok("get", name, self.api::<K>().get(name).await)
    }

    /// All objects of a kind, sorted by name.
    pub async fn list<K: Kind>(&self) -> Vec<K> {
        let mut items = self.ok("list", "", self.api::<K>().list(&ListParams::default()).await).items;
        items.sort_by_key(ResourceExt::name_any);
        items
    }

    /// Changes an object by a merge patch.
    pub async fn merge<K: Kind>(&self, name: &str, patch: impl Into<Value>) -> K {
        let params = PatchParams::default();
        self.ok("patch", name, self.api::<K>().patch(name, &params, &Patch::Merge(patch.into())).await)
    }

    /// Changes an object by a strategic merge patch.
    pub async fn strategic<K: Kind>(&self, name: &str, patch: impl Into<Value>) -> K {
        let params = PatchParams::default();
        self.ok("patch", name, self.api::<K>().patch(name, &params, &Patch::Strategic(patch.into())).await)
    }

    /// Deletes an object.
    pub async fn delete<K: Kind>(&self, name: &str) {
        self.ok("delete", name, self.api::<K>().delete(name, &DeleteParams::default()).await.map(|_| ()));
    }

    /// Creates an object of any kind, as `kubectl create` does. Cluster-wide kinds are not put into the namespace.
    pub async fn create_any(&self, object: Value) -> Result<DynamicObject, String> {
        let api = self.any_api(&object);
        let object: DynamicObject = from_json(object);
        api.create(&PostParams::default(), &object).await.map_err(|error| chain(&error))
    }

    /// Deletes an object of any kind by its name.
    pub async fn delete_any(&self, object: Value) {
        let api = self.any_api(&object);
        let name = from_json::<DynamicObject>(object).name_any();
        self.ok("delete", &name, api.delete(&name, &DeleteParams::background()).await.map(|_| ()));
    }

    fn any_api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        let cluster_wide = kruise_api::catalogue::by_kind(&kind)
            .is_some_and(|crd| crd.group == group && crd.scope == kruise_api::crd::Scope::Cluster);
        if cluster_wide {
            Api::all_with(self.cluster.client(), &resource)
        } else {
            Api::namespaced_with(self.cluster.client(), &self.namespace, &resource)
        }
    }

    /// The events of the namespace, oldest first.
    pub async fn events(&self) -> Vec<Seen> {
        let mut events = self.list::<Event>().await;
        events.sort_by_key(|event| {
            event.metadata.resource_version.as_ref().and_then(|rv| rv.parse::<u64>().ok())
        });
        events.iter().map(Seen::from).collect()
    }

    /// Waits until a look at the cluster says yes; fails the test with the last state seen.
    pub async fn eventually<T>(&self, what: &str, look: impl AsyncFnMut() -> Look<T>) -> T {
        match wait::eventually(what, PATIENCE, look).await {
            Ok(value) => value,
            Err(message) => fail(&message),
        }
    }

    /// Watches for a time that every look says yes; fails the test with the first no.
    pub async fn always(&self, what: &str, during: Duration, look: impl AsyncFnMut() -> Look<()>) {
        if let Err(message) = wait::always(what, during, look).await {
            fail(&message);
        }
    }

    /// What the namespace holds, for reading after a failure.
    pub async fn describe(&self) -> String {
        let pods: Vec<String> =
            self.list::<Pod>().await.iter().map(|pod| format!("  {}", pod::summary(pod))).collect();
        let events: Vec<String> = self.events().await.iter().map(|event| format!("  {event}")).collect();
        format!("namespace {}\n pods:\n{}\n events:\n{}", self.namespace, pods.join("\n"), events.join("\n"))
    }

    #[track_caller]
    fn ok<T>(&self, verb: &str, name: &str, result: Result<T, kube::Error>) -> T {
        match result {
            Ok(value) => value,
            Err(error) => fail(&format!("failed to {verb} {name} in {}: {}", self.namespace, chain(&error))),
        }
    }
}
