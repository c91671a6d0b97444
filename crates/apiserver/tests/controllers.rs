//! The built-in controllers: garbage collection, namespaces, ReplicaSets and deployments.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "controllers/cluster.rs"]
mod cluster;

use cluster::{Cluster, template};
use kruise_apiserver::rest::Propagation;
use serde_json::{Value, json};

/// An owner and a dependent, each a config map.
async fn owner_and_dependent(cluster: &Cluster, blocks: bool) {
    let owner = cluster.create("", "configmaps", json!({"metadata": {"name": "owner"}})).await;
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    });
    let dependent = json!({"metadata": {"name": "dependent", "ownerReferences": [reference]}});
    cluster.create("", "configmaps", dependent).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_owner_in_the_background() {
    let cluster = Cluster::start();
    owner_and_dependent(&cluster, false).await;
    assert!(cluster.get("", "configmaps", "dependent").is_some());
    cluster.delete("", "configmaps", "owner", Some(Propagation::Background)).await;
    assert!(cluster.get("", "configmaps", "owner").is_none());
    cluster.settle().await;
    assert!(cluster.get("", "configmaps", "dependent").is_none());
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_owner_goes_last() {
    let cluster = Cluster::start();
    owner_and_dependent(&cluster, true).await;
    // Something holds the dependent back for a while.
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    cluster.merge("", "configmaps", "dependent", None, hold).await;
    cluster.delete("", "configmaps", "owner", Some(Propagation::Foreground)).await;
    cluster.settle().await;
    assert!(cluster.get("", "configmaps", "owner").is_some());
    let dependent = cluster.get("", "configmaps", "dependent").unwrap();
    assert!(dependent["metadata"]["deletionTimestamp"].is_string());
    cluster.merge("", "configmaps", "dependent", None, json!({"metadata": {"finalizers": null}})).await;
    cluster.settle().await;
    assert!(cluster.get("", "configmaps", "dependent").is_none());
    assert!(cluster.get("", "configmaps", "owner").is_none());
}

#[tokio::test(start_paused = true)]
async fn orphans_lose_their_owner_and_stay() {
    let cluster = Cluster::start();
    owner_and_dependent(&cluster, true).await;
    cluster.delete("", "configmaps", "owner", Some(Propagation::Orphan)).await;
    cluster.settle().await;
    assert!(cluster.get("", "configmaps", "owner").is_none());
    let dependent = cluster.get("", "configmaps", "dependent").unwrap();
    assert_eq!(dependent["metadata"]["ownerReferences"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_namesake_of_the_owner_does_not_count() {
    let cluster = Cluster::start();
    cluster.create("", "configmaps", json!({"metadata": {"name": "owner"}})).await;
    let wrong =
        |kind: &str, uid: &str| json!({"apiVersion": "v1", "kind": kind, "name": "owner", "uid": uid});
    let with = |name: &str, owner: Value| json!({"metadata": {"name": name, "ownerReferences": [owner]}});
    cluster.create("", "configmaps", with("lost", wrong("ConfigMap", "other"))).await;
    cluster.create("", "configmaps", with("unknown", wrong("Mystery", "other"))).await;
    cluster.settle().await;
    assert!(cluster.get("", "configmaps", "lost").is_none());
    assert!(cluster.get("", "configmaps", "unknown").is_some(), "nothing is deleted on a guess");
}

#[tokio::test(start_paused = true)]
async fn of_two_owners_one_is_enough() {
    let cluster = Cluster::start();
    let one = cluster.create("", "configmaps", json!({"metadata": {"name": "one"}})).await;
    let two = cluster.create("", "configmaps", json!({"metadata": {"name": "two"}})).await;
    let reference = |owner: &Value| {
        let meta = &owner["metadata"];
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]})
    };
    let owners = json!([reference(&one), reference(&two)]);
    cluster
        .create("", "configmaps", json!({"metadata": {"name": "shared", "ownerReferences": owners}}))
        .await;
    cluster.delete("", "configmaps", "one", None).await;
    cluster.settle().await;
    let shared = cluster.get("", "configmaps", "shared").unwrap();
    assert_eq!(shared["metadata"]["ownerReferences"], json!([reference(&two)]));
    cluster.delete("", "configmaps", "two", None).await;
    cluster.settle().await;
    assert!(cluster.get("", "configmaps", "shared").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_and_goes() {
    let cluster = Cluster::start().in_namespace("team").await;
    cluster.create("", "configmaps", json!({"metadata": {"name": "a"}})).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    cluster.create("", "secrets", held).await;
    cluster.delete("", "namespaces", "team", None).await;
    cluster.settle().await;
    assert!(cluster.get("", "configmaps", "a").is_none());
    let team = cluster.get("", "namespaces", "team").unwrap();
    assert_eq!(team["status"]["phase"], "Terminating");
    let condition = cluster::condition(&team, "NamespaceContentRemaining");
    assert_eq!(condition["message"], "Some resources are remaining: secrets. has 1 resource instances");
    assert_eq!(cluster::condition(&team, "NamespaceFinalizersRemaining")["status"], "True");
    cluster.merge("", "secrets", "held", None, json!({"metadata": {"finalizers": null}})).await;
    cluster.settle().await;
    assert!(cluster.get("", "namespaces", "team").is_none());
}

fn replica_set(replicas: i64) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template("web", "app:1")},
    })
}

