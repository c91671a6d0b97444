//! Container recreation.

use super::*;

const REQUESTS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";

pub(super) fn request(name: &str, pod: &str, strategy: Value) -> Value {
    let mut request = named("ContainerRecreateRequest", "v1beta1", name);
    request["metadata"]["labels"] = json!({"crr.apps.kruise.io/pod-uid": format!("u-{pod}"),
        "crr.apps.kruise.io/node-name": "n1", "crr.apps.kruise.io/active": "true"});
    request["spec"] = json!({"podName": pod, "strategy": strategy, "containers": [{"name": "app",
        "preStop": {"exec": {"command": ["bye"]}},
        "statusContext": {"containerID": format!("containerd://{pod}0"), "restartCount": 0}}]});
    request
}

impl Stage {
    fn run_container(&self, pod: &str, number: u32) {
        let id = format!("{pod}{number}");
        self.runtime.run(&format!("u-{pod}"), "app", &id, self.sim.clock().now());
    }

    /// What the manager does once the new container is ready.
    async fn see_ready(&self, name: &str, pod: &str, number: u32) {
        let seen = json!([{"name": "app", "ready": true, "restartCount": number,
            "containerID": format!("containerd://{pod}{number}")}]);
        let path = format!("{REQUESTS}/{name}/status");
        self.patch(&path, json!({"status": {"containerStatusSnapshot": seen}})).await;
    }
}

fn is_killed(object: &Value) -> bool {
    object["status"]["containerRecreateStates"][0]["isKilled"] == true
}

/// CRR-1 and CRR-6.
#[tokio::test(start_paused = true)]
async fn a_container_is_stopped_and_the_request_ends_when_a_new_one_is_ready() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().commands.insert("bye".to_owned(), (Duration::from_secs(8), Default::default()));
    stage.run_container("p", 0);
    stage.wait(5).await;
    stage.post(REQUESTS, request("r", "p", json!({"terminationGracePeriodSeconds": 20}))).await;
    stage.wait(5).await;
    assert!(stage.runtime.world().stops.is_empty(), "the hook still runs");
    let path = format!("{REQUESTS}/r");
    stage.until(&path, is_killed).await;
    assert_eq!(stage.runtime.world().stops, [("p0".to_owned(), 12)]);
    stage.run_container("p", 1);
    stage.wait(2).await;
    stage.see_ready("r", "p", 1).await;
    let done = stage.until(&path, |object| object["status"]["phase"] == "Completed").await;
    assert_eq!(done["status"]["containerRecreateStates"][0]["phase"], "Succeeded");
    assert!(done["status"]["completionTime"].is_string());
    stage.wait(2).await;
    let expected = ("Pod/p".to_owned(), "Stopping container app by ContainerRecreateRequest r".to_owned(), 1);
    assert_eq!(stage.events("Killing").await, [expected]);
}

/// CRR-16, with the second request woken by the end of the first (CRR-D9).
#[tokio::test(start_paused = true)]
async fn two_requests_of_a_pod_are_served_one_after_the_other() {
    let stage = Stage::new(Flags::default()).await;
    stage.run_container("p", 0);
    stage.post(REQUESTS, request("a", "p", json!({}))).await;
    stage.post(REQUESTS, request("b", "p", json!({"forceRecreate": true}))).await;
    let second = format!("{REQUESTS}/b");
    stage.until(&format!("{REQUESTS}/a"), is_killed).await;
    stage.until(&second, |object| object["status"]["phase"] == "Pending").await;
    stage.run_container("p", 1);
    stage.wait(2).await;
    stage.see_ready("a", "p", 1).await;
    stage.until(&second, is_killed).await;
    assert_eq!(stage.runtime.world().stops.len(), 2);
    assert_eq!(stage.get(&format!("{REQUESTS}/a")).await["status"]["phase"], "Completed");
}

