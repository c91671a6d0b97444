//! The built-in controllers: StatefulSets, jobs, budgets, volumes and nodes.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "controllers/cluster.rs"]
mod cluster;

use std::time::Duration;

use cluster::{Cluster, template};
use kruise_apiserver::controllers::Options;
use serde_json::{Value, json};

fn names(pods: &[Value]) -> Vec<String> {
    pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn stateful_set(replicas: i64, extra: Value) -> Value {
    let mut set = json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": template("db", "db:1"),
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    });
    json_patch::merge(&mut set, &extra);
    set
}

#[tokio::test(start_paused = true)]
async fn stateful_pods_come_in_order_with_their_storage() {
    let cluster = Cluster::start();
    cluster.create("apps", "statefulsets", stateful_set(3, json!({}))).await;
    cluster.settle().await;
    assert_eq!(names(&cluster.pods("app=db")), ["db-0"], "the second waits for the first");
    cluster.run_pods("").await;
    assert_eq!(names(&cluster.pods("app=db")), ["db-0", "db-1"]);
    cluster.work_until_quiet().await;
    let pods = cluster.pods("app=db");
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2"]);
    let labels = &pods[2]["metadata"]["labels"];
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-2");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "2");
    assert_eq!((&pods[2]["spec"]["hostname"], &pods[2]["spec"]["subdomain"]), (&json!("db-2"), &json!("db")));
    let claims = cluster.list("", "persistentvolumeclaims", "");
    assert_eq!(names(&claims), ["data-db-0", "data-db-1", "data-db-2"]);
    assert!(claims.iter().all(|claim| claim["status"]["phase"] == "Bound"), "{claims:?}");
    let set = cluster.get("apps", "statefulsets", "db").unwrap();
    assert_eq!(set["status"]["readyReplicas"], 3);
    assert_eq!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    assert_eq!(labels["controller-revision-hash"], set["status"]["updateRevision"]);
    assert_eq!(
        cluster.events("SuccessfulCreate").last().unwrap(),
        "Create Pod db-2 in StatefulSet db successful"
    );

    cluster.merge("apps", "statefulsets", "db", None, json!({"spec": {"replicas": 1}})).await;
    cluster.settle().await;
    let leaving: Vec<Value> =
        cluster.pods("").into_iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_string()).collect();
    assert_eq!(names(&leaving), ["db-2"], "one at a time, from the end");
    cluster.work_until_quiet().await;
    assert_eq!(names(&cluster.pods("app=db")), ["db-0"]);
    assert_eq!(cluster.list("", "persistentvolumeclaims", "").len(), 3, "storage stays");
}

/// A plan for billions of pods would not fit into memory.
#[tokio::test(start_paused = true)]
async fn a_set_without_order_makes_its_pods_in_portions() {
    let cluster = Cluster::start();
    let parallel = json!({"spec": {"podManagementPolicy": "Parallel"}});
    cluster.create("apps", "statefulsets", stateful_set(600, parallel)).await;
    cluster.settle().await;
    assert_eq!(cluster.pods("app=db").len(), 600);
}

#[tokio::test(start_paused = true)]
async fn a_partition_holds_an_update_back() {
    let cluster = Cluster::start();
    let parallel = json!({"spec": {
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
    }});
    cluster.create("apps", "statefulsets", stateful_set(3, parallel)).await;
    cluster.settle().await;
    assert_eq!(cluster.pods("app=db").len(), 3, "all at once");
    cluster.work_until_quiet().await;
    let first = cluster.get("apps", "statefulsets", "db").unwrap()["status"]["currentRevision"].clone();
    let change = json!({"spec": {"template": template("db", "db:2")}});
    cluster.merge("apps", "statefulsets", "db", None, change).await;
    cluster.work_until_quiet().await;
    let images = |cluster: &Cluster| -> Vec<Value> {
        cluster.pods("app=db").iter().map(|pod| pod["spec"]["containers"][0]["image"].clone()).collect()
    };
    assert_eq!(images(&cluster), ["db:1", "db:1", "db:2"]);
    let set = cluster.get("apps", "statefulsets", "db").unwrap();
    assert_eq!(set["status"]["currentRevision"], first);
    assert_eq!(set["status"]["updatedReplicas"], 1);
    let all = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    cluster.merge("apps", "statefulsets", "db", None, all).await;
    cluster.work_until_quiet().await;
    assert_eq!(images(&cluster), ["db:2", "db:2", "db:2"]);
    let set = cluster.get("apps", "statefulsets", "db").unwrap();
    assert_eq!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    assert_ne!(set["status"]["currentRevision"], first);
    assert_eq!(cluster.list("apps", "controllerrevisions", "").len(), 2);
}

