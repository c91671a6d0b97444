//! Liveness probes that daemons run, and restarts that respect budgets.

use std::collections::BTreeSet;

use kruise_sim::machine::Said;
use serde_json::{Value, json};

use crate::world::{CLONESETS, MARKERS, PODS, PROBES, REQUESTS, World, condition, is_ready, pod, text};

const GATES: &[&str] = &["--feature-gates=EnhancedLivenessProbe=true"];
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const OUR_BUDGETS: &str = "/apis/policy.kruise.io/v1beta1/namespaces/default/podunavailablebudgets";

/// A set whose pods want their container asked with the command `alive`.
fn set(replicas: usize) -> Value {
    let probe = json!({"exec": {"command": ["alive"]}, "periodSeconds": 1, "failureThreshold": 2});
    let template = json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"apps.kruise.io/using-enhanced-liveness": "true"}},
        "spec": {"containers": [{"name": "app", "image": "app:v1", "livenessProbe": probe}]},
    });
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}})
}

/// What `alive` answers on all nodes from now on.
fn alive(world: &World, nodes: usize, code: i32) {
    for node in 1..=nodes {
        let said = Said { stderr: "no pulse".to_owned(), code, ..Said::default() };
        world.sim.machine(&format!("node-{node}")).declare_command("alive", said);
    }
}

