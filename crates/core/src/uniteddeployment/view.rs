//! What is there, sorted once: the workload of each subset, those that are too many, and the revisions.

use std::{cell::OnceCell, collections::BTreeMap};

use kruise_api::{
    labels::{REVISION_HASH, SUBSET_NAME, UNITED_DEPLOYMENT_REVISION},
    uniteddeployment::v1beta1::Status,
};
use serde_json::{Map, Value, json};

use super::{Child, Desired, Observed, allocation, reference, revision as content, schedule};
use crate::{
    effect::{Effect, Patch, Target},
    object::{CONTROLLER_REVISION, ObjectRef, Resource},
    pod::{Metadata, Pod},
    revision::{self, Content, Found, Owner, Revision, Revisions},
};

/// What is there.
pub(super) struct View<'a> {
    pub(super) seen: &'a Observed,
    pub(super) desired: &'a Desired,
    pub(super) owner: ObjectRef,
    pub(super) status: Status,
    pub(super) revisions: Revisions<'a>,
    /// Revisions of nobody that hold a template of this object.
    pub(super) free_revisions: Vec<&'a Revision>,
    /// The workload of each subset that has one, by the name of the subset.
    pub(super) workloads: BTreeMap<&'a str, &'a Child>,
    /// Workloads that are to be deleted, each with why: too many for their subset, of no subset, or of another kind.
    pub(super) surplus: Vec<(&'a Child, &'static str)>,
    /// Workloads whose labels were changed.
    pub(super) released: Vec<&'a Child>,
    /// Workloads of nobody that the selector matches.
    pub(super) orphans: Vec<&'a Child>,
    shares: OnceCell<Result<Shares, allocation::Error>>,
}

/// What every subset gets.
pub(super) struct Shares {
    /// What is known of each subset of the spec, in its order.
    pub(super) marks: Vec<schedule::Mark>,
    /// What the division was made from.
    pub(super) subsets: Vec<allocation::Subset>,
    /// The division.
    pub(super) shares: Vec<allocation::Share>,
}

impl<'a> View<'a> {
    pub(super) fn new(seen: &'a Observed, desired: &'a Desired) -> Self {
        let owner = reference(&seen.object);
        let status = seen.object.status.clone().unwrap_or_default();
        let (revisions, free_revisions) = find_revisions(seen, desired, &owner, &status);
        let mut view = Self {
            seen,
            desired,
            owner,
            status,
            revisions,
            free_revisions,
            workloads: BTreeMap::new(),
            surplus: Vec::new(),
            released: Vec::new(),
            orphans: Vec::new(),
            shares: OnceCell::new(),
        };
        view.sort();
        view
    }

    /// The oldest workload of a subset stays.
    fn sort(&mut self) {
        let mut children: Vec<&Child> = self.seen.children.iter().collect();
        children.sort_by(|left, right| {
            let key = |child: &Child| {
                // One that is being deleted must not push out one that stays.
                (child.metadata.is_deleting(), child.metadata.creation_timestamp)
            };
            key(left).cmp(&key(right)).then_with(|| left.metadata.name.cmp(&right.metadata.name))
        });
        let desired = self.desired;
        let is_known = |name: &str| desired.subsets.iter().any(|subset| subset.name == name);
        for child in children {
            let Metadata { labels, .. } = &child.metadata;
            let is_ours =
                child.metadata.controller().is_some_and(|controller| controller.uid == self.owner.uid);
            let matches = desired.selector.accepts(|key| labels.text(key));
            let subset = child.subset().unwrap_or_default();
            if !is_ours {
                let is_free = child.metadata.controller().is_none() && !child.metadata.is_deleting();
                if is_free && matches && child.kind == desired.kind && is_known(subset) {
                    self.orphans.push(child);
                }
            } else if child.kind != desired.kind {
                self.surplus.push((child, "the template has another kind"));
            } else if !matches {
                self.released.push(child);
            } else if !is_known(subset) {
                self.surplus.push((child, "its subset is not in the spec"));
            } else if self.workloads.contains_key(subset) {
                self.surplus.push((child, "its subset has an older workload"));
            } else {
                self.workloads.insert(subset, child);
            }
        }
        // An orphan is the workload of its subset as soon as it is adopted: nothing is made beside it.
        let mut taken: Vec<&str> = self.workloads.keys().copied().collect();
        self.orphans.retain(|orphan| {
            let subset = orphan.subset().unwrap_or_default();
            let is_first = !taken.contains(&subset);
            taken.push(subset);
            is_first
        });
        self.surplus.retain(|(child, _)| !child.metadata.is_deleting());
    }

