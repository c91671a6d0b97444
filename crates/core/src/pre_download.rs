//! Images that are pulled to nodes ahead of an update in place, so that its pods are away for a shorter time.
//!
//! What came of it is remembered by a label on the revision. The label is written one pass after the jobs, when all of
//! them are seen: a job that could not be made is tried again.

use std::collections::BTreeMap;

use kruise_api::{
    annotations, imagepulljob,
    int_or_percent::IntOrString,
    labels,
    selector::{LabelSelector, Requirement},
};
use serde_json::{Map, Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    object::{CONTROLLER_REVISION, ObjectRef, Resource},
    pod::Metadata,
    revision::{self, Revision},
    text::Text,
};

/// ImagePullJobs.
pub const IMAGE_PULL_JOB: Resource =
    Resource::namespaced("apps.kruise.io", "v1beta1", imagepulljob::CRD.kind, imagepulljob::CRD.plural);

/// Seconds after which one pull counts as failed, unless the workload says something else.
const TIMEOUT_SECONDS: i32 = 300;
/// Seconds that a finished job stays.
const TTL_SECONDS: i32 = 600;

/// An update whose images may be pulled ahead.
#[derive(Clone, Debug)]
pub struct Rollout<'a> {
    /// The workload.
    pub owner: &'a ObjectRef,
    /// Its selector.
    pub selector: &'a LabelSelector,
    /// Where its pods come from.
    pub before: &'a [&'a Revision],
    /// Where its pods go.
    pub update: &'a Revision,
    /// Whether pulling ahead saves something.
    pub is_worth_it: bool,
    /// On how many nodes images are pulled at once.
    pub parallelism: Option<IntOrString>,
    /// Seconds after which one pull counts as failed.
    pub timeout_seconds: Option<i32>,
}

/// What annotations of a workload say about pulling ahead.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// On how many nodes images are pulled at once.
    pub parallelism: Option<IntOrString>,
    /// Seconds after which one pull counts as failed.
    pub timeout_seconds: Option<i32>,
    /// How many updated pods must be ready first.
    pub min_updated_ready: Option<IntOrString>,
}

impl Wishes {
    /// Of annotations. What is no number counts as absent.
    pub fn of(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let text = |key: &str| annotations?.get(key).map(String::as_str);
        Self {
            parallelism: text(annotations::IMAGE_PREDOWNLOAD_PARALLELISM)
                .and_then(|text| text.parse().ok())
                .map(IntOrString::Int),
            timeout_seconds: text(annotations::IMAGE_PREDOWNLOAD_TIMEOUT_SECONDS)
                .and_then(|text| text.parse().ok()),
            min_updated_ready: text(annotations::IMAGE_PREDOWNLOAD_MIN_UPDATED_READY_PODS)
                .map(|text| text.parse().map_or_else(|_| IntOrString::from(text), IntOrString::Int)),
        }
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Everything is done.
    Nothing,
    /// The revision is labelled.
    Label(Effect),
    /// Jobs are made.
    Create(Vec<Job>),
}

/// A job to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: Text,
    /// The image that it pulls.
    pub image: Text,
    /// The write that makes it.
    pub effect: Effect,
}

/// The names of jobs that pull the images of a revision.
pub fn names(revision: &Revision) -> Vec<Text> {
    images(revision).into_iter().map(|(container, _)| name(revision, container)).collect()
}

fn name(revision: &Revision, container: &str) -> Text {
    format!("{}-{container}", revision.name()).into()
}

/// The next step of pulling images ahead. `known` are the jobs that the workload controls, and those that have their names:
/// whoever made them, the images are pulled.
pub fn next(rollout: &Rollout<'_>, known: &[&Metadata]) -> Step {
    let marks = &rollout.update.metadata.labels;
    if marks.contains(labels::PRE_PREDOWNLOAD_CREATED) || marks.contains(labels::IMAGE_PREDOWNLOAD_IGNORED) {
        return Step::Nothing;
    }
    if !rollout.is_worth_it {
        return Step::Label(label(rollout.update, labels::IMAGE_PREDOWNLOAD_IGNORED));
    }
    let missing: Vec<Job> =
        jobs(rollout).into_iter().filter(|job| !known.iter().any(|known| known.name == job.name)).collect();
    if missing.is_empty() {
        return Step::Label(label(rollout.update, labels::PRE_PREDOWNLOAD_CREATED));
    }
    Step::Create(missing)
}

