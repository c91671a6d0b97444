//! Whose turn it is. A client that retries a deletion that something else refuses asks in step with the end of its own
//! record: it would get the same share again and again, and nobody else ever would. So a pod whose permission ran out unused
//! lets others go first: it gets the last share of a budget only after somebody else has used one, or after a share was free
//! for [`OTHERS_FIRST`].
//!
//! Every manager sees in the status how records end, so nothing has to be stored for this. A manager that has just started
//! knows nothing yet: then a retry may win once more, and the budget is never exceeded.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kruise_api::podunavailablebudget::v1beta1::Status;

use super::records::{self, Kind};
use crate::{pod::Pod, text::Text};

/// How long a share must have been free before a pod takes it that had one and did not use it. Longer than the interval at
/// which clients retry evictions.
pub const OTHERS_FIRST: Duration = Duration::from_secs(15);

/// How long it is remembered that a permission ran out unused.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// What a manager knows of how the records of one budget ended. Times are those of any clock that only goes forward.
#[derive(Debug, Default)]
pub struct Turns {
    /// The records of the status that was seen last.
    records: BTreeMap<(Kind, Text), Timestamp>,
    /// The resource versions of pods whose updates this manager admitted.
    updates: BTreeMap<Text, Text>,
    /// Pods whose permission ran out unused: the uid, and when.
    unused: BTreeMap<Text, (Text, Duration)>,
    /// Since when the budget has something.
    free_since: Option<Duration>,
}

impl Turns {
    /// This manager admitted an update of a pod.
    pub fn updates(&mut self, pod: &Pod) {
        self.updates.insert(pod.metadata.name.clone(), pod.metadata.resource_version.clone());
    }

    /// A newer status. `pods` finds pods by name as the cache has them.
    pub fn see(&mut self, status: &Status, pods: impl Fn(&str) -> Option<Arc<Pod>>, now: Duration) {
        let present: BTreeMap<(Kind, Text), Timestamp> =
            records::all(status).map(|(kind, pod, at)| ((kind, pod.into()), at)).collect();
        let before = std::mem::replace(&mut self.records, present);
        let ended = before.into_iter().filter(|(record, at)| self.records.get(record) != Some(at));
        for ((kind, name), at) in ended.collect::<Vec<_>>() {
            let update = match kind {
                Kind::Unavailable => self.updates.remove(&name),
                Kind::Disrupted => None,
            };
            let pod = pods(&name).filter(|pod| records::is_waiting(pod, at));
            // An update may be over and the pod serve again, so only a pod that did not change at all was not updated.
            let is_unused = |pod: &Arc<Pod>| {
                kind == Kind::Disrupted || update.as_ref() == Some(&pod.metadata.resource_version)
            };
            match pod.filter(is_unused) {
                Some(pod) => {
                    self.unused.insert(name, (pod.metadata.uid.clone(), now));
                }
                None => self.unused.clear(),
            }
        }
        self.unused.retain(|name, (uid, _)| pods(name).is_some_and(|pod| pod.metadata.uid == *uid));
        self.free_since = (status.unavailable_allowed > 0).then(|| self.free_since.unwrap_or(now));
    }

    /// Whether the pod leaves the last share to others.
    pub fn others_first(&self, pod: &Pod, now: Duration) -> bool {
        let is_unused = self
            .unused
            .get(&pod.metadata.name)
            .is_some_and(|(uid, at)| *uid == pod.metadata.uid && now.saturating_sub(*at) < REMEMBERED_FOR);
        is_unused && self.free_since.is_none_or(|since| now.saturating_sub(since) < OTHERS_FIRST)
    }
}
