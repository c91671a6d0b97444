//! Probes of people: from a marker through the nodes to the pods.

use kruise_sim::machine::{Deed, Said};
use serde_json::{Value, json};

use crate::world::{
    CLONESETS, MARKERS, NODES, PODS, PROBES, REQUESTS, World, condition, is_ready, pod, request, seconds,
    states, text,
};

const WEB: &str = "/api/v1/namespaces/default/pods/web";

/// A marker of pods with the label `app=web` with one probe.
fn marker(name: &str, kind: &str, probe: Value) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "PodProbeMarker", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": [{"name": "check", "containerName": "app",
            "podConditionType": kind, "probe": probe}]}})
}

fn exec(words: &[&str]) -> Value {
    json!({"exec": {"command": words}, "periodSeconds": 1})
}

fn says(stdout: &str, code: i32) -> Said {
    Said { stdout: stdout.to_owned(), code, ..Said::default() }
}

/// The probes that a node lists.
async fn listed(world: &World, node: &str) -> Vec<String> {
    let list = world.get(&format!("{PROBES}/{node}")).await;
    let pods = list["spec"]["podProbes"].as_array().cloned().unwrap_or_default();
    let probes = pods.iter().flat_map(|pod| pod["probes"].as_array().cloned().unwrap_or_default());
    probes.map(|probe| text(&probe["name"]).to_owned()).collect()
}

/// DAEMON-1: each ready node has a list of its name, as long as it is there.
#[tokio::test(start_paused = true)]
async fn each_node_has_a_list_of_probes() {
    let world = World::new(2, &[]).await;
    assert_eq!(world.list(PROBES).await.len(), 2);
    let mut virtual_node = kruise_sim::Node::named("cloud");
    virtual_node.labels.insert("type".to_owned(), "virtual-kubelet".to_owned());
    world.sim.add_node(virtual_node);
    world.live(30).await;
    assert!(world.get(&format!("{PROBES}/cloud")).await.is_null());
    world.sim.stop_node("node-2");
    world.delete(&format!("{NODES}/node-2")).await;
    world.live(5).await;
    assert!(world.get(&format!("{PROBES}/node-2")).await.is_null());
}

/// DAEMON-2 and DAEMON-20: every pod gets its condition and its label, also one that comes later.
#[tokio::test(start_paused = true)]
async fn pods_are_marked_with_what_the_probe_found() {
    let world = World::new(2, &[]).await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app:v1"}]}});
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    world.post(CLONESETS, set).await;
    world.live(20).await;
    let mut ok = marker("ok", "game.io/ok", exec(&["true"]));
    ok["spec"]["probes"][0]["markerPolicy"] = json!([{"state": "Succeeded", "labels": {"ok": "yes"}}]);
    world.post(MARKERS, ok).await;
    world.live(10).await;
    let marked = async |count: usize| {
        let pods = world.list(PODS).await;
        assert_eq!(pods.len(), count);
        for pod in pods {
            assert_eq!(condition(&pod, "game.io/ok")["status"], "True");
            assert_eq!(pod["metadata"]["labels"]["ok"], "yes");
        }
    };
    marked(3).await;
    let told = world.get(&format!("{MARKERS}/ok")).await;
    assert_eq!(
        (&told["status"]["matchedPods"], &told["status"]["observedGeneration"]),
        (&json!(3), &told["metadata"]["generation"])
    );
    assert_eq!(told["metadata"]["finalizers"], json!(["kruise.io/node-pod-probe-cleanup"]));
    world.patch(&format!("{CLONESETS}/web"), json!({"spec": {"replicas": 6}})).await;
    world.live(20).await;
    marked(6).await;
}

