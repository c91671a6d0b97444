//! Jobs: what failures mean, and what is left behind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "controllers/cluster.rs"]
mod cluster;

use bytes::Bytes;
use cluster::{Cluster, condition};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::rest::Propagation;
use serde_json::{Value, json};
use tower::ServiceExt as _;

async fn start(spec: Value) -> (Cluster, String) {
    let cluster = Cluster::start();
    let mut job = json!({
        "metadata": {"name": "work"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
    });
    json_patch::merge(&mut job["spec"], &spec);
    cluster.create("batch", "jobs", job).await;
    cluster.settle().await;
    let pod = cluster.pods("")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.run_pod(&pod).await;
    (cluster, pod)
}

fn work(cluster: &Cluster) -> Value {
    cluster.get("batch", "jobs", "work").unwrap()
}

async fn restarted(cluster: &Cluster, pod: &str, times: u32) {
    let status = json!({"status": {"containerStatuses": [{
        "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": times,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    }]}});
    cluster.merge("", "pods", pod, Some("status"), status).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn restarts_inside_a_pod_count_towards_the_limit() {
    for (limit, enough) in [(2, 2), (0, 1)] {
        let spec = json!({"backoffLimit": limit, "template": {"spec": {"restartPolicy": "OnFailure"}}});
        let (cluster, pod) = start(spec).await;
        restarted(&cluster, &pod, enough - 1).await;
        assert!(condition(&work(&cluster), "FailureTarget").is_null());
        restarted(&cluster, &pod, enough).await;
        cluster.stop_pods().await;
        let failed = condition(&work(&cluster), "Failed");
        assert_eq!(failed["reason"], "BackoffLimitExceeded", "{}", work(&cluster));
        assert!(cluster.pods("").is_empty(), "the pod does not go on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_deleted_without_a_word_leaves_its_pods_and_warns() {
    let (cluster, _) = start(json!({})).await;
    let server = cluster.local.server().clone();
    let request = Request::delete("/apis/batch/v1/namespaces/default/jobs/work");
    let answer = server.oneshot(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap();
    assert_eq!(
        answer.headers()["warning"],
        "299 - \"child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
         them or set propagationPolicy=Orphan to suppress this warning\""
    );
    answer.into_body().collect().await.unwrap();
    cluster.settle().await;
    assert!(cluster.get("batch", "jobs", "work").is_none());
    let pods = cluster.pods("");
    assert_eq!(pods.len(), 1);
    assert!(pods[0]["metadata"]["ownerReferences"].is_null(), "{}", pods[0]);
    // Nobody counts the pod any more, so nothing keeps it from being deleted.
    assert!(pods[0]["metadata"]["finalizers"].is_null(), "{}", pods[0]);
    cluster.delete("", "pods", pods[0]["metadata"]["name"].as_str().unwrap(), None).await;
    cluster.stop_pods().await;
    assert!(cluster.pods("").is_empty(), "{:?}", cluster.pods(""));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_a_job_adopts_is_counted() {
    let cluster = Cluster::start();
    let labels = json!({"app": "work"});
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "orphan", "labels": labels}, "spec": spec});
    cluster.create("", "pods", pod).await;
    let job = json!({"metadata": {"name": "work"}, "spec": {
        "manualSelector": true, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }});
    cluster.create("batch", "jobs", job).await;
    cluster.settle().await;
    assert_eq!(
        cluster.get("", "pods", "orphan").unwrap()["metadata"]["finalizers"],
        json!(["batch.kubernetes.io/job-tracking"])
    );
    cluster.run_pod("orphan").await;
    cluster.finish_pod("orphan", "Succeeded").await;
    assert_eq!(condition(&work(&cluster), "Complete")["status"], "True", "{}", work(&cluster));
    assert!(cluster.get("", "pods", "orphan").unwrap()["metadata"]["finalizers"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_job_deleted_in_the_background_takes_its_pods_with_it() {
    let (cluster, _) = start(json!({})).await;
    cluster.delete("batch", "jobs", "work", Some(Propagation::Background)).await;
    cluster.settle().await;
    cluster.stop_pods().await;
    assert!(cluster.pods("").is_empty(), "{:?}", cluster.pods(""));
}

/// Ends the container of a pod with a code.
async fn exit(cluster: &Cluster, pod: &str, code: u32) {
    let status = json!({"status": {"phase": "Failed", "containerStatuses": [{
        "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "finishedAt": null, "startedAt": null}},
    }]}});
    cluster.merge("", "pods", pod, Some("status"), status).await;
    cluster.settle().await;
}

#[tokio::test(start_paused = true)]
async fn an_exit_code_may_fail_the_whole_job_at_once() {
    let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}});
    let (cluster, pod) = start(json!({"podFailurePolicy": {"rules": [rule]}})).await;
    exit(&cluster, &pod, 42).await;
    let failed = condition(&work(&cluster), "Failed");
    assert_eq!(failed["reason"], "PodFailurePolicy", "{}", work(&cluster));
    assert_eq!(
        failed["message"],
        format!(
            "Container c for pod default/{pod} failed with exit code 42 matching FailJob rule at index 0"
        )
    );
    assert_eq!(work(&cluster)["status"]["failed"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_to_be_ignored_does_not_count() {
    let rule =
        json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
    let (cluster, pod) = start(json!({"backoffLimit": 0, "podFailurePolicy": {"rules": [rule]}})).await;
    let drained = json!({"status": {"phase": "Failed", "conditions": [
        {"type": "DisruptionTarget", "status": "True"},
    ]}});
    cluster.merge("", "pods", &pod, Some("status"), drained).await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    let job = work(&cluster);
    assert!(job["status"]["failed"].is_null() && condition(&job, "FailureTarget").is_null(), "{job}");
    assert_eq!(cluster.pods("").len(), 2, "another pod does the work");
    let pods = cluster.pods("");
    let ended = pods.iter().find(|one| one["metadata"]["name"] == pod.as_str()).unwrap();
    assert!(ended["metadata"]["finalizers"].is_null(), "{ended}");
}
