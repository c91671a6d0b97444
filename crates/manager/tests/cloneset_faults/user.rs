//! What people do to a CloneSet, by chance.

use std::time::Duration;

use kruise_api::{cloneset, labels};
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
    claims: bool,
    image: u64,
    is_there: bool,
}

pub(crate) fn api(sim: &Sim, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    Api::namespaced_with(sim.client(), "default", &resource)
}

pub(crate) fn sets(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "apps.kruise.io", "v1beta1", "CloneSet", "clonesets")
}

pub(crate) fn pods(sim: &Sim) -> Api<DynamicObject> {
    api(sim, "", "v1", "Pod", "pods")
}

fn containers(image: u64) -> Value {
    json!([{"name": "app", "image": format!("app:v{image}")}])
}

/// Makes the kind known.
pub(crate) async fn install(sim: &Sim) {
    let definition: DynamicObject = serde_json::from_value(cloneset::CRD.object()).unwrap();
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk(&kind);
    let definitions: Api<DynamicObject> = Api::all_with(sim.client(), &resource);
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    sim.advance(Duration::from_secs(2)).await;
}

impl User {
    pub(crate) async fn new(sim: &mut Sim) -> Self {
        install(sim).await;
        let claims = sim.pick(0..4) == 0;
        let mut user = Self { deeds: Vec::new(), claims, image: 1, is_there: false };
        user.create(sim).await;
        user
    }

    pub(crate) fn uses_claims(&self) -> bool {
        self.claims
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
        let surge = if policy == "InPlaceOnly" { 0 } else { sim.pick(0..3) };
        let unavailable = sim.pick(1..4);
        let mut spec = json!({
            "replicas": sim.pick(0..8),
            "selector": {"matchLabels": {"app": "demo"}},
            "template": {
                "metadata": {"labels": {"app": "demo"}},
                "spec": {"terminationGracePeriodSeconds": sim.pick(0..20), "containers": containers(self.image)},
            },
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "podUpdatePolicy": policy, "maxSurge": surge, "maxUnavailable": unavailable,
            }},
        });
        if self.claims {
            let claim = json!({
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            });
            spec["volumeClaimTemplates"] = json!([claim]);
            spec["scaleStrategy"] = json!({"enablePVCReuse": sim.pick(0..2) == 0});
        }
        if sim.pick(0..4) == 0 {
            spec["minReadySeconds"] = 5.into();
        }
        self.note(sim, format!("creates {spec}"));
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "demo"}, "spec": spec,
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
        match sim.pick(0..12) {
            0..3 => {
                let replicas = sim.pick(0..9);
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
        let names: Vec<String> = all
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .filter_map(|pod| pod.metadata.name)
            .collect();
        let Some(name) = sim.pick_one(&names).cloned() else { return };
        if sim.pick(0..2) == 0 {
            self.note(sim, format!("deletes pod {name}"));
            truth.others_take_down(sim, &name);
            let told = pods(sim).delete(&name, &DeleteParams::default()).await;
            self.heard(told.err());
        } else {
            self.note(sim, format!("asks pod {name} to go"));
            let patch = json!({"metadata": {"labels": {labels::SPECIFIED_DELETE: "true"}}});
            let told = pods(sim).patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            self.heard(told.err());
        }
    }

    /// Without the webhook for pods nobody can change one.
    fn heard(&mut self, refusal: Option<kube::Error>) {
        if let Some(refusal) = refusal {
            let text = refusal.to_string();
            assert!(text.contains("failed calling webhook"), "{text}");
            self.deeds.push(format!("  and hears {text}"));
        }
    }

    /// Takes away what keeps the set from its goal.
    pub(crate) async fn resume(&mut self, sim: &mut Sim, truth: &mut Truth) {
        while !self.is_there {
            sim.advance(Duration::from_secs(10)).await;
            self.act(sim, truth).await;
        }
        self.rolling(sim, json!({"paused": false})).await;
    }
}