/// Deletes the jobs of an update that is over.
pub fn clean_up(known: &[&Metadata]) -> Vec<Effect> {
    let left = known.iter().filter(|job| !job.is_deleting());
    left.map(|job| Effect::Delete {
        target: Target::with_uid(IMAGE_PULL_JOB, job.key(), job.uid.clone()),
        grace: None,
        follows: false,
    })
    .collect()
}

fn label(revision: &Revision, key: &str) -> Effect {
    let metadata = &revision.metadata;
    Effect::Patch {
        target: Target::with_uid(CONTROLLER_REVISION, metadata.key(), metadata.uid.clone()),
        subresource: None,
        patch: Patch::Merge(json!({"metadata": {"labels": {key: "true"}}})),
    }
}

fn jobs(rollout: &Rollout<'_>) -> Vec<Job> {
    let is_new = |pair: &(&str, &str)| rollout.before.iter().any(|before| !images(before).contains(pair));
    let changed = images(rollout.update).into_iter().filter(is_new);
    changed.map(|(container, image)| job(rollout, container, image)).collect()
}

/// Names and images of containers.
fn images(revision: &Revision) -> Vec<(&str, &str)> {
    let containers = revision.template.pointer("/spec/containers").and_then(Value::as_array);
    containers
        .into_iter()
        .flatten()
        .filter_map(|container| Some((container.get("name")?.as_str()?, container.get("image")?.as_str()?)))
        .collect()
}

fn job(rollout: &Rollout<'_>, container: &str, image: &str) -> Job {
    let revision = rollout.update.name();
    let name = name(rollout.update, container);
    let template = &rollout.update.template;
    let pairs =
        |pointer: &str| template.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut labels: Map<String, Value> = pairs("/metadata/labels");
    let hash = rollout
        .update
        .metadata
        .labels
        .text(labels::REVISION_HASH)
        .unwrap_or_else(|| revision::short_hash(revision));
    labels.insert(labels::REVISION_HASH.to_owned(), hash.into());
    let mut selector = rollout.selector.clone();
    selector.match_expressions.push(Requirement {
        key: labels::CONTROLLER_REVISION_HASH.to_owned(),
        operator: "NotIn".to_owned(),
        values: vec![revision.to_owned(), revision::short_hash(revision).to_owned()],
    });
    let secrets = template.pointer("/spec/imagePullSecrets").and_then(Value::as_array);
    let secrets: Vec<&str> =
        secrets.into_iter().flatten().filter_map(|secret| secret.get("name")?.as_str()).collect();
    let mut spec = json!({
        "image": image,
        "podSelector": selector,
        "parallelism": rollout.parallelism.clone().unwrap_or(IntOrString::Int(1)),
        "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": rollout.timeout_seconds.unwrap_or(TIMEOUT_SECONDS)},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": TTL_SECONDS},
        "sandboxConfig": {"labels": labels},
    });
    if !secrets.is_empty() {
        kruise_api::json::set(&mut spec, &["pullSecrets"], json!(secrets));
    }
    let of_template = pairs("/metadata/annotations");
    if !of_template.is_empty() {
        kruise_api::json::set(&mut spec, &["sandboxConfig", "annotations"], of_template);
    }
    let object = json!({
        "apiVersion": IMAGE_PULL_JOB.api_version(),
        "kind": IMAGE_PULL_JOB.kind,
        "metadata": {
            "name": name,
            "namespace": rollout.owner.key.namespace,
            "labels": labels,
            "ownerReferences": [rollout.owner.controller_reference()],
        },
        "spec": spec,
    });
    let effect =
        Effect::Create { resource: IMAGE_PULL_JOB, namespace: rollout.owner.key.namespace.clone(), object };
    Job { name, image: image.into(), effect }
}
