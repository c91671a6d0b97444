//! A cluster with one of everything, a manager that leads, and what must hold there whatever is stored.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kruise_core::object::{ObjectKey, Resource};
use kruise_manager::caches::Caches;
use kruise_runtime::{
    cache::{Cache, View},
    decode,
};
use kruise_sim::Sim;
use serde_json::{Value, json};

use crate::world::{World, text};

const FLAGS: &[&str] = &[
    "--feature-gates=ImagePullJobGate=true,SidecarTerminator=true,EnhancedLivenessProbeGate=true,\
     PreDownloadImageForInPlaceUpdate=true",
    "--nodeimage-creation-delay=0s",
];
/// Where everything is that may be spoilt.
pub(crate) const SPOILT: &str = "default";
/// Where nothing is spoilt: what is there must go on.
const CALM: &str = "calm";
const CALM_SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/calm/clonesets";
const SETS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets";

pub(crate) struct Scene {
    pub(crate) world: World,
    /// How many replicas the calm set is to have.
    wanted: u64,
}

fn set(name: &str, replicas: u64, node: &str, claims: bool) -> Value {
    let mut set = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {
            "terminationGracePeriodSeconds": 1, "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "main", "image": "app:v1"}]}}}});
    if claims {
        set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    }
    set
}

impl Scene {
    pub(crate) async fn new(seed: u64) -> Self {
        let mut world = World::direct(seed, 2, FLAGS).await;
        world.start_daemons();
        world.post("/api/v1/namespaces", json!({"metadata": {"name": CALM}})).await;
        world.post(CALM_SETS, set("calm", 2, "node-2", false)).await;
        world.post(SETS, set("web", 3, "node-1", true)).await;
        let apps = |version: &str, plural: &str| {
            format!("/apis/apps.kruise.io/{version}/namespaces/default/{plural}")
        };
        let selector = json!({"matchLabels": {"app": "web"}});
        world
            .post(
                "/apis/apps.kruise.io/v1beta1/sidecarsets",
                json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": "side"}, "spec": {
                    "selector": {"matchLabels": {"app": "none"}}, "updateStrategy": {"type": "RollingUpdate"},
                    "containers": [{"name": "side", "image": "sidecar:v1"}]}}),
            )
            .await;
        world
            .post(
                &apps("v1beta1", "imagepulljobs"),
                json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": "pull"}, "spec": {
                    "image": "nginx:1", "completionPolicy": {"type": "Always"}}}),
            )
            .await;
        world
            .post(
                &apps("v1beta1", "imagelistpulljobs"),
                json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "metadata": {"name": "list"}, "spec": {
                    "images": ["busybox:1"], "completionPolicy": {"type": "Always"}}}),
            )
            .await;
        world
            .post(
                &apps("v1alpha1", "podprobemarkers"),
                json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": "probe"}, "spec": {
                    "selector": selector, "probes": [{"name": "idle", "containerName": "main",
                        "probe": {"exec": {"command": ["true"]}, "periodSeconds": 30},
                        "podConditionType": "game.io/idle"}]}}),
            )
            .await;
        world
            .post(
                &apps("v1alpha1", "ephemeraljobs"),
                json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "EphemeralJob", "metadata": {"name": "look"}, "spec": {
                    "selector": selector, "replicas": 1, "template": {"ephemeralContainers": [
                        {"name": "debug", "image": "busybox:1", "targetContainerName": "main",
                            "imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}]}}}),
            )
            .await;
        world
            .post(
                &apps("v1beta1", "persistentpodstates"),
                json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "PersistentPodState", "metadata": {"name": "place"}, "spec": {
                    "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "none"},
                    "requiredPersistentTopology": {"keys": ["kubernetes.io/hostname"]}}}),
            )
            .await;
        let mut scene = Self { world, wanted: 2 };
        scene.world.caches().nodes.want();
        scene.converges().await.unwrap();
        scene.world.live(30).await;
        scene.request().await;
        scene.world.live(5).await;
        scene
    }

    /// Asks for a container of a spoilt pod to be recreated.
    async fn request(&self) {
        let pods = self.world.list("/api/v1/namespaces/default/pods").await;
        let Some(pod) = pods.first() else { return };
        let request = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": {"name": "again"}, "spec": {"podName": pod["metadata"]["name"], "containers": [{"name": "main"}]}});
        self.world
            .post("/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests", request)
            .await;
    }

    /// The objects that may be spoilt, as table, namespace and name. What the calm set needs is not among them.
    pub(crate) fn victims(&self) -> Vec<(&'static str, String, String)> {
        const TABLES: &[&str] = &[
            "/pods",
            "/nodes",
            "/namespaces",
            "/persistentvolumeclaims",
            "/events",
            "/secrets",
            "/configmaps",
            "apps/controllerrevisions",
            "coordination.k8s.io/leases",
            "apps.kruise.io/clonesets",
            "apps.kruise.io/sidecarsets",
            "apps.kruise.io/imagepulljobs",
            "apps.kruise.io/imagelistpulljobs",
            "apps.kruise.io/nodeimages",
            "apps.kruise.io/containerrecreaterequests",
            "apps.kruise.io/podprobemarkers",
            "apps.kruise.io/nodepodprobes",
            "apps.kruise.io/ephemeraljobs",
            "apps.kruise.io/persistentpodstates",
        ];
        let mut found = Vec::new();
        for table in TABLES {
            let (_, records) = self.world.sim.server().store().list(table, None);
            for record in records {
                let may = match *table {
                    "/nodes" | "apps.kruise.io/nodeimages" | "apps.kruise.io/nodepodprobes" => {
                        &*record.name == "node-1"
                    }
                    "/namespaces" => &*record.name == SPOILT,
                    "coordination.k8s.io/leases" => &*record.name == "node-1",
                    _ => record.namespace.is_empty() || &*record.namespace == SPOILT,
                };
                if may {
                    found.push((*table, record.namespace.to_string(), record.name.to_string()));
                }
            }
        }
        found
    }

    /// Changes the size and the image of the calm set, and waits until it has them.
    pub(crate) async fn converges(&mut self) -> Result<(), String> {
        self.wanted = if self.wanted == 2 { 3 } else { 2 };
        let image = format!("app:v{}", self.wanted);
        let containers = json!([{"name": "main", "image": image}]);
        let spec = json!({"replicas": self.wanted, "template": {"spec": {"containers": containers}}});
        let path = format!("{CALM_SETS}/calm");
        self.world.patch(&path, json!({"spec": spec})).await;
        let mut set = Value::Null;
        for _ in 0..600 {
            self.world.live(1).await;
            set = self.world.get(&path).await;
            let is = |name: &str| set["status"][name].as_u64() == Some(self.wanted);
            let is_seen = set["status"]["observedGeneration"] == set["metadata"]["generation"];
            if is_seen && is("replicas") && is("updatedReplicas") && is("readyReplicas") {
                return Ok(());
            }
        }
        Err(format!("the calm set does not converge: {}", set["status"]))
    }

    /// Waits until the caches of the manager have exactly what the server has.
    pub(crate) async fn caches_agree(&self) -> Result<(), String> {
        let mut differs = String::new();
        for _ in 0..120 {
            match self.compare().await {
                Ok(()) => return Ok(()),
                Err(problem) => differs = problem,
            }
            self.world.live(1).await;
        }
        Err(differs)
    }

    async fn compare(&self) -> Result<(), String> {
        let sim = &self.world.sim;
        let Caches {
            pods,
            nodes,
            claims,
            storage_classes: _,
            revisions,
            clonesets,
            statefulsets,
            daemonsets,
            broadcast_jobs,
            cron_jobs,
            jobs: _,
            pull_jobs,
            list_pull_jobs,
            node_images,
            secrets: _,
            recreate_requests,
            probe_markers,
            node_probes,
            ephemeral_jobs,
            sidecarsets,
            namespaces: _,
            configuration: _,
            budgets,
            persistent_pod_states,
            // Its gate is closed here.
            distributions: _,
            spreads,
            deployments: _,
            replica_sets: _,
            native_statefulsets: _,
            united_deployments: _,
        } = self.world.caches();
        // A manager that was started anew follows nodes only when somebody wants them.
        nodes.want();
        same(sim, pods).await?;
        same(sim, nodes).await?;
        same(sim, claims).await?;
        same(sim, revisions).await?;
        same(sim, clonesets).await?;
        same(sim, statefulsets).await?;
        same(sim, daemonsets).await?;
        same(sim, broadcast_jobs).await?;
        same(sim, cron_jobs).await?;
        same(sim, pull_jobs).await?;
        same(sim, list_pull_jobs).await?;
        same(sim, node_images).await?;
        same(sim, recreate_requests).await?;
        same(sim, probe_markers).await?;
        same(sim, node_probes).await?;
        same(sim, ephemeral_jobs).await?;
        same(sim, sidecarsets).await?;
        same(sim, budgets).await?;
        same(sim, persistent_pod_states).await?;
        same(sim, spreads).await?;
        Ok(())
    }
}

