//! Everything that can go wrong, by seed: runtimes, daemons and the manager die in the middle, the API server is away for a
//! minute, clocks of nodes jump, calls fail. In the end each request is over, with success or with a reason, nothing was done
//! twice, and nothing is in progress.

use std::{collections::BTreeSet, panic, time::Duration};

use jiff::SignedDuration;
use kruise_sim::{
    faults::{Answer, Calls, Effect, Rule, WatchFaults, When},
    machine::Deed,
};
use serde_json::{Value, json};

use crate::{
    images::{job, told},
    world::{IMAGES, JOBS, PODS, PULLS, REQUESTS, World, condition, container, is_ready, pod, request, text},
};

#[path = "beside.rs"]
mod beside;

const NAMES: [&str; 3] = ["web-0", "web-1", "web-2"];
const NODES: [&str; 2] = ["node-1", "node-2"];

/// The line between the cluster and everybody else, as bad as the seed says.
fn bad_line(world: &mut World) {
    let merge = Duration::from_millis(world.sim.pick(50..2000));
    world.sim.faults().watch(WatchFaults { drop: 0.0, duplicate: 0.2, merge, expire: 0.05 });
    for (effect, answer) in [
        (Effect::Before, Answer::Conflict),
        (Effect::Before, Answer::Internal),
        (Effect::After, Answer::Internal),
        (Effect::After, Answer::Timeout(Duration::from_secs(5))),
    ] {
        let calls = Calls { method: Some(http::Method::PATCH), path: String::new() };
        world.sim.faults().rule(Rule { calls, when: When::Chance(0.1), effect, answer });
    }
}

/// The API server is away for a minute: watches end, and every call fails.
async fn outage(world: &mut World) {
    world.sim.faults().watch(WatchFaults { expire: 1.0, ..WatchFaults::default() });
    let answer = Answer::Unavailable;
    world.sim.faults().rule(Rule {
        calls: Calls::default(),
        when: When::Chance(1.0),
        effect: Effect::Before,
        answer,
    });
    world.live(60).await;
    world.sim.faults().heal();
    bad_line(world);
}

async fn trouble(world: &mut World) {
    let node = NODES[usize::try_from(world.sim.pick(0..2)).unwrap()];
    let pause = world.sim.pick(10..8000);
    match world.sim.pick(0..15) {
        0 | 1 => {
            world.kill_daemon(node);
            world.live_millis(pause).await;
            world.start_daemon(node);
        }
        2 => {
            world.kill_manager();
            world.live_millis(pause).await;
            world.start_manager();
        }
        3 | 4 => {
            world.sim.machine(node).stop_runtime();
            world.live_millis(pause).await;
            world.sim.machine(node).start_runtime();
        }
        5 => outage(world).await,
        6 => {
            // A node that is far behind counts as lost here, and its pods go.
            let by = i64::try_from(world.sim.pick(0..630)).unwrap() - 30;
            world.step_clocks(SignedDuration::from_secs(by));
        }
        7 => {
            // Hours, in both directions. Only daemons see it.
            let by = i64::try_from(world.sim.pick(0..20_000)).unwrap() - 10_000;
            world.step_daemon_clocks(SignedDuration::from_secs(by));
        }
        _ => {}
    }
}

async fn begin(world: &mut World) {
    for (number, name) in NAMES.into_iter().enumerate() {
        let mut one = pod(name);
        one["spec"]["readinessGates"] = json!([{"conditionType": "KruisePodReady"}]);
        let hook = world.sim.pick(0..4);
        one["spec"]["containers"][0]["lifecycle"] =
            json!({"preStop": {"exec": {"command": ["sleep", hook.to_string()]}}});
        world.ready(one).await;
        let strategy = match number {
            0 => json!({}),
            1 => json!({"unreadyGracePeriodSeconds": world.sim.pick(0..10)}),
            _ => json!({"minStartedSeconds": world.sim.pick(0..10), "orderedRecreate": true}),
        };
        let mut again = request(name, &["app", "sidecar"], strategy);
        again["spec"]["podName"] = json!(name);
        world.post(REQUESTS, again).await;
    }
    let policy = json!({"backoffLimit": 50, "timeoutSeconds": 600});
    for name in ["a", "b"] {
        let image = format!("x.io/{name}:v1-slow{}", world.sim.pick(0..30));
        job(world, name, json!({"image": image, "pullPolicy": policy, "parallelism": 2})).await;
    }
    beside::begin(world).await;
}

async fn is_over(world: &World) -> bool {
    let (requests, jobs) = (world.list(REQUESTS).await, world.list(JOBS).await);
    requests.iter().all(|request| request["status"]["phase"] == "Completed")
        && jobs.iter().all(|job| job["status"]["completionTime"].is_string())
        && beside::is_over(world).await
}

