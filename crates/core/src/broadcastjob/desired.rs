//! What a job wants: its spec with the defaults of what its author left out.

use jiff::SignedDuration;
use kruise_api::{
    broadcastjob::v1beta1::{BroadcastJob, CompletionType, FailureType},
    int_or_percent::{self, IntOrPercent, Rounding},
};

/// The decided spec of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// How many pods may be active at once.
    pub parallelism: Parallelism,
    /// Whether and when the job ends.
    pub completion: Completion,
    /// What a failed pod means.
    pub failure: FailureType,
    /// How often the containers of a pod may restart.
    pub restart_limit: i64,
    /// Whether someone paused it.
    pub paused: bool,
}

/// How many pods may be active at once, as written and as meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Parallelism {
    written: String,
    meant: IntOrPercent,
}

/// Whether and when a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// With the pods of all nodes.
    Always {
        /// When it fails if it still runs.
        deadline: Option<SignedDuration>,
        /// When it is deleted after its end.
        ttl: Option<SignedDuration>,
    },
    /// Not at all.
    Never,
}

/// A spec that cannot be carried out. Admission refuses it; this one was stored before.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Neither a number nor a percentage.
    #[error("spec.parallelism: {0}")]
    Parallelism(#[source] int_or_percent::Error),
}

impl Desired {
    /// What a job wants.
    pub fn of(job: &BroadcastJob) -> Result<Self, Error> {
        let spec = &job.spec;
        let (written, meant) = match &spec.parallelism {
            None => ("unlimited".to_owned(), IntOrPercent::Int(i64::from(i32::MAX))),
            Some(given) => {
                let text = serde_json::to_value(given).unwrap_or_default();
                let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
                (text, given.parse().map_err(Error::Parallelism)?)
            }
        };
        let completion = spec.completion_policy.clone().unwrap_or_default();
        let seconds = |seconds: i64| SignedDuration::from_secs(seconds);
        let failure = spec.failure_policy.clone().unwrap_or_default();
        Ok(Self {
            parallelism: Parallelism { written, meant },
            completion: match completion.kind {
                Some(CompletionType::Never) => Completion::Never,
                _ => Completion::Always {
                    deadline: completion.active_deadline_seconds.map(seconds),
                    ttl: completion.ttl_seconds_after_finished.map(i64::from).map(seconds),
                },
            },
            failure: failure.kind.unwrap_or_default(),
            restart_limit: failure.restart_limit.unwrap_or(0).into(),
            paused: spec.paused == Some(true),
        })
    }
}

impl Parallelism {
    /// How many of so many nodes may be active at once.
    pub fn of(&self, nodes: usize) -> usize {
        let total = u32::try_from(nodes).unwrap_or(u32::MAX);
        usize::try_from(self.meant.of(total, Rounding::Up).max(0)).unwrap_or(usize::MAX)
    }

    /// As the user wrote it.
    pub fn written(&self) -> &str {
        &self.written
    }
}
