//! Which pods of a DaemonSet come and go next.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::super::object::text;
use super::super::pods::{Phase, Pod};
use super::pods::target;
use super::{REVISION_LABEL, limits};

/// A node: whether pods start there, and whether those that are there may stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) starts: bool,
    pub(super) stays: bool,
}

/// One pod as the plan sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) name: String,
    /// The node it runs on or was made for; empty when nobody knows.
    pub(super) node: String,
    pub(super) placed: bool,
    pub(super) updated: bool,
    pub(super) phase: Phase,
    pub(super) deleting: bool,
    pub(super) ready: bool,
    pub(super) available: bool,
    pub(super) created: Timestamp,
}

impl Seen {
    pub(super) fn of(pod: &Pod, hash: &str, min_ready: i64, now: Timestamp) -> Self {
        let placed = !pod.node.is_empty();
        let node = if placed {
            pod.node.to_string()
        } else {
            target(&pod.record.value()).unwrap_or_default().to_owned()
        };
        Self {
            name: pod.record.name.to_string(),
            node,
            placed,
            updated: pod.record.label(REVISION_LABEL) == Some(hash),
            phase: pod.phase,
            deleting: pod.record.deleting,
            ready: pod.is_ready(),
            available: pod.is_available(min_ready, now),
            created: pod.created,
        }
    }

    /// The oldest first; pods that have a node before pods that wait for one.
    pub(super) fn order(&self) -> (bool, Timestamp, &str) {
        (!self.placed, self.created, &self.name)
    }
}

/// What the set wants.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    rolling: bool,
    desired: i64,
    max_unavailable: i64,
    max_surge: i64,
    /// Whether a node may have two pods at all.
    surges: bool,
}

impl Wanted {
    pub(super) fn of(set: &Value, nodes: &[Node]) -> Self {
        let desired = i64::try_from(nodes.iter().filter(|node| node.starts).count()).unwrap_or(0);
        let (max_unavailable, max_surge) = limits(set, desired);
        Self {
            rolling: text(set, "/spec/updateStrategy/type") == "RollingUpdate",
            desired,
            max_unavailable,
            max_surge,
            surges: limits(set, 1).1 > 0,
        }
    }
}

/// A pod that ended and makes place for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) name: String,
    pub(super) node: String,
    pub(super) failed: bool,
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Nodes that get a pod.
    pub(super) create: Vec<String>,
    /// Pods that go.
    pub(super) delete: Vec<String>,
    /// Pods that go because they ended.
    pub(super) ended: Vec<Ended>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty() && self.ended.is_empty()
    }
}

/// First every node gets what it should have; only when all do, an update goes on.
pub(super) fn plan(wanted: &Wanted, nodes: &[Node], pods: &[Seen]) -> Plan {
    let mut by_node: BTreeMap<&str, Vec<&Seen>> = BTreeMap::new();
    for pod in pods {
        by_node.entry(pod.node.as_str()).or_default().push(pod);
    }
    for list in by_node.values_mut() {
        list.sort_by(|a, b| a.order().cmp(&b.order()));
    }
    let mut plan = Plan::default();
    for node in nodes {
        settle(wanted, node, by_node.get(node.name.as_str()).map_or(&[], Vec::as_slice), &mut plan);
    }
    // A pod for a node that is gone would wait for ever.
    let known: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let lost = pods.iter().filter(|pod| !pod.placed && !pod.deleting && !pod.node.is_empty());
    plan.delete.extend(lost.filter(|pod| !known.contains(pod.node.as_str())).map(|pod| pod.name.clone()));
    if !plan.is_empty() || !wanted.rolling {
        return plan;
    }
    for node in nodes.iter().filter(|node| node.starts) {
        by_node.entry(&node.name).or_default();
    }
    if wanted.max_surge == 0 { replace(wanted, &by_node) } else { surge(wanted, nodes, &by_node) }
}