/// What is wrong with a request that should be over.
async fn problem_of(world: &World, name: &str) -> Option<String> {
    let request = world.get(&format!("{REQUESTS}/{name}")).await;
    let pod = world.get(&format!("{PODS}/{name}")).await;
    let status = &request["status"];
    if status["phase"] != "Completed" {
        return Some(format!("not over: {request}"));
    }
    let ended_otherwise = !text(&status["message"]).is_empty();
    for one in ["app", "sidecar"] {
        let states = status["containerRecreateStates"].as_array().cloned().unwrap_or_default();
        let state = states.into_iter().find(|state| state["name"] == one).unwrap_or_default();
        let restarts = container(&pod, one)["restartCount"].as_i64().unwrap_or_default();
        let stopped: BTreeSet<String> = stopped(world, &format!("{name}/{one}"));
        if stopped.len() > 1 || restarts > 1 {
            return Some(format!("{one} was recreated twice: {stopped:?}, {restarts} restarts"));
        }
        match text(&state["phase"]) {
            "Succeeded" if restarts == 1 => {}
            "Succeeded" => return Some(format!("{one} counts as recreated and was not: {request}")),
            "Failed" if !text(&state["message"]).is_empty() => {}
            _ if ended_otherwise => {}
            // With the policy Fail nobody goes on after the first failure.
            _ if status["containerRecreateStates"].to_string().contains("Failed") => {}
            phase => return Some(format!("{one} is {phase:?} without a reason: {request}")),
        }
    }
    let is_let_go = condition(&pod, "KruisePodReady")["status"] == "True" && is_ready(&pod);
    let is_clean = request["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    (!is_let_go || !is_clean).then(|| format!("the pod is still held: {pod} {request}"))
}

/// The instances of a container that were told to stop.
fn stopped(world: &World, wanted: &str) -> BTreeSet<String> {
    let deeds = world.sim.machine("node-1").deeds();
    let ids = deeds.into_iter().filter_map(|(_, deed)| match deed {
        Deed::Stop { container, id, .. } if container == wanted => Some(id),
        _ => None,
    });
    ids.collect()
}

async fn story(seed: u64) -> Result<(), String> {
    let mut world = World::bare(seed, 2, PULLS).await;
    world.start_daemons();
    begin(&mut world).await;
    bad_line(&mut world);
    let (steps, update) = (world.sim.pick(4..25), world.sim.pick(0..4));
    for step in 0..steps {
        if step == update {
            beside::update(&world).await;
        }
        let millis = world.sim.pick(10..3000);
        world.live_millis(millis).await;
        trouble(&mut world).await;
    }
    world.sim.faults().heal();
    if world.sim.pick(0..2) == 0 {
        world.step_clocks(SignedDuration::ZERO);
    }
    for _ in 0..600 {
        if is_over(&world).await {
            break;
        }
        world.live(5).await;
    }
    // Who failed often looks again after some minutes.
    for left in (0..240).rev() {
        world.live(5).await;
        let mut problem = None;
        for name in NAMES {
            problem = problem.or(problem_of(&world, name).await);
        }
        problem = problem.or(beside::problem(&world).await);
        match problem {
            Some(problem) if left == 0 => return Err(problem),
            Some(_) => {}
            None => break,
        }
    }
    for name in ["a", "b", "private"] {
        let job = world.get(&format!("{JOBS}/{name}")).await;
        if told(&job) != "2/0/2/0 job has completed" {
            return Err(format!("a job is not done: {job}"));
        }
    }
    for node in NODES {
        let status = world.get(&format!("{IMAGES}/{node}")).await["status"].clone();
        let open = ["pulling", "waiting"].map(|field| status[field].as_i64().unwrap_or_default());
        if open != [0, 0] {
            return Err(format!("{node} still pulls: {status}"));
        }
        let (_, most) = (world.pulls(node), world.sim.machine(node).most_pulling());
        if most > 3 {
            return Err(format!("{node} pulled {most} images at once, and three are wanted"));
        }
    }
    beside::silence(&world).await
}

/// Runs stories, each in its own virtual time; `KRUISE_SEED` replays a single one.
fn each(seeds: std::ops::Range<u64>) {
    let only: Option<u64> = std::env::var("KRUISE_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut failed: Vec<Value> = Vec::new();
    for seed in seeds.filter(|seed| only.is_none_or(|only| only == *seed)) {
        let outcome = panic::catch_unwind(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            runtime.block_on(story(seed))
        });
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => failed.push(json!(format!("seed {seed}: {problem}"))),
            Err(_) => failed.push(json!(format!("seed {seed} panicked"))),
        }
    }
    assert!(failed.is_empty(), "{} seeds failed; the first: {}", failed.len(), failed[0]);
}

macro_rules! over_seeds {
    ($($name:ident: $seeds:expr;)*) => {$(
        /// CRR-22 and IMAGES-29 over seeds, with everything else that can go wrong.
        #[test]
        fn $name() {
            each($seeds);
        }
    )*};
}

over_seeds! {
    requests_and_pulls_end_whatever_goes_wrong: 0..52;
    requests_and_pulls_end_whatever_goes_wrong_with_more_seeds: 100..152;
    requests_and_pulls_end_whatever_goes_wrong_with_still_more_seeds: 200..252;
    requests_and_pulls_end_whatever_goes_wrong_with_the_last_seeds: 300..352;
}
