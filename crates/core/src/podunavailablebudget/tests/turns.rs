//! Clients that retry at fixed intervals, some of them in vain: somebody else always gets through, and nobody waits for ever.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    gates::Gates,
    podunavailablebudget::v1beta1::{Operation, Status},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::*, kit::*};
use crate::{
    effect::{Effect, Patch},
    patch_model,
    pod::Pod,
    text::Text,
};

/// The step of the clock, in milliseconds.
const TICK: i64 = 100;
/// How long a workload takes to replace a pod, in milliseconds.
const REPLACED_IN: i64 = 2_000;

/// Somebody who retries the deletion of a pod until it happens.
#[derive(Clone, Debug)]
struct Client {
    pod: usize,
    every: i64,
    first: i64,
    /// Something else refuses the deletion.
    is_blocked: bool,
    /// When the pod was deleted.
    done: Option<i64>,
}

impl Client {
    fn new(pod: usize, every: i64, first: i64, is_blocked: bool) -> Self {
        Self { pod, every: every * 1_000, first, is_blocked, done: None }
    }
}

/// A workload, a budget, and managers that each hear of every write of the budget.
struct World {
    now: i64,
    pods: BTreeMap<Text, Arc<Pod>>,
    /// Deleted pods, with the time at which they are replaced.
    missing: BTreeMap<Text, i64>,
    budget: Value,
    noticed: Noticed,
    managers: Vec<Turns>,
    most: usize,
    replicas: usize,
    /// When the controller counts next; a write and a change of a pod wake it.
    wake: i64,
}

fn name(pod: usize) -> Text {
    format!("web-{pod}").into()
}

impl World {
    fn new(replicas: usize, most: usize, managers: usize) -> Self {
        let pods = pods(replicas).into_iter().map(|pod| (pod.metadata.name.clone(), pod)).collect();
        let budget = object(json!({"maxUnavailable": most}), json!({}));
        let managers = (0..managers).map(|_| Turns::default()).collect();
        let missing = BTreeMap::new();
        Self { now: 0, pods, missing, budget, noticed: Noticed::new(), managers, most, replicas, wake: 0 }
    }

    fn time(&self) -> Timestamp {
        start() + SignedDuration::from_millis(self.now)
    }

    fn clock(&self) -> Duration {
        Duration::from_millis(self.now.unsigned_abs())
    }

    fn write(&mut self, effect: &Effect) {
        let Effect::Patch { patch: Patch::Merge(change), .. } = effect else { panic!("{effect:?}") };
        patch_model::merge(&mut self.budget, change);
        self.wake = self.now;
        let (status, now) = (self.status(), self.clock());
        for manager in &mut self.managers {
            manager.see(&status, |name| self.pods.get(&Text::from(name)).cloned(), now);
        }
    }

    fn status(&self) -> Status {
        read(self.budget.clone()).status()
    }

    /// Whether a manager lets a pod go.
    fn asks(&mut self, manager: usize, pod: &Arc<Pod>) -> bool {
        let (budget, gates) = (read(self.budget.clone()), Gates::default());
        let seen: Vec<Arc<Pod>> = self.pods.values().cloned().collect();
        let asked = Asked {
            pod,
            operation: &Operation::Evict,
            record: Kind::Disrupted,
            dry_run: false,
            gates: &gates,
            recount: Some(Recount {
                available: counted(&budget.status(), &seen),
                expected: u32::try_from(self.replicas).ok(),
            }),
            others_first: self.managers[manager].others_first(pod, self.clock()),
            now: self.time(),
        };
        match admit(&budget, &asked) {
            Verdict::Refuse(_) => false,
            Verdict::Free | Verdict::Open => true,
            Verdict::Take(status) => {
                self.write(&status_write(&budget.object, &status).unwrap());
                true
            }
        }
    }