/// One node gets a pod, or loses what it has too much.
fn settle(wanted: &Wanted, node: &Node, pods: &[&Seen], plan: &mut Plan) {
    if pods.is_empty() {
        if node.starts {
            plan.create.push(node.name.clone());
        }
        return;
    }
    let staying = pods.iter().filter(|pod| !pod.deleting);
    if !node.stays {
        plan.delete.extend(staying.map(|pod| pod.name.clone()));
        return;
    }
    let mut running: Vec<&Seen> = Vec::new();
    for pod in staying {
        match pod.phase {
            Phase::Failed | Phase::Succeeded => plan.ended.push(Ended {
                name: pod.name.clone(),
                node: node.name.clone(),
                failed: pod.phase == Phase::Failed,
            }),
            _ => running.push(pod),
        }
    }
    if !wanted.surges {
        plan.delete.extend(running.iter().skip(1).map(|pod| pod.name.clone()));
        return;
    }
    if running.is_empty() && node.starts {
        plan.create.push(node.name.clone());
    }
    if running.len() < 2 {
        return;
    }
    // One old and one new pod may stand side by side, as long as the old one serves and the new one does not yet.
    let first = |updated: bool| running.iter().find(|pod| pod.updated == updated).copied();
    let (new, old) = (first(true), first(false));
    let surplus = running.iter().filter(|pod| Some(**pod) != new && Some(**pod) != old);
    plan.delete.extend(surplus.map(|pod| pod.name.clone()));
    if let (Some(new), Some(old)) = (new, old)
        && (!old.ready || new.available)
    {
        plan.delete.push(old.name.clone());
    }
}

type ByNode<'s> = BTreeMap<&'s str, Vec<&'s Seen>>;

/// The new and the old pod of a node; `None` where there are more.
fn pair<'s>(pods: &[&'s Seen]) -> Option<(Option<&'s Seen>, Option<&'s Seen>)> {
    let of = |updated: bool| -> Result<Option<&'s Seen>, ()> {
        let mut found = pods.iter().filter(|pod| !pod.deleting && pod.updated == updated);
        let first = found.next().copied();
        if found.next().is_some() { Err(()) } else { Ok(first) }
    };
    Some((of(true).ok()?, of(false).ok()?))
}

/// Old pods go within the limit; those that serve nobody go anyway.
fn replace(wanted: &Wanted, by_node: &ByNode<'_>) -> Plan {
    let mut unavailable = 0;
    let (mut broken, mut candidates) = (Vec::new(), Vec::new());
    for pods in by_node.values() {
        match pair(pods) {
            Some((Some(new), None)) => unavailable += i64::from(!new.available),
            Some((None, Some(old))) if !old.available => {
                broken.push(old.name.clone());
                unavailable += 1;
            }
            Some((None, Some(old))) => candidates.push(old.name.clone()),
            _ => unavailable += 1,
        }
    }
    let budget = usize::try_from(wanted.max_unavailable - unavailable).unwrap_or(0);
    broken.extend(candidates.into_iter().take(budget));
    Plan { delete: broken, ..Plan::default() }
}

/// New pods come beside old ones within the limit; an old one goes when its successor serves.
fn surge(wanted: &Wanted, nodes: &[Node], by_node: &ByNode<'_>) -> Plan {
    let fitting: BTreeSet<&str> =
        nodes.iter().filter(|node| node.starts).map(|node| node.name.as_str()).collect();
    let (mut surging, mut available) = (0, 0);
    let (mut delete, mut unwanted) = (Vec::new(), Vec::new());
    let (mut at_once, mut candidates) = (Vec::new(), Vec::new());
    for (name, pods) in by_node {
        let Some((new, old)) = pair(pods) else {
            surging += 1;
            continue;
        };
        available += i64::from(old.or(new).is_some_and(|pod| pod.available));
        let Some(old) = old else { continue };
        let starts = fitting.contains(name);
        match new {
            Some(new) if new.available => delete.push(old.name.clone()),
            Some(_) => surging += 1,
            None if !old.available && !starts => delete.push(old.name.clone()),
            None if !old.available => at_once.push((*name).to_owned()),
            None if !starts => unwanted.push(old.name.clone()),
            None => candidates.push((*name).to_owned()),
        }
    }
    let spare = usize::try_from(available - wanted.desired).unwrap_or(0);
    delete.extend(unwanted.into_iter().take(spare));
    let budget = usize::try_from(wanted.max_surge - surging).unwrap_or(0);
    at_once.extend(candidates.into_iter().take(budget));
    Plan { create: at_once, delete, ended: Vec::new() }
}

#[cfg(test)]
mod tests;
