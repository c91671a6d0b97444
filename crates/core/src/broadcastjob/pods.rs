//! The pods of a job and the nodes that fit: which pod stands for which node, and how far each is.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use kruise_api::labels::{BROADCASTJOB_CONTROLLER_UID, BROADCASTJOB_NAME};

use super::{BROADCAST_JOB, Desired, Observed};
use crate::{
    node::Node,
    node_fit::{Misfit, Needs},
    object::ObjectRef,
    pod::Pod,
    text::Text,
};

/// How far a pod is. Each pod is in one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bucket {
    Succeeded,
    Failed,
    /// It restarted too often: failed, although its containers may still run.
    RestartedTooOften,
    Active,
    /// It is being deleted and has not ended.
    Ignored,
}

impl Bucket {
    fn of(pod: &Pod, restart_limit: i64) -> Self {
        let statuses = &pod.status;
        let all = statuses.init_container_statuses.iter().chain(&statuses.container_statuses);
        let restarts: i64 = all.map(|one| i64::from(one.restart_count)).sum();
        match statuses.phase.as_str() {
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ if pod.metadata.is_deleting() => Self::Ignored,
            _ if pod.spec.restart_policy == "OnFailure" && restarts > restart_limit => {
                Self::RestartedTooOften
            }
            _ => Self::Active,
        }
    }

    /// Whether nothing more is expected of the pod.
    pub(super) fn is_over(self) -> bool {
        self != Self::Active
    }

    /// Whether the kubelet has ended it.
    fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A pod of the job.
#[derive(Clone, Debug)]
pub(super) struct One<'a> {
    pub(super) pod: &'a Pod,
    pub(super) bucket: Bucket,
}

/// How many pods there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) active: usize,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    /// Those of the failed ones that nobody deletes: a kubelet reports most pods that it ends for a deletion as failed.
    pub(super) failed_alone: usize,
    pub(super) ignored: usize,
}

/// How many nodes do not fit, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Misfits {
    pub(super) labels: usize,
    pub(super) taints: usize,
    pub(super) size: usize,
}

/// The pods and nodes of a job, sorted out.
#[derive(Debug)]
pub(super) struct Standing<'a> {
    /// All pods, by name.
    pub(super) pods: Vec<One<'a>>,
    /// The nodes on which a pod should run, by name, each with the pod that stands for it.
    pub(super) nodes: Vec<(&'a Node, Option<One<'a>>)>,
    /// Pods that have not ended on nodes that do not fit any more, or that are gone.
    pub(super) misplaced: Vec<One<'a>>,
    /// Pods beside the one that stands for their node.
    pub(super) duplicates: Vec<(&'a Pod, &'a Text)>,
    pub(super) misfits: Misfits,
    pub(super) all_nodes: usize,
    /// Whether there is a pod of which not even the node can be read: it may be on any.
    pub(super) is_blind: bool,
}

impl<'a> Standing<'a> {
    pub(super) fn of(seen: &'a Observed, desired: &Desired, job: &ObjectRef) -> Self {
        let is_ours = |pod: &&Arc<Pod>| is_of(pod, job);
        let mut pods: Vec<One<'_>> = seen
            .pods
            .iter()
            .filter(is_ours)
            .map(|pod| One { pod, bucket: Bucket::of(pod, desired.restart_limit) })
            .collect();
        pods.sort_by(|left, right| left.pod.metadata.name.cmp(&right.pod.metadata.name));
        let mut duplicates = Vec::new();
        let mut by_node: BTreeMap<&Text, One<'_>> = BTreeMap::new();
        for one in pods.iter().filter(|one| !one.pod.node().is_empty()) {
            let node = one.pod.node();
            match by_node.get(node) {
                Some(known) if precedence(known, one) == Ordering::Less => duplicates.push((one.pod, node)),
                Some(known) => {
                    duplicates.push((known.pod, node));
                    by_node.insert(node, one.clone());
                }
                None => drop(by_node.insert(node, one.clone())),
            }
        }
        duplicates.sort_by(|(left, _), (right, _)| left.metadata.name.cmp(&right.metadata.name));
        let mut all: Vec<&Node> = seen.nodes.iter().map(AsRef::as_ref).collect();
        all.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
        let template = Needs::of_template(&seen.job.spec.template.0);
        let mut demands = Demands::default();
        let (mut nodes, mut misfits) = (Vec::new(), Misfits::default());
        for node in &all {
            let one = by_node.get(&node.metadata.name);
            let misfit = match one {
                Some(one) => demands.misfit(one.pod, node),
                None => template.misfit(node),
            };
            match misfit {
                None => nodes.push((*node, one.cloned())),
                Some(Misfit::OtherNode | Misfit::Labels) => misfits.labels += 1,
                Some(Misfit::Taint) => misfits.taints += 1,
                Some(Misfit::Size) => misfits.size += 1,
            }
        }
        let find = |name: &Text| {
            all.binary_search_by(|node| node.metadata.name.cmp(name)).ok().and_then(|at| all.get(at))
        };
        let mut misplaced = Vec::new();
        for one in &pods {
            let One { pod, bucket } = one;
            let is_left_alone = bucket.has_ended() || pod.metadata.is_deleting() || pod.metadata.unreadable;
            if is_left_alone || pod.node().is_empty() {
                continue;
            }
            let has_place = find(pod.node()).is_some_and(|node| demands.misfit(pod, node).is_none());
            if !has_place {
                misplaced.push(one.clone());
            }
        }
        let is_blind = pods.iter().any(|one| one.pod.metadata.unreadable && one.pod.node().is_empty());
        Self { pods, nodes, misplaced, duplicates, misfits, all_nodes: all.len(), is_blind }
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for one in &self.pods {
            match one.bucket {
                Bucket::Succeeded => counts.succeeded += 1,
                Bucket::Failed | Bucket::RestartedTooOften => {
                    counts.failed += 1;
                    counts.failed_alone += usize::from(!one.pod.metadata.is_deleting());
                }
                Bucket::Active => counts.active += 1,
                Bucket::Ignored => counts.ignored += 1,
            }
        }
        counts
    }