    fn count(&mut self) {
        let budget = read(self.budget.clone());
        let pods: Vec<Arc<Pod>> = self.pods.values().cloned().collect();
        let replicas = u32::try_from(self.replicas).unwrap();
        let mut seen = observed(&budget, &pods, replicas, self.time());
        notice(&mut self.noticed, &budget.status(), seen.now);
        seen.noticed.clone_from(&self.noticed);
        for name in doubtful(&budget.status(), &seen.noticed, |name| seen.recorded.get(name), seen.now) {
            let live = self.pods.get(&name).cloned();
            seen.live.insert(name, live);
        }
        let plan = decide(&seen);
        let after = plan.wake_after.map_or(i64::MAX / 2, |after| i64::try_from(after.as_millis()).unwrap());
        match plan.status {
            Some(effect) => self.write(&effect),
            None => self.wake = self.now + after,
        }
    }

    /// One step of the clock. The controller counts before anybody asks: the record of a client that retries in step with it
    /// has just ended.
    fn tick(&mut self, clients: &mut [Client]) {
        self.now += TICK;
        let (now, made) = (self.now, self.now / 1_000);
        let due: Vec<Text> =
            self.missing.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            self.missing.remove(&name);
            self.pods.insert(name.clone(), pod(&name, made, json!({})));
            self.wake = now;
        }
        if self.wake <= now {
            self.count();
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let is_turn = now >= client.first && (now - client.first) % client.every == 0;
            let Some(pod) = self.pods.get(&name(client.pod)).cloned() else { continue };
            if client.done.is_some() || !is_turn {
                continue;
            }
            let manager = (number + usize::try_from(now / 1_000).unwrap()) % self.managers.len();
            if self.asks(manager, &pod) && !client.is_blocked {
                self.pods.remove(&name(client.pod));
                self.missing.insert(name(client.pod), now + REPLACED_IN);
                client.done = Some(now);
                self.wake = now;
            }
        }
        assert!(self.pods.len() + self.most >= self.replicas, "{clients:?}");
    }
}

/// Drains that something else blocks, and one client who could go on. It gets through before each drain has had much more than
/// one share; when nothing blocks the drains any more they end, too.
fn check(managers: usize, drains: &[(i64, i64)], other: (i64, i64)) -> Result<(), String> {
    let mut world = World::new(drains.len() + 2, 1, managers);
    world.count();
    let mut clients: Vec<Client> = (0..)
        .zip(drains)
        .map(|(pod, (every, first))| Client::new(pod, *every, *first, true))
        .chain([Client::new(drains.len(), other.0, 1_000 + other.1, false)])
        .collect();
    let blocked = i64::try_from(drains.len()).unwrap();
    let patient = (blocked * 21 + (blocked + 1) * 10) * 1_000;
    let case = || format!("{managers} managers, drains {drains:?}, other {other:?}");
    while clients[drains.len()].done.is_none() {
        if world.now > patient {
            return Err(format!("nobody else gets through: {}, {:?}", case(), world.status()));
        }
        world.tick(&mut clients);
    }
    clients.iter_mut().for_each(|client| client.is_blocked = false);
    let late = world.now + blocked * 50_000;
    while clients.iter().any(|client| client.done.is_none()) {
        if world.now > late {
            return Err(format!("a drain does not end: {}, {:?}", case(), world.status()));
        }
        world.tick(&mut clients);
    }
    // Nothing of the budget stays away.
    (0..25_000 / TICK).for_each(|_| world.tick(&mut clients));
    match world.status() {
        status if status.unavailable_allowed == 1 && status.disrupted_pods.is_empty() => Ok(()),
        status => Err(format!("{}: {status:?}", case())),
    }
}