/// DAEMON-3, DAEMON-4 and DAEMON-19: results follow the command, also when the manager changes; no moment without a mark.
#[tokio::test(start_paused = true)]
async fn marks_follow_the_result() {
    let mut world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    let mut ok = marker("ok", "game.io/ok", exec(&["true"]));
    ok["spec"]["probes"][0]["markerPolicy"] =
        json!([{"state": "Succeeded", "labels": {"ok": "yes"}}, {"state": "Failed", "labels": {"ok": "no"}}]);
    world.post(MARKERS, ok).await;
    let label = |wanted: &'static str| move |pod: &Value| pod["metadata"]["labels"]["ok"] == wanted;
    world.until(WEB, label("yes")).await;
    let command = |words: &[&str]| {
        json!({"spec": {"probes": [{"name": "check", "containerName": "app",
        "podConditionType": "game.io/ok", "probe": exec(words),
        "markerPolicy": [{"state": "Succeeded", "labels": {"ok": "yes"}}, {"state": "Failed", "labels": {"ok": "no"}}]}]}})
    };
    world.patch(&format!("{MARKERS}/ok"), command(&["false"])).await;
    world.live_millis(700).await;
    world.start_manager();
    let bad = world.until(WEB, label("no")).await;
    assert_eq!(condition(&bad, "game.io/ok")["status"], "False");
    // Only the answer changes, so that nothing in between is unknown.
    world.patch(&format!("{MARKERS}/ok"), command(&["check"])).await;
    world.sim.machine("node-1").declare_command("check", says("", 1));
    world.live(10).await;
    world.sim.machine("node-1").declare_command("check", says("", 0));
    for _ in 0..50 {
        world.live_millis(100).await;
        assert!(world.get(WEB).await["metadata"]["labels"]["ok"].is_string(), "never without a mark");
    }
    let good = world.until(WEB, label("yes")).await;
    assert_eq!(condition(&good, "game.io/ok")["status"], "True");
}

/// DAEMON-5 and DAEMON-8: what a command prints is the message, cut where it is long; one that takes too long has failed.
#[tokio::test(start_paused = true)]
async fn the_message_is_what_the_command_prints() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    let machine = world.sim.machine("node-1");
    machine.declare_command("check", says("data\n", 0));
    world.post(MARKERS, marker("ok", "game.io/ok", exec(&["check"]))).await;
    let message = |wanted: &'static str| move |pod: &Value| condition(pod, "game.io/ok")["message"] == wanted;
    world.until(WEB, message("data\n")).await;
    machine.declare_command("check", says("gate\n", 0));
    world.until(WEB, message("gate\n")).await;
    machine.declare_command("check", says(&format!("x{}", "é".repeat(2500)), 0));
    let long = world.until(WEB, |pod| text(&condition(pod, "game.io/ok")["message"]).starts_with('x')).await;
    assert_eq!(text(&condition(&long, "game.io/ok")["message"]).len(), 1023);
    machine.declare_command("check", Said { after: std::time::Duration::from_secs(5), ..Said::default() });
    let late = world.until(WEB, |pod| condition(pod, "game.io/ok")["status"] == "False").await;
    assert_eq!(condition(&late, "game.io/ok")["message"], "command timed out: \"check\" timed out after 1s");
}

/// DAEMON-6: an answer counts when it came often enough.
#[tokio::test(start_paused = true)]
async fn one_answer_alone_changes_nothing() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    let machine = world.sim.machine("node-1");
    let mut probe = exec(&["check"]);
    probe["failureThreshold"] = json!(3);
    probe["successThreshold"] = json!(2);
    world.post(MARKERS, marker("ok", "game.io/ok", probe)).await;
    let status = |wanted: &'static str| move |pod: &Value| condition(pod, "game.io/ok")["status"] == wanted;
    world.until(WEB, status("True")).await;
    machine.declare_command("check", says("", 1));
    world.live_millis(1900).await;
    machine.declare_command("check", says("", 0));
    world.live(10).await;
    assert_eq!(condition(&world.get(WEB).await, "game.io/ok")["status"], "True");
    machine.declare_command("check", says("", 1));
    let begun = world.now();
    world.until(WEB, status("False")).await;
    assert!(seconds(begun, world.now()) >= 2.0);
}

/// DAEMON-7: nobody is asked before the time.
#[tokio::test(start_paused = true)]
async fn a_container_is_not_asked_right_after_its_start() {
    let world = World::new(1, &[]).await;
    let mut probe = exec(&["check"]);
    probe["initialDelaySeconds"] = json!(20);
    world.post(MARKERS, marker("ok", "game.io/ok", probe)).await;
    world.ready(pod("web")).await;
    let started = world.now();
    world.live(17).await;
    assert_ne!(condition(&world.get(WEB).await, "game.io/ok")["status"], "True");
    world.until(WEB, |pod| condition(pod, "game.io/ok")["status"] == "True").await;
    assert!(seconds(started, world.now()) >= 18.0);
}

