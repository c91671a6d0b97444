//! How the tag of a job comes into a NodeImage.

use jiff::Timestamp;
use kruise_api::nodeimage::v1beta1::{OwnerReference, PullPolicy};
use serde_json::{Value, json};

use super::desired::Desired;
use crate::{
    effect::Effect,
    nodeimage::{Image, NodeImage, PullSecret, Steps, Tag, validate::MOST_IMAGES},
    object::ObjectRef,
    readiness::seconds,
};

/// What a job writes into NodeImages.
#[derive(Clone, Debug)]
pub(super) struct Wish<'a> {
    pub(super) job: &'a ObjectRef,
    pub(super) desired: &'a Desired<'a>,
    pub(super) secrets: &'a [PullSecret],
    /// For a tag that comes in or begins a new round.
    pub(super) policy: PullPolicy,
    pub(super) now: Timestamp,
}

/// Whether a NodeImage has no place for the image.
pub(super) fn is_full(node: &NodeImage, desired: &Desired<'_>) -> bool {
    node.image(&desired.image.name).is_none() && node.images().count() >= MOST_IMAGES
}

impl Wish<'_> {
    /// The write that brings the wish into a NodeImage; nothing where it is fulfilled.
    pub(super) fn write(&self, node: &NodeImage) -> Option<Effect> {
        let mut steps = Steps::default();
        let name = self.desired.image.name.as_str();
        match (&node.spec, node.image(name)) {
            (None, _) => steps.add(&["spec"], json!({"images": {name: self.image(node)}})),
            (Some(spec), None) if spec.images.is_empty() => {
                steps.add(&["spec", "images"], json!({name: self.image(node)}));
            }
            (Some(_), None) => steps.add(&["spec", "images", name], self.image(node)),
            (Some(_), Some(image)) => self.join(node, image, &mut steps),
        }
        (!steps.is_empty()).then(|| steps.on_generation(&node.reference(), node.metadata.generation))
    }

    fn image(&self, node: &NodeImage) -> Value {
        let mut image = json!({"tags": [self.tag(node)]});
        if !self.secrets.is_empty() {
            let secrets: Vec<Value> = self.secrets.iter().map(secret).collect();
            kruise_api::json::set(&mut image, &["pullSecrets"], secrets);
        }
        if let Some(sandbox) = self.desired.sandbox {
            kruise_api::json::set(&mut image, &["sandboxConfig"], json!(sandbox));
        }
        image
    }

    fn join(&self, node: &NodeImage, image: &Image, steps: &mut Steps) {
        let name = self.desired.image.name.as_str();
        let path = ["spec", "images", name];
        let [spec, images, name] = path;
        match (self.desired.sandbox, image.sandbox_config.as_deref()) {
            (Some(wanted), known) if known != Some(wanted) => {
                steps.add(&[spec, images, name, "sandboxConfig"], json!(wanted));
            }
            (None, Some(_)) => steps.remove(&[spec, images, name, "sandboxConfig"]),
            _ => {}
        }
        let is_known =
            |wanted: &&PullSecret| image.pull_secrets.iter().any(|known| known.key() == wanted.key());
        let missing: Vec<Value> =
            self.secrets.iter().filter(|wanted| !is_known(wanted)).map(secret).collect();
        if image.pull_secrets.is_empty() && !missing.is_empty() {
            steps.add(&[spec, images, name, "pullSecrets"], missing);
        } else {
            for secret in missing {
                steps.add(&[spec, images, name, "pullSecrets", "-"], secret);
            }
        }
        let wanted = self.desired.image.version.as_str();
        match image.tag(wanted) {
            Some((_, tag)) if tag.is_wanted_by(&self.job.uid) => {}
            Some((index, tag)) => self.next_round(tag, &index.to_string(), steps),
            None => {
                let place = image.tags.iter().take_while(|tag| *tag.tag < *wanted).count();
                steps.add(&[spec, images, name, "tags", &place.to_string()], self.tag(node));
            }
        }
    }

    fn tag(&self, node: &NodeImage) -> Value {
        let (name, tag) = (&self.desired.image.name, self.desired.image.version.as_str());
        let mut entry = json!({
            "tag": tag,
            "createdAt": seconds(self.now),
            "pullPolicy": self.policy,
            "ownerReferences": [self.owner()],
            "imagePullPolicy": self.desired.image_pull_policy,
        });
        // A status that is left over from before must not be taken for that of this round.
        if let Some(before) = node.tag_status(name, tag) {
            kruise_api::json::set(&mut entry, &["version"], before.version + 1);
        }
        entry
    }

    /// The tag is there for someone else: the node pulls it again, for both.
    fn next_round(&self, tag: &Tag, index: &str, steps: &mut Steps) {
        let name = self.desired.image.name.as_str();
        let mut set = |field: &str, value: Value| {
            steps.add(&["spec", "images", name, "tags", index, field], value);
        };
        set("version", (tag.version + 1).into());
        set("createdAt", seconds(self.now));
        set("imagePullPolicy", self.desired.image_pull_policy.into());
        set("pullPolicy", json!(joined(tag.pull_policy.as_ref(), &self.policy)));
        if tag.owner_references.is_empty() {
            set("ownerReferences", json!([self.owner()]));
        } else {
            steps.add(&["spec", "images", name, "tags", index, "ownerReferences", "-"], json!(self.owner()));
        }
    }

    fn owner(&self) -> OwnerReference {
        let ObjectRef { resource, key, uid } = self.job;
        OwnerReference {
            api_version: Some(resource.api_version()),
            kind: Some(resource.kind.to_owned()),
            namespace: Some(key.namespace.to_string()),
            name: Some(key.name.to_string()),
            uid: Some(uid.to_string()),
            ..OwnerReference::default()
        }
    }
}

/// The limits are those of the job that comes in, and the tag stays as long as either wants it to.
fn joined(known: Option<&PullPolicy>, new: &PullPolicy) -> PullPolicy {
    let known = known.and_then(|known| known.ttl_seconds_after_finished);
    PullPolicy { ttl_seconds_after_finished: known.max(new.ttl_seconds_after_finished), ..new.clone() }
}

fn secret(secret: &PullSecret) -> Value {
    let PullSecret { namespace, name, mode } = secret;
    if mode.is_empty() {
        return json!({"namespace": namespace, "name": name});
    }
    json!({"namespace": namespace, "name": name, "mode": mode})
}
