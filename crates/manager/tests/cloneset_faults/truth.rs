//! What really happened, from the server's own history, and what must never happen.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kruise_api::labels;
use kruise_sim::{Sim, history::Recorder};
use serde_json::Value;

/// The numbers of a spec.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    replicas: i64,
    partition: i64,
    max_surge: i64,
    max_unavailable: i64,
    paused: bool,
}

#[derive(Default)]
pub(crate) struct Truth {
    claims_matter: bool,
    /// How long a plan may rest on what was true before: lagging reads, slow calls and their retries together.
    memory: SignedDuration,
    pods: BTreeMap<String, Value>,
    claims: BTreeMap<String, Value>,
    /// The image of each revision.
    revisions: BTreeMap<String, String>,
    set: Option<Value>,
    /// The specs of the last minutes, with the time until which each was the newest.
    specs: Vec<(Timestamp, Wanted)>,
    /// When others took a pod down.
    losses: Vec<Timestamp>,
    /// Pods that others took down.
    lost: BTreeSet<String>,
    /// Nodes that have stopped, with which their pods go.
    stopped: Vec<&'static str>,
    /// While a set goes, its pods go, whatever the limits were.
    deleted_at: Option<Timestamp>,
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["labels"][key].as_str().unwrap_or_default()
}

fn is_active(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_null()
        && !["Failed", "Succeeded"].contains(&text(pod, "/status/phase"))
}

