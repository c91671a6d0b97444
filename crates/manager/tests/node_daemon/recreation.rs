//! Containers are recreated.

use serde_json::{Value, json};

use crate::world::{
    CLONESETS, PODS, REQUESTS, World, condition, container, pod, request, seconds, states, text, time,
};

/// CRR-1: one container of two, and everything else stays as it is.
#[tokio::test(start_paused = true)]
async fn a_container_is_recreated_and_nothing_else_changes() {
    let world = World::new(1, &[]).await;
    let before = world.ready(pod("web")).await;
    let made = world.post(REQUESTS, request("again", &["app"], json!({}))).await;
    let labels = &made["metadata"]["labels"];
    assert_eq!(labels["crr.apps.kruise.io/pod-uid"], before["metadata"]["uid"]);
    assert_eq!(labels["crr.apps.kruise.io/node-name"], "node-1");
    assert_eq!(labels["crr.apps.kruise.io/active"], "true");
    assert_eq!(made["spec"]["strategy"]["failurePolicy"], "Fail");
    assert_eq!(made["spec"]["strategy"]["terminationGracePeriodSeconds"], 20);
    let context = &made["spec"]["containers"][0]["statusContext"];
    assert_eq!(context["containerID"], container(&before, "app")["containerID"]);
    let done = world.over("again").await;
    assert!(seconds(time(&made["metadata"]["creationTimestamp"]), world.now()) < 60.0);
    let wanted = json!([{"name": "app", "phase": "Succeeded", "isKilled": true}]);
    assert_eq!(done["status"]["containerRecreateStates"], wanted);
    assert_eq!(done["status"]["message"], Value::Null);
    world.live(5).await;
    let labels = world.get(&format!("{REQUESTS}/again")).await["metadata"]["labels"].clone();
    assert_eq!(labels["crr.apps.kruise.io/active"], Value::Null, "daemons forget it");
    let after = world.get(&format!("{PODS}/web")).await;
    assert_ne!(container(&after, "app")["containerID"], container(&before, "app")["containerID"]);
    assert_eq!(container(&after, "app")["restartCount"], 1);
    assert_eq!(container(&after, "sidecar"), container(&before, "sidecar"));
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["status"]["podIP"], before["status"]["podIP"]);
    assert_eq!(world.stops("node-1").len(), 1);
}

/// CRR-2: a request goes after its time; without one it stays.
#[tokio::test(start_paused = true)]
async fn a_request_goes_after_its_time_or_stays() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    let mut short = request("short", &["app"], json!({}));
    short["spec"]["ttlSecondsAfterFinished"] = json!(3);
    world.post(REQUESTS, short).await;
    world.over("short").await;
    world.live(10).await;
    assert!(world.get(&format!("{REQUESTS}/short")).await.is_null());
    world.post(REQUESTS, request("long", &["sidecar"], json!({}))).await;
    world.over("long").await;
    world.live(3600).await;
    assert!(world.get(&format!("{REQUESTS}/long")).await.is_object());
}

/// CRR-3: a new container must last; one that dies early does not count.
#[tokio::test(start_paused = true)]
async fn a_new_container_counts_when_it_has_lasted() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    world.post(REQUESTS, request("again", &["app"], json!({"minStartedSeconds": 5}))).await;
    let path = format!("{PODS}/web");
    let running = |restarts: i64| {
        move |pod: &Value| {
            let app = container(pod, "app");
            app["restartCount"] == restarts && app["state"]["running"].is_object()
        }
    };
    world.until(&path, running(1)).await;
    world.live(2).await;
    world.sim.kill_container("default", "web", "app");
    let last = world.until(&path, running(2)).await;
    assert_eq!(states(&world.get(&format!("{REQUESTS}/again")).await), "app:Recreating");
    let done = world.over("again").await;
    assert_eq!(states(&done), "app:Succeeded");
    let started = time(&container(&last, "app")["state"]["running"]["startedAt"]);
    assert!(seconds(started, time(&done["status"]["completionTime"])) >= 4.0);
    assert_eq!(world.stops("node-1").len(), 1, "stopped once by us");
}