async fn world(nodes: usize, replicas: usize, flags: &[&'static str]) -> World {
    let world = World::new(nodes, flags).await;
    alive(&world, nodes, 0);
    world.post(CLONESETS, set(replicas)).await;
    world.live(30).await;
    assert_eq!(up(&world).await, replicas);
    world
}

async fn up(world: &World) -> usize {
    world.list(PODS).await.iter().filter(|pod| is_ready(pod)).count()
}

async fn restarts(world: &World) -> u64 {
    let pods = world.list(PODS).await;
    pods.iter().filter_map(|pod| pod["status"]["containerStatuses"][0]["restartCount"].as_u64()).sum()
}

/// EL-1 and EL-3: the probe moves to the node's list; what fails is restarted, again and again with longer pauses.
#[tokio::test(start_paused = true)]
async fn a_container_that_fails_is_recreated() {
    let world = world(1, 1, GATES).await;
    let pod = world.list(PODS).await.remove(0);
    let name = text(&pod["metadata"]["name"]).to_owned();
    assert!(pod["spec"]["containers"][0]["livenessProbe"].is_null(), "{pod}");
    let context = text(&pod["metadata"]["annotations"]["apps.kruise.io/container-probe-context"]);
    assert!(context.starts_with(r#"[{"name":"app","livenessProbe":{"#), "{context}");
    let list = world.get(&format!("{PROBES}/node-1")).await;
    assert_eq!(list["spec"]["podProbes"][0]["probes"][0]["name"], format!("{name}-app"));
    assert!(world.list(REQUESTS).await.is_empty());

    alive(&world, 1, 1);
    world.live(10).await;
    assert_eq!(restarts(&world).await, 1);
    let request = world.list(REQUESTS).await.remove(0);
    assert_eq!(request["spec"]["podName"], name);
    assert_eq!(request["status"]["phase"], "Completed");
    let told = world.events("Unhealthy").await;
    assert!(
        told.contains(&(format!("Pod/{name}"), "Liveness probe failed: no pulse".to_owned())),
        "{told:?}"
    );
    world.live(600).await;
    let often = restarts(&world).await;
    assert!((4..=8).contains(&often), "pauses grow from 10 s to 5 min: {often} restarts");

    alive(&world, 1, 0);
    world.live(400).await;
    let calm = restarts(&world).await;
    world.live(600).await;
    assert_eq!(restarts(&world).await, calm);
    assert_eq!(up(&world).await, 1);
    assert!(world.list(REQUESTS).await.is_empty(), "requests go five minutes after their end");
}

/// EL-4 and EL-10: a probe that fails everywhere takes down one pod at a time where a budget says so, also when the
/// manager changes; no instance of a container is restarted twice.
#[tokio::test(start_paused = true)]
async fn a_budget_keeps_the_other_pods_up() {
    let mut world = world(2, 6, GATES).await;
    let budget = json!({"metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    world.post(BUDGETS, budget).await;
    world.live(5).await;
    alive(&world, 2, 1);
    let mut requests = BTreeSet::new();
    for step in 0..400 {
        if step == 150 {
            world.start_manager();
        }
        world.live_millis(300).await;
        assert!(up(&world).await >= 5, "step {step}");
        for request in world.list(REQUESTS).await {
            requests.insert(text(&request["metadata"]["name"]).to_owned());
        }
    }
    assert!(requests.len() >= 6, "it goes on: {requests:?}");
    // The last one may be under way.
    let (made, done) = (requests.len() as u64, restarts(&world).await);
    assert!(done == made || done + 1 == made, "{done} of {made}");
    let told = world.events("LivenessRestartBlocked").await;
    assert!(told.iter().any(|(_, text)| text == "PodDisruptionBudget default/web"), "{told:?}");
}

/// EL-4: a PodUnavailableBudget limits restarts as a PodDisruptionBudget does.
#[tokio::test(start_paused = true)]
async fn a_pod_unavailable_budget_keeps_the_other_pod_up() {
    let world = world(1, 2, GATES).await;
    let target = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"});
    let budget = json!({"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget", "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "targetRef": target}});
    world.post(OUR_BUDGETS, budget).await;
    world.live(5).await;
    alive(&world, 1, 1);
    for step in 0..400 {
        world.live_millis(300).await;
        assert!(up(&world).await >= 1, "step {step}");
    }
    assert!(restarts(&world).await >= 2, "both are restarted");
    let blocked = world.events("LivenessRestartBlocked").await;
    assert!(blocked.iter().any(|(_, text)| text == "PodUnavailableBudget default/web"), "{blocked:?}");
}

/// EL-5: the switch on a pod.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_switched_off_is_not_restarted() {
    let world = world(1, 1, GATES).await;
    let name = text(&world.list(PODS).await[0]["metadata"]["name"]).to_owned();
    let off = json!({"metadata": {"annotations": {"apps.kruise.io/using-enhanced-liveness": "false"}}});
    world.patch(&format!("{PODS}/{name}"), off).await;
    world.live(5).await;
    let list = world.get(&format!("{PROBES}/node-1")).await;
    assert!(list["spec"]["podProbes"].as_array().is_none_or(Vec::is_empty), "{list}");
    alive(&world, 1, 1);
    world.live(60).await;
    assert_eq!(restarts(&world).await, 0);
}

/// EL-8: ten at once, then one a second.
#[tokio::test(start_paused = true)]
async fn many_restarts_are_limited() {
    let world = world(2, 24, GATES).await;
    alive(&world, 2, 1);
    let mut made = Vec::new();
    for _ in 0..60 {
        world.live_millis(500).await;
        made.push(world.list(REQUESTS).await.len());
    }
    let burst = made.iter().position(|count| *count >= 10).unwrap();
    assert!(made[burst] <= 11, "{made:?}");
    assert!(made[burst + 10] <= made[burst] + 7, "{made:?}");
    assert!(made.last().unwrap() >= &24, "{made:?}");
}

/// EL-2 and EL-11: where something is off, the kubelet keeps the probe.
#[tokio::test(start_paused = true)]
async fn without_its_gates_pods_stay_as_they_are() {
    for flags in [&[][..], &["--feature-gates=EnhancedLivenessProbe=true,PodProbeMarkerGate=false"]] {
        let world = world(1, 1, flags).await;
        let pod = world.list(PODS).await.remove(0);
        assert!(pod["spec"]["containers"][0]["livenessProbe"].is_object(), "{flags:?} {pod}");
    }
}

/// What one pod asks for in an annotation, and a node would refuse, keeps no other pod of the node from being asked.
#[tokio::test(start_paused = true)]
async fn a_probe_that_leads_away_from_its_pod_silences_no_other() {
    let world = world(1, 1, GATES).await;
    let mut away = pod("away");
    let context = r#"[{"name":"app","livenessProbe":{"httpGet":{"host":"x","port":80}}}]"#;
    away["metadata"]["annotations"] = json!({"apps.kruise.io/using-enhanced-liveness": "true",
        "apps.kruise.io/container-probe-context": context});
    world.ready(away).await;
    let probe = json!({"name": "check", "containerName": "app", "podConditionType": "game.io/ok",
        "probe": {"exec": {"command": ["alive"]}, "periodSeconds": 1}});
    let marker = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": "ok"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": [probe]}});
    world.post(MARKERS, marker).await;
    world.live(30).await;
    for pod in world.list(PODS).await {
        assert_eq!(condition(&pod, "game.io/ok")["status"], "True", "{pod}");
    }
    world.delete(&format!("{MARKERS}/ok")).await;
    world.until(&format!("{MARKERS}/ok"), Value::is_null).await;
}

/// A set of one pod with these containers.
fn set_with(containers: &Value) -> Value {
    let mut set = set(1);
    set["spec"]["template"]["spec"]["containers"] = containers.clone();
    set
}

/// EL-6: two containers of one pod fail; one request after the other brings both back.
#[tokio::test(start_paused = true)]
async fn two_containers_that_fail_are_recreated_one_after_the_other() {
    let world = World::new(1, GATES).await;
    alive(&world, 1, 0);
    let probe = json!({"exec": {"command": ["alive"]}, "periodSeconds": 1, "failureThreshold": 2});
    let container = |name: &str| json!({"name": name, "image": "app:v1", "livenessProbe": probe});
    world.post(CLONESETS, set_with(&json!([container("app"), container("other")]))).await;
    world.live(30).await;
    assert_eq!(up(&world).await, 1);
    alive(&world, 1, 1);
    let mut asked = BTreeSet::new();
    for step in 0..200 {
        world.live_millis(200).await;
        let requests = world.list(REQUESTS).await;
        let is_open = |request: &&Value| request["status"]["phase"] != "Completed";
        assert!(requests.iter().filter(is_open).count() <= 1, "step {step}: {requests:?}");
        asked.extend(requests.iter().map(|one| text(&one["spec"]["containers"][0]["name"]).to_owned()));
        if asked.len() == 2 {
            alive(&world, 1, 0);
        }
    }
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), ["app", "other"]);
    world.live(60).await;
    let pod = world.list(PODS).await.remove(0);
    let statuses = pod["status"]["containerStatuses"].as_array().unwrap();
    assert!(statuses.iter().all(|one| one["restartCount"].as_u64().unwrap() >= 1), "{pod}");
    assert_eq!(up(&world).await, 1);
}

/// EL-7: what a daemon cannot ask stays with the kubelet, beside a probe that moved.
#[tokio::test(start_paused = true)]
async fn a_probe_by_grpc_stays_with_the_kubelet() {
    let world = World::new(1, GATES).await;
    alive(&world, 1, 0);
    let own = json!({"grpc": {"port": 9000}});
    let moved = json!({"exec": {"command": ["alive"]}});
    let containers = json!([
        {"name": "app", "image": "app:v1", "livenessProbe": own},
        {"name": "other", "image": "app:v1", "livenessProbe": moved},
    ]);
    world.post(CLONESETS, set_with(&containers)).await;
    world.live(30).await;
    let pod = world.list(PODS).await.remove(0);
    assert_eq!(pod["spec"]["containers"][0]["livenessProbe"]["grpc"]["port"], 9000);
    assert!(pod["spec"]["containers"][1]["livenessProbe"].is_null(), "{pod}");
    let list = world.get(&format!("{PROBES}/node-1")).await;
    let probes = list["spec"]["podProbes"][0]["probes"].as_array().unwrap();
    let name = format!("{}-other", text(&pod["metadata"]["name"]));
    assert_eq!(probes.iter().map(|probe| text(&probe["name"])).collect::<Vec<_>>(), [name]);
}

/// EL-9: who has not started yet is given the time to.
#[tokio::test(start_paused = true)]
async fn a_container_that_still_starts_is_left_alone() {
    let world = World::new(1, GATES).await;
    alive(&world, 1, 1);
    let exec = json!({"command": ["alive"]});
    let startup = json!({"exec": exec, "periodSeconds": 1, "failureThreshold": 1000});
    let liveness = json!({"exec": exec, "periodSeconds": 1, "failureThreshold": 2});
    let slow = json!({"name": "app", "image": "app:v1-warmup120", "startupProbe": startup, "livenessProbe": liveness});
    world.post(CLONESETS, set_with(&json!([slow]))).await;
    world.live(100).await;
    let pod = world.list(PODS).await.remove(0);
    assert_eq!(pod["status"]["containerStatuses"][0]["started"], false, "{pod}");
    assert_eq!((world.list(REQUESTS).await, restarts(&world).await), (Vec::new(), 0));
    world.live(60).await;
    assert!(restarts(&world).await >= 1, "once it has started, it counts");
}