#[tokio::test(start_paused = true)]
async fn a_replica_set_has_as_many_pods_as_it_wants() {
    let cluster = Cluster::start();
    cluster.create("apps", "replicasets", replica_set(3)).await;
    cluster.settle().await;
    let pods = cluster.pods("app=web");
    assert_eq!(pods.len(), 3);
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == "web-".len() + 5, "{name}");
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(cluster.events("SuccessfulCreate").len(), 3);
    cluster.run_pods("app=web").await;
    let set = cluster.get("apps", "replicasets", "web").unwrap();
    assert_eq!(set["status"]["availableReplicas"], 3);
    assert_eq!(set["status"]["observedGeneration"], 1);
    assert_eq!(set["status"]["terminatingReplicas"], 0);
    // The pod with the lowest cost goes.
    let cost = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}});
    let cheap = pods[1]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.merge("", "pods", &cheap, None, cost).await;
    cluster.merge("apps", "replicasets", "web", None, json!({"spec": {"replicas": 2}})).await;
    cluster.settle().await;
    assert!(cluster.get("", "pods", &cheap).unwrap()["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(cluster.events("SuccessfulDelete"), [format!("Deleted pod: {cheap}")]);
    assert_eq!(cluster.get("apps", "replicasets", "web").unwrap()["status"]["terminatingReplicas"], 1);
    cluster.stop_pods().await;
    assert_eq!(cluster.pods("app=web").len(), 2);
    assert_eq!(cluster.get("apps", "replicasets", "web").unwrap()["status"]["terminatingReplicas"], 0);
    assert_eq!(cluster.get("apps", "replicasets", "web").unwrap()["status"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_tells_how_many_pods_are_on_their_way_out() {
    let cluster = Cluster::start();
    cluster.deployment("web", 2, json!({"maxSurge": 1, "maxUnavailable": 0})).await;
    cluster.run_pods("").await;
    let leaving =
        || cluster.get("apps", "deployments", "web").unwrap()["status"]["terminatingReplicas"].clone();
    assert_eq!(leaving(), 0);
    cluster.merge("apps", "deployments", "web", None, json!({"spec": {"replicas": 0}})).await;
    cluster.settle().await;
    assert_eq!(leaving(), 2);
    cluster.stop_pods().await;
    assert_eq!(leaving(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_other_labels_is_released_and_an_orphan_adopted() {
    let cluster = Cluster::start();
    cluster.create("apps", "replicasets", replica_set(1)).await;
    cluster.settle().await;
    let first = cluster.pods("app=web")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.merge("", "pods", &first, None, json!({"metadata": {"labels": {"app": "debug"}}})).await;
    cluster.settle().await;
    assert_eq!(cluster.get("", "pods", &first).unwrap()["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(cluster.pods("app=web").len(), 1);
    cluster.merge("apps", "replicasets", "web", None, json!({"spec": {"replicas": 2}})).await;
    cluster.merge("", "pods", &first, None, json!({"metadata": {"labels": {"app": "web"}}})).await;
    cluster.settle().await;
    let pods = cluster.pods("app=web");
    assert_eq!(pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_refused_is_told_in_a_condition_and_an_event() {
    let cluster = Cluster::start();
    let mut set = replica_set(2);
    set["spec"]["template"]["spec"]["priorityClassName"] = json!("nowhere");
    cluster.create("apps", "replicasets", set).await;
    cluster.settle().await;
    let set = cluster.get("apps", "replicasets", "web").unwrap();
    let failure = cluster::condition(&set, "ReplicaFailure");
    assert_eq!(failure["reason"], "FailedCreate");
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("no PriorityClass with name nowhere was found"), "{message}");
    let event = &cluster.events("FailedCreate")[0];
    assert!(event.starts_with("Error creating: pods ") && event.ends_with("was found"), "{event}");
}

#[tokio::test(start_paused = true)]
async fn a_rollout_runs_to_its_end_and_can_be_undone() {
    let cluster = Cluster::start();
    cluster.deployment("web", 4, json!({"maxSurge": 1, "maxUnavailable": 1})).await;
    cluster.work_until_quiet().await;
    let web = cluster.get("apps", "deployments", "web").unwrap();
    assert_eq!(web["status"]["availableReplicas"], 4, "{web}");
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let progressing = cluster::condition(&web, "Progressing");
    assert_eq!(progressing["reason"], "NewReplicaSetAvailable");
    let first = cluster.list("apps", "replicasets", "")[0].clone();
    let first_name = first["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(
        progressing["message"],
        json!(format!("ReplicaSet \"{first_name}\" has successfully progressed."))
    );
    assert_eq!(
        cluster.events("ScalingReplicaSet"),
        [format!("Scaled up replica set {first_name} from 0 to 4")]
    );

    let image = |image: &str| json!({"spec": {"template": template("web", image)}});
    cluster.merge("apps", "deployments", "web", None, image("app:2")).await;
    cluster.settle().await;
    // One more and one less than wanted, and no further.
    let sizes: Vec<i64> = cluster
        .list("apps", "replicasets", "")
        .iter()
        .map(|set| set["spec"]["replicas"].as_i64().unwrap())
        .collect();
    assert_eq!(sizes.iter().sum::<i64>(), 5, "{sizes:?}");
    cluster.work_until_quiet().await;
    let web = cluster.get("apps", "deployments", "web").unwrap();
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    assert_eq!((&web["status"]["updatedReplicas"], &web["status"]["replicas"]), (&json!(4), &json!(4)));
    assert!(cluster.pods("app=web").iter().all(|pod| pod["spec"]["containers"][0]["image"] == "app:2"));

    cluster.merge("apps", "deployments", "web", None, image("app:1")).await;
    cluster.work_until_quiet().await;
    let web = cluster.get("apps", "deployments", "web").unwrap();
    assert_eq!(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    let sets = cluster.list("apps", "replicasets", "");
    assert_eq!(sets.len(), 2, "the first set came back");
    let first = sets.iter().find(|set| set["metadata"]["name"] == *first_name).unwrap();
    assert_eq!(first["spec"]["replicas"], 4);
    assert_eq!(first["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(first["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
}

#[tokio::test(start_paused = true)]
async fn recreate_waits_for_the_last_old_pod() {
    let cluster = Cluster::start();
    cluster.deployment("web", 2, Value::Null).await;
    cluster.work_until_quiet().await;
    cluster
        .merge("apps", "deployments", "web", None, json!({"spec": {"template": template("web", "app:2")}}))
        .await;
    cluster.settle().await;
    let images = |cluster: &Cluster| -> Vec<String> {
        let pods = cluster.pods("app=web");
        pods.iter().map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(images(&cluster), ["app:1", "app:1"], "the old ones still stop");
    cluster.work_until_quiet().await;
    assert_eq!(images(&cluster), ["app:2", "app:2"]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_scales_but_does_not_roll() {
    let cluster = Cluster::start();
    cluster.deployment("web", 2, json!({"maxSurge": 1, "maxUnavailable": 0})).await;
    cluster.work_until_quiet().await;
    let change = json!({"spec": {"paused": true, "replicas": 3, "template": template("web", "app:2")}});
    cluster.merge("apps", "deployments", "web", None, change).await;
    cluster.work_until_quiet().await;
    let pods = cluster.pods("app=web");
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "app:1"));
    let web = cluster.get("apps", "deployments", "web").unwrap();
    assert_eq!(cluster::condition(&web, "Progressing")["reason"], "DeploymentPaused");
    cluster.merge("apps", "deployments", "web", None, json!({"spec": {"paused": null}})).await;
    cluster.work_until_quiet().await;
    assert!(cluster.pods("app=web").iter().all(|pod| pod["spec"]["containers"][0]["image"] == "app:2"));
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_does_not_move_exceeds_its_deadline() {
    let cluster = Cluster::start();
    cluster.deployment("web", 1, json!({"maxSurge": 1, "maxUnavailable": 0})).await;
    cluster.work_until_quiet().await;
    let change = json!({"spec": {"progressDeadlineSeconds": 60, "template": template("web", "app:2")}});
    cluster.merge("apps", "deployments", "web", None, change).await;
    cluster.settle().await;
    tokio::time::sleep(std::time::Duration::from_secs(59)).await;
    let reason = |cluster: &Cluster| {
        let web = cluster.get("apps", "deployments", "web").unwrap();
        cluster::condition(&web, "Progressing")["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(reason(&cluster), "ReplicaSetUpdated");
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(reason(&cluster), "ProgressDeadlineExceeded");
}

#[tokio::test(start_paused = true)]
async fn the_history_of_revisions_is_kept_short() {
    let cluster = Cluster::start();
    cluster.deployment("web", 1, json!({"maxSurge": 1, "maxUnavailable": 0})).await;
    cluster.merge("apps", "deployments", "web", None, json!({"spec": {"revisionHistoryLimit": 1}})).await;
    for image in ["app:2", "app:3", "app:4"] {
        cluster.work_until_quiet().await;
        let change = json!({"spec": {"template": template("web", image)}});
        cluster.merge("apps", "deployments", "web", None, change).await;
    }
    cluster.work_until_quiet().await;
    let mut revisions: Vec<String> = cluster
        .list("apps", "replicasets", "")
        .iter()
        .map(|set| {
            set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().unwrap().to_owned()
        })
        .collect();
    revisions.sort();
    assert_eq!(revisions, ["3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_deployment_in_the_foreground_takes_everything_with_it() {
    let cluster = Cluster::start();
    cluster.deployment("web", 2, json!({"maxSurge": 1, "maxUnavailable": 0})).await;
    cluster.work_until_quiet().await;
    cluster.delete("apps", "deployments", "web", Some(Propagation::Foreground)).await;
    cluster.settle().await;
    assert!(cluster.get("apps", "deployments", "web").is_some(), "its pods still stop");
    cluster.work_until_quiet().await;
    assert!(cluster.get("apps", "deployments", "web").is_none());
    assert!(cluster.list("apps", "replicasets", "").is_empty());
    assert!(cluster.pods("").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_converged_cluster_is_silent() {
    let cluster = Cluster::start();
    cluster.deployment("web", 3, json!({"maxSurge": 1, "maxUnavailable": 0})).await;
    cluster.work_until_quiet().await;
    let before = cluster.version();
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert_eq!(cluster.version(), before);
}

#[tokio::test(start_paused = true)]
async fn one_seed_gives_one_history() {
    let mut histories = Vec::new();
    for _ in 0..2 {
        let cluster = Cluster::start();
        cluster.deployment("web", 3, json!({"maxSurge": 1, "maxUnavailable": 0})).await;
        cluster.work_until_quiet().await;
        let mut state = cluster.list("", "events", "");
        state.extend(cluster.pods(""));
        state.extend(cluster.list("apps", "replicasets", ""));
        histories.push(serde_json::to_string(&state).unwrap());
    }
    assert_eq!(histories[0], histories[1]);
}

/// Ten thousand pods come and go without work that grows with their square.
#[tokio::test(start_paused = true)]
async fn ten_thousand_dependents_are_collected() {
    let cluster = Cluster::start();
    let owner = cluster.create("", "configmaps", json!({"metadata": {"name": "owner"}})).await;
    let owners = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    for number in 0..10_000 {
        let name = format!("d-{number}");
        cluster.create("", "secrets", json!({"metadata": {"name": name, "ownerReferences": owners}})).await;
    }
    cluster.settle().await;
    assert_eq!(cluster.list("", "secrets", "").len(), 10_000);
    cluster.delete("", "configmaps", "owner", None).await;
    cluster.settle().await;
    assert!(cluster.list("", "secrets", "").is_empty());
}

#[tokio::test(start_paused = true)]
async fn custom_resources_that_appear_later_own_and_are_owned() {
    let cluster = Cluster::start();
    cluster.settle().await;
    // A resource of its own table, served from now on.
    let server = cluster.local.server();
    let mut toys =
        kruise_apiserver::registry::builtin::resources().find(|r| r.plural == "configmaps").unwrap();
    toys.group = "example.com".into();
    toys.kind = "Toy".into();
    toys.plural = "toys".into();
    toys.table = "example.com/toys".into();
    toys.storage_api_version = "example.com/v1".into();
    server.registry().insert(toys);
    let toy = cluster.create("example.com", "toys", json!({"metadata": {"name": "bear"}})).await;
    let reference = json!({
        "apiVersion": "example.com/v1", "kind": "Toy", "name": "bear", "uid": toy["metadata"]["uid"],
    });
    let owned = json!({"metadata": {"name": "hat", "ownerReferences": [reference]}});
    cluster.create("example.com", "toys", owned.clone()).await;
    cluster.create("", "configmaps", owned).await;
    cluster.settle().await;
    cluster.delete("example.com", "toys", "bear", None).await;
    cluster.settle().await;
    assert!(cluster.get("example.com", "toys", "hat").is_none());
    assert!(cluster.get("", "configmaps", "hat").is_none());
}
