//! Pods with volumes: claims are made, kept, reused and deleted with their pods.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kruise_api::labels;
use kruise_testkit::{Backend, Outcome, wait::seen};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, image_of, is_active, is_available, label, merged, name},
    stage::{Stage, managed},
};

/// A set with two claims for each pod, and volumes where the cluster makes none by itself.
pub(crate) struct Stored {
    pub(crate) demo: Demo,
    stage: kruise_testkit::Cluster,
}

impl Stored {
    pub(crate) async fn start(stage: &Stage, purpose: &str, change: Value) -> Self {
        let demo = Demo::prepare(stage, purpose).await;
        let stored = Self { demo, stage: stage.cluster.clone() };
        stored.volumes().await;
        let mut template = stored.demo.object(&json!({}))["spec"]["template"].clone();
        template["spec"]["containers"][0]["volumeMounts"] =
            json!([{"name": "data", "mountPath": "/data"}, {"name": "logs", "mountPath": "/logs"}]);
        let own = json!({"spec": {
            "volumeClaimTemplates": stored.templates("1Gi"),
            "template": {"spec": {"containers": template["spec"]["containers"]}},
        }});
        stored.demo.create(merged(own, &change)).await;
        stored.demo.settled().await;
        stored
    }

    /// Both templates with this size.
    pub(crate) fn templates(&self, size: &str) -> Value {
        let template = |name: &str| {
            json!({"metadata": {"name": name}, "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.demo.sandbox.namespace(),
                "resources": {"requests": {"storage": size}},
            }})
        };
        json!([template("data"), template("logs")])
    }

    /// Real test clusters have nobody who makes volumes.
    async fn volumes(&self) {
        if self.stage.backend() == Backend::Embedded {
            return;
        }
        let api: Api<PersistentVolume> = Api::all(self.stage.client());
        let class = self.demo.sandbox.namespace();
        for number in 0..40 {
            let volume = json!({
                "metadata": {"name": format!("{class}-{number}"), "labels": {"kruise-rs.io/test": class}},
                "spec": {
                    "capacity": {"storage": "9Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                    "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/tmp"},
                },
            });
            api.create(&PostParams::default(), &serde_json::from_value(volume).unwrap()).await.unwrap();
        }
    }

    /// Takes away what a namespace does not take with it.
    pub(crate) async fn leave(self) {
        if self.stage.backend() == Backend::Embedded {
            return;
        }
        let api: Api<PersistentVolume> = Api::all(self.stage.client());
        let mine = format!("kruise-rs.io/test={}", self.demo.sandbox.namespace());
        let options = ListParams::default().labels(&mine);
        api.delete_collection(&DeleteParams::default(), &options).await.unwrap();
    }

    /// Claims that are not ending: their uids by name.
    pub(crate) async fn claims(&self) -> BTreeMap<String, String> {
        let claims: Vec<PersistentVolumeClaim> = self.demo.sandbox.list().await;
        let claims = claims.into_iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
        claims.map(|claim| (claim.name_any(), claim.uid().unwrap_or_default())).collect()
    }

    /// What each claim asks for, sorted.
    async fn sizes(&self) -> Vec<String> {
        let claims: Vec<PersistentVolumeClaim> = self.demo.sandbox.list().await;
        let size = |claim: &PersistentVolumeClaim| {
            let asked = claim.spec.clone().and_then(|spec| spec.resources).and_then(|found| found.requests);
            asked.unwrap_or_default().get("storage").map(|size| size.0.clone()).unwrap_or_default()
        };
        let mut sizes: Vec<String> =
            claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none()).map(size).collect();
        sizes.sort();
        sizes
    }

    /// Waits until every pod has its two claims, and no other claim is left.
    pub(crate) async fn all_claimed(&self) {
        let look = async || {
            let wanted: Vec<String> = self.demo.pods().await.iter().flat_map(claims_of).collect();
            let claims: Vec<PersistentVolumeClaim> = self.demo.sandbox.list().await;
            let found: Vec<String> = claims.iter().map(kube::ResourceExt::name_any).collect();
            let mut sorted = wanted;
            sorted.sort();
            seen(sorted == found, format!("{found:?} instead of {sorted:?}"))
        };
        self.demo.sandbox.eventually("each pod has its claims, and no other is left", look).await;
    }
}

/// The names of the claims of a pod, as its volumes say.
pub(crate) fn claims_of(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.clone().and_then(|spec| spec.volumes).unwrap_or_default();
    volumes.into_iter().filter_map(|volume| Some(volume.persistent_volume_claim?.claim_name)).collect()
}

fn reuse(on: bool) -> Value {
    json!({"spec": {"replicas": 3, "scaleStrategy": {"enablePVCReuse": on}}})
}

