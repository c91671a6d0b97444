//! What is next for a pod that is being updated, or was.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::{labels, time::Time};
use serde_json::json;

use super::{
    Error, Options, Progress, batch,
    completion::{self, OtherImages},
    start,
    state::{self, Change, State},
};
use crate::{effect::Effect, lifecycle, pod::Pod, revision};

/// The next write for a pod whose update runs, or has just ended. Every active pod is asked in every pass, also while the
/// workload is paused.
pub fn refresh(
    pod: &Pod,
    options: &Options,
    others: &OtherImages,
    now: Timestamp,
) -> Result<Progress, Error> {
    if let Some(change) = state::grace(pod)? {
        return finish_grace(pod, &change, options, now);
    }
    let Some(state) = state::read(pod)? else {
        // Nothing was looked at that could change before the write: no version is needed.
        return Ok(Progress { effect: start::ready(pod, now), ..Progress::default() });
    };
    if completion::batch_problem(pod, &state, options, others).is_some() {
        return Ok(Progress::default());
    }
    if state.has_next() {
        return Ok(next_batch(pod, state, options, now));
    }
    let effect = start::ready(pod, now).map(|effect| match effect {
        Effect::Patch { target, subresource, patch } => Effect::Patch {
            target: target.at_version(pod.metadata.resource_version.clone()),
            subresource,
            patch,
        },
        other => other,
    });
    Ok(Progress { effect, ..Progress::default() })
}

fn finish_grace(pod: &Pod, change: &Change, options: &Options, now: Timestamp) -> Result<Progress, Error> {
    let state = state::read(pod)?.ok_or(Error::GraceWithoutState)?;
    let label = pod.metadata.labels.text(labels::CONTROLLER_REVISION_HASH).unwrap_or_default();
    if !revision::is_label_of(label, &change.revision) {
        let mut patch = json!({"metadata": {}});
        batch::drop_grace(pod, &mut patch);
        return Ok(Progress::write(lifecycle::patch(pod, patch)));
    }
    let grace = SignedDuration::from_secs(i64::try_from(change.grace_seconds).unwrap_or(i64::MAX));
    let left = grace.saturating_sub(now.duration_since(state.update_timestamp.0));
    if left.is_positive() {
        let seconds = left.as_secs().saturating_add(i64::from(left.subsec_nanos() > 0));
        let wake_after = Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        return Ok(Progress { wake_after, ..Progress::default() });
    }
    let effect = batch::apply(pod, change, state, json!({}), options, Time(now));
    Ok(Progress::step(effect, &change.revision, true))
}

fn next_batch(pod: &Pod, state: State, options: &Options, now: Timestamp) -> Progress {
    let required = state.pre_check_before_next.iter().flat_map(|check| &check.containers_required_ready);
    let is_ready = |name: &crate::text::Text| {
        pod.status.container_statuses.iter().any(|status| status.name == *name && status.ready)
    };
    if !required.into_iter().all(is_ready) {
        return Progress::default();
    }
    let change = Change {
        revision: state.revision.clone(),
        container_images: state.next_container_images.clone(),
        update_env_from_metadata: !state.next_container_ref_metadata.is_empty(),
        container_ref_metadata: state.next_container_ref_metadata.clone(),
        container_resources: state.next_container_resources.clone(),
        meta_data_patch: None,
        grace_seconds: 0,
        previous: state.previous_revision.clone(),
    };
    let is_first = state.container_batches_record.is_empty();
    let effect = batch::apply(pod, &change, state, json!({}), options, Time(now));
    Progress::step(effect, &change.revision, is_first)
}