/// When the instance of a container before the present one ended.
fn ended(pod: &Value, name: &str) -> jiff::Timestamp {
    time(&container(pod, name)["lastState"]["terminated"]["finishedAt"])
}

async fn both(ordered: bool) -> f64 {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    web["spec"]["containers"][0]["lifecycle"] = json!({"postStart": {"exec": {"command": ["sleep", "5"]}}});
    world.ready(web).await;
    world.post(REQUESTS, request("again", &["app", "sidecar"], json!({"orderedRecreate": ordered}))).await;
    let done = world.over("again").await;
    assert_eq!(states(&done), "app:Succeeded sidecar:Succeeded");
    let web = world.get(&format!("{PODS}/web")).await;
    seconds(ended(&web, "app"), ended(&web, "sidecar"))
}

/// CRR-4: without an order nobody waits for the one before.
#[tokio::test(start_paused = true)]
async fn containers_stop_one_after_the_other_without_waiting() {
    let apart = both(false).await;
    assert!(apart.abs() <= 3.0, "{apart} s apart");
}

/// CRR-5: with an order the next one waits until the one before is ready again.
#[tokio::test(start_paused = true)]
async fn in_order_the_next_container_waits_for_the_one_before() {
    let apart = both(true).await;
    assert!(apart >= 5.0, "{apart} s apart");
}

/// CRR-16: requests of one pod take turns.
#[tokio::test(start_paused = true)]
async fn requests_of_one_pod_take_turns() {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    web["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 5}}});
    world.ready(web).await;
    world.post(REQUESTS, request("one", &["app"], json!({}))).await;
    world.post(REQUESTS, request("two", &["sidecar"], json!({}))).await;
    world.live(2).await;
    let phase = async |name: &str| {
        text(&world.get(&format!("{REQUESTS}/{name}")).await["status"]["phase"]).to_owned()
    };
    assert_eq!((phase("one").await.as_str(), phase("two").await.as_str()), ("Recreating", "Pending"));
    let one = world.over("one").await;
    let two = world.over("two").await;
    assert!(time(&two["status"]["completionTime"]) >= time(&one["status"]["completionTime"]));
    assert_eq!((states(&one).as_str(), states(&two).as_str()), ("app:Succeeded", "sidecar:Succeeded"));
}

/// CRR-17: nobody is there to serve it.
#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_serves_ends_after_a_minute() {
    let mut world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    world.kill_daemon("node-1");
    let made = world.post(REQUESTS, request("again", &["app"], json!({}))).await;
    let done = world.over("again").await;
    assert_eq!(done["status"]["message"], "daemon has not responded for a long time");
    let took = seconds(time(&made["metadata"]["creationTimestamp"]), time(&done["status"]["completionTime"]));
    assert!((60.0..=62.0).contains(&took), "{took}");
}

