//! Pull secrets, where the daemons of nodes may read them.
//!
//! Daemons read secrets of one namespace only. A secret that an ImagePullJob names is copied there while the job runs: one
//! copy for each secret, shared by all jobs that use it. The copy lists these jobs; who is done takes itself off the list,
//! and the last one deletes the copy. Every change is tied to the version of the copy that was seen, so that two jobs
//! cannot undo what the other wrote. The name of a copy follows from its source, so that two jobs at once make one copy.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::annotations::{PULL_SECRET_MODE, PULL_SECRET_REFERENCES, PULL_SECRET_SOURCE_KEY};
use serde_json::{Map, Value, json};

use crate::{
    effect::{Effect, Patch, Target},
    hash, merge_patch,
    nodeimage::PullSecret,
    object::{ObjectKey, SECRET},
    pod::Metadata,
    text::Text,
};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const MODE: &str = "batch";
/// A name has at most 253 letters; a hyphen and six digits are ours.
const LONGEST_SOURCE_NAME: usize = 246;

/// Everything that has to be known of secrets.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The namespace that daemons read.
    pub config_namespace: Text,
    /// The secrets there.
    pub copies: Vec<Arc<Metadata>>,
    /// The secrets that the job names, by name.
    pub sources: BTreeMap<Text, Source>,
}

/// What is known of a secret that a job names.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// It is not there.
    Missing,
    /// It is there, and what its [copy](copy_of) holds is known to be the same.
    Same,
    /// It is there.
    Read {
        /// The secret.
        source: Arc<Value>,
        /// Its copy, if there is one.
        copy: Option<Arc<Value>>,
    },
}

/// What to do next, and what nodes are told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The writes, in any order.
    pub effects: Vec<Effect>,
    /// The secrets as nodes are to read them.
    pub references: Vec<PullSecret>,
    /// The names of secrets that are not there.
    pub missing: Vec<Text>,
}

/// The copy of a secret that a job uses: one that lists it, else the first by name. Older releases left several.
pub fn copy_of<'a>(
    copies: &'a [Arc<Metadata>],
    source: &ObjectKey,
    job: &ObjectKey,
) -> Option<&'a Arc<Metadata>> {
    let source = source.to_string();
    let of_source = copies.iter().filter(|copy| {
        !copy.is_deleting() && copy.annotations.text(PULL_SECRET_SOURCE_KEY) == Some(source.as_str())
    });
    of_source.min_by_key(|copy| (!users(copy).contains(job.to_string().as_str()), copy.name.clone()))
}

/// Brings the copies for a running job in order.
pub fn keep(job: &ObjectKey, names: &[String], seen: &Observed) -> Plan {
    let mut plan = Plan::default();
    if job.namespace == seen.config_namespace {
        plan.references = names.iter().map(|name| reference(&job.namespace, name, "")).collect();
        return plan;
    }
    let mut used = BTreeSet::new();
    for name in names.iter().collect::<BTreeSet<_>>() {
        let key = ObjectKey::new(job.namespace.clone(), name.as_str());
        let found = seen.sources.get(name.as_str()).unwrap_or(&Source::Missing);
        let copy = copy_of(&seen.copies, &key, job);
        used.extend(copy.map(|copy| copy.name.clone()));
        match (found, copy) {
            (Source::Missing, _) => plan.missing.push(key.name),
            (Source::Same, None) => {}
            (Source::Read { source, .. }, None) => {
                let name = free_name(&key, &seen.copies);
                plan.references.push(reference(&seen.config_namespace, &name, MODE));
                plan.effects.push(create(&key, job, source, &seen.config_namespace, &name));
            }
            (found, Some(copy)) => {
                let mode = copy.annotations.text(PULL_SECRET_MODE).unwrap_or_default();
                plan.references.push(reference(&copy.namespace, &copy.name, mode));
                plan.effects.extend(update(copy, job, found));
            }
        }
    }
    let others = seen.copies.iter().filter(|copy| !used.contains(&copy.name));
    plan.effects.extend(others.filter_map(|copy| leave(copy, job)));
    plan
}

/// Takes a job that is over off all copies.
pub fn release(job: &ObjectKey, copies: &[Arc<Metadata>]) -> Vec<Effect> {
    copies.iter().filter_map(|copy| leave(copy, job)).collect()
}

