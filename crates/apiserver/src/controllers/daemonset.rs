//! DaemonSets: a pod on every node that fits.

mod fit;
mod plan;
mod pods;
mod revisions;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;

use super::object::{deleting, int_or_percent, is_terminating, number, or_gone, text};
use super::pods::Pod;
use super::recorder::Involved;
use super::replicaset::next_available;
use super::{Context, Key, Outcome, claim, lock};
use crate::registry::Resource;
use crate::rest::{DeleteOptions, Preconditions};
use crate::selector::Labels;
use crate::status::Status;
use fit::Needs;
use plan::{Ended, Node, Plan, Seen, Wanted};

const COMPONENT: &str = "daemonset-controller";
const REVISION_LABEL: &str = "controller-revision-hash";
/// Most pods that one pass creates or deletes.
const BURST: usize = 250;
/// A pod that failed on a node is replaced after this time, doubled with each further one.
const FIRST_PAUSE: i64 = 1;
const LONGEST_PAUSE: i64 = 15 * 60;

/// For each set and node: how long to wait after a failed pod, and since when.
pub(super) type Pauses = BTreeMap<(String, i64, String), (i64, i64)>;

/// What matters of nodes here, by name, with the version it was read from.
pub(super) type Nodes = BTreeMap<Arc<str>, (u64, Value)>;

/// What one pass works with.
struct Pass<'c> {
    cx: &'c Context,
    sets: Arc<Resource>,
    set: Value,
    hash: String,
}

/// Brings one DaemonSet closer to what it wants.
pub(super) async fn sync(cx: &Context, key: &Key) -> Outcome {
    let sets = cx.client.resource("apps", "daemonsets")?;
    let Some(record) = or_gone(cx.client.get(&sets, &key.namespace, &key.name))? else {
        lock(&cx.daemon_pauses).retain(|(set, _, _), _| *set != format!("{}/{}", key.namespace, key.name));
        return Ok(None);
    };
    let set = record.value();
    let Ok(selector) = Labels::from_object(set.pointer("/spec/selector")) else { return Ok(None) };
    let mut pods = claim::pods(cx, &sets, &set, &selector).await?;
    if deleting(&set) {
        return Ok(None);
    }
    let revisions = revisions::settle(cx, &sets, &set).await?;
    let hash = revisions.hash.clone();
    let pass = Pass { cx, sets, set, hash };
    // A finished pod that is on its way out is as good as gone.
    pods.retain(|pod| !(pod.is_finished() && pod.record.deleting));
    let now = cx.now();
    let min_ready = number(&pass.set, "/spec/minReadySeconds").unwrap_or(0);
    let nodes = pass.nodes();
    let views: Vec<Seen> = pods.iter().map(|pod| Seen::of(pod, &pass.hash, min_ready, now)).collect();
    let wanted = Wanted::of(&pass.set, &nodes);
    let mut plan = plan::plan(&wanted, &nodes, &views);
    let again = pass.hold_back_failed(&mut plan);
    let acted = pass.act(&plan, &pods).await;
    status::write(&pass, &nodes, acted.as_ref().map_or(&[], Vec::as_slice), &pods, min_ready).await?;
    acted?;
    revisions::clean_up(cx, &pass.set, &pods, &revisions).await?;
    Ok(match (again, next_available(&pods, min_ready, now)) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    })
}

/// Whether a change of a node may change where daemons run.
pub(super) fn matters(old: Option<&Value>, new: &Value) -> bool {
    let part = |node: &Value| {
        (node.pointer("/metadata/labels").cloned(), node.pointer("/spec/taints").cloned(), deleting(node))
    };
    old.is_none_or(|old| part(old) != part(new))
}

