//! Waits that follow from the user's own rules, for all kinds that update pods.

use jiff::{SignedDuration, Timestamp};

use super::{Reason, Waits, text};
use crate::{
    availability::{is_available, is_ready, ready_for},
    lifecycle,
    pod::Pod,
};

/// Pods that are ready, but not for `minReadySeconds`.
pub fn min_ready(pods: &[&Pod], min_ready: SignedDuration, now: Timestamp, waits: &mut Waits) {
    let is_young =
        |pod: &&&Pod| is_ready(pod) && lifecycle::is_in_service(pod) && !is_available(pod, min_ready, now);
    let young: Vec<&Pod> = pods.iter().filter(is_young).copied().collect();
    let left = young.iter().filter_map(|pod| Some(min_ready.saturating_sub(ready_for(pod, now)?))).max();
    let Some(left) = left else { return };
    let sentence = format!(
        "{} not ready for minReadySeconds {} yet ({}); the last one is available at {}",
        text::pods_are(young.len()),
        min_ready.as_secs(),
        text::names(young.iter().map(|pod| pod.metadata.name.as_str())),
        text::time(now.saturating_add(left).unwrap_or(now)),
    );
    waits.add(Reason::MinReadySeconds, sentence);
}

/// The limit of unavailable pods is used up. `value` is how the spec spells it, `next` the pod that is updated next.
pub fn max_unavailable(down: usize, most: usize, value: &str, next: &str, waits: &mut Waits) {
    let are = text::of_at_most(down, most);
    let sentence = format!("{are} unavailable (maxUnavailable: {value}); next to update: {next}");
    waits.add(Reason::MaxUnavailableReached, sentence);
}

/// The update is paused by the field `path`, although something is left to do.
pub fn paused(path: &str, updated: usize, all: usize, revision: &str, waits: &mut Waits) {
    let pods = text::pods(all);
    let sentence = format!(
        "the update is paused ({path}: true) with {updated} of {pods} at revision {revision}; set it to false to continue"
    );
    waits.add(Reason::Paused, sentence);
}

/// The partition keeps the pods that are left. `value` is how the spec spells it.
pub fn partition(updated: usize, all: usize, value: &str, kept: usize, waits: &mut Waits) {
    let sentence = format!(
        "{} updated; partition {value} keeps {} at the old revision; lower it to continue",
        text::of(updated, all),
        text::pods(kept)
    );
    waits.add(Reason::PartitionReached, sentence);
}

/// Pods have an older revision, and the type of the update strategy changes none of them.
pub fn on_delete(old: &[&Pod], all: usize, kind: &str, waits: &mut Waits) {
    let have = if old.len() == 1 { "has" } else { "have" };
    let sentence = format!(
        "{} of {} {have} an older revision ({}); type {kind} updates a pod only when it is deleted",
        old.len(),
        text::pods(all),
        text::names(old.iter().map(|pod| pod.metadata.name.as_str())),
    );
    waits.add(Reason::OnDelete, sentence);
}