/// CLONESET-16
async fn a_pod_comes_back_with_its_claims(stage: &mut Stage) -> Outcome {
    let stored = Stored::start(stage, "reuse", reuse(true)).await;
    let demo = &stored.demo;
    stored.all_claimed().await;
    let (claims, before) = (stored.claims().await, demo.uids().await);
    let (lost, uid) = before.first_key_value().unwrap();
    let id = lost.strip_prefix("demo-").unwrap();
    assert!(
        claims.contains_key(&format!("data-demo-{id}")) && claims.contains_key(&format!("logs-demo-{id}"))
    );
    demo.sandbox.delete::<Pod>(lost).await;
    demo.until("the pod is back", |_, pods| {
        let pod = pods.iter().find(|pod| name(pod) == *lost);
        pod.is_some_and(|pod| is_available(pod) && pod.metadata.uid.as_ref() != Some(uid)) && pods.len() == 3
    })
    .await;
    demo.settled().await;
    assert_eq!(stored.claims().await, claims);
    let pods = demo.pods().await;
    let back = pods.iter().find(|pod| name(pod) == *lost).unwrap();
    assert_eq!(claims_of(back), [format!("data-{lost}"), format!("logs-{lost}")]);
    assert_eq!(demo.events("FailedCreate").await, []);
    stored.leave().await;
    Ok(())
}
managed!(a_pod_comes_back_with_its_claims, []);

/// CLONESET-17
async fn without_reuse_name_and_claims_are_new(stage: &mut Stage) -> Outcome {
    let stored = Stored::start(stage, "noreuse", reuse(false)).await;
    let demo = &stored.demo;
    stored.all_claimed().await;
    let (claims, before) = (stored.claims().await, demo.uids().await);
    let (lost, _) = before.first_key_value().unwrap();
    demo.sandbox.delete::<Pod>(lost).await;
    demo.until("another pod is there", |_, pods| {
        pods.len() == 3 && pods.iter().all(|pod| is_available(pod) && name(pod) != *lost)
    })
    .await;
    stored.all_claimed().await;
    let after = stored.claims().await;
    assert_eq!(after.iter().filter(|(name, uid)| claims.get(*name) == Some(uid)).count(), 4);
    assert_eq!(demo.events("FailedCreate").await, []);
    stored.leave().await;
    Ok(())
}
managed!(without_reuse_name_and_claims_are_new, []);

/// CLONESET-18
async fn claims_go_with_a_pod_that_the_set_deletes(stage: &mut Stage) -> Outcome {
    let stored = Stored::start(stage, "fewer", reuse(true)).await;
    let demo = &stored.demo;
    stored.all_claimed().await;
    let before = stored.claims().await;
    demo.change(json!({"spec": {"replicas": 2}})).await;
    demo.settled().await;
    stored.all_claimed().await;
    let after = stored.claims().await;
    assert_eq!(after.len(), 4);
    assert!(after.iter().all(|(name, uid)| before.get(name) == Some(uid)));
    stored.leave().await;
    Ok(())
}
managed!(claims_go_with_a_pod_that_the_set_deletes, []);

/// CLONESET-19
async fn a_failed_pod_keeps_its_claims_and_another_takes_its_place(stage: &mut Stage) -> Outcome {
    let stored =
        Stored::start(stage, "failed", json!({"spec": {"scaleStrategy": {"enablePVCReuse": true}}})).await;
    let demo = &stored.demo;
    let claims = stored.claims().await;
    let (failed, _) = demo.uids().await.pop_first().unwrap();
    let api: Api<Pod> = demo.sandbox.api();
    let options = kube::api::PatchParams::default();
    if let (Backend::Embedded, namespace) = (stage.cluster.backend(), demo.sandbox.namespace()) {
        stage.sim().evict_by_node(namespace, &failed, "The node was low on memory.");
    } else {
        // A kubelet ends it for good, since it has run for too long.
        let deadline = json!({"spec": {"activeDeadlineSeconds": 1}});
        api.patch(&failed, &options, &kube::api::Patch::Merge(deadline)).await.unwrap();
    }
    demo.until("five pods run", |set, pods| {
        pods.iter().filter(|pod| is_available(pod)).count() == 5
            && pods.iter().any(|pod| name(pod) == failed && !is_active(pod))
            && set
                .status
                .as_ref()
                .is_some_and(|status| (status.replicas, status.available_replicas) == (5, 5))
    })
    .await;
    demo.always("it stays so", Duration::from_secs(5), |_, pods| {
        pods.iter().filter(|pod| is_available(pod)).count() == 5 && pods.len() == 6
    })
    .await;
    let pods = demo.pods().await;
    let ids: Vec<&str> = pods.iter().map(|pod| label(pod, labels::CLONESET_INSTANCE_ID)).collect();
    assert!(!ids.contains(&failed.strip_prefix("demo-").unwrap()), "{ids:?}");
    let after = stored.claims().await;
    assert!(claims.iter().all(|(name, uid)| after.get(name) == Some(uid)), "{after:?}");
    assert_eq!(after.len(), 12);
    assert_eq!(demo.events("FailedCreate").await, []);
    stored.leave().await;
    Ok(())
}
managed!(a_failed_pod_keeps_its_claims_and_another_takes_its_place, []);