/// CRR-18: the pod goes, also when another one of its name comes.
#[tokio::test(start_paused = true)]
async fn a_request_ends_with_its_pod() {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    web["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "15"]}}});
    world.ready(web.clone()).await;
    world.post(REQUESTS, request("again", &["app"], json!({}))).await;
    let path = format!("{REQUESTS}/again");
    world.until(&path, |request| request["status"]["phase"] == "Recreating").await;
    world.delete(&format!("{PODS}/web")).await;
    assert_eq!(world.over("again").await["status"]["message"], "pod has gone");
    world.until(&format!("{PODS}/web"), Value::is_null).await;
    world.ready(web.clone()).await;
    world.post(REQUESTS, request("more", &["app"], json!({}))).await;
    world.until(&format!("{REQUESTS}/more"), |request| request["status"]["phase"] == "Recreating").await;
    let now = json!({"gracePeriodSeconds": 0});
    let request = http::Request::delete(format!("{PODS}/web")).header("content-type", "application/json");
    let _: Value =
        world.sim.client().request(request.body(now.to_string().into_bytes()).unwrap()).await.unwrap();
    world.post(PODS, web).await;
    assert_eq!(world.over("more").await["status"]["message"], "pod has gone");
}

/// CRR-19: somebody else restarted it between admission and the daemon; with force it is stopped all the same, once.
#[tokio::test(start_paused = true)]
async fn a_container_that_restarted_meanwhile_is_left_alone_unless_forced() {
    for (force, stops, restarts) in [(false, 0, 1), (true, 1, 2)] {
        let mut world = World::new(1, &[]).await;
        world.ready(pod("web")).await;
        world.kill_daemon("node-1");
        world.post(REQUESTS, request("again", &["app"], json!({"forceRecreate": force}))).await;
        world.sim.kill_container("default", "web", "app");
        let path = format!("{PODS}/web");
        world.until(&path, |pod| container(pod, "app")["restartCount"] == 1).await;
        world.start_daemon("node-1");
        assert_eq!(states(&world.over("again").await), "app:Succeeded");
        assert_eq!(world.stops("node-1").len(), stops, "force {force}");
        assert_eq!(container(&world.get(&path).await, "app")["restartCount"], restarts);
    }
}

/// CRR-20: a container between two crashes is not stopped; its next run counts.
#[tokio::test(start_paused = true)]
async fn a_container_that_crashes_all_the_time_is_waited_for() {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    web["spec"]["containers"][0]["image"] = json!("app:v1-crash5");
    world.post(PODS, web).await;
    let path = format!("{PODS}/web");
    world.until(&path, |pod| container(pod, "app")["state"]["waiting"]["reason"] == "CrashLoopBackOff").await;
    world.post(REQUESTS, request("again", &["app"], json!({}))).await;
    world.until(&format!("{REQUESTS}/again"), |request| states(request) == "app:Recreating").await;
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    assert_eq!(world.stops("node-1"), []);
}

/// CRR-21: the runtime does not stop a container; the policy says what becomes of the others.
#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_stopped_has_failed() {
    for (policy, wanted, stops) in
        [("Fail", "app:Failed sidecar:Pending", 1), ("Ignore", "app:Failed sidecar:Succeeded", 2)]
    {
        let world = World::new(1, &[]).await;
        world.ready(pod("web")).await;
        world.sim.machine("node-1").refuse_stops("web/app", "rpc error: code = Unknown desc = will not");
        world.post(REQUESTS, request("again", &["app", "sidecar"], json!({"failurePolicy": policy}))).await;
        let done = world.over("again").await;
        assert_eq!(states(&done), wanted);
        let message = &done["status"]["containerRecreateStates"][0]["message"];
        assert_eq!(message, "kill container error: rpc error: code = Unknown desc = will not");
        assert_eq!(world.stops("node-1").len(), stops, "policy {policy}");
    }
}

/// CRR-22: the daemon dies right after a stop, before it could tell.
#[tokio::test(start_paused = true)]
async fn a_stop_is_not_repeated_by_the_next_daemon() {
    let mut world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    world.post(REQUESTS, request("again", &["app"], json!({}))).await;
    while world.stops("node-1").is_empty() {
        world.live_millis(10).await;
    }
    world.live_millis(200).await;
    world.kill_daemon("node-1");
    world.live(10).await;
    world.start_daemon("node-1");
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    assert_eq!(world.stops("node-1").len(), 1);
    assert_eq!(container(&world.get(&format!("{PODS}/web")).await, "app")["restartCount"], 1);
}

/// CRR-23: nobody starts the container again.
#[tokio::test(start_paused = true)]
async fn a_request_ends_when_its_pod_has_ended() {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    web["spec"]["restartPolicy"] = json!("Never");
    web["spec"]["containers"] = json!([{"name": "app", "image": "app:v1-stubborn"}]);
    world.ready(web).await;
    world.post(REQUESTS, request("again", &["app"], json!({}))).await;
    assert_eq!(world.over("again").await["status"]["message"], "pod has terminated");
    assert_eq!(world.get(&format!("{PODS}/web")).await["status"]["phase"], "Failed");
}