    /// The nodes that wait for a pod, by name.
    pub(super) fn without_pod(&self) -> impl Iterator<Item = &'a Node> {
        self.nodes.iter().filter(|(_, pod)| pod.is_none()).map(|(node, _)| *node)
    }

    /// Whether there is a node for the job, and a pod that is over on each.
    pub(super) fn is_complete(&self) -> bool {
        !self.nodes.is_empty()
            && self.nodes.iter().all(|(_, pod)| pod.as_ref().is_some_and(|one| one.bucket.is_over()))
    }
}

/// Whether a pod is one of the job's. Its reference may name another version of the kind.
fn is_of(pod: &Pod, job: &ObjectRef) -> bool {
    let labels = &pod.metadata.labels;
    let is_labelled = labels.text(BROADCASTJOB_NAME) == Some(job.key.name.as_str())
        && labels.text(BROADCASTJOB_CONTROLLER_UID) == Some(job.uid.as_str());
    let is_owned = |pod: &Pod| {
        let owner = pod.metadata.controller();
        owner.is_some_and(|owner| {
            owner.uid == job.uid && owner.kind == BROADCAST_JOB.kind && owner.group() == BROADCAST_JOB.group
        })
    };
    pod.metadata.namespace == job.key.namespace && is_labelled && is_owned(pod)
}

/// Which of two pods of one node comes first and stands for it.
fn precedence(left: &One<'_>, right: &One<'_>) -> Ordering {
    let rank = |one: &One<'_>| match (one.bucket, one.pod.status.phase.as_str()) {
        (Bucket::Succeeded, _) => 0,
        (Bucket::Active, "Running") => 1,
        (Bucket::Active, _) => 2,
        (Bucket::Ignored, _) => 3,
        (Bucket::Failed | Bucket::RestartedTooOften, _) => 4,
    };
    let age = |one: &One<'_>| one.pod.metadata.creation_timestamp;
    rank(left)
        .cmp(&rank(right))
        .then_with(|| age(left).cmp(&age(right)))
        .then_with(|| left.pod.metadata.name.cmp(&right.pod.metadata.name))
}

/// What pods demand of nodes, read once for all pods that demand the same.
#[derive(Default)]
struct Demands<'a> {
    known: Vec<(&'a Pod, Needs)>,
}

impl<'a> Demands<'a> {
    /// Why a pod does not fit the node that it is on or bound to.
    fn misfit(&mut self, pod: &'a Pod, node: &Node) -> Option<Misfit> {
        let known = self.known.iter().position(|(other, _)| demands_same(other, pod));
        let at = known.unwrap_or_else(|| {
            self.known.push((pod, Needs::of_pod(pod).anywhere()));
            self.known.len() - 1
        });
        self.known.get(at).and_then(|(_, needs)| needs.misfit(node))
    }
}

fn demands_same(left: &Pod, right: &Pod) -> bool {
    let (left, right) = (&left.spec, &right.spec);
    let requests = |containers: &[crate::pod::Container], other: &[crate::pod::Container]| {
        containers.len() == other.len()
            && containers.iter().zip(other).all(|(one, other)| {
                one.resources.requests == other.resources.requests
                    && one.restart_policy == other.restart_policy
            })
    };
    left.tolerations == right.tolerations
        && left.affinity.terms == right.affinity.terms
        && left.node_selector == right.node_selector
        && requests(&left.containers, &right.containers)
        && requests(&left.init_containers, &right.init_containers)
}
