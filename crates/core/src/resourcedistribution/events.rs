//! Which failures are reported by events.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kruise_api::resourcedistribution::v1beta1::Status;

use super::{
    failures::Fault,
    plan::{Ledger, Side},
    status::of,
};
use crate::{
    effect::{Event, Level},
    object::ObjectRef,
    text::Text,
    waiting::text,
};

/// How long a way of failing is not reported again.
const REMIND_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// What was reported: events are sent when a condition becomes True or gets more namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    last: BTreeMap<Fault, Timestamp>,
    namespaces: BTreeMap<Fault, BTreeSet<Text>>,
}

impl Reports {
    /// What an earlier process has reported.
    pub fn of(status: Option<&Status>) -> Self {
        let conditions = || status.iter().flat_map(|status| &status.conditions);
        let known = Fault::ALL.into_iter().filter_map(|fault| {
            let found = conditions().find(|one| one.kind == fault.as_str() && one.status == "True")?;
            Some((fault, found.failed_namespaces.iter().map(|name| name.as_str().into()).collect()))
        });
        Self { last: BTreeMap::new(), namespaces: known.collect() }
    }

    /// The events to send now, and when to look again for those that came too early.
    pub fn news(
        &mut self,
        own: &ObjectRef,
        ledger: &Ledger,
        now: Timestamp,
    ) -> (Vec<Event>, Option<Duration>) {
        let (mut events, mut next) = (Vec::new(), None::<Duration>);
        let all = ledger.values().filter(|(side, _)| *side == Side::Target).count();
        for fault in Fault::ALL {
            let failures = of(ledger, fault);
            let names: BTreeSet<Text> = failures.iter().map(|(name, _)| (*name).clone()).collect();
            let Some((_, failure)) = failures.last() else {
                self.namespaces.remove(&fault);
                continue;
            };
            let is_known = self.namespaces.get(&fault).is_some_and(|known| names.is_subset(known));
            let left =
                self.last.get(&fault).map(|last| REMIND_AFTER.saturating_sub(now.duration_since(*last)));
            let left = left.and_then(|left| Duration::try_from(left).ok()).filter(|left| !left.is_zero());
            match (is_known, left) {
                (true, _) => {}
                (false, Some(left)) => {
                    next = Some(next.map_or(left, |next| next.min(left)));
                    continue;
                }
                (false, None) => {
                    let (count, all) = (names.len(), all.max(names.len()));
                    let noun = if all == 1 { "namespace" } else { "namespaces" };
                    let listed = text::names(names.iter().map(Text::as_str));
                    events.push(Event {
                        regarding: own.clone(),
                        level: Level::Warning,
                        reason: fault.as_str().into(),
                        message: format!("{count} of {all} {noun} ({listed}): {}", failure.text),
                    });
                    self.last.insert(fault, now);
                }
            }
            self.namespaces.insert(fault, names);
        }
        (events, next)
    }
}
