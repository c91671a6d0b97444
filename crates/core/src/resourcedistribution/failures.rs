//! What fails where, and when it is tried again.

use std::{collections::BTreeMap, fmt};

use jiff::{SignedDuration, Timestamp};
use kruise_api::resourcedistribution::{
    conditions::{
        CONFLICT, CONFLICT_TEXT, CREATE_FAILED, DELETE_FAILED, GET_FAILED, NAMESPACE_MISSING,
        NAMESPACE_MISSING_TEXT, UPDATE_FAILED,
    },
    v1beta1::Status,
};

use crate::{text::Text, waiting::Reason};

/// How long a namespace rests after its first failure; each further one doubles it.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// The longest rest.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);

/// A way in which copying fails, in the order of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The copy could not be read.
    Get,
    /// It could not be created.
    Create,
    /// It could not be brought up to date.
    Update,
    /// It could not be deleted.
    Delete,
    /// The name is taken.
    Conflict,
    /// The namespace is not there.
    Missing,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Get, Self::Create, Self::Update, Self::Delete, Self::Conflict, Self::Missing];

    /// The type of the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => GET_FAILED,
            Self::Create => CREATE_FAILED,
            Self::Update => UPDATE_FAILED,
            Self::Delete => DELETE_FAILED,
            Self::Conflict => CONFLICT,
            Self::Missing => NAMESPACE_MISSING,
        }
    }
}

/// What failed in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In which way.
    pub fault: Fault,
    /// What the condition says.
    pub text: String,
    /// Why that keeps the object waiting, where the list of reasons has it.
    pub reason: Option<(Reason, String)>,
}

impl Failure {
    /// The name is taken.
    pub(super) fn conflict() -> Self {
        Self { fault: Fault::Conflict, text: CONFLICT_TEXT.to_owned(), reason: None }
    }

    /// The namespace is not there.
    pub(super) fn missing() -> Self {
        Self { fault: Fault::Missing, text: NAMESPACE_MISSING_TEXT.to_owned(), reason: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.fault.as_str(), self.text)
    }
}

/// A write that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tried {
    pub(super) failure: Failure,
    times: u32,
    /// Before this time it is not tried again.
    pub(super) again: Timestamp,
}

/// The writes that were refused, by namespace, and what a pass must not forget of them: each waits longer after each
/// refusal, and those that wait hold up no other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    generation: i64,
    pub(super) tried: BTreeMap<Text, Tried>,
}

impl Memory {
    /// What an earlier process has reported. It is tried again at once, and stays reported until then.
    pub fn of(status: Option<&Status>, generation: i64, now: Timestamp) -> Self {
        let mut tried = BTreeMap::new();
        for fault in [Fault::Create, Fault::Update, Fault::Delete] {
            let conditions = status.iter().flat_map(|status| &status.conditions);
            for condition in conditions.filter(|one| one.kind == fault.as_str() && one.status == "True") {
                for namespace in &condition.failed_namespaces {
                    let text = condition.reason.clone().unwrap_or_default();
                    let failure = Failure { fault, text, reason: None };
                    tried.insert(namespace.as_str().into(), Tried { failure, times: 0, again: now });
                }
            }
        }
        Self { generation, tried }
    }

    /// After a change of the spec everything is tried at once.
    #[must_use]
    pub fn at(mut self, generation: i64, now: Timestamp) -> Self {
        if self.generation != generation {
            self.generation = generation;
            for tried in self.tried.values_mut() {
                (tried.times, tried.again) = (0, now);
            }
        }
        self
    }

    /// A memory of the same spec in which nothing was refused.
    pub(super) fn emptied(&self) -> Self {
        Self { generation: self.generation, tried: BTreeMap::new() }
    }

    /// What failed last in a namespace, in this way.
    pub(super) fn get(&self, namespace: &str, fault: Fault) -> Option<&Tried> {
        // A conflict or a missing namespace that only the server knew of stands for the write that met it.
        self.tried.get(namespace).filter(|tried| {
            tried.failure.fault == fault
                || matches!(tried.failure.fault, Fault::Conflict | Fault::Missing) && fault == Fault::Create
        })
    }

    /// Notes a refusal.
    pub(super) fn refused(&mut self, namespace: &Text, failure: Failure, now: Timestamp) {
        let before = self.tried.get(namespace).filter(|tried| tried.failure.fault == failure.fault);
        let times = before.map_or(0, |tried| tried.times);
        let doubled = FIRST_PAUSE.saturating_mul(1_i32.checked_shl(times.min(16)).unwrap_or(i32::MAX));
        let again = now.saturating_add(doubled.min(LONGEST_PAUSE)).unwrap_or(now);
        self.tried.insert(namespace.clone(), Tried { failure, times: times.saturating_add(1), again });
    }
}
