//! UnitedDeployments under every class of faults: people scale, update, add and remove subsets, close zones and delete workloads
//! in random order while the process dies, reads lag, events get lost, calls fail and webhooks are down. After the faults the goal
//! is reached and stays, and every subset has exactly one workload.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../cloneset_faults/around.rs"]
#[allow(dead_code, reason = "shared with the faults of CloneSets")]
mod around;
#[path = "../../../runtime/tests/faults/classes.rs"]
#[allow(dead_code, reason = "shared with the faults of other kinds")]
mod classes;
#[path = "../cloneset_faults/settings.rs"]
#[allow(dead_code, reason = "shared with the faults of CloneSets")]
mod settings;

mod lasting;
mod process;
mod world;

use std::time::Duration;

use kruise_runtime::random::Random;
use kruise_sim::Sim;

use around::{Around, Trouble};
use classes::{Class, crash_soon, each_seed};
use process::Process;
use world::World;

/// How many things happen.
const DEEDS: u64 = 8;
/// How long everything may take after the faults have stopped.
const PATIENCE: u32 = 3600;

/// What goes wrong in a story: calls of the controllers, or what surrounds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Calls(Class),
    Around(Around),
}

impl Fault {
    fn loses_events(self) -> bool {
        matches!(self, Self::Calls(class) if class.loses_events())
    }

    async fn begin(self, sim: &mut Sim) -> Trouble {
        match self {
            Self::Calls(class) => {
                class.begin(sim);
                Trouble::begin(sim, None).await
            }
            Self::Around(around) => Trouble::begin(sim, Some(around)).await,
        }
    }
}

async fn story(seed: u64, fault: Fault) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(4).without_events().start();
    let mut world = World::new(&mut sim).await;
    let played = play(&mut sim, &mut world, seed, fault).await;
    played.map_err(|problem| format!("{problem}\n{}", world.deeds()))
}

async fn play(sim: &mut Sim, world: &mut World, seed: u64, fault: Fault) -> Result<(), String> {
    let random = Random::seeded(seed);
    let resync = fault.loses_events().then_some(Duration::from_secs(60));
    let mut trouble = fault.begin(sim).await;
    let mut process = Process::timed(sim, &random, trouble.clock(sim), resync);
    let mut crashes = 0;
    for _ in 0..DEEDS {
        world.act(sim).await;
        for _ in 0..sim.pick(1..100) {
            trouble.turn(sim);
            sim.advance(Duration::from_millis(500)).await;
            if sim.faults().is_crashed() {
                drop(process);
                sim.faults().revive();
                crashes += 1;
                if crashes < 12 {
                    crash_soon(sim);
                }
                process = Process::timed(sim, &random, trouble.clock(sim), resync);
            }
        }
    }
    sim.faults().heal();
    sim.faults().revive();
    trouble.end(sim);
    if fault.loses_events() {
        // What was lost shows with the next list.
        drop(process);
        process = Process::timed(sim, &random, trouble.clock(sim), resync);
    }
    world.resume(sim).await;
    let mut left = PATIENCE;
    while let Err(missing) = world.is_done(sim).await {
        sim.advance(Duration::from_secs(1)).await;
        left -= 1;
        if left == 0 {
            return Err(format!("the goal was not reached: {missing}"));
        }
    }
    sim.advance(Duration::from_secs(600)).await;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(900)).await;
    if sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    drop(process);
    world.is_done(sim).await.map_err(|missing| format!("the goal was left: {missing}"))
}

macro_rules! under_faults {
    ($($name:ident: $fault:expr, $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            each_seed($seeds, |seed| story(seed, $fault));
        }
    )*};
}

under_faults! {
    goals_are_reached_when_the_process_dies: Fault::Calls(Class::Crash), 0..6;
    goals_are_reached_when_reads_come_late: Fault::Calls(Class::LateReads), 100..104;
    goals_are_reached_when_reads_show_an_older_state: Fault::Calls(Class::OldReads), 200..204;
    goals_are_reached_when_watch_events_are_lost: Fault::Calls(Class::LostEvents), 300..304;
    goals_are_reached_when_watch_events_are_merged: Fault::Calls(Class::MergedEvents), 400..404;
    goals_are_reached_when_calls_are_refused: Fault::Calls(Class::Refusals), 500..504;
    goals_are_reached_when_answers_are_lost: Fault::Calls(Class::LostAnswers), 600..604;
    goals_are_reached_when_everything_goes_wrong: Fault::Calls(Class::Storm), 800..804;
    goals_are_reached_when_the_process_dies_while_everything_goes_wrong: Fault::Calls(Class::CrashInStorm), 900..904;
    goals_are_reached_when_the_webhook_is_down: Fault::Around(Around::WebhookDown), 1000..1004;
    goals_are_reached_when_nodes_stop: Fault::Around(Around::NodesStop), 1100..1104;
    goals_are_reached_when_clocks_differ: Fault::Around(Around::ClocksDiffer), 1200..1204;
}
