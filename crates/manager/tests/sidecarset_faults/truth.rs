//! What really happened, from the server's own history, and what must never happen.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kruise_sim::{Sim, history::Recorder};
use serde_json::Value;

use crate::{
    pods::{
        EMPTY, SETS, Set, described, hash, idle, image, is_active, is_back, is_injected, is_ready,
        is_ready_for, serves, text, working,
    },
    sets::{Asked, Wish},
};

pub(crate) struct Truth {
    /// How long a plan may rest on what was true before.
    memory: SignedDuration,
    pods: BTreeMap<String, Value>,
    sets: BTreeMap<Set, Asked<Wish>>,
    /// How many pods the CloneSet shall have.
    workload: Option<Asked<usize>>,
    /// Pods that a set took down while they were ready, until they are back.
    taken: BTreeSet<(Set, String)>,
    /// Pods that people deleted.
    lost: BTreeSet<String>,
    /// When pods went, for whatever reason.
    went: Vec<Timestamp>,
}

impl Truth {
    pub(crate) fn new(memory: SignedDuration) -> Self {
        Self {
            memory,
            pods: BTreeMap::new(),
            sets: BTreeMap::new(),
            workload: None,
            taken: BTreeSet::new(),
            lost: BTreeSet::new(),
            went: Vec::new(),
        }
    }

    /// Someone else takes a pod down, which the limits do not speak of.
    pub(crate) fn others_take_down(&mut self, pod: &str) {
        self.lost.insert(pod.to_owned());
    }

    /// Reads on, and checks every change.
    pub(crate) fn look(&mut self, history: &mut Recorder, sim: &Sim) -> Result<(), String> {
        let now = sim.clock().now();
        for (table, event) in history.take() {
            let object: Value = serde_json::from_slice(&event.new.json()).unwrap();
            let gone = event.kind.as_str() == "DELETED";
            match table.as_ref() {
                "apps.kruise.io/sidecarsets" => self.set_changed(object, now),
                "apps.kruise.io/clonesets" => self.workload_changed(object, now),
                "/pods" => {
                    let name = text(&object, "/metadata/name").to_owned();
                    let checked = self.pod_changed(&name, object, gone, now);
                    checked.map_err(|problem| format!("{now}: pod {name} {problem}"))?;
                }
                _ => {}
            }
        }
        assert!(!history.lost_events());
        Ok(())
    }

    fn set_changed(&mut self, object: Value, now: Timestamp) {
        let Some(set) = Set::named(text(&object, "/metadata/name")) else { return };
        let wish = Wish::of(&object);
        match self.sets.get_mut(&set) {
            Some(asked) => asked.change(object, wish, now),
            None => drop(self.sets.insert(set, Asked::new(object, wish))),
        }
    }

    fn workload_changed(&mut self, object: Value, now: Timestamp) {
        let replicas = usize::try_from(object["spec"]["replicas"].as_u64().unwrap()).unwrap();
        match &mut self.workload {
            Some(asked) => asked.change(object, replicas, now),
            None => self.workload = Some(Asked::new(object, replicas)),
        }
    }

    fn pod_changed(&mut self, name: &str, pod: Value, gone: bool, now: Timestamp) -> Result<(), String> {
        let before = self.pods.remove(name);
        let went = before.as_ref().is_some_and(is_active) && (gone || !is_active(&pod));
        if went {
            self.went.push(now);
            self.may_go(name, before.as_ref(), now)?;
        }
        if gone {
            self.taken.retain(|(_, taken)| taken != name);
            return Ok(());
        }
        self.pods.insert(name.to_owned(), pod.clone());
        match &before {
            None => self.is_whole(&pod, now)?,
            Some(before) => {
                is_the_same(before, &pod)?;
                for set in SETS {
                    self.is_updated_well(set, name, before, &pod, now)?;
                }
            }
        }
        self.taken.retain(|(set, taken)| taken != name || (is_active(&pod) && !is_back(&pod, *set)));
        Ok(())
    }

    /// Pods go because there are too many of them or because people delete them, never because of an image.
    fn may_go(&self, name: &str, before: Option<&Value>, now: Timestamp) -> Result<(), String> {
        let wanted = self.workload.as_ref().and_then(|asked| asked.recent(now, self.memory).min().copied());
        let others = self.pods.values().filter(|pod| is_active(pod)).count();
        if self.lost.contains(name) || others >= wanted.unwrap_or(0) {
            return Ok(());
        }
        let before = before.map(described).unwrap_or_default();
        Err(format!("went, and {others} are left of {wanted:?}; was: {before}"))
    }

    /// A new pod has the containers of all sets, whatever state the manager is in.
    fn is_whole(&self, pod: &Value, now: Timestamp) -> Result<(), String> {
        for set in SETS {
            if !is_injected(pod, set) {
                return Err(format!("was made without the containers of {}", set.name()));
            }
            let hash = hash(pod, set);
            if !self.sets[&set].recent(now, self.memory).any(|wish| wish.hash == hash) {
                return Err(format!("was made with containers that {} did not have lately", set.name()));
            }
        }
        let most = self.workload.as_ref().and_then(|asked| asked.recent(now, self.memory).max().copied());
        let active = self.pods.values().filter(|pod| is_active(pod)).count();
        if most.is_none_or(|most| active > most) {
            return Err(format!("makes {active} pods, {most:?} may be"));
        }
        Ok(())
    }