/// PROTECTION-13: a client that retries in step with the end of its own record took the share again each time.
#[test]
fn a_drain_that_is_blocked_lets_others_through_at_every_interval() {
    for drain in 1..=10 {
        for other in 1..=10 {
            for phase in [0, 100, 500, 900] {
                check(2, &[(drain, 300)], (other, phase)).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn somebody_else_always_gets_through(
        managers in 1..4_usize,
        drains in prop::collection::vec((1..=10_i64, (0..30_i64).prop_map(|tenth| tenth * TICK)), 1..4),
        other in (1..=10_i64, (0..10_i64).prop_map(|tenth| tenth * TICK)),
    ) {
        prop_assert_eq!(check(managers, &drains, other), Ok(()));
    }
}

fn status(value: Value) -> Status {
    read(object(json!({"maxUnavailable": 1}), value)).status()
}

fn records(map: &str, allowed: i32) -> Status {
    status(json!({"unavailableAllowed": allowed, map: {"web-0": at(100)}}))
}

#[test]
fn a_pod_whose_permission_was_not_used_leaves_the_last_share_to_others_for_a_while() {
    let old = pod("web-0", 0, json!({"metadata": {"resourceVersion": "7"}}));
    let seconds = Duration::from_secs;
    let free = || status(json!({"unavailableAllowed": 1}));
    let ended = |map: &str, now: &Arc<Pod>| {
        let mut turns = Turns::default();
        let found = |_: &str| Some(now.clone());
        if map == "unavailablePods" {
            turns.updates(&old);
        }
        turns.see(&records(map, 0), found, seconds(0));
        turns.see(&free(), found, seconds(20));
        turns
    };
    let turns = ended("disruptedPods", &old);
    assert!(turns.others_first(&old, seconds(20)) && turns.others_first(&old, seconds(34)));
    assert!(!turns.others_first(&old, seconds(35)));
    // A deletion that took place, an update that took place, and one that did not.
    let ending = pod("web-0", 0, json!({"metadata": {"deletionTimestamp": at(101)}}));
    assert!(!ended("disruptedPods", &ending).others_first(&ending, seconds(20)));
    let changed = pod("web-0", 0, json!({"metadata": {"resourceVersion": "8"}}));
    assert!(!ended("unavailablePods", &changed).others_first(&changed, seconds(20)));
    assert!(ended("unavailablePods", &old).others_first(&old, seconds(20)));
    // A permission that somebody else used gives everybody the same chance again.
    let mut turns = turns;
    let found = |name: &str| (name == "web-0").then(|| old.clone());
    turns.see(&status(json!({"disruptedPods": {"web-1": at(121)}})), found, seconds(21));
    assert!(turns.others_first(&old, seconds(21)));
    turns.see(&free(), found, seconds(31));
    assert!(!turns.others_first(&old, seconds(31)));
    // Nobody is held up for ever by what is remembered.
    assert!(!ended("disruptedPods", &old).others_first(&old, seconds(320)));
}

/// The last share only, with the text that users match on and the reason beside it.
#[test]
fn a_pod_that_lets_others_go_first_is_told_why() {
    let gates = Gates::default();
    let web = pod("web-0", 0, json!({}));
    let with = |allowed: i32| {
        let status = json!({"observedGeneration": 1, "unavailableAllowed": allowed, "currentAvailable": 4, "desiredAvailable": 4 - allowed, "totalReplicas": 5});
        let asked = Asked {
            pod: &web,
            operation: &Operation::Evict,
            record: Kind::Disrupted,
            dry_run: false,
            gates: &gates,
            recount: None,
            others_first: true,
            now: after(100),
        };
        admit(&budget(json!({"maxUnavailable": 1}), status), &asked)
    };
    let Verdict::Refuse(refusal) = with(1) else { panic!("not refused") };
    assert_eq!(
        refusal.message,
        "podunavailablebudget.policy.kruise.io \"web\" is forbidden: pub unavailable allowed is negative"
    );
    let causes: Vec<String> = refusal.causes().into_iter().map(|cause| cause.message).collect();
    assert_eq!(
        causes[1],
        "an earlier permission for this pod ran out unused; other pods go first, try again later"
    );
    assert!(matches!(with(2), Verdict::Take(_)));
}
