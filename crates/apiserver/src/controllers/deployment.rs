//! Deployments: ReplicaSets, one for each revision of the template, that take turns.

mod numbers;
mod progress;
mod revision;
mod rollout;
mod scaling;

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{annotate, condition, deleting, flag, number, or_gone, text};
use super::recorder::Involved;
use super::{Context, Key, Outcome, claim};
use crate::registry::Resource;
use crate::selector::Labels;
use crate::status::Status;
pub(super) use revision::hash;

const COMPONENT: &str = "deployment-controller";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
const HASH_LABEL: &str = "pod-template-hash";

/// What one pass works with.
struct Pass<'c> {
    cx: &'c Context,
    deployments: Arc<Resource>,
    sets: Arc<Resource>,
    deployment: Value,
    /// The ReplicaSets that belong to the deployment, the oldest first.
    all: Vec<Value>,
}

/// Brings one deployment closer to what it wants.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let deployments = cx.client.resource("apps", "deployments")?;
    let sets = cx.client.resource("apps", "replicasets")?;
    let Some(record) = or_gone(cx.client.get(&deployments, &key.namespace, &key.name))? else {
        return Ok(None);
    };
    let deployment = record.value();
    let Ok(selector) = Labels::from_object(deployment.pointer("/spec/selector")) else { return Ok(None) };
    if selector.is_everything() {
        return Ok(None);
    }
    let mut all = claim::objects(cx, &deployments, &deployment, &selector, &sets).await?;
    sort_by_age(&mut all);
    let mut pass = Pass { cx, deployments, sets, deployment, all };
    if deleting(&pass.deployment) {
        let new = revision::find_new(&pass);
        return pass.write_status(new.as_ref()).await;
    }
    pass.note_pause().await?;
    if flag(&pass.deployment, "/spec/paused") || scaling::is_due(&pass) {
        return pass.sync_scale().await;
    }
    match text(&pass.deployment, "/spec/strategy/type") {
        "Recreate" => pass.recreate().await,
        _ => pass.roll().await,
    }
}

/// Oldest first; of the same age by name.
fn sort_by_age(sets: &mut [Value]) {
    sets.sort_by(|a, b| {
        let age = |set: &Value| text(set, "/metadata/creationTimestamp").to_owned();
        age(a).cmp(&age(b)).then_with(|| text(a, "/metadata/name").cmp(text(b, "/metadata/name")))
    });
}

fn replicas(object: &Value) -> i64 {
    number(object, "/spec/replicas").unwrap_or(1)
}

