//! Everything that can go wrong at once, by seed: in the end each container was recreated once and each image is there.

use kruise_sim::faults::{Answer, Calls, Effect, Rule, WatchFaults, When};

use super::{requests::request, *};
use crate::cri::{State, newest};

const REQUESTS: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/containerrecreaterequests";
const IMAGES: &str = "/apis/apps.kruise.io/v1beta1/nodeimages";
const PODS: u64 = 3;

/// What nodes and people do besides the daemon, one moment of it.
async fn moment(stage: &Stage) {
    for number in 0..PODS {
        let (pod, name) = (format!("p{number}x"), format!("r{number}"));
        let uid = format!("u-{pod}");
        let containers: Vec<_> = {
            let world = stage.runtime.world();
            let own = world.containers.iter().filter(|one| one.labels.values().any(|value| *value == uid));
            own.cloned().collect()
        };
        let Some(last) = newest(&containers, "app") else { continue };
        if last.state == State::Exited {
            let id = format!("{pod}{}", containers.len());
            stage.runtime.run(&uid, "app", &id, stage.sim.clock().now());
            continue;
        }
        let path = format!("{REQUESTS}/{name}");
        if stage.get(&path).await["status"]["phase"] == "Recreating" {
            let seen = json!([{"name": "app", "ready": true, "restartCount": last.restart_count(),
                "containerID": format!("containerd://{}", last.id)}]);
            stage
                .patch(&format!("{path}/status"), json!({"status": {"containerStatusSnapshot": seen}}))
                .await;
        }
    }
}

/// The faults of one seed.
fn begin_faults(sim: &mut Sim) {
    let merge = Duration::from_millis(sim.pick(50..2000));
    sim.faults().watch(WatchFaults { drop: 0.0, duplicate: 0.2, merge, expire: 0.05 });
    for (effect, answer) in [
        (Effect::Before, Answer::Conflict),
        (Effect::Before, Answer::Internal),
        (Effect::After, Answer::Internal),
        (Effect::After, Answer::Timeout(Duration::from_secs(5))),
    ] {
        let calls = Calls { method: Some(http::Method::PATCH), path: String::new() };
        sim.faults().rule(Rule { calls, when: When::Chance(0.12), effect, answer });
    }
}

async fn is_over(stage: &Stage) -> bool {
    for number in 0..PODS {
        if stage.get(&format!("{REQUESTS}/r{number}")).await["status"]["phase"] != "Completed" {
            return false;
        }
    }
    stage.get(&format!("{IMAGES}/n1")).await["status"]["succeeded"] == 2
}

async fn story(seed: u64) {
    let mut stage = Stage::with_faults(seed).await;
    for number in 0..PODS {
        let pod = format!("p{number}x");
        stage.runtime.run(&format!("u-{pod}"), "app", &format!("{pod}0"), stage.sim.clock().now());
        stage.post(REQUESTS, request(&format!("r{number}"), &pod, json!({}))).await;
    }
    let hook = Duration::from_millis(stage.sim.pick(0..4000));
    stage.runtime.world().commands.insert("bye".to_owned(), (hook, Default::default()));
    stage.runtime.world().pull_time = Duration::from_secs(stage.sim.pick(0..20));
    let mut object = named("NodeImage", "v1beta1", "n1");
    let tag = json!({"tag": "v1", "createdAt": "2026-01-01T00:00:00Z", "pullPolicy": {"backoffLimit": 50}});
    object["spec"] = json!({"images": {"a": {"tags": [tag]}, "b": {"tags": [tag]}}});
    stage.post(IMAGES, object).await;
    begin_faults(&mut stage.sim);
    for _ in 0..stage.sim.pick(5..60) {
        let millis = stage.sim.pick(10..2000);
        tokio::time::sleep(Duration::from_millis(millis)).await;
        match stage.sim.pick(0..12) {
            0 => stage.crash_daemon(Flags::default()),
            1 => stage.runtime.world().unreachable = true,
            2..=4 => stage.runtime.world().unreachable = false,
            _ => {}
        }
        moment(&stage).await;
    }
    stage.runtime.world().unreachable = false;
    stage.sim.faults().heal();
    for _ in 0..200 {
        moment(&stage).await;
        stage.wait(3).await;
        if is_over(&stage).await {
            break;
        }
    }
    stage.wait(60).await;
    for number in 0..PODS {
        let request = stage.get(&format!("{REQUESTS}/r{number}")).await;
        assert_eq!(request["status"]["phase"], "Completed", "seed {seed}: {request}");
        assert_eq!(
            request["status"]["containerRecreateStates"][0]["phase"], "Succeeded",
            "seed {seed}: {request}"
        );
        let pod = format!("u-p{number}x");
        let world = stage.runtime.world();
        let instances = world.containers.iter().filter(|one| one.labels.values().any(|value| *value == pod));
        assert_eq!(instances.count(), 2, "seed {seed}: recreated exactly once");
    }
    let images = stage.get(&format!("{IMAGES}/n1")).await;
    assert_eq!(images["status"]["succeeded"], 2, "seed {seed}: {images}");
    assert_eq!(images["status"]["pulling"], 0, "seed {seed}: {images}");
}

impl Stage {
    async fn with_faults(seed: u64) -> Self {
        let sim = Sim::builder().seed(seed).with_nodes(vec![SimNode::named("n1")]).start();
        Self::made(sim, Flags::default()).await
    }
}

/// Runs stories; `KRUISE_SEED` replays a single one.
fn each(seeds: std::ops::Range<u64>) {
    let only: Option<u64> = std::env::var("KRUISE_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in seeds.filter(|seed| only.is_none_or(|only| only == *seed)) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(story(seed));
    }
}

/// CRR-22 and IMAGES-29 over seeds: nothing is done twice, and nothing stays in progress for ever.
#[test]
fn requests_and_pulls_end_well_whatever_goes_wrong() {
    each(0..70);
}

/// The same, in parallel.
#[test]
fn requests_and_pulls_end_well_whatever_goes_wrong_with_more_seeds() {
    each(70..140);
}

/// The same, in parallel.
#[test]
fn requests_and_pulls_end_well_whatever_goes_wrong_with_still_more_seeds() {
    each(140..210);
}
