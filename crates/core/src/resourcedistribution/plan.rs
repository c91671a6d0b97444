//! What to do next: which copies are created, updated and deleted, and what that came to.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    copies::{Found, is_controlled},
    failures::{Failure, Fault, Memory},
    source::Source,
    targets::{Namespace, Place},
};
use crate::{
    effect::{Effect, Patch, Target},
    object::{ObjectKey, ObjectRef},
    text::Text,
    waiting::{self, Reason},
};

/// How much of a server's text a condition repeats.
const LONGEST_TEXT: usize = 1024;
/// How many bytes of copies one pass plans at most, so that a large Secret in many namespaces takes no memory.
const LARGEST_PASS: usize = 8 << 20;

/// Everything that a pass may know.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The ResourceDistribution.
    pub own: ObjectRef,
    /// What is copied.
    pub source: Source,
    /// The hash that copies carry.
    pub hash: Text,
    /// The namespaces, sorted by name.
    pub namespaces: Vec<Namespace>,
    /// The objects of the distributed name.
    pub reading: Reading,
    /// The writes that were refused before.
    pub memory: Memory,
    /// How many writes may be planned.
    pub room: usize,
    /// The time.
    pub now: Timestamp,
}

/// The objects of the distributed name.
#[derive(Clone, Debug)]
pub enum Reading {
    /// Those of all namespaces.
    Found(BTreeMap<Text, Arc<Found>>),
    /// They cannot be read.
    Failed {
        /// What the server says.
        text: String,
        /// Why that keeps the object waiting.
        reason: Option<(Reason, String)>,
    },
}

/// Whether a namespace should have a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// It should.
    Target,
    /// It should not.
    Outside,
}

/// How far a namespace is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Synced,
    /// Something failed.
    Failed(Failure),
    /// Something is still to do.
    Open,
}

/// How far all namespaces are in which something is to do.
pub type Ledger = BTreeMap<Text, (Side, State)>;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// It creates a copy.
    Create,
    /// It brings a copy up to date.
    Update,
    /// It deletes a copy.
    Delete,
}

impl Deed {
    fn fault(self) -> Fault {
        match self {
            Self::Create => Fault::Create,
            Self::Update => Fault::Update,
            Self::Delete => Fault::Delete,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "patch",
            Self::Delete => "delete",
        }
    }

    fn side(self) -> Side {
        match self {
            Self::Create | Self::Update => Side::Target,
            Self::Delete => Side::Outside,
        }
    }
}

/// A write in one namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where.
    pub namespace: Text,
    /// What it does.
    pub deed: Deed,
    /// The write.
    pub effect: Effect,
    /// Why.
    pub why: &'static str,
}

/// What to do next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, which may be taken in any order. One that fails holds up no other.
    pub steps: Vec<Step>,
    /// How far namespaces are before that.
    pub before: Ledger,
    /// Whether more is to do at once than the room allows.
    pub is_cut: bool,
    /// What was refused before and is not planned now.
    memory: Memory,
    /// When to try again what was refused.
    pub wake_after: Option<Duration>,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It happened.
    Done,
    /// The server said no.
    Refused {
        /// Its code.
        code: u16,
        /// Its words.
        message: String,
    },
    /// Only another look at the copies shows it.
    Unclear,
}

/// A write that is wanted.
struct Wanted<'o> {
    namespace: &'o Text,
    deed: Deed,
    found: Option<&'o Found>,
    why: &'static str,
}

/// Decides what to do next.
pub fn plan(seen: &Observed) -> Plan {
    let mut plan = Plan { memory: seen.memory.emptied(), ..Plan::default() };
    let mut wanted = Vec::new();
    for namespace in &seen.namespaces {
        let state = match (namespace.place, &seen.reading) {
            (Place::Missing, _) => Some((Side::Target, State::Failed(Failure::missing()))),
            (Place::Leaving, _) | (Place::Outside, Reading::Failed { .. }) => None,
            (Place::Target, Reading::Failed { text, reason }) => {
                let failure = Failure { fault: Fault::Get, text: text.clone(), reason: reason.clone() };
                Some((Side::Target, State::Failed(failure)))
            }
            (Place::Target, Reading::Found(found)) => {
                let state = match target(seen, namespace, found.get(&namespace.name)) {
                    Ok(state) => state,
                    Err(want) => {
                        wanted.push(want);
                        State::Open
                    }
                };
                Some((Side::Target, state))
            }
            (Place::Outside, Reading::Found(found)) => outside(seen, namespace, found.get(&namespace.name))
                .map(|want| {
                    wanted.push(want);
                    (Side::Outside, State::Open)
                }),
        };
        plan.before.extend(state.map(|state| (namespace.name.clone(), state)));
    }
    take(seen, wanted, &mut plan);
    plan
}

/// What is to do where a copy should be: nothing, or a write.
fn target<'o>(
    seen: &Observed,
    namespace: &'o Namespace,
    found: Option<&'o Arc<Found>>,
) -> Result<State, Wanted<'o>> {
    let namespace = &namespace.name;
    let Some(found) = found else {
        return Err(Wanted { namespace, deed: Deed::Create, found: None, why: "it is missing" });
    };
    if found.metadata.unreadable {
        let text = "the object cannot be read; it is left as it is".to_owned();
        return Ok(State::Failed(Failure { fault: Fault::Get, text, reason: None }));
    }
    if !is_controlled(&found.metadata, &seen.own) {
        return Ok(State::Failed(Failure::conflict()));
    }
    match seen.source.difference(&seen.own, &seen.hash, found) {
        None => Ok(State::Synced),
        Some(why) => Err(Wanted { namespace, deed: Deed::Update, found: Some(found), why }),
    }
}

