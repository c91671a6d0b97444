//! A controller under every class of faults, over many seeds: no effect twice, none lost, and silence at the end.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod classes;
mod herd;

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kruise_runtime::random::Random;
use kruise_sim::{Sim, history::Recorder};
use kube::{
    Api,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use classes::{Class, crash_soon, each_seed, one_seed};
use herd::{Process, Rules};

const SOUND: Rules = Rules { freshness: true };
/// The longest that one step of a story may take.
const PATIENCE: Duration = Duration::from_secs(3600);

/// What really happened to the children, from the server's own history.
#[derive(Default)]
struct Truth {
    alive: BTreeMap<String, String>,
    made: usize,
    ended: usize,
    changed: usize,
    status: String,
}

struct Story {
    sim: Sim,
    class: Class,
    rules: Rules,
    random: Random,
    process: Option<Process>,
    history: Recorder,
    truth: Truth,
    wanted: usize,
    crashes: usize,
}

impl Story {
    fn begin(seed: u64, class: Class, rules: Rules) -> Self {
        // Signs of life of nodes move the versions on, which old reads need to become newer.
        let nodes = if class == Class::OldReads { 3 } else { 0 };
        let sim = Sim::builder().seed(seed).nodes(nodes).without_events().start();
        let history = sim.history();
        let random = Random::seeded(seed);
        Self {
            sim,
            class,
            rules,
            random,
            process: None,
            history,
            truth: Truth::default(),
            wanted: 0,
            crashes: 0,
        }
    }

    fn start(&mut self) {
        let resync = self.class.loses_events().then_some(Duration::from_secs(120));
        self.process = Some(Process::start(&self.sim, &self.random, resync, self.rules));
    }

    /// Reads on in the server's history. More children than wanted, or fewer, are a wrong effect.
    fn look(&mut self) -> Result<(), String> {
        for (table, event) in self.history.take() {
            if table.as_ref() != "/configmaps" {
                continue;
            }
            let object: Value = serde_json::from_slice(&event.new.json()).unwrap();
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if object["metadata"]["labels"]["herd"].is_string() {
                self.truth.status =
                    object["metadata"]["annotations"]["status"].as_str().unwrap_or("").to_owned();
            }
            if object["metadata"]["labels"]["role"] != "child" {
                continue;
            }
            let content = object["data"]["content"].as_str().unwrap_or_default().to_owned();
            match event.kind.as_str() {
                "ADDED" => {
                    self.truth.made += 1;
                    self.truth.alive.insert(name, content);
                    if self.truth.alive.len() > self.wanted {
                        return Err(format!("{} children, wanted {}", self.truth.alive.len(), self.wanted));
                    }
                }
                "DELETED" => {
                    self.truth.ended += 1;
                    self.truth.alive.remove(&name);
                    if self.truth.alive.len() < self.wanted {
                        return Err(format!(
                            "{} children left, wanted {}",
                            self.truth.alive.len(),
                            self.wanted
                        ));
                    }
                }
                _ => {
                    self.truth.changed += 1;
                    self.truth.alive.insert(name, content);
                }
            }
        }
        Ok(())
    }

    /// Lets time pass, and starts the process again when it died.
    async fn advance(&mut self, time: Duration) -> Result<(), String> {
        self.sim.advance(time).await;
        if self.sim.faults().is_crashed() {
            self.process = None;
            self.sim.faults().revive();
            self.crashes += 1;
            if self.crashes < 6 {
                crash_soon(&mut self.sim);
            }
            self.start();
        }
        self.look()
    }

    async fn until(&mut self, what: &str, done: impl Fn(&Truth) -> bool) -> Result<(), String> {
        let step = Duration::from_millis(500);
        let mut spent = Duration::ZERO;
        while !done(&self.truth) {
            if spent > PATIENCE {
                let Truth { alive, made, ended, changed, status } = &self.truth;
                return Err(format!(
                    "never {what}: alive {alive:?}, made {made}, ended {ended}, changed {changed}, status {status}"
                ));
            }
            self.advance(step).await?;
            spent += step;
        }
        Ok(())
    }

    fn parents(&self) -> Api<ConfigMap> {
        Api::namespaced(self.sim.client(), "default")
    }

    async fn set(&mut self, children: usize, content: &str) {
        self.wanted = children;
        let data = json!({"data": {"children": children.to_string(), "content": content}});
        self.parents().patch("web", &PatchParams::default(), &Patch::Merge(&data)).await.unwrap();
    }
}

/// Make three, change them, make two more, end three; then nothing happens any more.
async fn herd(seed: u64, class: Class, rules: Rules) -> Result<(), String> {
    let mut story = Story::begin(seed, class, rules);
    class.begin(&mut story.sim);
    story.start();
    story.wanted = 3;
    let parent = ConfigMap {
        metadata: ObjectMeta {
            name: Some("web".to_owned()),
            labels: Some([("herd".to_owned(), "yes".to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some([("children".to_owned(), "3".to_owned()), ("content".to_owned(), "a".to_owned())].into()),
        ..ConfigMap::default()
    };
    story.parents().create(&PostParams::default(), &parent).await.unwrap();
    let all = |content: &'static str| move |truth: &Truth| truth.alive.values().all(|has| has == content);
    story.until("made", |truth| truth.alive.len() == 3 && truth.status == "3/3").await?;
    story.set(3, "b").await;
    story.until("changed", |truth| all("b")(truth) && truth.changed >= 3 && truth.status == "3/3").await?;
    story.set(5, "b").await;
    story.until("made more", |truth| truth.alive.len() == 5 && truth.status == "5/5").await?;
    story.set(2, "b").await;
    story.until("ended", |truth| truth.alive.len() == 2 && truth.status == "2/2").await?;
    // The faults stop; what is there stays, and nobody writes or reconciles any more.
    story.sim.faults().heal();
    story.sim.faults().revive();
    story.advance(Duration::from_secs(300)).await?;
    let writes = story.sim.faults().writes();
    let reconciles = story.process.as_ref().map(Process::reconciles);
    story.advance(Duration::from_secs(900)).await?;
    let Truth { alive, made, ended, changed, .. } = &story.truth;
    if (alive.len(), *made, *ended, *changed) != (2, 5, 3, 3) {
        return Err(format!(
            "made {made} of 5, ended {ended} of 3, changed {changed} of 3, {} left",
            alive.len()
        ));
    }
    if story.sim.faults().writes() != writes {
        return Err("writes after everything was done".to_owned());
    }
    if !class.loses_events() && story.process.as_ref().map(Process::reconciles) != reconciles {
        return Err("reconciles after everything was done".to_owned());
    }
    Ok(())
}

macro_rules! under_faults {
    ($($name:ident: $class:ident, $seeds:expr;)*) => {$(
        #[test]
        fn $name() {
            each_seed($seeds, |seed| herd(seed, Class::$class, SOUND));
        }
    )*};
}

under_faults! {
    effects_happen_once_when_the_process_dies_after_any_write: Crash, 0..40;
    effects_happen_once_when_reads_come_late: LateReads, 100..125;
    effects_happen_once_when_reads_show_an_older_state: OldReads, 200..225;
    effects_happen_once_when_watch_events_are_lost: LostEvents, 300..325;
    effects_happen_once_when_watch_events_are_merged_and_told_twice: MergedEvents, 400..425;
    effects_happen_once_when_calls_are_refused: Refusals, 500..525;
    effects_happen_once_when_answers_are_lost: LostAnswers, 600..625;
    effects_happen_once_when_reads_come_late_and_answers_are_lost: LateReadsAndLostAnswers, 700..725;
    effects_happen_once_when_everything_goes_wrong: Storm, 800..825;
    effects_happen_once_when_the_process_dies_while_everything_goes_wrong: CrashInStorm, 900..925;
}

/// The seeds would notice: without freshness they find children too many.
#[test]
fn without_freshness_the_seeds_find_an_effect_that_happened_twice() {
    let broken = Rules { freshness: false };
    let caught = |class: Class, first: u64| {
        let seeds = first..first + 8;
        seeds.filter(|seed| one_seed(*seed, |seed| herd(seed, class, broken)).is_err()).count()
    };
    let counts = [
        caught(Class::LateReads, 100),
        caught(Class::OldReads, 200),
        caught(Class::LateReadsAndLostAnswers, 700),
        caught(Class::Storm, 800),
    ];
    assert!(counts.iter().all(|count| *count >= 4), "of eight seeds per class noticed: {counts:?}");
}
