//! When a NodeImage has to be looked at.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::view::{NodeImage, Tag, TagOwner};
use crate::hash;

/// How long a node may take to say something about a tag.
pub(super) const ANSWER_WITHIN: SignedDuration = SignedDuration::from_secs(600);
/// The earliest that a pass comes after another.
const SOON: Duration = Duration::from_secs(3);
/// How long the daemon gets to take out the status of what nobody wants any more: as long as it gets to answer. A node with
/// many tags is passed before that for another one, so that this costs no pass of its own.
const LEFTOVERS: Duration = Duration::from_secs(600);
/// How many seconds a finished tag stays after its time at the most, so that one pass takes out many.
const SLACK: i64 = 60;
/// The same as a part of its time, where that is more: three minutes for a day.
const PART_OF_TIME: i64 = 480;

/// How often tags are looked at that stay because their job runs.
const LOOK_AT_HELD: SignedDuration = SignedDuration::from_mins(30);

/// What becomes of a tag if nothing happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It cannot be worked with, and is taken out.
    Useless,
    /// It is taken out at that time.
    Expires(Timestamp),
    /// It counts as failed from that time on, for this reason.
    Fails(Timestamp, &'static str),
    /// Nothing.
    Stays,
}

/// What becomes of a tag if nothing happens to it.
pub(super) fn fate(object: &NodeImage, image: &str, tag: &Tag) -> Fate {
    let Some(created) = tag.created_at else { return Fate::Useless };
    let policy = tag.pull_policy.as_ref();
    let Some(status) = object.current_status(image, tag) else {
        return Fate::Fails(after(created, ANSWER_WITHIN), "node has not responded for a long time");
    };
    if let Some(completed) = status.completion_time {
        let ttl = policy.and_then(|policy| policy.ttl_seconds_after_finished);
        return ttl.map_or(Fate::Stays, |ttl| Fate::Expires(after_seconds(completed, ttl.into())));
    }
    match policy.and_then(|policy| policy.active_deadline_seconds) {
        Some(deadline) if !object.answer(image, tag).is_final() => Fate::Fails(
            after(after_seconds(created, deadline), ANSWER_WITHIN),
            "pulling exceeds the activeDeadlineSeconds",
        ),
        _ => Fate::Stays,
    }
}

/// The earliest time at which something has to be done for a tag, whether it is over already or not.
pub fn due(object: &NodeImage) -> Option<Timestamp> {
    object.tags().filter_map(|(image, tag)| time(object, image, tag)).min()
}

fn time(object: &NodeImage, image: &str, tag: &Tag) -> Option<Timestamp> {
    match fate(object, image, tag) {
        Fate::Useless => Some(Timestamp::UNIX_EPOCH),
        Fate::Expires(at) => Some(after(at, slack(tag))),
        Fate::Fails(at, _) => Some(at),
        Fate::Stays => None,
    }
}

fn slack(tag: &Tag) -> SignedDuration {
    let ttl = tag.pull_policy.as_ref().and_then(|policy| policy.ttl_seconds_after_finished);
    let ttl = i64::from(ttl.unwrap_or(0)).max(0);
    SignedDuration::from_secs((ttl / 10).min(SLACK.max(ttl / PART_OF_TIME)))
}

/// After how long a pass is due for what happens by itself. A tag that is held stays after its time, and nobody tells when
/// it is not held any more.
pub(super) fn wait(object: &NodeImage, is_held: impl Fn(&Tag) -> bool, now: Timestamp) -> Option<Duration> {
    let times = object.tags().filter_map(|(image, tag)| match time(object, image, tag)? {
        at if is_held(tag) => Some(at.max(after(now, LOOK_AT_HELD))),
        at => Some(at),
    });
    Some(until(times.min()?, now).max(soon(object)))
}

/// After how long a change of a NodeImage needs a pass; nothing if it needs none.
pub fn delay(old: Option<&NodeImage>, new: Option<&NodeImage>, now: Timestamp) -> Option<Duration> {
    let (Some(old), Some(new)) = (old, new) else { return Some(Duration::ZERO) };
    let (before, after) = (&old.metadata, &new.metadata);
    if before.labels != after.labels || before.uid != after.uid {
        return Some(Duration::ZERO);
    }
    let news = [
        due(new).filter(|at| due(old) != Some(*at)).map(|at| until(at, now)),
        (is_first_end(new) && !is_first_end(old)).then(|| soon(new)),
        (has_leftovers(new) && !has_leftovers(old)).then_some(LEFTOVERS),
    ];
    news.into_iter().flatten().min()
}

/// Whether a tag is wanted by the job with this uid. A job that is gone has to be taken out.
pub fn of_job(object: &NodeImage, uid: &str) -> bool {
    object.tags().any(|(_, tag)| tag.is_wanted_by(uid))
}

/// The jobs that want a tag since a change. One of them may have gone before its tag came in.
pub fn new_owners<'n>(old: Option<&NodeImage>, new: &'n NodeImage) -> impl Iterator<Item = &'n TagOwner> {
    let was_there = move |image: &str, tag: &Tag, owner: &TagOwner| {
        let known = old.and_then(|old| old.image(image)?.tag(&tag.tag));
        known.is_some_and(|(_, known)| known.is_wanted_by(&owner.uid))
    };
    new.tags().flat_map(move |(image, tag)| {
        tag.owner_references.iter().filter(move |owner| owner.is_job() && !was_there(image, tag, owner))
    })
}

/// Whether every tag is done for the first time.
pub(super) fn is_first_end(object: &NodeImage) -> bool {
    object.status.as_ref().is_some_and(|status| status.first_sync_status.is_none())
        && object.tags().next().is_some()
        && object.tags().all(|(image, tag)| object.answer(image, tag).is_final())
}

/// Whether the status tells of something that nobody wants any more.
pub(super) fn has_leftovers(object: &NodeImage) -> bool {
    let statuses = object.status.iter().filter_map(|status| status.image_statuses.as_ref()).flatten();
    statuses.into_iter().any(|(name, status)| {
        let image = object.image(name);
        image.is_none() || status.tags.iter().any(|tag| image.and_then(|image| image.tag(&tag.tag)).is_none())
    })
}

/// A few seconds, and for each node a few others.
fn soon(object: &NodeImage) -> Duration {
    let share = hash::fnv1a(object.metadata.name.bytes()) % 2000;
    SOON + Duration::from_millis(share.into())
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

fn after_seconds(time: Timestamp, seconds: i64) -> Timestamp {
    after(time, SignedDuration::from_secs(seconds))
}

fn after(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.checked_add(span).unwrap_or(Timestamp::MAX)
}