/// DAEMON-9 and DAEMON-10: pages and ports of the pod, by name and number.
#[tokio::test(start_paused = true)]
async fn pages_and_ports_of_the_pod_are_asked() {
    let world = World::new(1, &[]).await;
    let web = world.ready(pod("web")).await;
    for (name, kind, probe) in [
        ("page", "game.io/page", json!({"httpGet": {"path": "/204", "port": "web"}})),
        ("bad", "game.io/bad", json!({"httpGet": {"path": "/500", "port": 8080}})),
        ("port", "game.io/port", json!({"tcpSocket": {"port": 8080}})),
        ("closed", "game.io/closed", json!({"tcpSocket": {"port": 9090}})),
    ] {
        world.post(MARKERS, marker(name, kind, probe)).await;
    }
    world.live(10).await;
    let now = world.get(WEB).await;
    let of = |kind: &str| {
        let found = condition(&now, kind);
        (text(&found["status"]).to_owned(), text(&found["message"]).to_owned())
    };
    assert_eq!(of("game.io/page").0, "True");
    assert_eq!(of("game.io/bad"), ("False".to_owned(), "HTTP probe failed with statuscode: 500".to_owned()));
    assert_eq!(of("game.io/port").0, "True");
    let refused = format!("dial tcp {}:9090: connect: connection refused", text(&web["status"]["podIP"]));
    assert_eq!(of("game.io/closed"), ("False".to_owned(), refused));
}

/// DAEMON-11 and DAEMON-12: probes of one container, and markers of one pod, do not disturb each other.
#[tokio::test(start_paused = true)]
async fn probes_keep_their_own_results() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    let mut two = marker("two", "game.io/good", exec(&["true"]));
    let mut bad = two["spec"]["probes"][0].clone();
    bad["name"] = json!("bad");
    bad["podConditionType"] = json!("game.io/bad");
    bad["probe"] = exec(&["false"]);
    two["spec"]["probes"].as_array_mut().unwrap().push(bad);
    world.post(MARKERS, two).await;
    world.post(MARKERS, marker("same", "game.io/good", exec(&["false"]))).await;
    world.live(10).await;
    let before = world.get(WEB).await;
    assert_eq!(condition(&before, "game.io/bad")["status"], "False");
    assert!(condition(&before, "game.io/good")["status"].is_string());
    for _ in 0..60 {
        world.live(1).await;
        let now = world.get(WEB).await;
        assert_eq!(
            now["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
            "nothing flaps"
        );
    }
}

/// DAEMON-13 and DAEMON-22: a container that ends and comes back; a readiness gate follows.
#[tokio::test(start_paused = true)]
async fn readiness_follows_a_probe_through_a_restart() {
    let world = World::new(1, &[]).await;
    let mut web = pod("web");
    web["spec"]["readinessGates"] = json!([{"conditionType": "game.io/ok"}]);
    world.post(PODS, web).await;
    world.live(10).await;
    assert!(!is_ready(&world.get(WEB).await));
    world.post(MARKERS, marker("ok", "game.io/ok", exec(&["check"]))).await;
    world.until(WEB, is_ready).await;
    world.sim.machine("node-1").declare_command("check", says("", 1));
    world.until(WEB, |pod| !is_ready(pod)).await;
    world.sim.machine("node-1").declare_command("check", says("", 0));
    world.until(WEB, is_ready).await;
    world.sim.kill_container("default", "web", "app");
    world.until(WEB, |pod| condition(pod, "game.io/ok")["status"] == "False").await;
    world.until(WEB, is_ready).await;
}

/// DAEMON-14, DAEMON-15 and DAEMON-16: probes go with the pod, with the marker, and with the label.
#[tokio::test(start_paused = true)]
async fn probes_go_with_what_they_belong_to() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    world.ready(pod("more")).await;
    world.post(MARKERS, marker("b", "game.io/b", exec(&["true"]))).await;
    world.post(MARKERS, marker("a-b", "game.io/ab", exec(&["true"]))).await;
    world.live(5).await;
    assert_eq!(listed(&world, "node-1").await.len(), 4);
    world.delete(&format!("{PODS}/more")).await;
    world.until(&format!("{PODS}/more"), Value::is_null).await;
    world.live(10).await;
    let list = world.get(&format!("{PROBES}/node-1")).await;
    assert_eq!(list["spec"]["podProbes"].as_array().unwrap().len(), 1);
    assert_eq!(list["status"]["podProbeStatuses"].as_array().unwrap().len(), 1);
    world.delete(&format!("{MARKERS}/b")).await;
    world.live(5).await;
    assert_eq!(listed(&world, "node-1").await, ["a-b#check"]);
    assert!(world.get(&format!("{MARKERS}/b")).await.is_null());
    world.patch(WEB, json!({"metadata": {"labels": {"app": "other"}}})).await;
    world.live(5).await;
    assert!(listed(&world, "node-1").await.is_empty());
}

