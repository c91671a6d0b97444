//! What people do to SidecarSets and to the workload under them, by chance.

use std::time::Duration;

use kruise_api::{cloneset, names, sidecarset};
use kruise_core::features::webhooks;
use kruise_sim::Sim;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    pods::{EMPTY, SETS, Set},
    truth::Truth,
};

/// How often someone tries again whom the webhooks refuse while the manager starts.
const ATTEMPTS: u32 = 20;

#[derive(Default)]
pub(crate) struct User {
    deeds: Vec<String>,
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

fn all(sim: &Sim, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    Api::all_with(sim.client(), &resource(group, version, kind))
}

fn sets(sim: &Sim) -> Api<DynamicObject> {
    all(sim, "apps.kruise.io", "v1beta1", "SidecarSet")
}

fn workloads(sim: &Sim) -> Api<DynamicObject> {
    Api::namespaced_with(sim.client(), "default", &resource("apps.kruise.io", "v1beta1", "CloneSet"))
}

fn pods(sim: &Sim) -> Api<DynamicObject> {
    Api::namespaced_with(sim.client(), "default", &resource("", "v1", "Pod"))
}

async fn create(api: Api<DynamicObject>, object: Value) -> Result<(), kube::Error> {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.map(drop)
}

/// Makes the kinds known, and the webhooks.
pub(crate) async fn install(sim: &Sim) {
    for definition in [cloneset::CRD.object(), sidecarset::CRD.object()] {
        let definitions = all(sim, "apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        create(definitions, definition).await.unwrap();
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::NAMESPACE, "labels": {"control-plane": "openkruise"}}});
    create(all(sim, "", "v1", "Namespace"), namespace).await.unwrap();
    let gates = kruise_api::gates::Gates::default();
    for configuration in webhooks::configurations(&gates, &webhooks::Options::default()) {
        let kind = configuration["kind"].as_str().unwrap().to_owned();
        create(all(sim, "admissionregistration.k8s.io", "v1", &kind), configuration).await.unwrap();
    }
    sim.advance(Duration::from_secs(2)).await;
}

/// An image of a sidecar: most run at once, some are slow to get, some do not exist.
fn some_image(sim: &mut Sim, set: Set) -> String {
    let name = set.name();
    match sim.pick(0..8) {
        0 => format!("{name}:v8-slow6"),
        1 => format!("{name}:v9-fail"),
        _ => good_image(sim, set),
    }
}

fn good_image(sim: &mut Sim, set: Set) -> String {
    format!("{}:v{}", set.name(), sim.pick(1..5))
}

fn containers(set: Set, image: &str) -> Value {
    match set {
        Set::Log => json!([{"name": "log", "image": image}]),
        Set::Mesh => json!([{"name": "mesh", "image": image, "upgradeStrategy": {
            "upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": EMPTY,
        }}]),
    }
}

impl User {
    /// Everything that was done, for the message of a failure.
    pub(crate) fn deeds(&self) -> String {
        self.deeds.join("\n")
    }

    fn note(&mut self, sim: &Sim, deed: String) {
        self.deeds.push(format!("{} {deed}", sim.clock().now()));
    }