/// CRR-24: sidecars that are init containers are recreated; others are not.
#[tokio::test(start_paused = true)]
async fn a_native_sidecar_is_recreated() {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    web["spec"]["initContainers"] = json!([
        {"name": "setup", "image": "setup:v1", "command": ["true"]},
        {"name": "proxy", "image": "proxy:v1", "restartPolicy": "Always"}]);
    world.ready(web).await;
    let refusal = world.refused(REQUESTS, request("no", &["setup"], json!({}))).await;
    assert_eq!(refusal, "400 container setup not found in Pod");
    world.post(REQUESTS, request("again", &["proxy"], json!({}))).await;
    assert_eq!(states(&world.over("again").await), "proxy:Succeeded");
    assert_eq!(container(&world.get(&format!("{PODS}/web")).await, "proxy")["restartCount"], 1);
}

/// CRR-29: nothing is there that would serve it.
#[tokio::test(start_paused = true)]
async fn without_daemons_no_request_is_taken() {
    let world = World::bare(1, 1, &["--feature-gates=KruiseDaemon=false"]).await;
    world.ready(pod("web")).await;
    let refusal = world.refused(REQUESTS, request("no", &["app"], json!({}))).await;
    assert_eq!(refusal, "403 feature-gate KruiseDaemon is not enabled");
}

/// CRR-30: a hundred requests on one node.
#[tokio::test(start_paused = true)]
async fn no_more_than_32_containers_are_being_stopped_at_once() {
    let world = World::new(1, &[]).await;
    for number in 0..100 {
        let mut one = pod(&format!("web-{number}"));
        one["spec"]["containers"] = json!([{"name": "app", "image": "app:v1", "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}}}]);
        world.post(PODS, one).await;
    }
    for number in 0..100 {
        world.until(&format!("{PODS}/web-{number}"), crate::world::is_ready).await;
    }
    for number in 0..100 {
        let mut one = request(&format!("r-{number}"), &["app"], json!({}));
        one["spec"]["podName"] = json!(format!("web-{number}"));
        world.post(REQUESTS, one).await;
    }
    for number in 0..100 {
        assert_eq!(states(&world.over(&format!("r-{number}")).await), "app:Succeeded");
    }
    let begun: Vec<_> = world.sim.machine("node-1").deeds();
    let begun: Vec<_> = begun
        .into_iter()
        .filter(|(_, deed)| matches!(deed, kruise_sim::machine::Deed::Command { .. }))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(begun.len(), 100);
    let at_once =
        |at: &jiff::Timestamp| begun.iter().filter(|one| (0.0..5.0).contains(&seconds(**one, *at))).count();
    let most = begun.iter().map(at_once).max().unwrap();
    assert!((20..=32).contains(&most), "{most} at once");
}

/// CRR-31: an update in place is on its way already.
#[tokio::test(start_paused = true)]
async fn a_request_during_an_update_in_place_restarts_nothing_twice() {
    let world = World::new(1, &[]).await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
        {"name": "app", "image": "app:v1"}, {"name": "sidecar", "image": "sidecar:v1"}]}});
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template,
            "updateStrategy": {"type": "InPlaceIfPossible"}}});
    world.post(CLONESETS, set).await;
    world
        .until(PODS, |pods| {
            pods["items"].as_array().is_some_and(|all| all.len() == 1 && crate::world::is_ready(&all[0]))
        })
        .await;
    let name = text(&world.list(PODS).await[0]["metadata"]["name"]).to_owned();
    // Pulling the new image takes a while.
    let change = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "app", "image": "app:v2-slow10"}, {"name": "sidecar", "image": "sidecar:v1"}]}}}});
    world.patch(&format!("{CLONESETS}/web"), change).await;
    world.live(1).await;
    let mut again = request("again", &["app"], json!({}));
    again["spec"]["podName"] = json!(name);
    world.post(REQUESTS, again).await;
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    let web = world.get(&format!("{PODS}/{name}")).await;
    let app = container(&web, "app");
    assert_eq!((text(&app["image"]), &app["restartCount"]), ("docker.io/library/app:v2-slow10", &json!(1)));
    assert_eq!(condition(&web, "InPlaceUpdateReady")["status"], "True");
}