fn reference(namespace: &Text, name: &str, mode: &str) -> PullSecret {
    PullSecret { namespace: namespace.clone(), name: name.into(), mode: mode.into() }
}

/// The jobs that use a copy.
fn users(copy: &Metadata) -> BTreeSet<&str> {
    let list = copy.annotations.text(PULL_SECRET_REFERENCES).unwrap_or_default();
    list.split(',').map(str::trim).filter(|user| !user.is_empty()).collect()
}

fn list(users: &BTreeSet<&str>) -> String {
    users.iter().copied().collect::<Vec<_>>().join(",")
}

fn target(copy: &Metadata) -> Target {
    Target::with_uid(SECRET, copy.key(), copy.uid.clone()).at_version(copy.resource_version.clone())
}

fn leave(copy: &Metadata, job: &ObjectKey) -> Option<Effect> {
    let mut users = users(copy);
    if copy.is_deleting() || !users.remove(job.to_string().as_str()) {
        return None;
    }
    if users.is_empty() {
        return Some(Effect::Delete { target: target(copy), grace: None, follows: false });
    }
    let change = json!({"metadata": {"annotations": {PULL_SECRET_REFERENCES: list(&users)}}});
    Some(Effect::Patch { target: target(copy), subresource: None, patch: Patch::Merge(change) })
}

fn update(copy: &Metadata, job: &ObjectKey, found: &Source) -> Option<Effect> {
    let empty = json!({});
    let mut change = Map::new();
    if let Source::Read { source, copy: Some(content) } = found {
        // The type of a secret never changes: a copy of another type makes room for a new one.
        if kind(source) != kind(content) {
            return Some(Effect::Delete { target: target(copy), grace: None, follows: false });
        }
        let data = |secret: &Value| secret.get("data").cloned().unwrap_or_else(|| empty.clone());
        change.extend(
            merge_patch::between(&data(content), &data(source)).map(|data| ("data".to_owned(), data)),
        );
    }
    let (mut users, own) = (users(copy), job.to_string());
    if users.insert(&own) {
        let annotations = json!({"annotations": {PULL_SECRET_REFERENCES: list(&users)}});
        change.insert("metadata".to_owned(), annotations);
    }
    let patch = Patch::Merge(change.into());
    match &patch {
        Patch::Merge(Value::Object(change)) if change.is_empty() => None,
        _ => Some(Effect::Patch { target: target(copy), subresource: None, patch }),
    }
}

fn kind(secret: &Value) -> &str {
    secret.get("type").and_then(Value::as_str).unwrap_or("Opaque")
}

/// The name of a new copy. Where something else has it already, another one.
fn free_name(source: &ObjectKey, copies: &[Arc<Metadata>]) -> String {
    let letters =
        source.name.char_indices().nth(LONGEST_SOURCE_NAME).map_or(source.name.len(), |(end, _)| end);
    let start = source.name.get(..letters).unwrap_or_default();
    let names = (0_u32..).map(|salt| {
        let digits = hash::fnv1a(format!("{source}#{salt}").bytes()) & 0x00ff_ffff;
        format!("{start}-{digits:06x}")
    });
    let is_free = |name: &String| !copies.iter().any(|copy| copy.name == *name.as_str());
    names.into_iter().find(is_free).unwrap_or_default()
}

fn create(key: &ObjectKey, job: &ObjectKey, source: &Value, namespace: &Text, name: &str) -> Effect {
    let pairs =
        |pointer: &str| source.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut annotations = pairs("/metadata/annotations");
    annotations.remove(LAST_APPLIED);
    annotations.insert(PULL_SECRET_SOURCE_KEY.to_owned(), key.to_string().into());
    annotations.insert(PULL_SECRET_REFERENCES.to_owned(), job.to_string().into());
    annotations.insert(PULL_SECRET_MODE.to_owned(), MODE.into());
    let mut metadata = json!({"name": name, "namespace": namespace, "annotations": annotations});
    let labels = pairs("/metadata/labels");
    if !labels.is_empty() {
        kruise_api::json::set(&mut metadata, &["labels"], labels);
    }
    let object = json!({
        "apiVersion": SECRET.api_version(),
        "kind": SECRET.kind,
        "metadata": metadata,
        "type": kind(source),
        "data": pairs("/data"),
    });
    Effect::Create { resource: SECRET, namespace: namespace.clone(), object }
}

#[cfg(test)]
mod tests;
