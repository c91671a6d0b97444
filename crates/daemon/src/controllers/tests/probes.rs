//! Probes.

use super::*;
use crate::cri::Output;

const PROBES: &str = "/apis/apps.kruise.io/v1alpha1/nodepodprobes";
const OWN: &str = "/apis/apps.kruise.io/v1alpha1/nodepodprobes/n1";

fn probe(name: &str, command: &str, period: u64) -> Value {
    json!({"name": name, "containerName": "app",
        "probe": {"exec": {"command": [command]}, "periodSeconds": period}})
}

fn pod(probes: &[Value]) -> Value {
    json!({"podProbes": [{"name": "p", "namespace": "default", "uid": "u", "IP": "10.0.0.7", "probes": probes}]})
}

impl Stage {
    fn says(&self, command: &str, text: &str, exit_code: i32) {
        let output = Output { stdout: text.into(), stderr: text.into(), exit_code };
        self.runtime.world().commands.insert(command.to_owned(), (Duration::ZERO, output));
    }
}

fn state<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let states = object["status"]["podProbeStatuses"][0]["probeStates"].as_array()?;
    states.iter().find(|state| state["name"] == name)
}

fn is(name: &'static str, wanted: &'static str, message: &'static str) -> impl Fn(&Value) -> bool {
    move |object| {
        state(object, name).is_some_and(|state| {
            state["state"] == wanted && state["message"].as_str().unwrap_or_default() == message
        })
    }
}

/// DAEMON-2, DAEMON-3 and DAEMON-11: results follow, each probe on its own, and are written only when they change.
#[tokio::test(start_paused = true)]
async fn results_follow_the_commands() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.run("u", "app", "a0", stage.sim.clock().now());
    stage.says("good", "data\n", 0);
    stage.says("bad", "no\n", 1);
    let mut object = named("NodePodProbe", "v1alpha1", "n1");
    object["spec"] = pod(&[probe("m#x", "good", 1), probe("m#y", "bad", 1)]);
    stage.post(PROBES, object).await;
    stage.until(OWN, is("m#x", "Succeeded", "data\n")).await;
    let settled = stage.until(OWN, is("m#y", "Failed", "no\n")).await;
    stage.wait(300).await;
    let later = stage.get(OWN).await;
    assert_eq!(
        later["metadata"]["resourceVersion"], settled["metadata"]["resourceVersion"],
        "no write without a change"
    );
    stage.says("good", "gate\n", 0);
    stage.until(OWN, is("m#x", "Succeeded", "gate\n")).await;
    stage.says("good", "gate\n", 7);
    stage.until(OWN, is("m#x", "Failed", "gate\n")).await;
    stage.wait(2).await;
    assert!(
        stage
            .events("KruiseProbeSucceeded")
            .await
            .iter()
            .any(|(pod, text, _)| pod == "Pod/p" && text == "data\n")
    );
}

/// DAEMON-13: the container ends and comes back.
#[tokio::test(start_paused = true)]
async fn a_container_that_ended_is_told_and_its_successor_is_asked() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.run("u", "app", "a0", stage.sim.clock().now());
    let mut object = named("NodePodProbe", "v1alpha1", "n1");
    object["spec"] = pod(&[probe("m#x", "true", 1)]);
    stage.post(PROBES, object).await;
    stage.until(OWN, is("m#x", "Succeeded", "")).await;
    stage.runtime.exit("a0");
    stage.until(OWN, is("m#x", "Failed", "Container(app) is Non-running")).await;
    stage.runtime.run("u", "app", "a1", stage.sim.clock().now());
    stage.until(OWN, is("m#x", "Succeeded", "")).await;
}

/// DAEMON-14 and DAEMON-17: probes that leave, and a period that is changed.
#[tokio::test(start_paused = true)]
async fn edits_take_effect_on_running_probes() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.run("u", "app", "a0", stage.sim.clock().now());
    stage.says("slow", "1", 0);
    let mut object = named("NodePodProbe", "v1alpha1", "n1");
    object["spec"] = pod(&[probe("m#x", "slow", 60), probe("m#y", "slow", 60)]);
    stage.wait(5).await;
    stage.post(PROBES, object).await;
    stage.until(OWN, is("m#x", "Succeeded", "1")).await;
    stage.says("slow", "2", 0);
    stage.patch(OWN, json!({"spec": pod(&[probe("m#x", "slow", 2)])})).await;
    let began = tokio::time::Instant::now();
    stage.until(OWN, is("m#x", "Succeeded", "2")).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    stage.until(OWN, |object| state(object, "m#y").is_none()).await;
    stage.patch(OWN, json!({"spec": {"podProbes": null}})).await;
    stage.until(OWN, |object| object["status"]["podProbeStatuses"][0].is_null()).await;
}

/// DAEMON-18: a new daemon changes no result.
#[tokio::test(start_paused = true)]
async fn a_new_daemon_changes_no_result() {
    let mut stage = Stage::new(Flags::default()).await;
    stage.runtime.run("u", "app", "a0", stage.sim.clock().now());
    let mut object = named("NodePodProbe", "v1alpha1", "n1");
    object["spec"] = pod(&[probe("m#x", "true", 5)]);
    stage.post(PROBES, object).await;
    let before = stage.until(OWN, is("m#x", "Succeeded", "")).await;
    stage.wait(10).await;
    stage.crash_daemon(Flags::default());
    stage.wait(60).await;
    assert_eq!(stage.get(OWN).await["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    assert!(stage.runtime.world().most_commanding > 0);
}

/// DAEMON-21: two hundred probes ask the runtime for its containers together.
#[tokio::test(start_paused = true)]
async fn many_probes_share_their_look_at_the_runtime() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.run("u", "app", "a0", stage.sim.clock().now());
    let probes: Vec<Value> = (0..200).map(|n| probe(&format!("m#{n}"), "true", 1)).collect();
    let mut object = named("NodePodProbe", "v1alpha1", "n1");
    object["spec"] = pod(&probes);
    stage.post(PROBES, object).await;
    stage.until(OWN, is("m#199", "Succeeded", "")).await;
    stage.wait(5).await;
    let version = stage.get(OWN).await["metadata"]["resourceVersion"].clone();
    let before = stage.runtime.world().lists;
    stage.wait(10).await;
    let lists = stage.runtime.world().lists - before;
    assert!(lists <= 21, "{lists}");
    assert_eq!(stage.get(OWN).await["metadata"]["resourceVersion"], version);
}

/// Node daemon 3: a mistake of ours in one round of a probe ends neither the daemon nor the probe.
#[tokio::test(start_paused = true)]
async fn a_probe_that_panics_asks_again() {
    let stage = Stage::new(Flags::default()).await;
    stage.runtime.run("u", "app", "a0", stage.sim.clock().now());
    stage.says("good", "data\n", 0);
    stage.runtime.world().panics = 2;
    let mut object = named("NodePodProbe", "v1alpha1", "n1");
    object["spec"] = pod(&[probe("m#x", "good", 1)]);
    stage.post(PROBES, object).await;
    stage.until(OWN, is("m#x", "Succeeded", "data\n")).await;
    assert_eq!(stage.runtime.world().panics, 0);
}
