//! The same spec as the native kind and as ours.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kruise_testkit::{Backend, Outcome, wait::seen};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    film::Film,
    kit::{image_of, is_available, name},
    stage::{Stage, managed},
    web::{Web, comings},
};

/// What a user sees of a set: the pods in the order in which they came, then with an update, and the claims.
async fn played(stage: &Stage, api_version: &str, policy: &str) -> Vec<String> {
    let web = Web::prepare(stage, "native").await;
    let claim = json!([{"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    let mut object =
        web.object(&json!({"replicas": 3, "podManagementPolicy": policy, "volumeClaimTemplates": claim}));
    object["apiVersion"] = api_version.into();
    let pods: Api<Pod> = web.sandbox.api();
    let film = Film::of(pods.clone()).await;
    web.sandbox.create_any(object.clone()).await.unwrap();
    let rest = async |expected: usize, image: &str| {
        let look = async || {
            let pods: Vec<Pod> = web.sandbox.list().await;
            let done = pods.len() == expected
                && pods.iter().all(|pod| is_available(pod) && image_of(pod, "main") == web.image(image));
            seen(done, format!("{} pods", pods.len()))
        };
        web.sandbox.eventually("all pods are available", look).await;
    };
    let change = async |patch: Value| {
        let api = stage.api(&object);
        api.patch("web", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    };
    rest(3, "app:v1").await;
    change(json!({"spec": {"replicas": 4}})).await;
    rest(4, "app:v1").await;
    let mut containers = object["spec"]["template"]["spec"]["containers"].clone();
    containers[0]["image"] = web.image("app:v2").into();
    change(json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
    rest(4, "app:v2").await;
    change(json!({"spec": {"replicas": 1}})).await;
    rest(1, "app:v2").await;
    let mut facts: Vec<String> = comings(&film);
    if policy == "Parallel" {
        // Those that come at once come in no order.
        facts[..3].sort();
    }
    let claims: Vec<PersistentVolumeClaim> = web.sandbox.list().await;
    let mut claims: Vec<String> = claims.iter().map(kube::ResourceExt::name_any).collect();
    claims.sort();
    facts.extend(claims);
    let left: Vec<Pod> = web.sandbox.list().await;
    let spec = left[0].spec.clone().unwrap();
    facts.push(format!("{} {:?} {:?}", name(&left[0]), spec.hostname, spec.subdomain));
    facts
}

/// STATEFULSET-2: who changes the API version only gets the same pods, names, claims and order.
async fn a_native_spec_gives_the_same_pods(stage: &mut Stage) -> Outcome {
    if stage.cluster.backend() == Backend::Real {
        return Ok(());
    }
    for policy in ["OrderedReady", "Parallel"] {
        let native = played(stage, "apps/v1", policy).await;
        let ours = played(stage, "apps.kruise.io/v1beta1", policy).await;
        assert_eq!(native, ours, "{policy}");
    }
    Ok(())
}
managed!(a_native_spec_gives_the_same_pods, []);
