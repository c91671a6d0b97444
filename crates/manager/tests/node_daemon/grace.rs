//! Pods that are held not ready before their containers stop.

use serde_json::{Value, json};

use crate::world::{
    CLONESETS, PODS, REQUESTS, World, condition, container, is_ready, pod, request, seconds, states, time,
};

const WEB: &str = "/api/v1/namespaces/default/pods/web";
const AGAIN: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests/again";
const OLD_AGAIN: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/containerrecreaterequests/again";

async fn begin(gated: bool, grace: u32) -> World {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    if gated {
        web["spec"]["readinessGates"] = json!([{"conditionType": "KruisePodReady"}]);
    }
    world.ready(web).await;
    world.post(REQUESTS, request("again", &["app"], json!({"unreadyGracePeriodSeconds": grace}))).await;
    world
}

fn held_since(request: &Value) -> jiff::Timestamp {
    time(&condition(request, "PreRecreateGrace")["lastTransitionTime"])
}

/// CRR-12: held, marked, stopped after the time, and let go.
#[tokio::test(start_paused = true)]
async fn a_pod_is_held_before_its_container_stops() {
    let world = begin(true, 5).await;
    world.live(2).await;
    let web = world.get(WEB).await;
    let ready = condition(&web, "KruisePodReady");
    assert_eq!(ready["status"], "False");
    assert_eq!(ready["message"], r#"[{"userAgent":"ContainerRecreateRequest","key":"default/again"}]"#);
    assert!(!is_ready(&web));
    let held = world.get(AGAIN).await;
    assert_eq!(held["metadata"]["finalizers"], json!(["crr.apps.kruise.io/unready-acquired"]));
    assert_eq!(condition(&held, "PreRecreateGrace")["status"], "True");
    let done = world.over("again").await;
    assert_eq!(states(&done), "app:Succeeded");
    let (stopped, _) = world.stops("node-1")[0].clone();
    assert!(seconds(held_since(&held), stopped) >= 5.0);
    world.until(WEB, is_ready).await;
    let last = world.until(AGAIN, |request| request["metadata"]["finalizers"].is_null()).await;
    assert_eq!(held_since(&last), held_since(&held));
}

/// CRR-13: deleted meanwhile: nothing is stopped, and the pod is ready again.
#[tokio::test(start_paused = true)]
async fn a_request_deleted_during_the_grace_stops_nothing() {
    let world = begin(true, 20).await;
    world.live(5).await;
    assert!(!is_ready(&world.get(WEB).await));
    world.delete(AGAIN).await;
    world.until(WEB, is_ready).await;
    world.until(AGAIN, Value::is_null).await;
    world.live(60).await;
    assert_eq!(world.stops("node-1"), []);
}

/// CRR-14: another manager does not begin the time anew.
#[tokio::test(start_paused = true)]
async fn another_manager_does_not_make_the_grace_longer() {
    let mut world = begin(true, 20).await;
    world.live(5).await;
    let since = held_since(&world.get(AGAIN).await);
    world.kill_manager();
    world.live(5).await;
    world.start_manager();
    let done = world.over("again").await;
    assert_eq!(held_since(&done), since);
    let (stopped, _) = world.stops("node-1")[0].clone();
    assert!((20.0..23.0).contains(&seconds(since, stopped)), "{}", seconds(since, stopped));
}

/// CRR-15: without the gate the pod stays ready, and the time passes all the same.
#[tokio::test(start_paused = true)]
async fn a_pod_without_the_gate_stays_ready_until_its_container_stops() {
    let world = begin(false, 5).await;
    world.live(4).await;
    assert!(is_ready(&world.get(WEB).await));
    let since = held_since(&world.get(AGAIN).await);
    world.over("again").await;
    let (stopped, _) = world.stops("node-1")[0].clone();
    assert!(seconds(since, stopped) >= 5.0);
}

/// CRR-28: a client of the older version sees annotations, and leaves none behind.
#[tokio::test(start_paused = true)]
async fn the_older_version_shows_annotations_that_are_never_stored() {
    let world = begin(true, 5).await;
    world.live(2).await;
    let (old, new) = (world.get(OLD_AGAIN).await, world.get(AGAIN).await);
    let told = &old["metadata"]["annotations"]["crr.apps.kruise.io/unready-acquired"];
    assert_eq!(time(told), held_since(&new));
    assert_eq!(new["metadata"]["annotations"], Value::Null);
    world.patch(OLD_AGAIN, json!({"metadata": {"labels": {"own": "label"}}})).await;
    let after = world.get(AGAIN).await;
    assert_eq!(
        (&after["metadata"]["labels"]["own"], &after["metadata"]["annotations"]),
        (&json!("label"), &Value::Null)
    );
    let snapshot =
        world.until(AGAIN, |request| request["status"]["containerStatusSnapshot"].is_array()).await;
    let old = world.get(OLD_AGAIN).await;
    let told = old["metadata"]["annotations"]["crr.apps.kruise.io/sync-container-statuses"].as_str().unwrap();
    let told: Value = serde_json::from_str(told).unwrap();
    assert_eq!(told[0]["containerID"], snapshot["status"]["containerStatusSnapshot"][0]["containerID"]);
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
}

/// CRR-33: a daemon that knows only the older version: it reads the annotations and writes whole objects back.
#[tokio::test(start_paused = true)]
async fn a_daemon_of_the_older_version_is_understood() {
    let mut world = World::new(1, &[]).await;
    world.kill_daemon("node-1");
    let mut web = pod("web");
    web["spec"]["readinessGates"] = json!([{"conditionType": "KruisePodReady"}]);
    let before = world.ready(web).await;
    world.post(REQUESTS, request("again", &["app"], json!({"unreadyGracePeriodSeconds": 5}))).await;
    let write = async |change: &dyn Fn(&mut Value)| {
        let mut object = world.get(OLD_AGAIN).await;
        change(&mut object["status"]);
        world.put(&format!("{OLD_AGAIN}/status"), &object).await.unwrap();
    };
    let annotation = |object: &Value, name: &str| {
        object["metadata"]["annotations"][format!("crr.apps.kruise.io/{name}")]
            .as_str()
            .map(ToOwned::to_owned)
    };
    write(&|status| *status = json!({"phase": "Recreating"})).await;
    let held = world.until(OLD_AGAIN, |object| annotation(object, "unready-acquired").is_some()).await;
    let since: jiff::Timestamp = annotation(&held, "unready-acquired").unwrap().parse().unwrap();
    world.live(6).await;
    assert!(!is_ready(&world.get(WEB).await));
    world.sim.kill_container("default", "web", "app");
    write(&|status| {
        status["containerRecreateStates"] = json!([{"name": "app", "phase": "Recreating", "isKilled": true}]);
    })
    .await;
    let seen = world
        .until(OLD_AGAIN, |object| {
            let told = annotation(object, "sync-container-statuses").unwrap_or_default();
            let told: Value = serde_json::from_str(&told).unwrap_or_default();
            told[0]["ready"] == true && told[0]["containerID"] != container(&before, "app")["containerID"]
        })
        .await;
    assert_eq!(annotation(&seen, "unready-acquired").unwrap().parse::<jiff::Timestamp>().unwrap(), since);
    let now = world.now().round(jiff::Unit::Second).unwrap().to_string();
    write(&|status| {
        status["phase"] = json!("Completed");
        status["completionTime"] = json!(now);
        status["containerRecreateStates"] = json!([{"name": "app", "phase": "Succeeded", "isKilled": true}]);
    })
    .await;
    world.until(WEB, is_ready).await;
    let done = world.until(AGAIN, |request| request["metadata"]["finalizers"].is_null()).await;
    assert_eq!(held_since(&done), since, "nothing was lost on the way");
    assert_eq!(container(&world.get(&format!("{PODS}/web")).await, "app")["restartCount"], 1);
}

/// The largest number means "for ever". A request with it keeps later ones of its pod waiting only while it is there.
#[tokio::test(start_paused = true)]
async fn a_request_that_holds_its_pod_for_ever_can_be_deleted_and_others_follow() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    for (field, most) in [("unreadyGracePeriodSeconds", i64::MAX), ("minStartedSeconds", i32::MAX.into())] {
        world.post(REQUESTS, request("ever", &["sidecar"], json!({field: most}))).await;
        world.live(20).await;
        let ever = world.get(&format!("{REQUESTS}/ever")).await;
        assert_eq!(ever["status"]["phase"], "Recreating", "{field}: {ever}");
        world.delete(&format!("{REQUESTS}/ever")).await;
        world.post(REQUESTS, request("again", &["app"], json!({}))).await;
        assert_eq!(states(&world.over("again").await), "app:Succeeded", "{field}");
        world.delete(AGAIN).await;
        world.until(AGAIN, Value::is_null).await;
    }
}

