//! What a list tells about itself.

use jiff::Timestamp;
use kruise_api::{
    image_pull::CompletionType,
    imagelistpulljob::v1beta1::{FailedImageStatus, ImageListPullJob, Status},
    imagepulljob::v1beta1::ImagePullJob,
    time::Time,
};
use serde_json::json;

use super::{children::Children, reference};
use crate::{
    effect::{Effect, Patch, Target},
    merge_patch,
    object::ObjectRef,
};

/// How far a child is, as far as its list is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    is_active: bool,
    is_complete: bool,
    is_success: bool,
    has_failures: bool,
}

fn outcome(child: &ImagePullJob) -> Outcome {
    let Some(status) = child.status.as_ref().filter(|status| status.start_time.is_some()) else {
        return Outcome::default();
    };
    let (succeeded, failed) = (status.succeeded.unwrap_or(0), status.failed.unwrap_or(0));
    let never = child.spec.template.completion_policy.kind == Some(CompletionType::Never);
    let is_complete =
        status.desired == succeeded.saturating_add(failed) && (never || status.completion_time.is_some());
    Outcome {
        is_active: status.active.unwrap_or(0) > 0,
        is_complete,
        is_success: is_complete && status.desired == succeeded,
        has_failures: failed > 0,
    }
}

/// Whether a change of a child is news for its list.
pub fn is_news_of_child(old: Option<&ImagePullJob>, new: Option<&ImagePullJob>) -> bool {
    let facts = |child: &ImagePullJob| {
        let metadata = &child.metadata;
        let is_deleting = metadata.deletion_timestamp.is_some();
        (outcome(child), metadata.generation, metadata.labels.clone(), metadata.uid.clone(), is_deleting)
    };
    old.map(facts) != new.map(facts)
}

/// The status of a list that is not complete yet.
pub(super) fn status(list: &ImageListPullJob, children: &Children<'_>, now: Timestamp) -> Status {
    let (mut active, mut completed, mut succeeded) = (0, 0, 0);
    let mut failed_image_statuses = Vec::new();
    for (image, child) in &children.by_image {
        let Some(child) = child else { continue };
        let outcome = outcome(child);
        active += i32::from(outcome.is_active);
        completed += i32::from(outcome.is_complete);
        succeeded += i32::from(outcome.is_success);
        if outcome.has_failures {
            let name = child.metadata.name.clone().unwrap_or_default();
            failed_image_statuses.push(FailedImageStatus {
                message: Some(format!(
                    "Please check for details which nodes failed by 'kubectl get ImagePullJob {name}'."
                )),
                image_pull_job: Some(name),
                name: Some((*image).to_owned()),
            });
        }
    }
    failed_image_statuses.extend(children.left_out.iter().map(|(image, problem)| FailedImageStatus {
        message: Some(format!("No ImagePullJob is made for it: {problem}")),
        image_pull_job: None,
        name: Some((*image).to_owned()),
    }));
    let desired = children.by_image.len().saturating_add(children.left_out.len());
    let desired = i32::try_from(desired).unwrap_or(i32::MAX);
    let never = list.spec.template.completion_policy.kind == Some(CompletionType::Never);
    let start = list.status.as_ref().and_then(|status| status.start_time);
    Status {
        start_time: Some(start.unwrap_or(Time(now))),
        completion_time: (!never && desired == completed).then_some(Time(now)),
        desired,
        active: Some(active),
        completed: Some(completed),
        succeeded: Some(succeeded),
        failed_image_statuses,
    }
}

/// The write that brings a status up to date, if one is needed. Nobody else writes it, so it needs no version.
pub fn status_write(list: &ImageListPullJob, status: &Status) -> Option<Effect> {
    let value = |status: &Status| serde_json::to_value(status).unwrap_or_default();
    let before = list.status.as_ref().map(value).unwrap_or_default();
    let change = merge_patch::between(&before, &value(status))?;
    let ObjectRef { resource, key, uid } = reference(list);
    let patch = Patch::Merge(json!({"status": change}));
    Some(Effect::Patch { target: Target::with_uid(resource, key, uid), subresource: Some("status"), patch })
}
