//! One probe: when it asks, and what its answers mean.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    nodepodprobe::v1alpha1::ProbeState,
    probe::{Probe, State},
};

use super::{Answer, at_least_one};
use crate::cri;

/// A start that lies so far in the future says that the clock was set back, and nothing about the container.
const CLOCK_JUMP: SignedDuration = SignedDuration::from_secs(60);

/// The container that is asked: the newest of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The id.
    pub id: String,
    /// What it does.
    pub state: cri::State,
    /// When it was started.
    pub started_at: Option<Timestamp>,
}

/// Something that is worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What the probe found.
    pub state: State,
    /// What it said.
    pub message: String,
}

/// What a round begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing to do in this round.
    Wait,
    /// Nobody is asked, and this is what is known.
    Tell(Record),
    /// Ask; tell the record first if there is one.
    Ask(Option<Record>),
}

/// One probe of one container.
#[derive(Clone, Debug)]
pub struct Prober {
    probe: Probe,
    container: Option<String>,
    /// What was told before the daemon was started, and when.
    remembered: Option<(State, Timestamp)>,
    /// How the last answers were, and how many of them in a row.
    streak: Option<(bool, u32)>,
}

impl Prober {
    /// A probe of which something may be told already.
    pub fn new(probe: Probe, told: Option<&ProbeState>) -> Self {
        let remembered = told.and_then(|told| Some((told.state.clone(), told.last_probe_time?.0)));
        Self { probe, container: None, remembered, streak: None }
    }

    /// What it asks.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Takes over a changed probe. Tells that nothing is known any more when it asks something else.
    pub fn edit(&mut self, probe: Probe) -> Option<Record> {
        let question = |probe: &Probe| (probe.exec.clone(), probe.http_get.clone(), probe.tcp_socket.clone());
        let asks_otherwise = question(&self.probe) != question(&probe);
        self.probe = probe;
        asks_otherwise.then(|| {
            self.streak = None;
            unknown()
        })
    }

    /// Begins a round with the container of this name.
    pub fn turn(&mut self, name: &str, instance: Option<&Instance>, now: Timestamp) -> Turn {
        let Some(instance) = instance else { return Turn::Wait };
        let mut news = None;
        if self.container.as_deref() != Some(&instance.id) {
            let remembered = self.remembered.take();
            // A result from before our start stands if the container is older than it.
            let stands = remembered.is_some_and(|(state, told)| {
                state != State::Unknown && instance.started_at.is_some_and(|started| started <= told)
            });
            self.container = Some(instance.id.clone());
            self.streak = None;
            news = (!stands).then(unknown);
        }
        if instance.state != cri::State::Running {
            // Whether it ended or has not begun: there is nobody to ask.
            return match instance.state {
                cri::State::Created => news.map_or(Turn::Wait, Turn::Tell),
                _ => Turn::Tell(Record {
                    state: State::Failed,
                    message: format!("Container({name}) is Non-running"),
                }),
            };
        }
        let delay = i64::from(at_least_one(self.probe.initial_delay_seconds));
        let runs_for = instance.started_at.map(|started| now.duration_since(started));
        let is_early = |time| (-CLOCK_JUMP..SignedDuration::from_secs(delay)).contains(&time);
        if runs_for.is_none_or(is_early) {
            return news.map_or(Turn::Wait, Turn::Tell);
        }
        Turn::Ask(news)
    }

    /// Counts an answer. Tells what is known once it came often enough.
    pub fn answered(&mut self, answer: &Answer) -> Option<Record> {
        let (well, message) = match answer {
            Answer::Yes(message) => (true, message),
            Answer::No(message) => (false, message),
            Answer::Unclear(_) => return None,
        };
        let count = match self.streak {
            Some((before, count)) if before == well => count.saturating_add(1),
            _ => 1,
        };
        self.streak = Some((well, count));
        let (threshold, state) = match well {
            true => (self.probe.success_threshold, State::Succeeded),
            false => (self.probe.failure_threshold, State::Failed),
        };
        (count >= at_least_one(threshold)).then(|| Record { state, message: message.clone() })
    }
}

fn unknown() -> Record {
    Record { state: State::Unknown, message: String::new() }
}
