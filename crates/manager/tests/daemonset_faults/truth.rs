//! What really happened, from the server's own history, and what must never happen.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kruise_sim::{Sim, history::Recorder};
use serde_json::Value;

#[derive(Default)]
pub(crate) struct Truth {
    /// How long a plan may rest on what was true before: lagging reads, slow calls and their retries together.
    memory: SignedDuration,
    pods: BTreeMap<String, Value>,
    nodes: BTreeMap<String, Value>,
    /// The image of each hash of a revision.
    revisions: BTreeMap<String, String>,
    set: Option<Value>,
    /// When others took a pod down, or did something to a node.
    touched: BTreeMap<String, Timestamp>,
    stopped: BTreeSet<String>,
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn is_active(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null()
        && !["Failed", "Succeeded"].contains(&text(pod, "/status/phase"))
}

fn condition(pod: &Value, kind: &str) -> Option<bool> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == kind).map(|one| one["status"] == "True")
}

fn serves(pod: &Value) -> bool {
    is_active(pod)
        && condition(pod, "Ready") == Some(true)
        && condition(pod, "InPlaceUpdateReady") != Some(false)
}

fn node_of(pod: &Value) -> &str {
    let terms =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    match text(pod, "/spec/nodeName") {
        "" => text(pod, &format!("{terms}/0/matchFields/0/values/0")),
        node => node,
    }
}

fn image(object: &Value) -> &str {
    text(object, "/spec/containers/0/image")
}

impl Truth {
    /// Those that wait for their deletion are not counted: their node gets others.
    fn staying_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Value> {
        let state = "/metadata/labels/lifecycle.apps.kruise.io~1state";
        self.active_on(node).filter(move |pod| text(pod, state) != "PreparingDelete")
    }

    fn active_on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Value> {
        self.pods.values().filter(move |pod| node_of(pod) == node && is_active(pod))
    }

    pub(crate) fn new(memory: SignedDuration) -> Self {
        Self { memory, ..Self::default() }
    }

    /// Someone else takes a pod down, which the limits do not speak of.
    pub(crate) fn others_take_down(&mut self, sim: &Sim, pod: &str) {
        if let Some(pod) = self.pods.get(pod) {
            self.touched.insert(node_of(pod).to_owned(), sim.clock().now());
        }
    }

    /// Someone does something to a node: what becomes of its pods is not the doing of the update.
    pub(crate) fn node_is_touched(&mut self, sim: &Sim, node: &str) {
        self.touched.insert(node.to_owned(), sim.clock().now());
    }