impl Pass<'_> {
    /// All nodes by name, and whether the set's pods run there.
    fn nodes(&self) -> Vec<Node> {
        let needs = Needs::of(self.set.pointer("/spec/template/spec").unwrap_or(&Value::Null));
        let (_, records) = self.cx.client.server().store().list("/nodes", None);
        let mut read = lock(&self.cx.daemon_nodes);
        if read.len() > records.len() {
            let there: BTreeSet<&str> = records.iter().map(|record| &*record.name).collect();
            read.retain(|name, _| there.contains(&**name));
        }
        let fits = records.iter().map(|record| {
            let fresh = read.get(&record.name).is_some_and(|(version, _)| *version == record.rv);
            if !fresh {
                read.insert(record.name.clone(), (record.rv, fit::part_of(&record.value())));
            }
            let fit = read.get(&record.name).map_or(fit::NOWHERE, |(_, node)| needs.fit(node));
            Node { name: record.name.to_string(), starts: fit.starts, stays: fit.stays }
        });
        fits.collect()
    }

    /// Failed pods of a node are replaced less and less often. Returns when the next one is due.
    fn hold_back_failed(&self, plan: &mut Plan) -> Option<Duration> {
        let set = format!("{}/{}", text(&self.set, "/metadata/namespace"), text(&self.set, "/metadata/name"));
        let generation = number(&self.set, "/metadata/generation").unwrap_or(0);
        let now = self.cx.now().as_second();
        let mut pauses = lock(&self.cx.daemon_pauses);
        let mut next: Option<i64> = None;
        plan.ended.retain(|ended| {
            if !ended.failed {
                return true;
            }
            let key = (set.clone(), generation, ended.node.clone());
            let (pause, since) = pauses.get(&key).copied().unwrap_or((0, 0));
            let left = since + pause - now;
            if left > 0 {
                next = Some(next.map_or(left, |known| known.min(left)));
                return false;
            }
            // Nothing failed for long enough: it begins anew.
            let forgotten = now - since > 2 * LONGEST_PAUSE;
            let pause = if pause == 0 || forgotten { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            pauses.insert(key, (pause, now));
            true
        });
        next.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs)
    }

    /// Carries the plan out; returns the pods that were made.
    async fn act(&self, plan: &Plan, known: &[Arc<Pod>]) -> Result<Vec<Arc<Pod>>, Status> {
        let involved = Involved::of(&self.sets, &self.set);
        let namespace = text(&self.set, "/metadata/namespace");
        for Ended { name, node, failed } in &plan.ended {
            let (kind, reason, message) = if *failed {
                let message =
                    format!("Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it");
                ("Warning", "FailedDaemonPod", message)
            } else {
                let message = format!(
                    "Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it"
                );
                ("Normal", "SucceededDaemonPod", message)
            };
            self.cx.record(COMPONENT, &involved, kind, reason, &message).await;
        }
        let made = self.create(&involved, namespace, &plan.create).await;
        let doomed = plan.ended.iter().map(|ended| &ended.name).chain(&plan.delete);
        let doomed: Vec<&Arc<Pod>> = doomed
            .filter_map(|name| known.iter().find(|pod| &*pod.record.name == name))
            .take(BURST)
            .collect();
        self.delete(&involved, &doomed).await?;
        made
    }

    /// Creates pods in batches that double while all goes well.
    async fn create(
        &self,
        involved: &Involved,
        namespace: &str,
        nodes: &[String],
    ) -> Result<Vec<Arc<Pod>>, Status> {
        let resource = self.cx.client.resource("", "pods")?;
        let mut made = Vec::new();
        let mut left = nodes.get(..nodes.len().min(BURST)).unwrap_or(nodes);
        let mut batch = 1;
        while !left.is_empty() {
            let (now, rest) = left.split_at_checked(batch.min(left.len())).unwrap_or((left, &[]));
            left = rest;
            batch *= 2;
            let pods = now.iter().map(|node| pods::build(&self.sets, &self.set, &self.hash, node));
            let results = join_all(pods.map(|pod| self.cx.client.create(&resource, namespace, pod))).await;
            let mut failure = None;
            for result in results {
                match result {
                    Ok(record) => {
                        let message = format!("Created pod: {}", record.name);
                        self.cx.record(COMPONENT, involved, "Normal", "SuccessfulCreate", &message).await;
                        made.push(Arc::new(Pod::read(&record)));
                    }
                    Err(status) if is_terminating(&status) => return Ok(made),
                    Err(status) => {
                        let message = format!("Error creating: {}", status.message);
                        self.cx.record(COMPONENT, involved, "Warning", "FailedCreate", &message).await;
                        failure = Some(status);
                    }
                }
            }
            if let Some(status) = failure {
                return Err(status);
            }
        }
        Ok(made)
    }

    async fn delete(&self, involved: &Involved, doomed: &[&Arc<Pod>]) -> Result<(), Status> {
        let resource = self.cx.client.resource("", "pods")?;
        let mut failure = None;
        for pod in doomed {
            let record = &pod.record;
            let preconditions = Preconditions { uid: Some(record.uid.to_string()), resource_version: None };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            match or_gone(self.cx.client.delete(&resource, &record.namespace, &record.name, &options).await) {
                Ok(Some(_)) => {
                    let message = format!("Deleted pod: {}", record.name);
                    self.cx.record(COMPONENT, involved, "Normal", "SuccessfulDelete", &message).await;
                }
                Ok(None) => {}
                Err(status) => {
                    let message = format!("Error deleting: {}", status.message);
                    self.cx.record(COMPONENT, involved, "Warning", "FailedDelete", &message).await;
                    failure = Some(status);
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

/// How many pods an update may take away, and how many more it may make, of so many wanted ones.
fn limits(set: &Value, desired: i64) -> (i64, i64) {
    if text(set, "/spec/updateStrategy/type") != "RollingUpdate" {
        return (0, 0);
    }
    let part = |name: &str| {
        let value = set.pointer(&format!("/spec/updateStrategy/rollingUpdate/{name}"));
        int_or_percent(value, desired, true).unwrap_or(0)
    };
    let (unavailable, surge) = (part("maxUnavailable"), part("maxSurge"));
    // Both zero, as percentages of few nodes may be: one at a time.
    if unavailable == 0 && surge == 0 { (1, 0) } else { (unavailable, surge) }
}