async fn another_size(stage: &Stage, recreates: bool) {
    let change = json!({"spec": {"replicas": 2, "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}}}});
    let stored = Stored::start(stage, "size", change).await;
    let demo = &stored.demo;
    let with_image = async |image: &str, size: &str| {
        let mut containers = demo.template().await["spec"]["containers"].clone();
        containers[0]["image"] = demo.image(image).into();
        demo.change(json!({"spec": {
            "template": {"spec": {"containers": containers}}, "volumeClaimTemplates": stored.templates(size)}}))
        .await;
    };
    let before = demo.uids().await;
    with_image("app:v2", "2Gi").await;
    demo.rolled_out().await;
    stored.all_claimed().await;
    assert_eq!(demo.uids().await == before, !recreates);
    let second = if recreates { "2Gi" } else { "1Gi" };
    assert_eq!(stored.sizes().await, [second; 4]);

    let (before, revision) = (demo.uids().await, demo.set().await.status.unwrap().update_revision);
    with_image("app:v2", "3Gi").await;
    demo.always("claims alone are no update", Duration::from_secs(10), |set, pods| {
        set.status.as_ref().is_some_and(|status| status.update_revision == revision) && pods.len() == 2
    })
    .await;
    assert_eq!(demo.uids().await, before);
    assert_eq!(stored.sizes().await, [second; 4]);

    demo.set_image("app:v3").await;
    demo.rolled_out().await;
    stored.all_claimed().await;
    assert_eq!(demo.uids().await == before, !recreates);
    assert!(demo.pods().await.iter().all(|pod| image_of(pod, "main") == demo.image("app:v3")));
    let third = if recreates { "3Gi" } else { "1Gi" };
    assert_eq!(stored.sizes().await, [third; 4]);
    stored.leave().await;
}

/// CLONESET-33, first half
async fn other_claims_leave_pods_where_they_are(stage: &mut Stage) -> Outcome {
    another_size(stage, false).await;
    Ok(())
}
managed!(other_claims_leave_pods_where_they_are, []);

/// CLONESET-33, second half
async fn with_its_gate_other_claims_replace_pods(stage: &mut Stage) -> Outcome {
    another_size(stage, true).await;
    Ok(())
}
managed!(
    with_its_gate_other_claims_replace_pods,
    ["--feature-gates=RecreatePodWhenChangeVCTInCloneSetGate=true"]
);

/// CLONESET-35: nothing is left behind by pods that came and went.
async fn of_many_changes_at_once_no_claim_is_left(stage: &mut Stage) -> Outcome {
    let stored = Stored::start(stage, "hurry", json!({})).await;
    let demo = &stored.demo;
    demo.set_image("app:v2").await;
    demo.change(json!({"spec": {"replicas": 10}})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    demo.change(json!({"spec": {"replicas": 3}})).await;
    demo.rolled_out().await;
    stored.all_claimed().await;
    assert_eq!(stored.claims().await.len(), 6);
    stored.leave().await;
    Ok(())
}
managed!(of_many_changes_at_once_no_claim_is_left, []);

/// CLONESET-8: claims go with the set as well, also those that would be used again.
async fn claims_go_with_the_set(stage: &mut Stage) -> Outcome {
    let spec = json!({"replicas": 2, "scaleStrategy": {"enablePVCReuse": true}});
    let stored = Stored::start(stage, "delete-claims", json!({"spec": spec})).await;
    let sandbox = &stored.demo.sandbox;
    assert_eq!(sandbox.list::<PersistentVolumeClaim>().await.len(), 4);
    sandbox.delete::<kruise_api::cloneset::v1beta1::CloneSet>("demo").await;
    let look = async || {
        let claims = sandbox.list::<PersistentVolumeClaim>().await.len();
        let pods = stored.demo.all_pods().await.len();
        seen(claims + pods == 0, format!("{claims} claims, {pods} pods"))
    };
    sandbox.eventually("pods and claims are gone", look).await;
    Ok(())
}
managed!(claims_go_with_the_set, []);