    /// What a set may do to a pod that runs.
    fn is_updated_well(
        &mut self,
        set: Set,
        name: &str,
        before: &Value,
        pod: &Value,
        now: Timestamp,
    ) -> Result<(), String> {
        let changed: Vec<&str> =
            set.containers().iter().copied().filter(|one| image(before, one) != image(pod, one)).collect();
        if set == Set::Mesh {
            keeps_serving(before, &changed)?;
        }
        let recent: Vec<&Wish> = self.sets[&set].recent(now, self.memory).collect();
        if !changed.is_empty() && recent.iter().all(|wish| wish.paused) {
            return Err(format!("got images for {changed:?} while {} was paused", set.name()));
        }
        if hash(before, set) == hash(pod, set) {
            // The end of a hot upgrade.
            let is_reset = changed.iter().all(|one| image(pod, one) == EMPTY);
            return if is_reset { Ok(()) } else { Err(format!("got images without a hash: {changed:?}")) };
        }
        let was_ready = !changed.is_empty() && is_ready_for(before, set);
        if was_ready {
            self.taken.insert((set, name.to_owned()));
        }
        let hash = hash(pod, set);
        let down = self.taken.iter().filter(|(by, _)| *by == set).count();
        let is_old = |pod: &&Value| is_active(pod) && crate::pods::hash(pod, set) != hash;
        let old = self.pods.values().filter(is_old).count();
        let went = self.went.iter().filter(|at| now.duration_since(**at) < self.memory).count();
        let allows = |wish: &Wish| {
            wish.hash == hash
                && !wish.paused
                && old + went >= wish.partition
                && (!was_ready || down <= wish.max_unavailable)
        };
        if recent.iter().any(|wish| allows(wish)) {
            return Ok(());
        }
        let taken = self.taken.iter().filter(|(by, _)| *by == set);
        let taken: Vec<String> = taken.filter_map(|(_, name)| self.pods.get(name)).map(described).collect();
        Err(format!(
            "was updated by {} to {hash}, so {down} ready pods are down and {old} old ones are left ({went} went); \
             {recent:?}\nwas: {}\n{}",
            set.name(),
            described(before),
            taken.join("\n"),
        ))
    }

    /// Whether everything is as the specs want it, or what is missing.
    pub(crate) fn is_done(&self) -> Result<(), String> {
        let Some(workload) = &self.workload else { return Err("there is no CloneSet".to_owned()) };
        let replicas = workload.object["spec"]["replicas"].as_u64().unwrap();
        let app = text(&workload.object, "/spec/template/spec/containers/0/image");
        if self.pods.len() as u64 != replicas {
            return Err(format!("{} of {replicas} pods", self.pods.len()));
        }
        for pod in self.pods.values() {
            let is_done =
                is_ready(pod) && image(pod, "app") == app && SETS.iter().all(|set| self.has(pod, *set));
            if !is_done {
                return Err(described(pod));
            }
        }
        let counts = |object: &Value, names: &[&str]| {
            let status = &object["status"];
            status["observedGeneration"] == object["metadata"]["generation"]
                && names.iter().all(|name| status[*name].as_u64() == Some(replicas))
        };
        let told =
            ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedAvailableReplicas"];
        if !counts(&workload.object, &told) {
            return Err(format!("the CloneSet says {}", workload.object["status"]));
        }
        for (set, asked) in &self.sets {
            let told = ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"];
            if !counts(&asked.object, &told) || text(&asked.object, "/status/latestRevision").is_empty() {
                return Err(format!("{} says {}", set.name(), asked.object["status"]));
            }
        }
        Ok(())
    }

    /// Whether a pod has exactly what a set wants.
    fn has(&self, pod: &Value, set: Set) -> bool {
        let wanted = text(&self.sets[&set].object, "/spec/containers/0/image");
        let images = match set {
            Set::Log => image(pod, "log") == wanted,
            Set::Mesh => image(pod, &working(pod)) == wanted && image(pod, idle(pod)) == EMPTY,
        };
        images && is_back(pod, set) && hash(pod, set) == Wish::of(&self.sets[&set].object).hash
    }
}

/// A pod that is updated in place stays the pod that it was.
fn is_the_same(before: &Value, after: &Value) -> Result<(), String> {
    for path in ["/metadata/uid", "/spec/nodeName", "/status/podIP"] {
        let (was, is) = (text(before, path), text(after, path));
        if !was.is_empty() && was != is && is_active(after) {
            return Err(format!("had {was:?} as {path} and now has {is:?}"));
        }
    }
    Ok(())
}

/// The twin that serves is left alone as long as the other one does not serve.
fn keeps_serving(before: &Value, changed: &[&str]) -> Result<(), String> {
    for twin in changed.iter().filter(|twin| serves(before, twin)) {
        let other = if *twin == "mesh-1" { "mesh-2" } else { "mesh-1" };
        if !serves(before, other) || changed.contains(&other) {
            return Err(format!("lost {twin} while {other} did not serve; was: {}", described(before)));
        }
    }
    Ok(())
}