fn condition(pod: &Value, kind: &str) -> Option<bool> {
    let conditions = pod["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == kind).map(|one| one["status"] == "True")
}

/// Available: ready, not held back for an update, and in service as its life cycle says. A pod that has not been taken
/// into service yet may go at once.
fn serves(pod: &Value) -> bool {
    is_active(pod)
        && condition(pod, "Ready") == Some(true)
        && condition(pod, "InPlaceUpdateReady") != Some(false)
        && label(pod, labels::LIFECYCLE_STATE) != "PreparingNormal"
}

/// Whatever happens to a pod: it is the same one, on its node, with its address.
fn stays_in_place(before: &Value, after: &Value) -> Result<(), String> {
    for path in ["/metadata/uid", "/spec/nodeName", "/status/podIP"] {
        let (old, new) = (text(before, path), text(after, path));
        if !old.is_empty() && old != new && is_active(after) {
            return Err(format!("pod {} changed {path} from {old} to {new}", after["metadata"]["name"]));
        }
    }
    Ok(())
}

fn wanted(set: &Value) -> Wanted {
    let rolling = &set["spec"]["updateStrategy"]["rollingUpdate"];
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let replicas = number(&set["spec"]["replicas"]);
    Wanted {
        replicas,
        partition: number(&rolling["partition"]).min(replicas),
        max_surge: number(&rolling["maxSurge"]),
        max_unavailable: number(&rolling["maxUnavailable"]),
        paused: rolling["paused"] == true,
    }
}

impl Truth {
    pub(crate) fn new(claims_matter: bool, memory: SignedDuration) -> Self {
        Self { claims_matter, memory, ..Self::default() }
    }

    pub(crate) fn set_is_deleted(&mut self) {
        self.set = None;
    }

    /// Someone else takes a pod down, which the limits do not speak of.
    pub(crate) fn others_take_down(&mut self, sim: &Sim, pod: &str) {
        self.lost.insert(pod.to_owned());
        self.losses.push(sim.clock().now());
    }

    /// These nodes have stopped. What becomes of their pods is not the doing of the controller.
    pub(crate) fn nodes_are_down(&mut self, nodes: &[&'static str]) {
        self.stopped = nodes.to_vec();
    }

    /// Reads on, and checks every change.
    pub(crate) fn look(&mut self, history: &mut Recorder, sim: &Sim) -> Result<(), String> {
        let now = sim.clock().now();
        for (table, event) in history.take() {
            let object: Value = serde_json::from_slice(&event.new.json()).unwrap();
            let gone = event.kind.as_str() == "DELETED";
            let name = text(&object, "/metadata/name").to_owned();
            match table.as_ref() {
                "apps.kruise.io/clonesets" => self.set_changed(object, gone, now),
                "apps/controllerrevisions" => {
                    let image = text(&object, "/data/spec/template/spec/containers/0/image");
                    self.revisions.insert(name, image.to_owned());
                }
                "/persistentvolumeclaims" if gone => drop(self.claims.remove(&name)),
                "/persistentvolumeclaims" => drop(self.claims.insert(name, object)),
                "/pods" => self.pod_changed(name, object, gone, now)?,
                _ => {}
            }
        }
        assert!(!history.lost_events());
        Ok(())
    }

    fn set_changed(&mut self, set: Value, gone: bool, now: Timestamp) {
        let before = self.set.take();
        if let Some(before) = &before {
            self.specs.push((now, wanted(before)));
        }
        if gone || !set["metadata"]["deletionTimestamp"].is_null() {
            self.deleted_at = Some(now);
        } else {
            self.set = Some(set);
        }
        let memory = self.memory;
        self.specs.retain(|(until, _)| now.duration_since(*until) < memory);
    }

    /// The specs that a plan of this moment may rest on.
    fn recent(&self, now: Timestamp) -> Vec<Wanted> {
        let old = self.specs.iter().filter(|(until, _)| now.duration_since(*until) < self.memory);
        old.map(|(_, wanted)| *wanted).chain(self.set.as_ref().map(wanted)).collect()
    }

    fn pod_changed(&mut self, name: String, pod: Value, gone: bool, now: Timestamp) -> Result<(), String> {
        let before = self.pods.remove(&name);
        let owner = text(&pod, "/metadata/ownerReferences/0/uid").to_owned();
        let is_new = before.is_none();
        let went = before.as_ref().is_some_and(serves) && (gone || !serves(&pod));
        if went && self.stopped.contains(&text(&pod, "/spec/nodeName")) && self.lost.insert(name.clone()) {
            self.losses.push(now);
        }
        let by_hand = went
            && !self.lost.contains(&name)
            && (gone || !is_active(&pod) || condition(&pod, "InPlaceUpdateReady") == Some(false));
        if let Some(before) = before.as_ref().filter(|_| !gone) {
            stays_in_place(before, &pod)?;
        }
        if !gone {
            self.tells_the_truth(&pod)?;
            self.pods.insert(name.clone(), pod);
        }
        // A set that was deleted may leave its pods behind for a while. They are nobody's then.
        let is_nobodys = self.set.as_ref().is_none_or(|set| text(set, "/metadata/uid") != owner);
        let is_of_same_set = |pod: &&Value| text(pod, "/metadata/ownerReferences/0/uid") == owner;
        let recent = self.recent(now);
        let is_going = is_nobodys || self.deleted_at.is_some_and(|at| now.duration_since(at) < self.memory);
        let active = self.pods.values().filter(is_of_same_set).filter(|pod| is_active(pod)).count();
        let active = i64::try_from(active).unwrap();
        let most = recent.iter().map(|spec| spec.replicas + spec.max_surge).max().unwrap_or(i64::MAX);
        if is_new && !is_going && active > most {
            return Err(format!("{now}: pod {name} makes {active} pods, {most} may be"));
        }
        if by_hand && !is_going {
            let serving = self.pods.values().filter(is_of_same_set).filter(|pod| serves(pod)).count();
            let serving = i64::try_from(serving).unwrap();
            let recent_loss = |at: &&Timestamp| now.duration_since(**at) < self.memory;
            let losses = i64::try_from(self.losses.iter().filter(recent_loss).count()).unwrap();
            let fewest = recent.iter().map(|spec| spec.replicas).min().unwrap_or(0);
            let allowed = recent.iter().map(|spec| spec.max_unavailable).max().unwrap_or(0);
            if serving < fewest - allowed - losses {
                return Err(format!(
                    "{now}: pod {name} was taken down and {serving} serve, at least {fewest} - {allowed} - {losses} must"
                ));
            }
        }
        Ok(())
    }

    /// The revision label of a pod says which image it has.
    fn tells_the_truth(&self, pod: &Value) -> Result<(), String> {
        let revision = label(pod, labels::CONTROLLER_REVISION_HASH);
        let image = text(pod, "/spec/containers/0/image");
        match self.revisions.get(revision) {
            Some(known) if known != image => Err(format!(
                "pod {} has {image} and says {revision}, which is {known}",
                pod["metadata"]["name"]
            )),
            _ => Ok(()),
        }
    }

    /// Whether the set is as its spec wants it, or what is missing.
    pub(crate) fn is_done(&self, _sim: &Sim) -> Result<(), String> {
        let Some(set) = &self.set else { return Err("there is no set".to_owned()) };
        let spec = wanted(set);
        let pods: Vec<&Value> = self.pods.values().collect();
        let count =
            |is: &dyn Fn(&Value) -> bool| i64::try_from(pods.iter().filter(|pod| is(pod)).count()).unwrap();
        let image = text(set, "/spec/template/spec/containers/0/image");
        let serving = count(&serves);
        let (all, updated) = (count(&|_| true), count(&|pod| text(pod, "/spec/containers/0/image") == image));
        let status = |name: &str| set["status"][name].as_i64().unwrap_or(0);
        let told = [status("replicas"), status("availableReplicas"), status("updatedReplicas")];
        let state =
            format!("{spec:?}: {all} pods, {serving} serve, {updated} updated, status {}", set["status"]);
        let is_done = all == spec.replicas
            && serving == spec.replicas
            && updated >= spec.replicas - spec.partition
            && !spec.paused
            && told == [all, serving, updated]
            && status("observedGeneration") == set["metadata"]["generation"].as_i64().unwrap_or(0);
        if !is_done {
            return Err(state);
        }
        // Claims that are used again wait for the next pod.
        let reused = set["spec"]["scaleStrategy"]["enablePVCReuse"] == true;
        let claims = i64::try_from(self.claims.len()).unwrap();
        if self.claims_matter && (claims < all || (claims > all && !reused)) {
            let names: Vec<&String> = self.claims.keys().collect();
            return Err(format!("{state}, claims {names:?}"));
        }
        Ok(())
    }
}