    /// Two sets, and a workload that both are injected into.
    pub(crate) async fn create(&mut self, sim: &mut Sim) {
        for set in SETS {
            let (image, max_unavailable) = (good_image(sim, set), sim.pick(1..4));
            let object = json!({
                "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": set.name()},
                "spec": {
                    "selector": {"matchLabels": {"app": "demo"}},
                    "containers": containers(set, &image),
                    "updateStrategy": {"maxUnavailable": max_unavailable},
                },
            });
            self.note(sim, format!("creates {} with {image}, maxUnavailable {max_unavailable}", set.name()));
            self.insist(sim, async |sim| create(sets(sim), object.clone()).await).await.unwrap();
        }
        // Until everybody has heard of them.
        sim.advance(Duration::from_secs(5)).await;
        let (replicas, max_unavailable) = (sim.pick(2..6), sim.pick(1..4));
        let workload = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "demo"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "demo"}},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                    "podUpdatePolicy": "InPlaceOnly", "maxUnavailable": max_unavailable,
                }},
                "template": {
                    "metadata": {"labels": {"app": "demo"}},
                    "spec": {
                        "terminationGracePeriodSeconds": sim.pick(0..20),
                        "containers": [{"name": "app", "image": "app:v1"}],
                    },
                },
            },
        });
        self.note(sim, format!("creates {replicas} pods, maxUnavailable {max_unavailable}"));
        self.insist(sim, async |sim| create(workloads(sim), workload.clone()).await).await.unwrap();
    }

    /// Does something until it is not refused any more.
    async fn insist(
        &mut self,
        sim: &Sim,
        deed: impl AsyncFn(&Sim) -> Result<(), kube::Error>,
    ) -> Result<(), kube::Error> {
        let mut refusal = Ok(());
        for _ in 0..ATTEMPTS {
            refusal = deed(sim).await;
            if refusal.is_ok() {
                return Ok(());
            }
            sim.advance(Duration::from_secs(1)).await;
        }
        self.note(sim, format!("gives up after {refusal:?}"));
        refusal
    }

    async fn patch(&mut self, sim: &Sim, set: Set, patch: Value) -> Result<(), kube::Error> {
        self.note(sim, format!("patches {} with {patch}", set.name()));
        let patched = async |sim: &Sim| {
            sets(sim).patch(set.name(), &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
        };
        self.insist(sim, patched).await
    }

    async fn image(&mut self, sim: &Sim, set: Set, image: &str) {
        let _ = self.patch(sim, set, json!({"spec": {"containers": containers(set, image)}})).await;
    }

    async fn strategy(&mut self, sim: &Sim, set: Set, change: Value) -> Result<(), kube::Error> {
        self.patch(sim, set, json!({"spec": {"updateStrategy": change}})).await
    }

    async fn patch_workload(&mut self, sim: &Sim, spec: Value) {
        self.note(sim, format!("patches the CloneSet with {spec}"));
        let patch = json!({"spec": spec});
        let patched = async |sim: &Sim| {
            workloads(sim).patch("demo", &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
        };
        let _ = self.insist(sim, patched).await;
    }

    async fn new_app(&mut self, sim: &mut Sim) {
        let image = format!("app:v{}", sim.pick(1..4));
        let containers = json!([{"name": "app", "image": image}]);
        self.patch_workload(sim, json!({"template": {"spec": {"containers": containers}}})).await;
    }

    /// One of the things people do. Who is refused for long goes on with something else.
    pub(crate) async fn act(&mut self, sim: &mut Sim, truth: &mut Truth) {
        let set = *sim.pick_one(&SETS).unwrap();
        match sim.pick(0..14) {
            0..4 => {
                let image = some_image(sim, set);
                self.image(sim, set, &image).await;
            }
            4 | 5 => self.there_and_back(sim).await,
            6 => {
                let paused = sim.pick(0..2) == 0;
                let _ = self.strategy(sim, set, json!({"paused": paused})).await;
            }
            7 => {
                let partition = sim.pick(0..6);
                let _ = self.strategy(sim, set, json!({"partition": partition})).await;
            }
            8 => {
                let most = sim.pick(1..4);
                let _ = self.strategy(sim, set, json!({"maxUnavailable": most})).await;
            }
            9 => {
                let replicas = sim.pick(2..7);
                self.patch_workload(sim, json!({"replicas": replicas})).await;
            }
            10 => self.new_app(sim).await,
            11 => self.delete_pod(sim, truth).await,
            _ => {
                for set in SETS {
                    let image = some_image(sim, set);
                    self.image(sim, set, &image).await;
                }
                self.new_app(sim).await;
            }
        }
    }

    /// A hot upgrade that is taken back half-way.
    async fn there_and_back(&mut self, sim: &mut Sim) {
        let before = sets(sim).get(Set::Mesh.name()).await.unwrap();
        let before = before.data["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        let there = some_image(sim, Set::Mesh);
        self.image(sim, Set::Mesh, &there).await;
        let pause = Duration::from_millis(sim.pick(0..6000));
        sim.advance(pause).await;
        self.image(sim, Set::Mesh, &before).await;
    }

    async fn delete_pod(&mut self, sim: &mut Sim, truth: &mut Truth) {
        let all = pods(sim).list(&ListParams::default()).await.unwrap().items;
        let names: Vec<String> = all
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .filter_map(|pod| pod.metadata.name)
            .collect();
        let Some(name) = sim.pick_one(&names).cloned() else { return };
        self.note(sim, format!("deletes pod {name}"));
        truth.others_take_down(&name);
        // Someone else may have done so just now, or nobody is there to allow it.
        let _ = pods(sim).delete(&name, &DeleteParams::default()).await;
    }

    /// Takes away what keeps the sets from their goals.
    pub(crate) async fn resume(&mut self, sim: &mut Sim) {
        for set in SETS {
            let image = good_image(sim, set);
            let spec = json!({"containers": containers(set, &image), "updateStrategy": {"paused": false, "partition": 0}});
            self.patch(sim, set, json!({"spec": spec})).await.unwrap();
        }
    }
}
