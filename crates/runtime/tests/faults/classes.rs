//! The standard faults, chosen by a seed, and how seeds are run and replayed.

use std::{future::Future, panic, time::Duration};

use kruise_sim::{
    Sim,
    faults::{Answer, Calls, Effect, Rule, WatchFaults, When},
};

/// A class of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The process dies after a write and is started again, several times.
    Crash,
    /// Reads come late.
    LateReads,
    /// Reads show an older state.
    OldReads,
    /// Watch events are lost.
    LostEvents,
    /// Watch events are merged and told twice, watches expire.
    MergedEvents,
    /// Calls are refused: 409, 429, 500, 503, no answer.
    Refusals,
    /// The same, after the call took effect.
    LostAnswers,
    /// Late reads and lost answers.
    LateReadsAndLostAnswers,
    /// Merged events, refusals and lost answers over a slow line.
    Storm,
    /// Crashes, merged events and lost answers.
    CrashInStorm,
}

impl Class {
    /// Whether someone must list anew to see everything.
    pub(crate) fn loses_events(self) -> bool {
        self == Self::LostEvents
    }

    /// Turns the switches, as the seed says.
    pub(crate) fn begin(self, sim: &mut Sim) {
        let millis = |sim: &mut Sim, most: u64| Duration::from_millis(sim.pick(50..most));
        match self {
            Self::Crash => crash_soon(sim),
            Self::LateReads => {
                let (by, latency) = (millis(sim, 5000), millis(sim, 400));
                sim.faults().lag_time(by);
                // Writes of one plan then become visible one after the other.
                sim.faults().latency(latency);
            }
            Self::OldReads => {
                let (by, latency) = (sim.pick(1..8), millis(sim, 400));
                sim.faults().lag_revisions(by);
                sim.faults().latency(latency);
            }
            Self::LostEvents => {
                sim.faults().watch(WatchFaults { drop: 0.25, ..WatchFaults::default() });
            }
            Self::MergedEvents => {
                let merge = millis(sim, 4000);
                sim.faults().watch(WatchFaults { drop: 0.0, duplicate: 0.3, merge, expire: 0.1 });
            }
            Self::Refusals => answers(sim, Effect::Before),
            Self::LostAnswers => answers(sim, Effect::After),
            Self::LateReadsAndLostAnswers => {
                let (by, latency) = (millis(sim, 3000), millis(sim, 400));
                sim.faults().lag_time(by);
                sim.faults().latency(latency);
                answers(sim, Effect::After);
            }
            Self::Storm => {
                let (merge, latency) = (millis(sim, 2000), millis(sim, 300));
                sim.faults().watch(WatchFaults { drop: 0.0, duplicate: 0.2, merge, expire: 0.05 });
                sim.faults().latency(latency);
                answers(sim, Effect::Before);
                answers(sim, Effect::After);
            }
            Self::CrashInStorm => {
                let merge = millis(sim, 2000);
                sim.faults().watch(WatchFaults { drop: 0.0, duplicate: 0.2, merge, expire: 0.05 });
                answers(sim, Effect::After);
                crash_soon(sim);
            }
        }
    }
}

/// Lets the process die after one of its next writes.
pub(crate) fn crash_soon(sim: &mut Sim) {
    let write = sim.pick(1..6);
    sim.faults().crash_after_write(write);
}

/// Each write fails in some way with a fair chance; reads fail now and then.
fn answers(sim: &Sim, effect: Effect) {
    let all = [
        Answer::Conflict,
        Answer::TooManyRequests,
        Answer::Internal,
        Answer::Unavailable,
        Answer::Timeout(Duration::from_secs(40)),
    ];
    for answer in all {
        // Neither is true of a server: it says so before it did anything.
        if effect == Effect::After && matches!(answer, Answer::TooManyRequests | Answer::Conflict) {
            continue;
        }
        for method in [http::Method::POST, http::Method::PATCH, http::Method::DELETE, http::Method::GET] {
            let chance = if method == http::Method::GET { 0.02 } else { 0.12 };
            let calls = Calls { method: Some(method), path: String::new() };
            sim.faults().rule(Rule { calls, when: When::Chance(chance), effect, answer });
        }
    }
}

/// Runs a story once for each seed, each in its own virtual time. `KRUISE_SEEDS=500` tries so many of them, from the first seed of
/// the test on; `KRUISE_SEED` replays a single one.
pub(crate) fn each_seed<F: Future<Output = Result<(), String>>>(
    seeds: std::ops::Range<u64>,
    story: impl Fn(u64) -> F,
) {
    let number =
        |name: &str| -> Option<u64> { std::env::var(name).ok().map(|text| text.parse().expect("a number")) };
    let wanted = number("KRUISE_SEED");
    let count = number("KRUISE_SEEDS");
    let more = count.map_or(String::new(), |count| format!("KRUISE_SEEDS={count} "));
    let seeds = seeds.start..count.map_or(seeds.end, |count| seeds.start + count);
    assert!(wanted.is_none_or(|seed| seeds.contains(&seed)), "this test has the seeds {seeds:?}");
    let mut failed = Vec::new();
    for seed in seeds.filter(|seed| wanted.is_none_or(|wanted| wanted == *seed)) {
        if let Err(problem) = one_seed(seed, &story) {
            let (package, file) = (env!("CARGO_PKG_NAME"), env!("CARGO_CRATE_NAME"));
            let thread = std::thread::current();
            let test = thread.name().unwrap_or_default();
            failed.push(format!(
                "seed {seed} failed: {problem}\nreplay it: {more}KRUISE_SEED={seed} cargo test -p {package} --test {file} {test}"
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Runs a story for one seed. A panic in it is a problem like any other.
pub(crate) fn one_seed<F: Future<Output = Result<(), String>>>(
    seed: u64,
    story: impl Fn(u64) -> F,
) -> Result<(), String> {
    let told = panic::catch_unwind(panic::AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(story(seed))
    }));
    told.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        Err(text
            .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default())
    })
}