/// Keys and uids of what a server has, as far as they can be read.
async fn listed(sim: &Sim, resource: Resource) -> Result<BTreeMap<ObjectKey, String>, String> {
    let path = Resource { namespaced: false, ..resource }.path("");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let listed = sim.client().request_text(request).await.map_err(|error| error.to_string())?;
    let (list, _) = decode::tree(&listed);
    let mut found = BTreeMap::new();
    for item in list["items"].as_array().into_iter().flatten() {
        let member = |name: &str| text(&item["metadata"][name]).to_owned();
        // Without a namespace, a name is none.
        if !member("name").is_empty() && resource.namespaced != member("namespace").is_empty() {
            found.insert(ObjectKey::new(member("namespace"), member("name")), member("uid"));
        }
    }
    Ok(found)
}

async fn same<V: View>(sim: &Sim, cache: &Cache<V>) -> Result<(), String> {
    if !cache.is_synced() {
        return Err(format!("{} are not read", cache.resource().plural));
    }
    let server = listed(sim, cache.resource()).await?;
    let known = |object: Arc<V>| {
        let metadata = object.metadata();
        (metadata.key(), metadata.uid.to_string())
    };
    let cached: BTreeMap<ObjectKey, String> = cache.list().into_iter().map(known).collect();
    if server == cached {
        return Ok(());
    }
    Err(format!("{}: the server has {server:?}, the cache has {cached:?}", cache.resource().plural))
}

/// Puts JSON in the place of an object. The text of its metadata, and of all other members.
pub(crate) fn put(sim: &Sim, place: &(&'static str, String, String), metadata: &str, rest: &str) -> bool {
    let (table, namespace, name) = place;
    sim.server().store().put_raw(table, namespace, name, metadata, rest).is_ok()
}

/// An object as it is stored, without its version.
pub(crate) fn stored(sim: &Sim, place: &(&'static str, String, String)) -> Option<Value> {
    let (table, namespace, name) = place;
    let mut object = sim.server().store().get(table, namespace, name)?.value();
    object.get_mut("metadata")?.as_object_mut()?.remove("resourceVersion");
    Some(object)
}

/// How long a part of a second is, for those that must not hurry.
pub(crate) const SOON: Duration = Duration::from_secs(5);