    /// The workload of a subset.
    pub(super) fn workload(&self, subset: &str) -> Option<&'a Child> {
        self.workloads.get(subset).copied()
    }

    /// Whether a workload of the subset is about to be adopted.
    pub(super) fn has_orphan(&self, subset: &str) -> bool {
        self.orphans.iter().any(|orphan| orphan.subset() == Some(subset))
    }

    /// The pods of a workload that have not ended.
    pub(super) fn pods(&self, child: &Child) -> Vec<&'a Pod> {
        let pods = self.seen.pods.get(&child.metadata.uid).map(Vec::as_slice).unwrap_or_default();
        let mut pods: Vec<&Pod> =
            pods.iter().map(AsRef::as_ref).filter(|pod: &&Pod| pod.is_active()).collect();
        pods.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        pods
    }

    /// The name of the revision of the template.
    pub(super) fn revision(&self) -> &str {
        self.revisions.update.name()
    }

    /// How many pods of a subset stay on the old revision.
    pub(super) fn partition(&self, subset: &str, replicas: i64) -> i64 {
        self.desired.partition(&self.seen.object, subset).min(replicas)
    }

    /// What every subset gets, and why.
    pub(super) fn shares(&self) -> Result<&Shares, &allocation::Error> {
        self.shares
            .get_or_init(|| {
                let marks = schedule::marks(self);
                let subsets = schedule::subsets(self, &marks);
                let mode = self.desired.mode;
                let shares = allocation::allocate(self.desired.total, mode, &subsets)?;
                let marks = schedule::after(marks, &subsets, &shares, mode, self.seen.now);
                Ok(Shares { marks, subsets, shares })
            })
            .as_ref()
    }
}

/// Whether a pod is on a revision of the template.
pub(super) fn is_on(pod: &Pod, revision: &str) -> bool {
    revision_of(pod) == Some(revision)
}

/// The revision of the template that a pod was made from.
pub(super) fn revision_of(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.text(UNITED_DEPLOYMENT_REVISION)
}

/// Finds the revision of the template. Those of the object are known by their owner: the original gives revisions of CloneSet
/// templates no labels.
fn find_revisions<'a>(
    seen: &'a Observed,
    desired: &Desired,
    owner: &ObjectRef,
    status: &Status,
) -> (Revisions<'a>, Vec<&'a Revision>) {
    let known: Vec<&Revision> = seen.revisions.iter().map(AsRef::as_ref).collect();
    let wanted = content::comparable(&json!({desired.kind.field(): desired.template}));
    let prefix = format!("{}-", owner.key.name);
    // The hash has no dash: those of `web-2` are none of `web`.
    let is_named = |name: &str| name.strip_prefix(&prefix).is_some_and(|hash| !hash.contains('-'));
    let is_free = |one: &Revision| {
        one.metadata.controller().is_none()
            && !one.metadata.is_deleting()
            && is_named(one.name())
            && content::is_template(&one.template)
    };
    let is_own = |one: &Revision| one.metadata.controller().is_some_and(|found| found.uid == owner.uid);
    let mut all: Vec<&Revision> = known.iter().copied().filter(|one| is_own(one) || is_free(one)).collect();
    revision::sort(&mut all);
    let free = all.iter().copied().filter(|one| is_free(one)).collect();
    let labels = kruise_api::json::at(&desired.template, &["metadata", "labels"]).and_then(Value::as_object);
    let labels = labels.filter(|labels| !labels.is_empty()).cloned().unwrap_or_else(|| {
        let stated = seen.object.spec.selector.match_labels.iter();
        stated.map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect::<Map<_, _>>()
    });
    let revisions_of = Owner {
        reference: owner,
        annotations: json!({}),
        collision_count: status.collision_count.unwrap_or(0),
        follows: None,
        hash_label: REVISION_HASH,
    };
    let of_template = Content {
        comparable: wanted,
        namespace: &owner.key.namespace,
        labels: labels.into(),
        data: &|| content::data(desired.kind, &desired.template),
    };
    let taken = |name: &str| known.iter().any(|one| one.name() == name);
    let found = revision::find_content(&revisions_of, of_template, &all, &taken);
    let update = match &found {
        Found::Newest(one) | Found::Older(one, _) => (*one).clone(),
        Found::Missing(new) => Revision::from(new.as_ref()),
    };
    let current = all.iter().find(|one| one.name() == status.current_revision);
    let current = current.map_or_else(|| update.clone(), |one| (*one).clone());
    (Revisions { all, found, update, current }, free)
}

/// Makes the object the controller of one that has none. It holds only for the version that was seen.
pub(super) fn adopt(resource: Resource, metadata: &Metadata, owner: &ObjectRef) -> Effect {
    let reference = owner.controller_reference();
    let step = match metadata.owner_references.is_empty() {
        true => json!({"op": "add", "path": "/metadata/ownerReferences", "value": [reference]}),
        false => json!({"op": "add", "path": "/metadata/ownerReferences/-", "value": reference}),
    };
    let target = Target::with_uid(resource, metadata.key(), metadata.uid.clone());
    let target = target.at_version(metadata.resource_version.clone());
    Effect::Patch { target, subresource: None, patch: Patch::Json(json!([step])) }
}

/// Removes the owner reference: the workload runs on without the object.
pub(super) fn release(child: &Child, owner: &ObjectRef) -> Effect {
    let place = child.metadata.owner_references.iter().position(|one| one.uid == owner.uid).unwrap_or(0);
    let path = format!("/metadata/ownerReferences/{place}");
    let steps = json!([
        {"op": "test", "path": format!("{path}/uid"), "value": owner.uid},
        {"op": "remove", "path": path},
    ]);
    let target = Target::with_uid(child.kind.resource(), child.metadata.key(), child.metadata.uid.clone());
    let target = target.at_version(child.metadata.resource_version.clone());
    Effect::Patch { target, subresource: None, patch: Patch::Json(steps) }
}

/// The same for a revision.
pub(super) fn adopt_revision(one: &Revision, owner: &ObjectRef) -> Effect {
    adopt(CONTROLLER_REVISION, &one.metadata, owner)
}

/// The subset that a pod says it belongs to.
pub fn subset_of(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.text(SUBSET_NAME)
}