/// CRR-34: a manager and a daemon take over a request that others have begun and stored in the older version. It completes, and
/// the time before the stop counts from what was told before.
#[tokio::test(start_paused = true)]
async fn a_request_that_others_have_begun_is_brought_to_its_end() {
    let mut world = World::new(1, &[]).await;
    world.kill_daemon("node-1");
    let mut web = pod("web");
    web["spec"]["readinessGates"] = json!([{"conditionType": "KruisePodReady"}]);
    world.ready(web).await;
    world.post(REQUESTS, request("again", &["app"], json!({"unreadyGracePeriodSeconds": 20}))).await;
    let mut older = world.get(OLD_AGAIN).await;
    older["status"] = json!({"phase": "Recreating"});
    world.put(&format!("{OLD_AGAIN}/status"), &older).await.unwrap();
    let is_held = |request: &Value| condition(request, "PreRecreateGrace")["status"] == "True";
    let since = held_since(&world.until(AGAIN, is_held).await);
    world.kill_manager();
    world.live(5).await;
    world.start_manager();
    world.start_daemon("node-1");
    let done = world.over("again").await;
    assert_eq!((states(&done).as_str(), held_since(&done)), ("app:Succeeded", since));
    let (stopped, _) = world.stops("node-1")[0].clone();
    assert!((20.0..23.0).contains(&seconds(since, stopped)), "{}", seconds(since, stopped));
}

