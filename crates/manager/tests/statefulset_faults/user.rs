//! What people do to a StatefulSet, by chance.

use std::time::Duration;

use kruise_api::{labels, statefulset};
use kruise_sim::Sim;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::truth::Truth;

pub(crate) struct User {
    deeds: Vec<String>,
    image: u64,
    ordered: bool,
    is_there: bool,
}

fn sets(sim: &Sim) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apps.kruise.io", "v1beta1", "StatefulSet");
    let resource = ApiResource::from_gvk_with_plural(&kind, "statefulsets");
    Api::namespaced_with(sim.client(), "default", &resource)
}

fn pods(sim: &Sim) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
    Api::namespaced_with(sim.client(), "default", &resource)
}

fn containers(image: u64) -> Value {
    json!([{"name": "app", "image": format!("app:v{image}")}])
}

impl User {
    pub(crate) async fn new(sim: &mut Sim) -> Self {
        let definition: DynamicObject = serde_json::from_value(statefulset::CRD.object()).unwrap();
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let definitions: Api<DynamicObject> = Api::all_with(sim.client(), &ApiResource::from_gvk(&kind));
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        sim.advance(Duration::from_secs(2)).await;
        let ordered = sim.pick(0..3) == 0;
        let mut user = Self { deeds: Vec::new(), image: 1, ordered, is_there: false };
        user.create(sim).await;
        user
    }

    /// Everything that was done, for the message of a failure.
    pub(crate) fn deeds(&self) -> String {
        self.deeds.join("\n")
    }

    fn note(&mut self, sim: &Sim, deed: String) {
        self.deeds.push(format!("{} {deed}", sim.clock().now()));
    }

    async fn create(&mut self, sim: &mut Sim) {
        let policy = *sim.pick_one(&["ReCreate", "InPlaceIfPossible", "InPlaceOnly"]).unwrap();
        let mut spec = json!({
            "replicas": sim.pick(0..7),
            "serviceName": "demo",
            "podManagementPolicy": if self.ordered { "OrderedReady" } else { "Parallel" },
            "selector": {"matchLabels": {"app": "demo"}},
            "template": {
                "metadata": {"labels": {"app": "demo"}},
                "spec": {
                    "terminationGracePeriodSeconds": sim.pick(0..20),
                    "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                    "containers": containers(self.image),
                },
            },
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "podUpdatePolicy": policy, "maxUnavailable": sim.pick(1..4),
                "minReadySeconds": if sim.pick(0..4) == 0 { 5 } else { 0 },
            }},
        });
        if sim.pick(0..3) == 0 {
            spec["volumeClaimTemplates"] = json!([{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }]);
            if sim.pick(0..2) == 0 {
                spec["persistentVolumeClaimRetentionPolicy"] =
                    json!({"whenDeleted": "Delete", "whenScaled": "Delete"});
            }
        }
        if !self.ordered && sim.pick(0..3) == 0 {
            spec["updateStrategy"]["rollingUpdate"]["unorderedUpdate"] = json!({});
        }
        self.note(sim, format!("creates {spec}"));
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "metadata": {"name": "demo"}, "spec": spec,
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        sets(sim).create(&PostParams::default(), &object).await.unwrap();
        self.is_there = true;
    }

    async fn patch(&mut self, sim: &Sim, patch: Value) {
        self.note(sim, format!("patches {patch}"));
        sets(sim).patch("demo", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    async fn rolling(&mut self, sim: &Sim, change: Value) {
        self.patch(sim, json!({"spec": {"updateStrategy": {"rollingUpdate": change}}})).await;
    }

    /// One of the things people do.
    pub(crate) async fn act(&mut self, sim: &mut Sim, truth: &mut Truth) {
        if !self.is_there {
            // The name is free again once everything of the old set is gone.
            if sets(sim).get_opt("demo").await.unwrap().is_none() {
                self.create(sim).await;
            }
            return;
        }
        match sim.pick(0..13) {
            12 => {
                // A slip of the finger.
                for replicas in [sim.pick(0..4), sim.pick(3..8)] {
                    self.patch(sim, json!({"spec": {"replicas": replicas}})).await;
                    let pause = sim.pick(0..20);
                    sim.advance(Duration::from_millis(500 * pause)).await;
                }
            }
            0..3 => {
                let replicas = sim.pick(0..8);
                self.patch(sim, json!({"spec": {"replicas": replicas}})).await;
            }
            3..6 => {
                self.image = sim.pick(1..4);
                let template = json!({"spec": {"containers": containers(self.image)}});
                self.patch(sim, json!({"spec": {"template": template}})).await;
            }
            6 => {
                let paused = sim.pick(0..2) == 0;
                self.rolling(sim, json!({"paused": paused})).await;
            }
            7 => {
                let partition = sim.pick(0..6);
                self.rolling(sim, json!({"partition": partition})).await;
            }
            8 | 9 => self.touch_pod(sim, truth).await,
            10 => {
                let unavailable = sim.pick(1..4);
                self.rolling(sim, json!({"maxUnavailable": unavailable})).await;
            }
            _ => {
                self.note(sim, "deletes the set".to_owned());
                sets(sim).delete("demo", &DeleteParams::background()).await.unwrap();
                truth.set_is_deleted();
                self.is_there = false;
            }
        }
    }

    async fn touch_pod(&mut self, sim: &mut Sim, truth: &mut Truth) {
        let all = pods(sim).list(&ListParams::default()).await.unwrap().items;
        let left = all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let names: Vec<String> = left.filter_map(|pod| pod.metadata.name).collect();
        let Some(name) = sim.pick_one(&names).cloned() else { return };
        let outcome = if sim.pick(0..2) == 0 {
            self.note(sim, format!("deletes pod {name}"));
            truth.others_take_down(sim, &name);
            pods(sim).delete(&name, &DeleteParams::default()).await.err()
        } else {
            self.note(sim, format!("asks for the deletion of pod {name}"));
            let patch = json!({"metadata": {"labels": {labels::SPECIFIED_DELETE: "true"}}});
            pods(sim).patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.err()
        };
        // Without the webhook for pods nobody can change one.
        if let Some(refusal) = outcome {
            let text = refusal.to_string();
            assert!(text.contains("failed calling webhook"), "{text}");
        }
    }

    /// Takes away what keeps the set from its goal.
    pub(crate) async fn resume(&mut self, sim: &mut Sim) {
        while !self.is_there {
            sim.advance(Duration::from_secs(10)).await;
            if sets(sim).get_opt("demo").await.unwrap().is_none() {
                self.create(sim).await;
            }
        }
        self.rolling(sim, json!({"paused": false})).await;
    }
}
