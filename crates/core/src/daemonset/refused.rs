//! What the server refused last time: everything else is tried before it.

use std::collections::BTreeSet;

use super::{Observed, Purpose};
use crate::{pod::Pod, random_id, text::Text};

/// What the server refused last time. All of it may be lost: then it is tried once more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Nodes whose new pod was refused.
    nodes: BTreeSet<Text>,
    /// Pods whose deletion was refused, or which a budget does not let go.
    pods: BTreeSet<Text>,
}

impl Refused {
    /// Notes what the server said of a step. True if it is news that a node cannot get its pod.
    pub fn note(&mut self, purpose: &Purpose, is_taken: bool) -> bool {
        let (known, name) = match purpose {
            Purpose::CreatePod { node, .. } => (&mut self.nodes, node),
            Purpose::DeletePod(pod) | Purpose::DeleteEnded { pod, .. } | Purpose::HoldPod(pod) => {
                (&mut self.pods, pod)
            }
            // What becomes of refused updates in place is known elsewhere.
            Purpose::UpdateInPlace { pod, .. } | Purpose::PrepareInPlace { pod, .. } if is_taken => {
                (&mut self.pods, pod)
            }
            _ => return false,
        };
        if is_taken {
            known.remove(name);
            return false;
        }
        known.insert(name.clone()) && matches!(purpose, Purpose::CreatePod { .. })
    }

    /// Notes that a budget does not let a pod go.
    pub fn hold(&mut self, purpose: &Purpose) {
        if let Purpose::DeletePod(pod)
        | Purpose::DeleteEnded { pod, .. }
        | Purpose::HoldPod(pod)
        | Purpose::UpdateInPlace { pod, .. }
        | Purpose::PrepareInPlace { pod, .. } = purpose
        {
            self.pods.insert(pod.clone());
        }
    }

    /// Forgets nodes and pods that are gone.
    pub fn keep(&mut self, seen: &Observed) {
        if !self.nodes.is_empty() {
            let there: BTreeSet<&Text> = seen.nodes.iter().map(|node| &node.metadata.name).collect();
            self.nodes.retain(|name| there.contains(name));
        }
        if !self.pods.is_empty() {
            let there: BTreeSet<&Text> = seen.pods.iter().map(|pod| &pod.metadata.name).collect();
            self.pods.retain(|name| there.contains(name));
        }
    }

    /// How many nodes cannot get their pod.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn has_node(&self, node: &str) -> bool {
        self.nodes.contains(node)
    }

    pub(super) fn has_pod(&self, pod: &Pod) -> bool {
        self.pods.contains(&pod.metadata.name)
    }

    /// Nodes in the order in which they are tried. The first failure ends a series of new pods: after one, the series begins
    /// at another place, so that refused neighbours do not keep all others waiting.
    pub(super) fn order<'n>(&self, nodes: &[&'n str], set: &str) -> Vec<&'n str> {
        let (refused, mut others): (Vec<&str>, Vec<&str>) =
            nodes.iter().partition(|node| self.has_node(node));
        if !self.nodes.is_empty() && !others.is_empty() {
            let tries = u64::try_from(self.nodes.len()).unwrap_or(u64::MAX);
            let place = random_id::mix(tries, set) % u64::try_from(others.len()).unwrap_or(1);
            others.rotate_left(usize::try_from(place).unwrap_or(0));
        }
        others.extend(refused);
        others
    }
}
