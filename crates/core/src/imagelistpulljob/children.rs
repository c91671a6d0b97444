//! The ImagePullJobs of a list: what they look like, and which of those that are there are as they should be.

use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

use kruise_api::{
    imagelistpulljob::v1beta1::ImageListPullJob,
    imagepulljob::{self, v1beta1::ImagePullJob},
    labels::CONTROLLER_REVISION_HASH,
};
use serde_json::{Value, json};

use super::reference;
use crate::{
    canonical_json,
    effect::{Effect, Patch, Target},
    hash,
    image_pull::validate::one_image,
    imagepulljob as job,
    imagepulljob::IMAGE_PULL_JOB,
    object::ObjectRef,
};

const OWN_TIME: &str = "ttlSecondsAfterFinished";

/// What every child of a list has.
pub(super) struct Template {
    /// The spec but for the image, with all defaults.
    spec: Value,
    /// Its fingerprint.
    pub(super) hash: String,
}

impl Template {
    pub(super) fn of(list: &ImageListPullJob) -> Self {
        let spec = comparable(serde_json::to_value(&list.spec.template).unwrap_or_default());
        let number = hash::fnv1a(canonical_json::text(&spec).bytes());
        Self { hash: hash::safe_encode(&number.to_string()), spec }
    }

    /// Whether a child was made from this template, whoever made it.
    fn fits(&self, child: &ImagePullJob) -> bool {
        comparable(serde_json::to_value(&child.spec.template).unwrap_or_default()) == self.spec
    }

    /// The write that makes the child for an image.
    pub(super) fn create(&self, list: &ImageListPullJob, image: &str) -> Effect {
        let owner = reference(list);
        let number = hash::fnv1a(format!("{}/{image}/{}", owner.uid, self.hash).bytes());
        let prefix = format!("{}-", owner.key.name);
        let mut spec = self.spec.clone();
        kruise_api::json::set(&mut spec, &["image"], image);
        let object = json!({
            "apiVersion": IMAGE_PULL_JOB.api_version(),
            "kind": IMAGE_PULL_JOB.kind,
            "metadata": {
                "name": format!("{prefix}{}", hash::safe_encode(&number.to_string())),
                "generateName": prefix,
                "namespace": owner.key.namespace,
                "labels": {CONTROLLER_REVISION_HASH: self.hash},
                "ownerReferences": [owner.controller_reference()],
            },
            "spec": spec,
        });
        Effect::Create { resource: IMAGE_PULL_JOB, namespace: owner.key.namespace, object }
    }

    /// The write that makes a child of another release one of ours, if it is none yet. It goes on with what it does.
    pub(super) fn adopt(&self, child: &ImagePullJob) -> Option<Effect> {
        let label = child.metadata.labels.as_ref().and_then(|labels| labels.get(CONTROLLER_REVISION_HASH));
        let has_own_time = child.spec.template.completion_policy.ttl_seconds_after_finished.is_some();
        let mut change = json!({});
        if label != Some(&self.hash) {
            kruise_api::json::set(
                &mut change,
                &["metadata", "labels", CONTROLLER_REVISION_HASH],
                self.hash.as_str(),
            );
        }
        if has_own_time {
            kruise_api::json::set(&mut change, &["spec", "completionPolicy", OWN_TIME], Value::Null);
        }
        let is_ours = change.as_object().is_none_or(serde_json::Map::is_empty);
        let ObjectRef { resource, key, uid } = job::reference(child);
        let target = Target::with_uid(resource, key, uid);
        (!is_ours).then_some(Effect::Patch { target, subresource: None, patch: Patch::Merge(change) })
    }
}

/// A template with its defaults, without what children do not have.
fn comparable(template: Value) -> Value {
    let mut object = json!({"spec": template});
    (imagepulljob::CRD.defaults)(&mut object);
    let mut spec = object.get_mut("spec").map(Value::take).unwrap_or_default();
    if let Some(completion) = spec.get_mut("completionPolicy").and_then(Value::as_object_mut) {
        completion.remove(OWN_TIME);
    }
    spec
}

/// The children of a list, sorted out.
pub(super) struct Children<'a> {
    /// For each image of the list, its child if there is one.
    pub(super) by_image: Vec<(&'a str, Option<&'a ImagePullJob>)>,
    /// Images of the list for which no child can be made, and why not. Admission refuses them; these were stored before.
    pub(super) left_out: Vec<(&'a str, String)>,
    /// Those of other images and of other templates, and all but one where an image has several.
    pub(super) surplus: Vec<&'a ImagePullJob>,
}

impl<'a> Children<'a> {
    pub(super) fn of(
        list: &'a ImageListPullJob,
        template: &Template,
        children: &'a [Arc<ImagePullJob>],
    ) -> Self {
        let mut left: Vec<&ImagePullJob> = children
            .iter()
            .map(AsRef::as_ref)
            .filter(|child| child.metadata.deletion_timestamp.is_none())
            .collect();
        left.sort_by(|left, right| by_age(left, right));
        let (fitting, mut surplus): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|child| template.fits(child));
        let mut fitting: Vec<Option<&ImagePullJob>> = fitting.into_iter().map(Some).collect();
        let (mut by_image, mut left_out) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for image in &list.spec.images {
            let found =
                fitting.iter_mut().find(|child| child.is_some_and(|child| child.spec.image == *image));
            match (found.and_then(Option::take), one_image(image)) {
                (None, Err(problem)) => left_out.push((image.as_str(), problem)),
                (None, Ok(())) if seen.contains(image) => {
                    left_out.push((image.as_str(), format!("image {image} is listed before")));
                }
                (child, _) => {
                    seen.insert(image);
                    by_image.push((image.as_str(), child));
                }
            }
        }
        surplus.extend(fitting.into_iter().flatten());
        Self { by_image, left_out, surplus }
    }
}

fn by_age(left: &ImagePullJob, right: &ImagePullJob) -> Ordering {
    let age = |job: &ImagePullJob| job.metadata.creation_timestamp.as_ref().map(|time| time.0);
    age(left).cmp(&age(right)).then_with(|| left.metadata.name.cmp(&right.metadata.name))
}