/// CRR-8: who ends the request while a hook runs does not keep the container, and its state is still told.
#[tokio::test(start_paused = true)]
async fn a_request_that_was_ended_meanwhile_still_hears_of_the_stop() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().commands.insert("bye".to_owned(), (Duration::from_secs(8), Default::default()));
    stage.run_container("p", 0);
    stage.post(REQUESTS, request("r", "p", json!({}))).await;
    stage.wait(3).await;
    let ended = json!({"status": {"phase": "Completed", "message": "recreating has exceeded the activeDeadlineSeconds"}});
    stage.patch(&format!("{REQUESTS}/r/status"), ended).await;
    let told = stage.until(&format!("{REQUESTS}/r"), is_killed).await;
    assert_eq!(told["status"]["phase"], "Completed");
    assert_eq!(told["status"]["containerRecreateStates"][0]["phase"], "Recreating");
}

/// CRR-13: a request that is deleted during its grace stops nothing.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_gone_stops_nothing() {
    let stage = Stage::new(Flags::default()).await;
    stage.run_container("p", 0);
    stage.post(REQUESTS, request("r", "p", json!({"unreadyGracePeriodSeconds": 5}))).await;
    stage.until(&format!("{REQUESTS}/r"), |object| object["status"]["phase"] == "Recreating").await;
    let held = json!([{"type": "PreRecreateGrace", "status": "True", "reason": "PreRecreateGrace", "message": "m",
        "lastTransitionTime": stage.sim.clock().now_text()}]);
    stage.patch(&format!("{REQUESTS}/r/status"), json!({"status": {"conditions": held}})).await;
    stage.wait(3).await;
    send(&stage.sim, "DELETE", &format!("{REQUESTS}/r"), Value::Null).await.unwrap();
    stage.wait(60).await;
    assert!(stage.runtime.world().stops.is_empty());
}

/// CRR-22: the daemon dies in the middle.
#[tokio::test(start_paused = true)]
async fn a_daemon_that_dies_in_the_middle_stops_no_container_twice() {
    let mut stage = Stage::new(Flags::default()).await;
    stage.run_container("p", 0);
    stage.post(REQUESTS, request("r", "p", json!({}))).await;
    let path = format!("{REQUESTS}/r");
    while stage.runtime.world().stops.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Asked to stop and not stopped yet: what the runtime was asked it does.
    stage.scope = None;
    stage.runtime.exit("p0");
    stage.crash_daemon(Flags::default());
    stage.until(&path, is_killed).await;
    stage.run_container("p", 1);
    stage.wait(2).await;
    stage.see_ready("r", "p", 1).await;
    stage.until(&path, |object| object["status"]["phase"] == "Completed").await;
    assert_eq!(stage.runtime.world().stops.len(), 1);
}

/// CRR-30.
#[tokio::test(start_paused = true)]
async fn a_hundred_requests_stop_no_more_than_thirty_two_containers_at_a_time() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.world().commands.insert("bye".to_owned(), (Duration::from_secs(10), Default::default()));
    for number in 0..100 {
        let pod = format!("p{number}x");
        stage.run_container(&pod, 0);
        stage.post(REQUESTS, request(&format!("r{number}"), &pod, json!({}))).await;
    }
    stage.wait(120).await;
    assert_eq!(stage.runtime.world().stops.len(), 100);
    assert_eq!(stage.runtime.world().most_commanding, 32);
}

/// CRR-32: nobody serves such containers here.
#[tokio::test(start_paused = true)]
async fn a_request_for_another_runtime_ends_with_the_reason() {
    let stage = Stage::new(Flags::default()).await;
    let mut other = request("r", "p", json!({}));
    other["spec"]["containers"][0]["statusContext"]["containerID"] = json!("pouch://x");
    stage.post(REQUESTS, other).await;
    let done = stage.until(&format!("{REQUESTS}/r"), |object| object["status"]["phase"] == "Completed").await;
    assert_eq!(done["status"]["message"], "failed to find runtime service: no runtime pouch on this node");
}
