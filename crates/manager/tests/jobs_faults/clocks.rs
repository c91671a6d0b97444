//! The clock of the manager is set back and forward by an hour.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::SignedDuration;
use kruise_runtime::{clock::Clock, random::Random};
use kruise_sim::Sim;
use serde_json::json;

use crate::{
    classes::each_seed,
    process::Process,
    schedules::{Runs, start},
    world::{broadcasts, create, get, install, template},
};

async fn story(seed: u64) -> Result<(), String> {
    let sim = Sim::builder().seed(seed).nodes(2).without_events().start();
    install(&sim).await;
    let skew = Arc::new(AtomicI64::new(0));
    let (now, by) = (*sim.clock(), skew.clone());
    let clock = Clock::from_fn(move || now.now() + SignedDuration::from_secs(by.load(Ordering::Relaxed)));
    let process = Process::timed(&sim, clock, &Random::seeded(seed));
    start(&sim).await;
    let mut runs = Runs::default();
    for set in [0, 3600, 0, -3600, 0] {
        skew.store(set, Ordering::Relaxed);
        for _ in 0..300 {
            sim.advance(Duration::from_secs(1)).await;
            runs.look(&sim).await?;
        }
    }
    // An hour ahead nothing is missed later on, and nothing that ran comes again: its last runs lie in the future.
    let before = runs.count("allow");
    if before < 9 {
        return Err(format!("only {before} runs"));
    }
    sim.advance(Duration::from_secs(45 * 60)).await;
    // Jobs of `allow` are deleted soon after they have ended.
    for _ in 0..15 * 60 {
        sim.advance(Duration::from_secs(1)).await;
        runs.look(&sim).await?;
    }
    drop(process);
    // After that it goes on.
    if runs.count("allow") < before + 10 {
        return Err(format!("{before} runs, and after the hour {}", runs.count("allow")));
    }
    Ok(())
}

/// A deadline is one of the clock: when that is set forward, the job fails within minutes of the new time.
#[tokio::test(start_paused = true)]
async fn a_deadline_follows_a_clock_that_is_set() {
    let sim = Sim::builder().nodes(2).without_events().start();
    install(&sim).await;
    let skew = Arc::new(AtomicI64::new(0));
    let (now, by) = (*sim.clock(), skew.clone());
    let clock = Clock::from_fn(move || now.now() + SignedDuration::from_secs(by.load(Ordering::Relaxed)));
    let _process = Process::timed(&sim, clock, &Random::seeded(1));
    let spec = json!({"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 7200}, "template": template("sleep 36000")});
    create(&broadcasts(&sim), json!({"metadata": {"name": "job"}, "spec": spec})).await;
    sim.advance(Duration::from_secs(600)).await;
    skew.store(3600, Ordering::Relaxed);
    sim.advance(Duration::from_secs(2900)).await;
    assert_eq!(get(&broadcasts(&sim), "job").await["status"]["phase"], "running");
    sim.advance(Duration::from_secs(800)).await;
    assert_eq!(get(&broadcasts(&sim), "job").await["status"]["phase"], "failed");
}

#[test]
fn runs_are_started_once_when_clocks_are_set() {
    each_seed(0..4, story);
}
