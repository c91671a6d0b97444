//! What runs before a container is stopped by a request.

use kruise_sim::machine::Deed;
use serde_json::{Value, json};

use crate::world::{PODS, REQUESTS, World, container, pod, request, seconds, states, time};

/// A ready pod whose container `app` has this hook, and a request about it. Gives the time of the request.
async fn begin(hook: Value, change: impl Fn(&mut Value)) -> (World, jiff::Timestamp) {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    web["spec"]["containers"][0]["lifecycle"] = json!({ "preStop": hook });
    world.ready(web).await;
    let mut again = request("again", &["app"], json!({}));
    change(&mut again);
    let now = world.now();
    world.post(REQUESTS, again).await;
    (world, now)
}

fn sleep(seconds: u32) -> Value {
    json!({"exec": {"command": ["sleep", seconds.to_string()]}})
}

/// CRR-6: the hook runs to its end first, and the event names the request.
#[tokio::test(start_paused = true)]
async fn a_container_stops_after_its_hook() {
    let (world, begun) = begin(sleep(8), |_| {}).await;
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    let (stopped, _) = world.stops("node-1")[0].clone();
    assert!(seconds(begun, stopped) >= 8.0, "{}", seconds(begun, stopped));
    let told = world.events("Killing").await;
    let wanted =
        ("Pod/web".to_owned(), "Stopping container app by ContainerRecreateRequest again".to_owned());
    assert!(told.contains(&wanted), "{told:?}");
}

/// CRR-7: a hook has no more time than the grace period.
#[tokio::test(start_paused = true)]
async fn a_hook_has_no_more_time_than_the_container() {
    let (world, begun) =
        begin(sleep(8), |request| request["spec"]["strategy"]["terminationGracePeriodSeconds"] = json!(3))
            .await;
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    let web = world.get(&format!("{PODS}/web")).await;
    let ended = time(&container(&web, "app")["lastState"]["terminated"]["finishedAt"]);
    assert!(seconds(begun, ended) < 8.0, "{}", seconds(begun, ended));
}

/// CRR-8: the deadline passes while a hook runs: the request is over, and what was begun is ended and told.
#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_request_and_not_the_stop() {
    let (world, _) = begin(sleep(8), |request| {
        request["spec"]["activeDeadlineSeconds"] = json!(3);
        request["spec"]["containers"] = json!([{"name": "app"}, {"name": "sidecar"}]);
    })
    .await;
    let done = world.over("again").await;
    assert_eq!(done["status"]["message"], "recreating has exceeded the activeDeadlineSeconds");
    let made = time(&done["metadata"]["creationTimestamp"]);
    assert!((3.0..=5.0).contains(&seconds(made, time(&done["status"]["completionTime"]))));
    assert_eq!(states(&done), "app:Pending sidecar:Pending");
    world.live(20).await;
    let last = world.get(&format!("{REQUESTS}/again")).await;
    assert_eq!(states(&last), "app:Recreating sidecar:Pending");
    assert_eq!(last["status"]["containerRecreateStates"][0]["isKilled"], true);
    assert_eq!(last["status"]["phase"], "Completed");
    let web = world.get(&format!("{PODS}/web")).await;
    let restarts = ["app", "sidecar"].map(|name| container(&web, name)["restartCount"].clone());
    assert_eq!(restarts, [json!(1), json!(0)]);
}

/// CRR-9: a hook that fails is told, and the container stops.
#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_is_told() {
    let (world, _) = begin(json!({"exec": {"command": ["sh", "-c", "exit 1"]}}), |_| {}).await;
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    let told = world.events("FailedPreStopHook").await;
    assert!(
        told[0]
            .1
            .starts_with("Exec lifecycle hook ([sh -c exit 1]) for Container \"app\" in Pod \"web_default(")
    );
}

/// CRR-10: a request to a named port of the pod, without a host, before the stop.
#[tokio::test(start_paused = true)]
async fn a_hook_over_http_reaches_the_pod_before_the_stop() {
    let (world, _) = begin(json!({"httpGet": {"port": "web", "path": "/bye"}}), |_| {}).await;
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    let address = world.get(&format!("{PODS}/web")).await["status"]["podIP"].clone();
    let deeds: Vec<Deed> = world.sim.machine("node-1").deeds().into_iter().map(|(_, deed)| deed).collect();
    let authority = format!("{}:8080", address.as_str().unwrap());
    assert_eq!(deeds[0], Deed::Page { authority, path: "/bye".to_owned() });
    assert!(matches!(&deeds[1], Deed::Stop { container, .. } if container == "web/app"), "{deeds:?}");
}

/// CRR-11: the hook that sleeps.
#[tokio::test(start_paused = true)]
async fn a_hook_that_sleeps_delays_the_stop() {
    let (world, begun) = begin(json!({"sleep": {"seconds": 5}}), |_| {}).await;
    assert_eq!(states(&world.over("again").await), "app:Succeeded");
    let (stopped, _) = world.stops("node-1")[0].clone();
    assert!((5.0..8.0).contains(&seconds(begun, stopped)), "{}", seconds(begun, stopped));
}
