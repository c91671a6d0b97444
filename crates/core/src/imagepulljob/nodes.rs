//! Which nodes a job is about, and in which order they pull.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::{imagepulljob::v1beta1::ImagePullJob, selector::Matcher};

use super::Error;
use crate::{
    hash,
    nodeimage::NodeImage,
    pod::Pod,
    text::Text,
    update_order::{Strategy, strategic_order},
};

/// How a job chooses its nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// All of them.
    All,
    /// By name, in this order. Those that are not there are left out.
    Names(Vec<String>),
    /// By their labels.
    Labels(Matcher),
    /// By the labels of the pods that run there, in the namespace of the job.
    Pods(Matcher),
}

/// In which order the pods of a workload are updated: their nodes pull in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PodOrder {
    /// By name: nobody says anything else.
    #[default]
    Name,
    /// By the highest number at the end of the name first, as StatefulSets do.
    Ordinal,
    /// As a CloneSet wants it.
    Strategy(Strategy),
}

impl Selection {
    /// The selection of a job.
    pub fn of(job: &ImagePullJob) -> Result<Self, Error> {
        let template = &job.spec.template;
        if let Some(pods) = &template.pod_selector {
            return Ok(Self::Pods(pods.matcher()?));
        }
        Ok(match &template.selector {
            None => Self::All,
            Some(selector) if !selector.names.is_empty() => Self::Names(selector.names.clone()),
            Some(selector) if selector.labels.is_empty() => Self::All,
            Some(selector) => Self::Labels(selector.labels.matcher()?),
        })
    }

    /// The nodes of a job that does not name them, out of all. Each job begins at another one: all jobs would otherwise
    /// pull on the first node at the same time, and cross each other's writes.
    pub fn choose(&self, job: &str, all: Vec<Arc<NodeImage>>) -> Vec<Arc<NodeImage>> {
        let mut chosen: Vec<Arc<NodeImage>> = all.into_iter().filter(|node| self.selects(node)).collect();
        if let Some(start) =
            usize::try_from(hash::fnv1a(job.bytes())).ok().and_then(|hash| hash.checked_rem(chosen.len()))
        {
            chosen.rotate_left(start);
        }
        chosen
    }

    /// The nodes of a job that [names](Self::Names) them, or whose pods do.
    pub fn named<'n>(
        names: impl IntoIterator<Item = &'n str>,
        node: impl Fn(&str) -> Option<Arc<NodeImage>>,
    ) -> Vec<Arc<NodeImage>> {
        let mut seen = BTreeSet::new();
        let names = names.into_iter().filter(|name| seen.insert(*name));
        names.filter_map(|name| node(name).filter(|node| !node.metadata.is_deleting())).collect()
    }

    /// Whether a node that is there is chosen. For pods that is not known: their nodes may be any.
    fn selects(&self, node: &NodeImage) -> bool {
        let labels = &node.metadata.labels;
        !node.metadata.is_deleting()
            && match self {
                Self::All | Self::Pods(_) => true,
                Self::Names(names) => names.iter().any(|name| *name == *node.metadata.name),
                Self::Labels(matcher) => matcher.accepts(|key| labels.text(key)),
            }
    }

    /// Whether the nodes of the job may change by a change of a NodeImage.
    pub fn is_concerned(&self, old: Option<&NodeImage>, new: Option<&NodeImage>) -> bool {
        let selects = |node: Option<&NodeImage>| node.is_some_and(|node| self.selects(node));
        selects(old) != selects(new)
    }

    /// Whether the nodes of the job may change by a change of a pod of its namespace.
    pub fn is_moved(&self, old: Option<&Pod>, new: Option<&Pod>) -> bool {
        let node = |pod: Option<&Pod>| pod.and_then(|pod| self.node_of(pod)).cloned();
        node(old) != node(new)
    }

    /// The node that is chosen by a pod.
    fn node_of<'p>(&self, pod: &'p Pod) -> Option<&'p Text> {
        let Self::Pods(matcher) = self else { return None };
        let is_active =
            !pod.metadata.is_deleting() && !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed");
        let node = &pod.spec.node_name;
        let is_chosen = is_active && !node.is_empty() && matcher.accepts(|key| pod.metadata.labels.text(key));
        is_chosen.then_some(node)
    }
}

/// The names of the nodes of pods, in the order in which the pods are updated. `pods` are those of the namespace.
pub fn nodes_of_pods(selection: &Selection, pods: &[Arc<Pod>], order: &PodOrder) -> Vec<Text> {
    let mut chosen: Vec<&Pod> =
        pods.iter().map(AsRef::as_ref).filter(|pod| selection.node_of(pod).is_some()).collect();
    chosen.sort_by(|left, right| left.metadata.name.cmp(&right.metadata.name));
    match order {
        PodOrder::Name => {}
        PodOrder::Ordinal => chosen.sort_by_key(|pod| std::cmp::Reverse(ordinal(pod))),
        PodOrder::Strategy(strategy) => chosen = strategic_order(&chosen, &chosen, strategy),
    }
    let mut places = BTreeMap::new();
    for (place, pod) in chosen.iter().enumerate() {
        places.entry(&pod.spec.node_name).or_insert(place);
    }
    let mut nodes: Vec<(usize, Text)> =
        places.into_iter().map(|(node, place)| (place, node.clone())).collect();
    nodes.sort();
    nodes.into_iter().map(|(_, node)| node).collect()
}

fn ordinal(pod: &Pod) -> Option<u32> {
    pod.metadata.name.rsplit_once('-').and_then(|(_, number)| number.parse().ok())
}
