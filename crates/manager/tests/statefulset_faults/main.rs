//! StatefulSets under every class of faults: people scale, update, pause, roll back and delete in random order while the
//! process dies, reads lag, events get lost, calls fail, webhooks are down, nodes stop and clocks differ. At every moment the
//! limits of the spec hold, and after the faults the goal is reached and stays.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../../runtime/tests/faults/classes.rs"]
mod classes;

#[path = "../cloneset_faults/around.rs"]
#[allow(dead_code, reason = "shared with the faults of CloneSets")]
mod around;
#[path = "../cloneset_faults/settings.rs"]
#[allow(dead_code, reason = "shared with the faults of CloneSets")]
mod settings;

mod process;
mod truth;
mod user;

use std::time::Duration;

use jiff::SignedDuration;
use kruise_runtime::random::Random;
use kruise_sim::Sim;

use around::{Around, Trouble};
use classes::{Class, crash_soon, each_seed};
use process::Process;
use truth::Truth;
use user::User;

/// How many things the user does.
const DEEDS: u64 = 8;
/// How many seconds everything may take after the faults have stopped.
const PATIENCE: u32 = 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Calls(Class),
    Around(Around),
}

impl Fault {
    /// How long a plan may rest on what was true before.
    fn memory(self) -> SignedDuration {
        SignedDuration::from_secs(match self {
            Self::Calls(Class::Crash) | Self::Around(Around::NodesStop | Around::ClocksDiffer) => 15,
            Self::Calls(Class::LateReads | Class::MergedEvents) | Self::Around(Around::WebhookDown) => 60,
            Self::Calls(_) => 240,
        })
    }

    fn loses_events(self) -> bool {
        matches!(self, Self::Calls(class) if class.loses_events())
    }
}

async fn story(seed: u64, fault: Fault) -> Result<(), String> {
    let mut sim = Sim::builder().seed(seed).nodes(3).without_events().start();
    let mut user = User::new(&mut sim).await;
    let outcome = play(&mut sim, &mut user, seed, fault).await;
    outcome.map_err(|problem| format!("{problem}\n{}", user.deeds()))
}

async fn play(sim: &mut Sim, user: &mut User, seed: u64, fault: Fault) -> Result<(), String> {
    let mut history = sim.history();
    let mut truth = Truth::new(fault.memory());
    let random = Random::seeded(seed);
    let resync = fault.loses_events().then_some(Duration::from_secs(60));
    let mut trouble = match fault {
        Fault::Calls(class) => {
            class.begin(sim);
            Trouble::begin(sim, None).await
        }
        Fault::Around(around) => Trouble::begin(sim, Some(around)).await,
    };
    let mut process = Process::start(sim, &random, trouble.clock(sim), resync);
    let mut crashes = 0;
    for _ in 0..DEEDS {
        user.act(sim, &mut truth).await;
        for _ in 0..sim.pick(1..120) {
            trouble.turn(sim);
            truth.nodes_are_down(trouble.stopped());
            sim.advance(Duration::from_millis(500)).await;
            if sim.faults().is_crashed() {
                drop(process);
                sim.faults().revive();
                crashes += 1;
                if crashes < 12 {
                    crash_soon(sim);
                }
                process = Process::start(sim, &random, trouble.clock(sim), resync);
            }
            truth.look(&mut history, sim)?;
        }
    }
    sim.faults().heal();
    sim.faults().revive();
    trouble.end(sim);
    if fault.loses_events() {
        // What was lost shows with the next list.
        drop(process);
        process = Process::start(sim, &random, trouble.clock(sim), resync);
    }
    user.resume(sim).await;
    let mut left = PATIENCE;
    while let Err(missing) = truth.is_done() {
        sim.advance(Duration::from_secs(1)).await;
        truth.look(&mut history, sim)?;
        left -= 1;
        if left == 0 {
            return Err(format!("the goal was not reached: {missing}"));
        }
    }
    sim.advance(Duration::from_secs(300)).await;
    truth.look(&mut history, sim)?;
    let writes = sim.faults().writes();
    sim.advance(Duration::from_secs(900)).await;
    truth.look(&mut history, sim)?;
    if sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    drop(process);
    truth.is_done().map_err(|missing| format!("the goal was left: {missing}"))
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
    limits_hold_and_goals_are_reached_when_the_process_dies: Fault::Calls(Class::Crash), 0..15;
    limits_hold_and_goals_are_reached_when_reads_come_late: Fault::Calls(Class::LateReads), 100..115;
    limits_hold_and_goals_are_reached_when_reads_show_an_older_state: Fault::Calls(Class::OldReads), 200..215;
    limits_hold_and_goals_are_reached_when_watch_events_are_lost: Fault::Calls(Class::LostEvents), 300..315;
    limits_hold_and_goals_are_reached_when_watch_events_are_merged: Fault::Calls(Class::MergedEvents), 400..415;
    limits_hold_and_goals_are_reached_when_calls_are_refused: Fault::Calls(Class::Refusals), 500..515;
    limits_hold_and_goals_are_reached_when_answers_are_lost: Fault::Calls(Class::LostAnswers), 600..615;
    limits_hold_and_goals_are_reached_when_reads_come_late_and_answers_are_lost: Fault::Calls(Class::LateReadsAndLostAnswers), 700..715;
    limits_hold_and_goals_are_reached_when_everything_goes_wrong: Fault::Calls(Class::Storm), 800..815;
    limits_hold_and_goals_are_reached_when_the_process_dies_while_everything_goes_wrong: Fault::Calls(Class::CrashInStorm), 900..915;
    limits_hold_and_goals_are_reached_when_the_webhook_is_down: Fault::Around(Around::WebhookDown), 1000..1015;
    limits_hold_and_goals_are_reached_when_nodes_stop: Fault::Around(Around::NodesStop), 1100..1115;
    limits_hold_and_goals_are_reached_when_clocks_differ: Fault::Around(Around::ClocksDiffer), 1200..1215;
}