/// What is to do where no copy should be.
fn outside<'o>(
    seen: &Observed,
    namespace: &'o Namespace,
    found: Option<&'o Arc<Found>>,
) -> Option<Wanted<'o>> {
    let metadata = &found?.metadata;
    let is_ours = !metadata.unreadable && !metadata.is_deleting() && is_controlled(metadata, &seen.own);
    let found = found.filter(|_| is_ours)?;
    let why = "the namespace is no target";
    Some(Wanted { namespace: &namespace.name, deed: Deed::Delete, found: Some(found), why })
}

/// Plans as much as there is room for: what was never refused first, then what waits longest.
fn take(seen: &Observed, wanted: Vec<Wanted<'_>>, plan: &mut Plan) {
    let room = seen.room.min((LARGEST_PASS / seen.source.size().max(1)).max(1));
    let mut due = Vec::new();
    for want in wanted {
        let tried = seen.memory.get(want.namespace, want.deed.fault());
        let Some(tried) = tried else {
            due.push((None, want));
            continue;
        };
        // Until it is tried again, it stays reported.
        plan.memory.tried.insert(want.namespace.clone(), tried.clone());
        let state = (want.deed.side(), State::Failed(tried.failure.clone()));
        plan.before.insert(want.namespace.clone(), state);
        if tried.again > seen.now {
            plan.wake(tried.again, seen.now);
        } else {
            due.push((Some(tried.again), want));
        }
    }
    due.sort_by(|(one, first), (other, second)| {
        one.cmp(other).then_with(|| first.namespace.cmp(second.namespace))
    });
    plan.is_cut = due.len() > room;
    plan.steps = due.into_iter().take(room).filter_map(|(_, want)| step(seen, &want)).collect();
}

impl Plan {
    fn wake(&mut self, at: Timestamp, now: Timestamp) {
        let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
        self.wake_after = Some(self.wake_after.map_or(left, |known| known.min(left)));
    }
}

fn step(seen: &Observed, want: &Wanted<'_>) -> Option<Step> {
    let Wanted { namespace, deed, found, why } = want;
    let (resource, source) = (seen.source.kind.resource(), &seen.source);
    let target = |found: &Found| {
        let key = ObjectKey::new((*namespace).clone(), source.name.clone());
        // Whoever controls it may have changed since: only what was seen is written.
        Target::with_uid(resource, key, found.metadata.uid.clone())
            .at_version(found.metadata.resource_version.clone())
    };
    let effect = match deed {
        Deed::Create => Effect::Create {
            resource,
            namespace: (*namespace).clone(),
            object: source.copy(&seen.own, &seen.hash, namespace),
        },
        Deed::Update => {
            let found = (*found)?;
            let patch = Patch::Merge(source.correction(&seen.own, &seen.hash, found));
            Effect::Patch { target: target(found), subresource: None, patch }
        }
        Deed::Delete => Effect::Delete { target: target((*found)?), grace: None, follows: false },
    };
    Some(Step { namespace: (*namespace).clone(), deed: *deed, effect, why })
}

/// What became of a plan: how far namespaces are now, what to remember, and when to try again what was refused.
pub fn settle(seen: &Observed, plan: &Plan, said: &[Said]) -> (Ledger, Memory, Option<Duration>) {
    let mut ledger = plan.before.clone();
    let mut again = Plan { memory: plan.memory.clone(), wake_after: plan.wake_after, ..Plan::default() };
    for (step, said) in plan.steps.iter().zip(said) {
        let side = step.deed.side();
        match said {
            Said::Unclear => {}
            Said::Done => {
                again.memory.tried.remove(&step.namespace);
                match side {
                    Side::Target => ledger.insert(step.namespace.clone(), (side, State::Synced)),
                    Side::Outside => ledger.remove(&step.namespace),
                };
            }
            Said::Refused { code, message } => {
                let failure = refusal(seen, step, *code, message);
                again.memory.refused(&step.namespace, failure.clone(), seen.now);
                ledger.insert(step.namespace.clone(), (side, State::Failed(failure)));
                let next = again.memory.tried.get(&step.namespace).map_or(seen.now, |tried| tried.again);
                again.wake(next, seen.now);
            }
        }
    }
    (ledger, again.memory, again.wake_after)
}

fn refusal(seen: &Observed, step: &Step, code: u16, message: &str) -> Failure {
    if step.deed == Deed::Create {
        let is_leaving = code == 403 && message.contains("is being terminated");
        if code == 409 {
            return Failure::conflict();
        }
        if code == 404 || is_leaving {
            return Failure::missing();
        }
    }
    let resource = seen.source.kind.resource();
    let key = ObjectKey::new(step.namespace.clone(), seen.source.name.clone());
    let text = message.chars().take(LONGEST_TEXT).collect();
    let reason = waiting::refused(step.deed.verb(), resource, &key, code, message, 0);
    Failure { fault: step.deed.fault(), text, reason }
}
