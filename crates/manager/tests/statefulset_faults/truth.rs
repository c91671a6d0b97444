//! What really happened, from the server's own history, and what must never happen.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kruise_api::labels;
use kruise_sim::{Sim, history::Recorder};
use serde_json::Value;

/// How long the writes of one plan take at most.
const WRITES_TAKE: SignedDuration = SignedDuration::from_secs(5);

/// The numbers of a spec.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    replicas: i64,
    partition: i64,
    max_unavailable: i64,
    min_ready: SignedDuration,
    paused: bool,
    /// The lowest ordinals stay old, not any.
    goes_by_ordinal: bool,
    /// Claims of pods that scaling removes are deleted.
    drops_claims: bool,
}

/// What is remembered of an ordinal.
#[derive(Default)]
struct Place {
    /// When its pod served last.
    served: Option<Timestamp>,
    /// The revisions that its pod had, while it had this uid.
    uid: String,
    revisions: BTreeSet<String>,
}

pub(crate) struct Truth {
    /// How long a plan may rest on what was true before.
    memory: SignedDuration,
    pods: BTreeMap<String, Value>,
    claims: BTreeMap<String, Value>,
    places: BTreeMap<i64, Place>,
    /// The image of each revision.
    revisions: BTreeMap<String, String>,
    set: Option<Value>,
    /// The specs of the last minutes, with the time until which each was the newest.
    specs: Vec<(Timestamp, Wanted)>,
    /// When others took a pod down.
    losses: Vec<Timestamp>,
    /// The uids of pods that others took down.
    lost: BTreeSet<String>,
    stopped: Vec<&'static str>,
    deleted_at: Option<Timestamp>,
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

/// Whether a pod that serves has done so for `minReadySeconds`. Before, the spec counts it as unavailable: it may be updated or
/// deleted whatever the limit says.
fn is_available(pod: &Value, min_ready: SignedDuration, now: Timestamp) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.filter(|one| one["type"] == "Ready");
    let since = ready.filter_map(|one| one["lastTransitionTime"].as_str()?.parse::<Timestamp>().ok()).max();
    let is_old = |since| now.duration_since(since) > min_ready + WRITES_TAKE;
    serves(pod) && (min_ready.is_zero() || since.is_none_or(is_old))
}

fn wanted(set: &Value) -> Wanted {
    let rolling = &set["spec"]["updateStrategy"]["rollingUpdate"];
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let replicas = number(&set["spec"]["replicas"]);
    Wanted {
        replicas,
        partition: number(&rolling["partition"]).min(replicas),
        max_unavailable: number(&rolling["maxUnavailable"]).max(1),
        min_ready: SignedDuration::from_secs(number(&rolling["minReadySeconds"])),
        paused: rolling["paused"] == true,
        goes_by_ordinal: rolling["unorderedUpdate"].is_null(),
        drops_claims: text(set, "/spec/persistentVolumeClaimRetentionPolicy/whenScaled") == "Delete",
    }
}

fn ordinal(pod: &str) -> i64 {
    pod.rsplit_once('-').and_then(|(_, digits)| digits.parse().ok()).unwrap_or(-1)
}

impl Truth {
    pub(crate) fn new(memory: SignedDuration) -> Self {
        Self {
            memory,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            places: BTreeMap::new(),
            revisions: BTreeMap::new(),
            set: None,
            specs: Vec::new(),
            losses: Vec::new(),
            lost: BTreeSet::new(),
            stopped: Vec::new(),
            deleted_at: None,
        }
    }

    pub(crate) fn set_is_deleted(&mut self) {
        self.set = None;
    }

