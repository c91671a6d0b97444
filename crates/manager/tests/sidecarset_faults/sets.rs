//! What people asked for, for as long as plans may rest on it.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use kruise_api::annotations;

use crate::pods::annotation;

/// The spec of a SidecarSet, as far as updates go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) hash: String,
    pub(crate) partition: usize,
    pub(crate) max_unavailable: usize,
    pub(crate) paused: bool,
}

impl Wish {
    pub(crate) fn of(set: &Value) -> Self {
        let strategy = &set["spec"]["updateStrategy"];
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        Self {
            hash: annotation(set, annotations::SIDECARSET_HASH).to_owned(),
            partition: number(&strategy["partition"]),
            max_unavailable: number(&strategy["maxUnavailable"]),
            paused: strategy["paused"] == true,
        }
    }
}

/// The newest state of an object, and what was asked of it before.
pub(crate) struct Asked<W> {
    pub(crate) object: Value,
    now: W,
    /// Each with the time until which it was the newest.
    before: Vec<(Timestamp, W)>,
}

impl<W: Clone + PartialEq> Asked<W> {
    pub(crate) fn new(object: Value, wish: W) -> Self {
        Self { object, now: wish, before: Vec::new() }
    }

    pub(crate) fn change(&mut self, object: Value, wish: W, at: Timestamp) {
        self.object = object;
        if wish != self.now {
            let old = std::mem::replace(&mut self.now, wish);
            self.before.push((at, old));
        }
    }

    /// What a plan may rest on that is carried out at this time.
    pub(crate) fn recent(&self, at: Timestamp, memory: SignedDuration) -> impl Iterator<Item = &W> {
        let old = self.before.iter().filter(move |(until, _)| at.duration_since(*until) < memory);
        old.map(|(_, wish)| wish).chain(std::iter::once(&self.now))
    }
}