fn available(set: &Value) -> i64 {
    number(set, "/status/availableReplicas").unwrap_or(0)
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

fn sum(sets: &[Value], of: impl Fn(&Value) -> i64) -> i64 {
    sets.iter().map(of).sum()
}

impl Pass<'_> {
    /// All sets but the new one.
    fn old(&self, new: Option<&Value>) -> Vec<Value> {
        let new = new.map(uid).unwrap_or_default();
        self.all.iter().filter(|set| uid(set) != new).cloned().collect()
    }

    /// Puts a written set in the place of the one it replaces.
    fn remember(&mut self, set: &Value) {
        match self.all.iter_mut().find(|known| uid(known) == uid(set)) {
            Some(known) => known.clone_from(set),
            None => self.all.push(set.clone()),
        }
    }

    /// Scales a set and says so. Returns the set as it is then.
    async fn scale_to(&mut self, set: &Value, to: i64) -> Result<(bool, Value), Status> {
        let from = replicas(set);
        let wanted = replicas(&self.deployment);
        let maximum = wanted + numbers::max_surge(&self.deployment);
        let mut changed = set.clone();
        let marks = annotate(&mut changed, DESIRED, &wanted.to_string())
            | annotate(&mut changed, MAXIMUM, &maximum.to_string());
        if from == to && !marks {
            return Ok((false, changed));
        }
        super::object::set(&mut changed, "spec", "replicas", json!(to));
        let written = self.cx.client.update(&self.sets, None, changed).await?.value();
        self.remember(&written);
        if from != to {
            let direction = if from < to { "up" } else { "down" };
            let message = format!("Scaled {direction} replica set {} from {from} to {to}", name(set));
            self.event("Normal", "ScalingReplicaSet", &message).await;
        }
        Ok((from != to, written))
    }

    async fn event(&self, kind: &'static str, reason: &str, message: &str) {
        let involved = Involved::of(&self.deployments, &self.deployment);
        self.cx.record(COMPONENT, &involved, kind, reason, message).await;
    }

    /// Keeps only as many old sets as the history may hold; only those that are done with.
    async fn clean_up(&mut self, new: Option<&Value>) -> Result<(), Status> {
        let Some(limit) = number(&self.deployment, "/spec/revisionHistoryLimit") else { return Ok(()) };
        let mut old: Vec<Value> = self.old(new).into_iter().filter(|set| !deleting(set)).collect();
        old.sort_by_key(|set| (revision::of(set), text(set, "/metadata/creationTimestamp").to_owned()));
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        for set in old.iter().take(surplus) {
            let busy = number(set, "/status/replicas").unwrap_or(0) != 0
                || replicas(set) != 0
                || number(set, "/metadata/generation") > number(set, "/status/observedGeneration");
            if busy {
                continue;
            }
            let namespace = text(set, "/metadata/namespace");
            let gone = self.cx.client.delete(&self.sets, namespace, name(set), &Default::default()).await;
            or_gone(gone)?;
            let uid = uid(set).to_owned();
            self.all.retain(|known| text(known, "/metadata/uid") != uid);
        }
        Ok(())
    }

    /// A pause or its end is told by the Progressing condition, and the progress clock starts anew.
    async fn note_pause(&mut self) -> Result<(), Status> {
        if !progress::has_deadline(&self.deployment) {
            return Ok(());
        }
        let known = condition(&self.deployment, "Progressing");
        if known.is_some_and(|known| text(known, "/reason") == progress::TIMED_OUT) {
            return Ok(());
        }
        let told = known.is_some_and(|known| text(known, "/reason") == progress::PAUSED);
        let paused = flag(&self.deployment, "/spec/paused");
        let (reason, message) = match (paused, told) {
            (true, false) => (progress::PAUSED, "Deployment is paused"),
            (false, true) => (progress::RESUMED, "Deployment is resumed"),
            _ => return Ok(()),
        };
        let mut changed = self.deployment.clone();
        progress::set(&mut changed, "Progressing", "Unknown", reason, message, &self.cx.now_text());
        self.deployment = self.cx.client.update(&self.deployments, Some("status"), changed).await?.value();
        Ok(())
    }

    /// Writes the deployment's counts and whether it is available; the progress stays as it is.
    async fn write_status(&mut self, new: Option<&Value>) -> Outcome {
        let changed = progress::counted(&self.deployment, &self.all, new, &self.cx.now_text());
        self.put_status(changed).await?;
        Ok(None)
    }

    async fn put_status(&mut self, changed: Value) -> Result<(), Status> {
        if changed.get("status") != self.deployment.get("status")
            && let Some(written) =
                or_gone(self.cx.client.update(&self.deployments, Some("status"), changed).await)?
        {
            self.deployment = written.value();
        }
        Ok(())
    }

    /// Paused, or scaled in the middle of a rollout: only the sizes change.
    async fn sync_scale(&mut self) -> Outcome {
        let new = revision::new_set(self, false).await?;
        self.scale(new.as_ref()).await?;
        let new = revision::find_new(self);
        if flag(&self.deployment, "/spec/paused") {
            self.clean_up(new.as_ref()).await?;
        }
        self.write_status(new.as_ref()).await
    }
}

/// Whether all pods are updated, available, and no old one is left.
fn is_complete(deployment: &Value) -> bool {
    let count = |key: &str| number(deployment, &format!("/status/{key}")).unwrap_or(0);
    let wanted = replicas(deployment);
    count("updatedReplicas") == wanted
        && count("replicas") == wanted
        && count("availableReplicas") == wanted
        && count("observedGeneration") >= number(deployment, "/metadata/generation").unwrap_or(0)
}