/// How often a command was run since a time.
fn runs(world: &World, since: jiff::Timestamp) -> usize {
    let deeds = world.sim.machine("node-1").deeds();
    deeds.iter().filter(|(at, deed)| *at >= since && matches!(deed, Deed::Command { .. })).count()
}

/// DAEMON-17: a new period counts at once; a probe that is gone is not run.
#[tokio::test(start_paused = true)]
async fn a_new_period_counts_at_once() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    let mut slow = exec(&["check"]);
    slow["periodSeconds"] = json!(60);
    world.post(MARKERS, marker("ok", "game.io/ok", slow)).await;
    world.until(WEB, |pod| condition(pod, "game.io/ok")["status"] == "True").await;
    let edit = |period: u32, name: &str| {
        json!({"spec": {"probes": [{"name": name, "containerName": "app",
        "podConditionType": "game.io/ok", "probe": {"exec": {"command": ["check"]}, "periodSeconds": period}}]}})
    };
    world.live(10).await;
    let changed = world.now();
    world.patch(&format!("{MARKERS}/ok"), edit(2, "check")).await;
    world.live(4).await;
    assert!(runs(&world, changed) >= 1);
    world.delete(&format!("{MARKERS}/ok")).await;
    world.live(5).await;
    let gone = world.now();
    world.live(30).await;
    assert_eq!(runs(&world, gone), 0);
}

/// DAEMON-18: a new daemon changes no result.
#[tokio::test(start_paused = true)]
async fn a_new_daemon_changes_no_result() {
    let mut world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    world.post(MARKERS, marker("ok", "game.io/ok", exec(&["check"]))).await;
    world.until(WEB, |pod| condition(pod, "game.io/ok")["status"] == "True").await;
    world.live(5).await;
    let before = world.get(WEB).await["metadata"]["resourceVersion"].clone();
    let restarted = world.now();
    world.start_daemon("node-1");
    for _ in 0..30 {
        world.live(1).await;
        assert_eq!(world.get(WEB).await["metadata"]["resourceVersion"], before);
    }
    assert!(runs(&world, restarted) > 20, "it goes on asking");
}

/// DAEMON-25: without daemons no marker is taken.
#[tokio::test(start_paused = true)]
async fn without_daemons_no_marker_is_taken() {
    let world = World::bare(1, 1, &["--feature-gates=KruiseDaemon=false"]).await;
    let refusal = world.refused(MARKERS, marker("no", "game.io/ok", exec(&["true"]))).await;
    assert!(refusal.starts_with("403 feature-gate ") && refusal.ends_with(" is not enabled"), "{refusal}");
}

/// A clock that is set back says nothing about containers: they are asked as before.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_silences_no_probe() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    let machine = world.sim.machine("node-1");
    machine.declare_command("check", says("", 0));
    world.post(MARKERS, marker("ok", "game.io/ok", exec(&["check"]))).await;
    world.until(WEB, |pod| condition(pod, "game.io/ok")["status"] == "True").await;
    world.step_daemon_clocks(jiff::SignedDuration::from_hours(-1));
    machine.declare_command("check", says("", 1));
    world.live(10).await;
    assert_eq!(condition(&world.get(WEB).await, "game.io/ok")["status"], "False");
}

/// Node daemon 8.1-11: the runtime restarts, and half a minute later probes and requests work as before.
#[tokio::test(start_paused = true)]
async fn probes_and_requests_go_on_after_a_restart_of_the_runtime() {
    let world = World::new(1, &[]).await;
    world.ready(pod("web")).await;
    let machine = world.sim.machine("node-1");
    machine.declare_command("check", says("", 0));
    world.post(MARKERS, marker("ok", "game.io/ok", exec(&["check"]))).await;
    world.until(WEB, |pod| condition(pod, "game.io/ok")["status"] == "True").await;
    machine.stop_runtime();
    world.post(REQUESTS, request("again", &["sidecar"], json!({}))).await;
    world.live(20).await;
    machine.declare_command("check", says("", 1));
    machine.start_runtime();
    world.live(30).await;
    assert_eq!(condition(&world.get(WEB).await, "game.io/ok")["status"], "False");
    assert_eq!(states(&world.get(&format!("{REQUESTS}/again")).await), "sidecar:Succeeded");
}