    /// These nodes have stopped.
    pub(crate) fn nodes_are_down(&mut self, sim: &Sim, nodes: &[&'static str]) {
        let now: BTreeSet<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        for node in now.symmetric_difference(&self.stopped).cloned().collect::<Vec<_>>() {
            self.touched.insert(node, sim.clock().now());
        }
        self.stopped = now;
    }

    /// Reads on, and checks every change.
    pub(crate) fn look(&mut self, history: &mut Recorder, sim: &Sim) -> Result<(), String> {
        let now = sim.clock().now();
        for (table, event) in history.take() {
            let object: Value = serde_json::from_slice(&event.new.json()).unwrap();
            let gone = event.kind.as_str() == "DELETED";
            let name = text(&object, "/metadata/name").to_owned();
            match table.as_ref() {
                "apps.kruise.io/daemonsets" => self.set = (!gone).then_some(object),
                "apps/controllerrevisions" => {
                    let hash = object["metadata"]["labels"]["controller-revision-hash"].as_str();
                    let image = text(&object, "/data/spec/template/spec/containers/0/image");
                    self.revisions.insert(hash.unwrap_or_default().to_owned(), image.to_owned());
                }
                "/nodes" => {
                    let meaning = |node: &Value| (node["spec"].clone(), condition(node, "Ready"));
                    let before = if gone {
                        self.nodes.remove(&name)
                    } else {
                        self.nodes.insert(name.clone(), object.clone())
                    };
                    if gone || before.is_none_or(|before| meaning(&before) != meaning(&object)) {
                        self.touched.insert(name, now);
                    }
                }
                "/pods" => self.pod_changed(name, object, gone, now)?,
                _ => {}
            }
        }
        assert!(!history.lost_events());
        Ok(())
    }

    /// Nodes of which nobody but the controller decides whether a pod serves there. For those that were touched a while ago
    /// a plan may rest on what was before.
    fn is_calm(&self, node: &str, now: Timestamp) -> bool {
        let touched = self.touched.get(node).is_some_and(|at| now.duration_since(*at) < self.memory);
        let is_fit = self.nodes.get(node).is_some_and(|node| {
            node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
                && condition(node, "Ready") == Some(true)
        });
        is_fit && !touched && !self.stopped.contains(node)
    }

    /// Whether a plan may make a pod on a node. For one that was touched a while ago it may rest on what was before.
    fn may_want(&self, node: &str, now: Timestamp) -> bool {
        let is_fresh = self.touched.get(node).is_some_and(|at| now.duration_since(*at) < self.memory);
        let taints = |node: &Value| node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let is_free =
            self.nodes.get(node).is_none_or(|node| taints(node).iter().all(|one| one["key"] != "test"));
        is_fresh || is_free
    }

    fn pod_changed(&mut self, name: String, pod: Value, gone: bool, now: Timestamp) -> Result<(), String> {
        let before = self.pods.remove(&name);
        let node = node_of(&pod).to_owned();
        let went = before.as_ref().is_some_and(serves) && (gone || !serves(&pod));
        let by_hand =
            went && (gone || !is_active(&pod) || condition(&pod, "InPlaceUpdateReady") == Some(false));
        if let Some(before) = before.as_ref().filter(|_| !gone) {
            for path in ["/metadata/uid", "/spec/nodeName", "/status/podIP"] {
                let (old, new) = (text(before, path), text(&pod, path));
                if !old.is_empty() && old != new && is_active(&pod) {
                    return Err(format!("{now}: pod {name} changed {path} from {old} to {new}"));
                }
            }
        }
        let is_new = before.is_none() && !gone;
        if is_new && !self.may_want(&node, now) {
            return Err(format!("{now}: pod {name} is made on {node}, which does not want it"));
        }
        if !gone {
            let hash = pod["metadata"]["labels"]["controller-revision-hash"].as_str().unwrap_or_default();
            if self.revisions.get(hash).is_some_and(|known| known != image(&pod)) {
                return Err(format!("{now}: pod {name} has {} and says {hash}", image(&pod)));
            }
            self.pods.insert(name.clone(), pod);
        }
        let Some(set) = &self.set else { return Ok(()) };
        let rolling = &set["spec"]["updateStrategy"]["rollingUpdate"];
        let number = |field: &str| usize::try_from(rolling[field].as_u64().unwrap_or(0)).unwrap();
        if is_new
            && self.is_calm(&node, now)
            && self.staying_on(&node).count() > 1 + usize::from(number("maxSurge") > 0)
        {
            let there: Vec<&str> = self.staying_on(&node).map(|pod| text(pod, "/metadata/name")).collect();
            return Err(format!("{now}: pod {name} is one of {there:?} on {node}"));
        }
        if by_hand && self.is_calm(&node, now) {
            let is_down = |node: &&String| self.is_calm(node, now) && !self.active_on(node).any(serves);
            let down = self.nodes.keys().filter(is_down).count();
            let most = number("maxUnavailable");
            if down > most {
                return Err(format!(
                    "{now}: pod {name} on {node} was taken down and {down} nodes are, {most} may be"
                ));
            }
        }
        Ok(())
    }

    /// Whether each node has its pod, or what is missing.
    pub(crate) fn is_done(&self) -> Result<(), String> {
        let Some(set) = &self.set else { return Err("there is no set".to_owned()) };
        let wanted = text(set, "/spec/template/spec/containers/0/image");
        let mut missing = Vec::new();
        for node in self.nodes.keys() {
            let pods: Vec<&Value> = self.pods.values().filter(|pod| node_of(pod) == node).collect();
            match pods.as_slice() {
                [pod] if serves(pod) && image(pod) == wanted => {}
                pods => missing.push(format!("{node}: {} pods", pods.len())),
            }
        }
        let count = i64::try_from(self.nodes.len()).unwrap();
        let status = |name: &str| set["status"][name].as_i64().unwrap_or(0);
        let told =
            ["desiredNumberScheduled", "currentNumberScheduled", "numberAvailable", "updatedNumberScheduled"];
        let is_told = told.iter().all(|field| status(field) == count)
            && status("numberMisscheduled") == 0
            && status("observedGeneration") == set["metadata"]["generation"].as_i64().unwrap_or(0)
            && self.pods.len() == self.nodes.len();
        if missing.is_empty() && is_told {
            return Ok(());
        }
        Err(format!("{missing:?}, {} pods, status {}", self.pods.len(), set["status"]))
    }
}
