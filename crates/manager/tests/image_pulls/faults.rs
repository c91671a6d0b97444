//! Every class of faults: jobs end, limits hold, nothing is left behind, and then there is silence.

use std::time::Duration;

use kruise_runtime::random::Random;
use kruise_sim::Sim;
use serde_json::json;

use crate::{
    classes::{Class, crash_soon, each_seed},
    process::Process,
    world::{CONFIG, Nodes, all, create, install, job, jobs, lists, remove, secrets, tags},
};

/// Starts the process again when it has died.
fn revive(
    sim: &mut Sim,
    process: &mut Process,
    crashes: &mut usize,
    random: &Random,
    resync: Option<Duration>,
) {
    if !sim.faults().is_crashed() {
        return;
    }
    sim.faults().revive();
    *crashes += 1;
    if *crashes < 12 {
        crash_soon(sim);
    }
    *process = Process::start(sim, random, resync);
}

async fn story(seed: u64, class: Class) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(3).without_events().start();
    install(&sim).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1"}, "type": "Opaque", "data": {"k": "YQ=="}});
    create(&secrets(&sim, "default"), secret).await;
    let random = Random::seeded(seed);
    let resync = class.loses_events().then_some(Duration::from_secs(60));
    // Jobs are about the nodes that are known, so all of them are known before something goes wrong.
    let first = Process::start(&sim, &random, None);
    sim.advance(Duration::from_secs(60)).await;
    drop(first);
    class.begin(&mut sim);
    let mut process = Process::start(&sim, &random, resync);
    let (mut nodes, mut crashes) = (Nodes::new(3), 0);
    let ttl = json!({"type": "Always", "ttlSecondsAfterFinished": 30});
    job(&sim, "plain", json!({"parallelism": 1, "completionPolicy": ttl})).await;
    job(
        &sim,
        "secret",
        json!({"parallelism": 2, "pullSecrets": ["s1"], "completionPolicy": ttl, "image": "x.io/b:v1"}),
    )
    .await;
    let list = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImageListPullJob", "metadata": {"name": "lst"},
        "spec": {"images": ["x.io/c:v1", "x.io/d:v1"], "parallelism": 3, "completionPolicy": ttl}});
    create(&lists(&sim), list).await;
    for second in 0..240 {
        nodes.live(&sim, 1).await;
        revive(&mut sim, &mut process, &mut crashes, &random, resync);
        if second == 100 {
            job(&sim, "gone", json!({"image": "x.io/e:v1", "pullSecrets": ["s1"]})).await;
        }
        if second == 105 {
            remove(&jobs(&sim), "gone").await;
        }
    }
    sim.faults().heal();
    sim.faults().revive();
    if class.loses_events() {
        drop(process);
        process = Process::start(&sim, &random, resync);
    }
    let mut left = 1800;
    loop {
        let there = (all(&jobs(&sim)).await.len(), all(&lists(&sim)).await.len(), tags(&sim).await);
        let copies = all(&secrets(&sim, CONFIG)).await.len();
        if there == (0, 0, Vec::new()) && copies == 0 {
            break;
        }
        nodes.live(&sim, 1).await;
        left -= 1;
        if left == 0 {
            return Err(format!("not all is done: {there:?}, {copies} copies"));
        }
    }
    for (image, limit) in [("x.io/app:v1", 1), ("x.io/b:v1", 2), ("x.io/c:v1", 3)] {
        let most = nodes.most_at_once.get(image).copied().unwrap_or(0);
        if most > limit {
            return Err(format!("{most} pulls of {image} at once, and {limit} are allowed"));
        }
        let pulled = nodes.pulls.keys().filter(|(_, pulled)| pulled == image).count();
        if pulled != 3 {
            return Err(format!("{image} was pulled on {pulled} nodes"));
        }
    }
    if let Some((pull, rounds)) = nodes.pulls.iter().find(|(_, rounds)| rounds.len() > 1) {
        return Err(format!("{pull:?} was pulled in rounds {rounds:?}"));
    }
    nodes.live(&sim, 60).await;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(900)).await;
    if sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    drop(process);
    Ok(())
}

macro_rules! under_faults {
    ($($name:ident: $class:ident, $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            each_seed($seeds, |seed| story(seed, Class::$class));
        }
    )*};
}

under_faults! {
    jobs_end_and_leave_nothing_when_the_process_dies: Crash, 0..20;
    jobs_end_and_leave_nothing_when_reads_come_late: LateReads, 100..120;
    jobs_end_and_leave_nothing_when_reads_show_an_older_state: OldReads, 200..220;
    jobs_end_and_leave_nothing_when_watch_events_are_lost: LostEvents, 300..320;
    jobs_end_and_leave_nothing_when_watch_events_are_merged: MergedEvents, 400..420;
    jobs_end_and_leave_nothing_when_calls_are_refused: Refusals, 500..520;
    jobs_end_and_leave_nothing_when_answers_are_lost: LostAnswers, 600..620;
    jobs_end_and_leave_nothing_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 700..720;
    jobs_end_and_leave_nothing_when_everything_goes_wrong: Storm, 800..820;
    jobs_end_and_leave_nothing_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 900..920;
}
