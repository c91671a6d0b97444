//! Volumes that are not there yet.

use kruise_sim::Sim;
use serde_json::{Value, json};

use super::{condition, create, create_pod, delete, events, get, seconds};

async fn pod_with(sim: &Sim, name: &str, volume: Value) {
    create_pod(sim, name, "app:1", |pod| {
        pod["spec"]["volumes"] = json!([volume]);
        pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_the_objects_its_volumes_are_made_of() {
    let sim = Sim::builder().start();
    let item = json!([{"key": "k", "path": "p"}]);
    let projected = json!([{"secret": {"name": "late"}}]);
    for (name, volume) in [
        ("map", json!({"name": "v", "configMap": {"name": "late"}})),
        ("key", json!({"name": "v", "configMap": {"name": "other", "items": item}})),
        ("secret", json!({"name": "v", "secret": {"secretName": "late"}})),
        ("projected", json!({"name": "v", "projected": {"sources": projected}})),
        ("optional", json!({"name": "v", "configMap": {"name": "late", "optional": true}})),
    ] {
        pod_with(&sim, name, volume).await;
    }
    create(&sim, "configmaps", json!({"metadata": {"name": "other"}})).await;
    seconds(&sim, 30).await;
    assert_eq!(condition(&get(&sim, "pods", "optional"), "Ready"), "True");
    for (name, why) in [
        ("map", "configmap \"late\" not found"),
        ("key", "configmap references non-existent config key: k"),
        ("secret", "secret \"late\" not found"),
        ("projected", "secret \"late\" not found"),
    ] {
        let pod = get(&sim, "pods", name);
        assert_eq!(pod["status"]["phase"], "Pending");
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        assert_eq!(waiting["reason"], "ContainerCreating", "{pod}");
        let said = format!("FailedMount: MountVolume.SetUp failed for volume \"v\" : {why}");
        assert!(events(&sim, name).contains(&said), "{:?}", events(&sim, name));
    }
    create(&sim, "configmaps", json!({"metadata": {"name": "late"}})).await;
    create(&sim, "secrets", json!({"metadata": {"name": "late"}})).await;
    seconds(&sim, 150).await;
    for name in ["map", "secret", "projected"] {
        assert_eq!(condition(&get(&sim, "pods", name), "Ready"), "True", "{name}");
    }
    delete(&sim, "pods", "key").await;
    seconds(&sim, 40).await;
    assert!(get(&sim, "pods", "key").is_null(), "a pod that waits can go");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_scheduled_when_its_claim_is_there() {
    let sim = Sim::builder().nodes(3).start();
    pod_with(&sim, "web", json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})).await;
    seconds(&sim, 10).await;
    let web = get(&sim, "pods", "web");
    assert_eq!(condition(&web, "PodScheduled"), "False Unschedulable");
    assert_eq!(
        web["status"]["conditions"][0]["message"],
        "0/3 nodes are available: persistentvolumeclaim \"data\" not found. not found"
    );
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    create(&sim, "persistentvolumeclaims", claim).await;
    seconds(&sim, 10).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "Ready"), "True");
}

/// A claim that nobody can fill keeps the pods that name it waiting.
#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_a_claim_without_a_volume() {
    let sim = Sim::builder().nodes(1).start();
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    create(&sim, "persistentvolumeclaims", claim).await;
    pod_with(&sim, "web", json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})).await;
    seconds(&sim, 10).await;
    let message = get(&sim, "pods", "web")["status"]["conditions"][0]["message"].clone();
    let why = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
    assert!(message.as_str().unwrap_or_default().starts_with(why), "{message}");
    let volume = json!({"metadata": {"name": "disk"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"},
    }});
    create(&sim, "persistentvolumes", volume).await;
    seconds(&sim, 10).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "Ready"), "True");
}