/// INPLACE-25: a hook before the deletion and a request hold one pod. Both are told, in order, and when the request is over the
/// hook still holds it.
#[tokio::test(start_paused = true)]
async fn a_request_and_a_hook_hold_one_pod_beside_each_other() {
    let world = World::new(1, &[]).await;
    let template = json!({"metadata": {"labels": {"app": "demo", "hold": "true"}}, "spec": {"containers": [
        {"name": "app", "image": "app:v1"}]}});
    let hook = json!({"preDelete": {"labelsHandler": {"hold": "true"}, "markPodNotReady": true}});
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "demo"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "demo"}}, "template": template, "lifecycle": hook}});
    world.post(CLONESETS, set).await;
    let ready = |pods: &Value| pods["items"].as_array().unwrap().iter().any(is_ready);
    let name = world.until(PODS, ready).await["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    let path = format!("{PODS}/{name}");
    world.patch(&format!("{CLONESETS}/demo"), json!({"spec": {"replicas": 0}})).await;
    let holds = |reasons: &'static str| {
        move |pod: &Value| {
            let condition = condition(pod, "KruisePodReady");
            condition["status"] == "False" && condition["message"] == reasons
        }
    };
    let hook_alone = r#"[{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#;
    world.until(&path, holds(hook_alone)).await;
    let mut again = request("again", &["app"], json!({"unreadyGracePeriodSeconds": 10}));
    again["spec"]["podName"] = name.as_str().into();
    world.post(REQUESTS, again).await;
    let both = r#"[{"userAgent":"ContainerRecreateRequest","key":"default/again"},{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#;
    world.until(&path, holds(both)).await;
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    world.until(&path, holds(hook_alone)).await;
    world.live(60).await;
    let pod = world.get(&path).await;
    assert!(holds(hook_alone)(&pod) && !is_ready(&pod), "{pod}");
    assert_eq!(container(&pod, "app")["restartCount"], 1);
    world.patch(&path, json!({"metadata": {"labels": {"hold": "false"}}})).await;
    world.until(&path, Value::is_null).await;
}
