//! StatefulSets: pods with an ordinal, a name and storage of their own.

mod ordinals;
mod pods;
mod retention;
mod revisions;
mod status;

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{deleting, is_gone, number, or_gone, text};
use super::pods::Pod;
use super::recorder::Involved;
use super::replicaset::next_available;
use super::{Context, Key, Outcome, claim};
use crate::registry::Resource;
use crate::rest::{DeleteOptions, Preconditions};
use crate::selector::Labels;
use crate::status::Status;
use ordinals::{Seen, Step};

const COMPONENT: &str = "statefulset-controller";
const REVISION_LABEL: &str = "controller-revision-hash";
const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// What one pass works with.
struct Pass<'c> {
    cx: &'c Context,
    sets: Arc<Resource>,
    set: Value,
    current: String,
    update: String,
    /// The templates of the two revisions.
    templates: (Value, Value),
}

/// Brings one StatefulSet closer to what it wants.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let sets = cx.client.resource("apps", "statefulsets")?;
    let Some(record) = or_gone(cx.client.get(&sets, &key.namespace, &key.name))? else { return Ok(None) };
    let set = record.value();
    let Ok(selector) = Labels::from_object(set.pointer("/spec/selector")) else { return Ok(None) };
    let pods = claim::pods(cx, &sets, &set, &selector).await?;
    if deleting(&set) {
        return Ok(None);
    }
    let revisions = revisions::settle(cx, &sets, &set).await?;
    let pass = Pass {
        cx,
        sets,
        set,
        current: revisions.current.0.clone(),
        update: revisions.update.0.clone(),
        templates: (revisions.current.1.clone(), revisions.update.1.clone()),
    };
    let now = cx.now();
    let min_ready = number(&pass.set, "/spec/minReadySeconds").unwrap_or(0);
    let views: Vec<Seen> = pods.iter().filter_map(|pod| Seen::of(&pass.set, pod, min_ready, now)).collect();
    let wanted = ordinals::Wanted::of(&pass.set, &pass.current, &pass.update);
    let mut acted = retention::settle(&pass, &views).await;
    for step in ordinals::plan(&wanted, &views) {
        if acted.is_err() {
            break;
        }
        acted = pass.act(&step, &pods).await;
    }
    status::write(&pass, &pods, &revisions, min_ready).await?;
    acted?;
    revisions::clean_up(cx, &pass.set, &pods, &revisions).await?;
    Ok(next_available(&pods, min_ready, now))
}

impl Pass<'_> {
    async fn act(&self, step: &Step, known: &[Arc<Pod>]) -> Result<(), Status> {
        match step {
            Step::Create { ordinal, updated } => self.create(*ordinal, *updated).await,
            Step::Delete { name } => {
                let Some(pod) = known.iter().find(|pod| &*pod.record.name == name) else { return Ok(()) };
                self.delete(pod).await
            }
        }
    }

    async fn create(&self, ordinal: i64, updated: bool) -> Result<(), Status> {
        let (template, revision) =
            if updated { (&self.templates.1, &self.update) } else { (&self.templates.0, &self.current) };
        let pods = self.cx.client.resource("", "pods")?;
        let namespace = text(&self.set, "/metadata/namespace");
        self.create_claims(ordinal).await?;
        let pod = pods::build(&self.sets, &self.set, template, ordinal, revision);
        let name = text(&pod, "/metadata/name").to_owned();
        let made = self.cx.client.create(&pods, namespace, pod).await;
        self.tell("Create", "Pod", &name, made.as_ref().err()).await;
        made.map(|_| ())
    }

    /// Storage that is there already is used again.
    async fn create_claims(&self, ordinal: i64) -> Result<(), Status> {
        let claims = self.cx.client.resource("", "persistentvolumeclaims")?;
        let namespace = text(&self.set, "/metadata/namespace");
        for claim in pods::claims(&self.set, ordinal) {
            let name = text(&claim, "/metadata/name").to_owned();
            match self.cx.client.get(&claims, namespace, &name) {
                Ok(_) => continue,
                Err(status) if is_gone(&status) => {}
                Err(status) => return Err(status),
            }
            let made = self.cx.client.create(&claims, namespace, claim).await;
            let set = text(&self.set, "/metadata/name");
            let pod = format!("{set}-{ordinal}");
            let involved = Involved::of(&self.sets, &self.set);
            let words = format!("create Claim {name} Pod {pod} in StatefulSet {set}");
            match made {
                Ok(_) => {
                    let message = format!("{words} success");
                    self.cx.record(COMPONENT, &involved, "Normal", "SuccessfulCreate", &message).await;
                }
                Err(status) => {
                    let message = format!("{words} failed error: {}", status.message);
                    self.cx.record(COMPONENT, &involved, "Warning", "FailedCreate", &message).await;
                    return Err(status);
                }
            }
        }
        Ok(())
    }

    async fn delete(&self, pod: &Pod) -> Result<(), Status> {
        let pods = self.cx.client.resource("", "pods")?;
        let record = &pod.record;
        let preconditions = Preconditions { uid: Some(record.uid.to_string()), resource_version: None };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let gone = or_gone(self.cx.client.delete(&pods, &record.namespace, &record.name, &options).await);
        self.tell("Delete", "Pod", &record.name, gone.as_ref().err()).await;
        gone.map(|_| ())
    }

    async fn tell(&self, word: &str, kind: &str, name: &str, failure: Option<&Status>) {
        let set = text(&self.set, "/metadata/name");
        let involved = Involved::of(&self.sets, &self.set);
        let what = format!("{word} {kind} {name} in StatefulSet {set}");
        match failure {
            None => {
                let message = format!("{what} successful");
                let reason = format!("Successful{word}");
                self.cx.record(COMPONENT, &involved, "Normal", &reason, &message).await;
            }
            Some(status) => {
                let message = format!("{what} failed error: {}", status.message);
                self.cx.record(COMPONENT, &involved, "Warning", &format!("Failed{word}"), &message).await;
            }
        }
    }
}

/// The name of the claim for a template and an ordinal.
fn claim_name(template: &Value, set: &Value, ordinal: i64) -> Value {
    json!(format!("{}-{}-{ordinal}", text(template, "/metadata/name"), text(set, "/metadata/name")))
}
