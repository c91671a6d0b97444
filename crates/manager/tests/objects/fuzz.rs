//! Random garbage in stored objects. Each block of cases is a cluster of its own, so that one number plays it again.

use std::time::Duration;

use kruise_runtime::{
    clock::Clock,
    lease::{Candidate, Settings},
    metrics::{Framework, Registry},
    random::Random,
    scope::Stop,
};
use tokio::task::JoinSet;

use crate::{
    mutate::{mutate, written},
    scene::{SOON, Scene, put, stored},
};

/// How many cases a cluster sees.
const CASES: u64 = 12;

/// Somebody who leads, with a lease in the cluster.
async fn leads(scene: &Scene, seed: u64) -> JoinSet<()> {
    let clock = *scene.world.sim.clock();
    let random = Random::seeded(seed);
    let settings = Settings {
        namespace: "kruise-system".to_owned(),
        name: "kruise-manager".to_owned(),
        identity: "one".to_owned(),
        lease: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    };
    let metrics = Framework::new(&Registry::default());
    let clock = Clock::from_fn(move || clock.now());
    let candidate = Candidate::new(scene.world.sim.client(), settings, clock, random, metrics);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let stop = Stop::default();
        if let Some(leader) = candidate.acquire(&stop).await {
            let _ = leader.hold(&stop).await;
        }
    });
    tasks
}

/// Plays a block of cases; the error says what was done.
async fn block(seed: u64) -> Result<u64, String> {
    let random = Random::seeded(seed);
    let mut scene = Scene::new(seed).await;
    let mut lease = leads(&scene, seed).await;
    scene.world.live(5).await;
    for case in 0..CASES {
        let victims = scene.victims();
        // Kinds with many objects must not hide the others.
        let mut tables: Vec<&str> = victims.iter().map(|(table, ..)| *table).collect();
        tables.dedup();
        let table = tables[usize::try_from(random.below(tables.len() as u64)).unwrap()];
        let of_table: Vec<_> = victims.iter().filter(|(own, ..)| *own == table).collect();
        let victim = of_table[usize::try_from(random.below(of_table.len() as u64)).unwrap()].clone();
        let Some(before) = stored(&scene.world.sim, &victim) else { continue };
        let mut object = before.clone();
        let done = mutate(&random, &mut object);
        let what = format!("block {seed}, case {case}: {victim:?}: {}", done.join(", "));
        if std::env::var_os("KRUISE_FUZZ_VERBOSE").is_some() {
            println!("{what}");
        }
        let (metadata, rest) = written(&object);
        put(&scene.world.sim, &victim, &metadata, &rest);
        scene.world.live(3 + random.below(20)).await;
        if random.below(4) == 0 {
            scene.world.start_manager();
            scene.world.kill_daemon("node-1");
            scene.world.start_daemon("node-1");
            scene.world.live(SOON.as_secs()).await;
        }
        check(&mut scene, &mut lease).await.map_err(|problem| format!("{what}: {problem}"))?;
        // The next case begins with an object that can be read again.
        let (metadata, rest) = written(&before);
        put(&scene.world.sim, &victim, &metadata, &rest);
        scene.world.live(SOON.as_secs()).await;
    }
    check(&mut scene, &mut lease).await.map_err(|problem| format!("block {seed}, at its end: {problem}"))?;
    Ok(CASES)
}

async fn check(scene: &mut Scene, lease: &mut JoinSet<()>) -> Result<(), String> {
    if lease.try_join_next().is_some() {
        return Err("the lease is lost".to_owned());
    }
    if let Some(problem) = scene.world.ended() {
        return Err(problem);
    }
    scene.caches_agree().await?;
    scene.converges().await
}

fn run(seed: u64) -> Result<u64, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(block(seed))));
    told.unwrap_or_else(|_| Err(format!("block {seed} panicked")))
}

/// `cargo xtask fuzz objects` plays more of it: for so many seconds, from a block on.
#[test]
#[expect(clippy::disallowed_methods, reason = "a long run ends after so many seconds of the machine's clock")]
fn whatever_is_stored_the_manager_leads_its_caches_agree_and_others_converge() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("KRUISE_FUZZ_SECONDS");
    let first = number("KRUISE_FUZZ_SEED").unwrap_or(0);
    let began = std::time::Instant::now();
    let (mut cases, mut seed, mut findings) = (0, first, 0);
    loop {
        match run(seed) {
            Ok(played) => cases += played,
            Err(problem) => {
                println!(
                    "finding: {problem}\n  cargo xtask fuzz objects --seed {seed} --seconds 1 plays it again"
                );
                findings += 1;
            }
        }
        seed += 1;
        let is_over = match seconds {
            Some(seconds) => began.elapsed().as_secs() >= seconds,
            None => seed >= first + 4,
        };
        if is_over {
            break;
        }
    }
    println!("{cases} cases in {} blocks from {first} on, {findings} findings", seed - first);
    assert_eq!(findings, 0);
}
