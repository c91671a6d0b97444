//! Which changes of pods are news.

use kruise_api::annotations::INJECTED_PERSISTENT_POD_STATE;

use crate::{
    pod::{Condition, Pod},
    text::Text,
};

/// Whether a change of a pod may change its record: it has arrived, it belongs to another workload, it ends, or it is gone.
pub fn is_news(before: Option<&Pod>, after: Option<&Pod>) -> bool {
    let is_ready = |pod: &Pod| pod.condition("Ready").is_some_and(Condition::is_true);
    let owner = |pod: &Pod| pod.metadata.controller().map(|owner| owner.uid.clone());
    match (before, after) {
        (_, None) => true,
        (None, Some(pod)) => is_ready(pod) || !pod.is_active(),
        (Some(before), Some(after)) => {
            before.metadata.uid != after.metadata.uid
                || !is_ready(before) && is_ready(after)
                || before.is_active() != after.is_active()
                || owner(before) != owner(after)
        }
    }
}

/// The object that a pod says it was injected by.
pub fn injected_by(pod: &Pod) -> Option<&Text> {
    pod.metadata.annotations.get(INJECTED_PERSISTENT_POD_STATE)
}