    /// Someone else takes a pod down, which the limits do not speak of.
    pub(crate) fn others_take_down(&mut self, sim: &Sim, pod: &str) {
        let uid = self.pods.get(pod).map(|pod| text(pod, "/metadata/uid").to_owned());
        self.lost.extend(uid);
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
                "apps.kruise.io/statefulsets" => self.set_changed(object, gone, now),
                "apps/controllerrevisions" => {
                    let image = text(&object, "/data/spec/template/spec/containers/0/image");
                    self.revisions.insert(name, image.to_owned());
                }
                "/pods" => self.pod_changed(name, object, gone, now)?,
                "/persistentvolumeclaims" => self.claim_changed(name, object, gone, now)?,
                _ => {}
            }
        }
        assert!(!history.lost_events());
        Ok(())
    }

    fn set_changed(&mut self, set: Value, gone: bool, now: Timestamp) {
        if let Some(before) = self.set.take() {
            self.specs.push((now, wanted(&before)));
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
        let uid = text(&pod, "/metadata/uid").to_owned();
        let is_new = before.is_none();
        let went = before.as_ref().is_some_and(serves) && (gone || !serves(&pod));
        if went && self.stopped.contains(&text(&pod, "/spec/nodeName")) && self.lost.insert(uid.clone()) {
            self.losses.push(now);
        }
        if before.as_ref().is_some_and(serves) {
            self.places.entry(ordinal(&name)).or_default().served = Some(now);
        }
        let by_hand = went
            && !self.lost.contains(&uid)
            && (gone || !is_active(&pod) || condition(&pod, "InPlaceUpdateReady") == Some(false));
        if !gone {
            self.names_its_revision(&pod)?;
            self.pods.insert(name.clone(), pod);
        }
        let is_nobodys = self.set.as_ref().is_none_or(|set| text(set, "/metadata/uid") != owner);
        let is_going = is_nobodys || self.deleted_at.is_some_and(|at| now.duration_since(at) < self.memory);
        if is_going {
            return Ok(());
        }
        let recent = self.recent(now);
        let min_ready = recent.iter().map(|spec| spec.min_ready).max().unwrap_or_default();
        let by_hand = by_hand && before.as_ref().is_some_and(|pod| is_available(pod, min_ready, now));
        let most = recent.iter().map(|spec| spec.replicas).max().unwrap_or(0);
        if is_new && ordinal(&name) >= most {
            return Err(format!("{now}: pod {name} was created, there are {most} replicas"));
        }
        self.keeps_order(&name, is_new, now)?;
        self.keeps_revision(&name, &recent)?;
        self.keeps_claim(&name, before.as_ref(), &recent)?;
        if by_hand {
            let serving = i64::try_from(self.pods.values().filter(|pod| serves(pod)).count()).unwrap();
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

    /// Claims go with their set, or with pods that scaling removed.
    fn claim_changed(
        &mut self,
        name: String,
        claim: Value,
        gone: bool,
        now: Timestamp,
    ) -> Result<(), String> {
        let is_kept = |claim: &Value| claim["metadata"]["deletionTimestamp"].is_null();
        let owners = claim["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let is_of_another = owners.iter().any(|owner| owner["kind"] == "StatefulSet");
        let is_leaving =
            self.claims.get(&name).is_some_and(is_kept) && (gone || !is_kept(&claim)) && !is_of_another;
        if gone {
            self.claims.remove(&name);
        } else {
            self.claims.insert(name.clone(), claim);
        }
        let is_going = self.deleted_at.is_some_and(|at| now.duration_since(at) < self.memory);
        let Some(set) = self.set.as_ref().filter(|_| is_leaving && !is_going) else { return Ok(()) };
        match wanted(set).drops_claims {
            true => Ok(()),
            false => Err(format!("{now}: claim {name} is deleted although whenScaled says Retain")),
        }
    }

    /// With OrderedReady a pod comes when all lower ones serve, or did a moment ago.
    fn keeps_order(&mut self, name: &str, is_new: bool, now: Timestamp) -> Result<(), String> {
        for (name, _) in self.pods.iter().filter(|(_, pod)| serves(pod)) {
            self.places.entry(ordinal(name)).or_default().served = Some(now);
        }
        let is_ordered =
            self.set.as_ref().is_some_and(|set| text(set, "/spec/podManagementPolicy") == "OrderedReady");
        if !is_new || !is_ordered || !self.pods.contains_key(name) {
            return Ok(());
        }
        for lower in 0..ordinal(name) {
            let served = self.places.get(&lower).and_then(|place| place.served);
            if served.is_none_or(|served| now.duration_since(served) > self.memory) {
                return Err(format!("{now}: pod {name} was created before pod {lower} served"));
            }
        }
        Ok(())
    }

    /// A pod that the partition keeps, or a pause, does not get another revision while it lives. It may go back.
    fn keeps_revision(&mut self, name: &str, recent: &[Wanted]) -> Result<(), String> {
        let Some(pod) = self.pods.get(name) else { return Ok(()) };
        let place = self.places.entry(ordinal(name)).or_default();
        let uid = text(pod, "/metadata/uid");
        if place.uid != uid {
            (place.uid, place.revisions) = (uid.to_owned(), BTreeSet::new());
        }
        let revision =
            pod["metadata"]["labels"][labels::CONTROLLER_REVISION_HASH].as_str().unwrap_or_default();
        let is_other = place.revisions.insert(revision.to_owned()) && place.revisions.len() > 1;
        let keeps = |spec: &Wanted| spec.paused || (spec.goes_by_ordinal && ordinal(name) < spec.partition);
        if is_other && !recent.is_empty() && recent.iter().all(keeps) {
            return Err(format!("pod {name} was updated to {revision}: {recent:?}"));
        }
        Ok(())
    }

    /// A pod that is wanted is not deleted while its claim would go with it.
    fn keeps_claim(&self, name: &str, before: Option<&Value>, recent: &[Wanted]) -> Result<(), String> {
        let was_active = before.is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let Some(pod) = self.pods.get(name).filter(|_| was_active) else { return Ok(()) };
        let uid = text(pod, "/metadata/uid");
        let begins = !pod["metadata"]["deletionTimestamp"].is_null() && !self.lost.contains(uid);
        let is_wanted = recent.iter().all(|spec| ordinal(name) < spec.replicas);
        let claim = self.claims.get(&format!("data-{name}"));
        let owners = claim.and_then(|claim| claim["metadata"]["ownerReferences"].as_array());
        let belongs = owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid));
        match begins && is_wanted && belongs {
            true => Err(format!("pod {name} is deleted, and its claim goes with it")),
            false => Ok(()),
        }
    }

    /// The revision label of a pod says which image it has.
    fn names_its_revision(&self, pod: &Value) -> Result<(), String> {
        let revision =
            pod["metadata"]["labels"][labels::CONTROLLER_REVISION_HASH].as_str().unwrap_or_default();
        let image = text(pod, "/spec/containers/0/image");
        match self.revisions.get(revision) {
            Some(known) if known != image => Err(format!(
                "pod {} has {image} and its label says {revision}, which is {known}",
                pod["metadata"]["name"]
            )),
            _ => Ok(()),
        }
    }

    /// Whether the set is as its spec wants it, or what is missing.
    pub(crate) fn is_done(&self) -> Result<(), String> {
        let Some(set) = &self.set else { return Err("there is no set".to_owned()) };
        let spec = wanted(set);
        let count = |is: &dyn Fn(&Value) -> bool| {
            i64::try_from(self.pods.values().filter(|pod| is(pod)).count()).unwrap()
        };
        let image = text(set, "/spec/template/spec/containers/0/image");
        let (all, serving) = (count(&|_| true), count(&serves));
        let updated = count(&|pod| text(pod, "/spec/containers/0/image") == image);
        let status = |name: &str| set["status"][name].as_i64().unwrap_or(0);
        let counts = [status("replicas"), status("availableReplicas"), status("updatedReplicas")];
        let ordinals: BTreeSet<i64> = self.pods.keys().map(|name| ordinal(name)).collect();
        let is_done = ordinals == (0..spec.replicas).collect()
            && serving == spec.replicas
            && updated >= spec.replicas - spec.partition
            && !spec.paused
            && counts == [all, serving, updated]
            && status("observedGeneration") == set["metadata"]["generation"].as_i64().unwrap_or(0);
        match is_done {
            true => Ok(()),
            false => Err(format!(
                "{spec:?}: {all} pods, {serving} serve, {updated} updated, status {}",
                set["status"]
            )),
        }
    }
}
