//! Why a set makes no progress.

use kruise_api::rollout::UpdateType;

use super::{Numbers, view::View};
use crate::{
    in_place::Rolling,
    pod::Pod,
    revision::is_on,
    waiting::{self, Hooks, Waits},
};

/// The path of the field that pauses updates.
const PAUSED: &str = "spec.updateStrategy.rollingUpdate.paused";

/// Trouble of pods, and what follows from the spec.
pub(super) fn of(view: &View<'_>, rolling: &Rolling<'_>, numbers: &Numbers) -> Waits {
    let mut waits = Waits::default();
    let now = view.now();
    let hooks = Hooks { lifecycle: rolling.lifecycle, options: rolling.options, others: rolling.others };
    // Only a pod whose claims are used again has to be gone before its successor comes.
    let ending: Vec<&Pod> = view
        .inactive
        .iter()
        .filter(|pod| view.desired.reuse_claims && numbers.up > 0 && pod.metadata.is_deleting())
        .copied()
        .collect();
    waiting::pods(&view.pods, &ending, &hooks, now, &mut waits);
    waiting::min_ready(&view.pods, view.desired.min_ready, now, &mut waits);
    let target = &rolling.revisions.update;
    let (new, old): (Vec<&Pod>, Vec<&Pod>) = view.pods.iter().copied().partition(|pod| is_on(pod, target));
    if old.is_empty() {
        return waits;
    }
    let (updated, all) = (new.len(), view.pods.len());
    let kept = usize::try_from(view.desired.partition).unwrap_or(0);
    if view.desired.policy.is_none() {
        waiting::on_delete(&old, all, UpdateType::OnDelete.as_str(), &mut waits);
    } else if view.desired.paused {
        waiting::paused(PAUSED, updated, all, target.name(), &mut waits);
    } else if kept > 0 && old.len() <= kept {
        waiting::partition(updated, all, &view.desired.spelled.partition, kept, &mut waits);
    }
    waits
}