fn job(spec: Value) -> Value {
    let mut job = json!({
        "metadata": {"name": "work"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    });
    json_patch::merge(&mut job["spec"], &spec);
    job
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_until_enough_pods_succeeded() {
    let cluster = Cluster::start();
    let spec = json!({"completions": 3, "parallelism": 2, "ttlSecondsAfterFinished": 60});
    cluster.create("batch", "jobs", job(spec)).await;
    cluster.settle().await;
    assert_eq!(cluster.pods("").len(), 2);
    for round in 0..3 {
        let running = cluster.pods("").into_iter().find(|pod| pod["status"]["phase"] != "Succeeded").unwrap();
        let name = running["metadata"]["name"].as_str().unwrap().to_owned();
        cluster.run_pod(&name).await;
        cluster.finish_pod(&name, "Succeeded").await;
        let work = cluster.get("batch", "jobs", "work").unwrap();
        assert_eq!(work["status"]["succeeded"], round + 1, "{work}");
    }
    let work = cluster.get("batch", "jobs", "work").unwrap();
    assert_eq!(cluster::condition(&work, "Complete")["status"], "True");
    assert_eq!(cluster::condition(&work, "SuccessCriteriaMet")["reason"], "CompletionsReached");
    assert!(work["status"]["completionTime"].is_string());
    assert_eq!(cluster.pods("").len(), 3);
    assert!(cluster.pods("").iter().all(|pod| pod["metadata"]["finalizers"].is_null()), "all are counted");
    assert_eq!(cluster.events("Completed"), ["Job completed"]);
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert!(cluster.get("batch", "jobs", "work").is_none(), "its time is over");
    assert!(cluster.pods("").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_gives_up_after_too_many_failures() {
    let cluster = Cluster::start();
    cluster.create("batch", "jobs", job(json!({"backoffLimit": 1}))).await;
    cluster.settle().await;
    let first = names(&cluster.pods(""));
    cluster.finish_pod(&first[0], "Failed").await;
    assert_eq!(cluster.pods("").len(), 1, "it waits before it tries again");
    tokio::time::sleep(Duration::from_secs(11)).await;
    let second = names(&cluster.pods("")).into_iter().find(|name| *name != first[0]).unwrap();
    cluster.finish_pod(&second, "Failed").await;
    let work = cluster.get("batch", "jobs", "work").unwrap();
    let failed = cluster::condition(&work, "Failed");
    assert_eq!(failed["reason"], "BackoffLimitExceeded", "{work}");
    assert_eq!(failed["message"], "Job has reached the specified backoff limit");
    assert_eq!(work["status"]["failed"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_job_ends_at_its_deadline_and_rests_while_suspended() {
    let cluster = Cluster::start();
    cluster.create("batch", "jobs", job(json!({"activeDeadlineSeconds": 30, "suspend": true}))).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(cluster.pods("").is_empty());
    let work = cluster.get("batch", "jobs", "work").unwrap();
    assert_eq!(cluster::condition(&work, "Suspended")["status"], "True");
    cluster.merge("batch", "jobs", "work", None, json!({"spec": {"suspend": false}})).await;
    cluster.settle().await;
    assert_eq!(cluster.pods("").len(), 1);
    tokio::time::sleep(Duration::from_secs(31)).await;
    let work = cluster.get("batch", "jobs", "work").unwrap();
    assert_eq!(cluster::condition(&work, "Failed")["reason"], "DeadlineExceeded", "{work}");
    assert!(cluster.pods("").is_empty(), "a pod that never ran is gone at once");
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_runs_each_index_once() {
    let cluster = Cluster::start();
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    cluster.create("batch", "jobs", job(spec)).await;
    cluster.settle().await;
    let mut indexes: Vec<Value> = cluster
        .pods("")
        .iter()
        .map(|pod| pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].clone())
        .collect();
    indexes.sort_by_key(ToString::to_string);
    assert_eq!(indexes, ["0", "1", "2"]);
    for name in names(&cluster.pods("")) {
        cluster.run_pod(&name).await;
        cluster.finish_pod(&name, "Succeeded").await;
    }
    let work = cluster.get("batch", "jobs", "work").unwrap();
    assert_eq!(work["status"]["completedIndexes"], "0-2");
    assert_eq!(cluster::condition(&work, "Complete")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_budget_counts_and_evictions_obey_it() {
    let cluster = Cluster::start();
    cluster.deployment("web", 3, json!({"maxSurge": 1, "maxUnavailable": 0})).await;
    cluster.work_until_quiet().await;
    let budget = json!({
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    cluster.create("policy", "poddisruptionbudgets", budget).await;
    cluster.settle().await;
    let numbers = |cluster: &Cluster| {
        let status = cluster.get("policy", "poddisruptionbudgets", "web").unwrap()["status"].clone();
        ["expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"]
            .map(|key| status[key].as_i64().unwrap())
    };
    assert_eq!(numbers(&cluster), [3, 3, 2, 1]);
    let pods = names(&cluster.pods("app=web"));
    cluster.local.evict("default", &pods[0]).await.unwrap();
    cluster.settle().await;
    assert_eq!(numbers(&cluster), [3, 2, 2, 0]);
    let refused = cluster.local.evict("default", &pods[1]).await.unwrap_err();
    assert_eq!(refused.code, 429);
    // The evicted pod is replaced; when the new one is ready the next may go.
    cluster.work_until_quiet().await;
    assert_eq!(numbers(&cluster), [3, 3, 2, 1]);
    let budget = cluster.get("policy", "poddisruptionbudgets", "web").unwrap();
    assert_eq!(cluster::condition(&budget, "DisruptionAllowed")["reason"], "SufficientPods");
    assert!(budget["status"]["disruptedPods"].is_null(), "{budget}");
    cluster.local.evict("default", &pods[1]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_reserved_for_a_claim_is_bound_to_it() {
    let cluster = Cluster::start();
    let volume = |name: &str, spec: Value| {
        let mut volume = json!({"metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"},
        }});
        json_patch::merge(&mut volume["spec"], &spec);
        volume
    };
    let claim = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }})
    };
    let reserved = |name: &str| json!({"capacity": {"storage": "2Gi"}, "claimRef": {"namespace": "default", "name": name}});
    let bound = |name: &str| {
        let claim = cluster.get("", "persistentvolumeclaims", name).unwrap();
        (claim["status"]["phase"].clone(), claim["spec"]["volumeName"].clone())
    };
    cluster.create("", "persistentvolumes", volume("a", reserved("data"))).await;
    cluster.create("", "persistentvolumes", volume("b", json!({}))).await;
    cluster.settle().await;
    cluster.create("", "persistentvolumeclaims", claim("data")).await;
    cluster.settle().await;
    assert_eq!(bound("data"), (json!("Bound"), json!("a")), "before smaller ones that are free");
    let uid = cluster.get("", "persistentvolumeclaims", "data").unwrap()["metadata"]["uid"].clone();
    let volume_a = cluster.get("", "persistentvolumes", "a").unwrap();
    assert_eq!(volume_a["spec"]["claimRef"]["uid"], uid);
    assert_eq!(volume_a["status"]["phase"], "Bound");
    cluster.create("", "persistentvolumeclaims", claim("other")).await;
    cluster.create("", "persistentvolumeclaims", claim("late")).await;
    cluster.settle().await;
    assert_eq!(bound("other"), (json!("Bound"), json!("b")));
    assert_eq!(bound("late").0, "Pending");
    cluster.create("", "persistentvolumes", volume("c", reserved("late"))).await;
    cluster.settle().await;
    assert_eq!(bound("late"), (json!("Bound"), json!("c")));
    // A class says nothing against a volume that is kept; a mode does.
    let with = |name: &str, more: Value| {
        let mut spec = reserved(name);
        json_patch::merge(&mut spec, &more);
        volume(name, spec)
    };
    for (name, more, expected) in [
        ("class", json!({"storageClassName": "fast"}), "Bound"),
        ("mode", json!({"volumeMode": "Block"}), "Pending"),
        ("small", json!({"capacity": {"storage": "1Mi"}}), "Pending"),
    ] {
        cluster.create("", "persistentvolumes", with(name, more)).await;
        cluster.create("", "persistentvolumeclaims", claim(name)).await;
        cluster.settle().await;
        assert_eq!(bound(name).0, expected, "{name}");
    }
    let mut choosy = claim("choosy");
    choosy["spec"]["selector"] = json!({"matchLabels": {"disk": "ssd"}});
    cluster.create("", "persistentvolumes", volume("plain", json!({}))).await;
    cluster.create("", "persistentvolumeclaims", choosy).await;
    cluster.settle().await;
    assert_eq!(bound("choosy").0, "Pending");
    let mut labelled = volume("ssd", json!({"capacity": {"storage": "9Gi"}}));
    labelled["metadata"]["labels"] = json!({"disk": "ssd"});
    cluster.create("", "persistentvolumes", labelled).await;
    cluster.settle().await;
    assert_eq!(bound("choosy"), (json!("Bound"), json!("ssd")));
}

#[tokio::test(start_paused = true)]
async fn a_volume_goes_with_its_claim() {
    let cluster = Cluster::start();
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    cluster.create("", "persistentvolumeclaims", claim).await;
    cluster.settle().await;
    let claim = cluster.get("", "persistentvolumeclaims", "data").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["status"]["capacity"]["storage"], "1Gi");
    let volume = claim["spec"]["volumeName"].as_str().unwrap().to_owned();
    assert_eq!(cluster.get("", "persistentvolumes", &volume).unwrap()["status"]["phase"], "Bound");
    let pod = json!({
        "metadata": {"name": "a"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    });
    cluster.create("", "pods", pod).await;
    cluster.run_pods("").await;
    cluster.delete("", "persistentvolumeclaims", "data", None).await;
    cluster.settle().await;
    assert!(cluster.get("", "persistentvolumeclaims", "data").is_some(), "a pod still has it");
    cluster.delete("", "pods", "a", None).await;
    cluster.stop_pods().await;
    assert!(cluster.get("", "persistentvolumeclaims", "data").is_none());
    assert!(cluster.get("", "persistentvolumes", &volume).is_none());
}

async fn node(cluster: &Cluster, name: &str) {
    let now = cluster.local.server().clock().now_text();
    let node = json!({
        "metadata": {"name": name},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now},
        ]},
    });
    cluster.create("", "nodes", node).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_loses_its_pods() {
    let cluster = Cluster::with(Options::default());
    node(&cluster, "node-1").await;
    cluster.create("apps", "replicasets", json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template("web", "app:1")},
    }))
    .await;
    cluster.settle().await;
    cluster.run_pods("app=web").await;
    tokio::time::sleep(Duration::from_secs(41)).await;
    let node = cluster.get("", "nodes", "node-1").unwrap();
    let ready = cluster::condition(&node, "Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("Unknown"), &json!("NodeStatusUnknown")));
    let taints = node["spec"]["taints"].as_array().unwrap();
    assert!(taints.iter().all(|taint| taint["key"] == "node.kubernetes.io/unreachable"), "{taints:?}");
    assert_eq!(taints.len(), 2);
    let pod = cluster.pods("app=web")[0].clone();
    assert_eq!(cluster::condition(&pod, "Ready")["status"], "False");
    // Pods tolerate this for five minutes by default.
    tokio::time::sleep(Duration::from_secs(290)).await;
    assert!(cluster.pods("app=web")[0]["metadata"]["deletionTimestamp"].is_null());
    tokio::time::sleep(Duration::from_secs(15)).await;
    let pods = cluster.pods("app=web");
    assert!(pods.iter().any(|pod| pod["metadata"]["deletionTimestamp"].is_string()), "{pods:?}");
    assert_eq!(pods.len(), 2, "another one takes its place");
}

/// Sums of seconds must not overflow.
#[tokio::test(start_paused = true)]
async fn a_pod_may_tolerate_a_taint_for_a_very_long_time() {
    let cluster = Cluster::with(Options::default());
    node(&cluster, "node-1").await;
    let forever =
        json!([{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": i64::MAX}]);
    let spec = json!({"tolerations": forever, "containers": [{"name": "c", "image": "i"}]});
    cluster.create("", "pods", json!({"metadata": {"name": "a"}, "spec": spec})).await;
    cluster.run_pods("").await;
    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}});
    cluster.merge("", "nodes", "node-1", None, taint).await;
    cluster.settle().await;
    let pod = cluster.get("", "pods", "a").unwrap();
    assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod}");
    cluster.create("batch", "jobs", job(json!({"activeDeadlineSeconds": i64::MAX}))).await;
    cluster.settle().await;
    assert_eq!(cluster.get("batch", "jobs", "work").unwrap()["status"]["active"], 1, "controllers go on");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_gone_are_removed() {
    let cluster = Cluster::with(Options::default());
    node(&cluster, "node-1").await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    cluster.create("", "pods", pod).await;
    cluster.run_pods("").await;
    cluster.delete("", "nodes", "node-1", None).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(cluster.get("", "pods", "a").is_some());
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(cluster.get("", "pods", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_is_tainted_until_it_is_uncordoned() {
    let cluster = Cluster::with(Options::default());
    node(&cluster, "node-1").await;
    cluster.merge("", "nodes", "node-1", None, json!({"spec": {"unschedulable": true}})).await;
    cluster.settle().await;
    let taints = cluster.get("", "nodes", "node-1").unwrap()["spec"]["taints"].clone();
    assert_eq!(taints[0]["key"], "node.kubernetes.io/unschedulable");
    assert_eq!(taints[0]["effect"], "NoSchedule");
    cluster.merge("", "nodes", "node-1", None, json!({"spec": {"unschedulable": null}})).await;
    cluster.settle().await;
    assert!(cluster.get("", "nodes", "node-1").unwrap()["spec"]["taints"].is_null());
}

#[tokio::test(start_paused = true)]
async fn the_default_account_comes_back_and_the_certificate_is_there() {
    let cluster = Cluster::with(Options { root_ca: Some("PEM".to_owned()), ..Options::default() });
    cluster.settle().await;
    assert_eq!(cluster.get("", "configmaps", "kube-root-ca.crt").unwrap()["data"]["ca.crt"], "PEM");
    cluster.delete("", "serviceaccounts", "default", None).await;
    cluster.settle().await;
    assert!(cluster.get("", "serviceaccounts", "default").is_some());
}

#[tokio::test(start_paused = true)]
async fn claims_go_with_the_pod_or_the_set_where_the_policy_says_so() {
    let cluster = Cluster::start();
    let policy = json!({"spec": {
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
    }});
    cluster.create("apps", "statefulsets", stateful_set(2, policy)).await;
    cluster.work_until_quiet().await;
    assert_eq!(names(&cluster.list("", "persistentvolumeclaims", "")), ["data-db-0", "data-db-1"]);
    cluster.merge("apps", "statefulsets", "db", None, json!({"spec": {"replicas": 1}})).await;
    cluster.work_until_quiet().await;
    assert_eq!(names(&cluster.list("", "persistentvolumeclaims", "")), ["data-db-0"]);
    cluster.delete("apps", "statefulsets", "db", None).await;
    cluster.work_until_quiet().await;
    assert!(cluster.pods("").is_empty());
    assert!(cluster.list("", "persistentvolumeclaims", "").is_empty());
}

/// A budget counts through the scale of any controller, also of kinds that came later.
#[tokio::test(start_paused = true)]
async fn a_budget_asks_the_scale_of_custom_controllers() {
    let cluster = Cluster::start();
    let mut sets =
        kruise_apiserver::registry::builtin::resources().find(|r| r.plural == "replicasets").unwrap();
    sets.group = "example.com".into();
    sets.kind = "Herd".into();
    sets.plural = "herds".into();
    sets.table = "example.com/herds".into();
    sets.storage_api_version = "example.com/v1".into();
    cluster.local.server().registry().insert(sets);
    let herd = json!({
        "metadata": {"name": "h"},
        "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "h"}}, "template": template("h", "i")},
    });
    let herd = cluster.create("example.com", "herds", herd).await;
    let owner = json!({
        "apiVersion": "example.com/v1", "kind": "Herd", "name": "h", "uid": herd["metadata"]["uid"], "controller": true,
    });
    let pod = json!({
        "metadata": {"name": "a", "labels": {"app": "h"}, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    cluster.create("", "pods", pod).await;
    let spec = json!({"minAvailable": "50%", "selector": {"matchLabels": {"app": "h"}}});
    cluster.create("policy", "poddisruptionbudgets", json!({"metadata": {"name": "b"}, "spec": spec})).await;
    cluster.settle().await;
    let status = cluster.get("policy", "poddisruptionbudgets", "b").unwrap()["status"].clone();
    assert_eq!((&status["expectedPods"], &status["desiredHealthy"]), (&json!(5), &json!(3)), "{status}");
}
