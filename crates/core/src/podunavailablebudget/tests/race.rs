//! Three managers with caches of different age admit and count at once: never more pods are disrupted than the budget has.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kruise_api::{gates::Gates, podunavailablebudget::v1beta1::Operation};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::*, kit::*};
use crate::{
    effect::{Effect, Patch},
    patch_model,
    pod::Pod,
    text::Text,
};

/// How old a cache may be, in seconds, and how long the server may take to carry out what was admitted: together no longer
/// than a record stays.
const LAG: i64 = 5;
const LANDS_WITHIN: i64 = 4;
const REPLICAS: u32 = 6;
const MOST: usize = 2;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Somebody deletes a pod through a manager whose cache of pods and budgets are this old.
    Delete { pod: usize, pods_age: i64, budget_age: i64 },
    /// An admitted deletion takes place, or never will.
    Land { pod: usize, is_lost: bool },
    /// A controller, which may be another one each time, counts.
    Count { pods_age: i64 },
    /// The workload makes what is missing.
    Recreate,
    /// A pod becomes ready.
    Ready { pod: usize },
    /// A node fails or comes back.
    Node { pod: usize },
    /// A second or more.
    Wait { seconds: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    let pod = || 0..REPLICAS as usize;
    prop_oneof![
        6 => (pod(), 0..=LAG, 0..=LAG).prop_map(|(pod, pods_age, budget_age)| Step::Delete { pod, pods_age, budget_age }),
        4 => (pod(), prop::bool::weighted(0.3)).prop_map(|(pod, is_lost)| Step::Land { pod, is_lost }),
        5 => (0..=LAG).prop_map(|pods_age| Step::Count { pods_age }),
        2 => Just(Step::Recreate),
        4 => pod().prop_map(|pod| Step::Ready { pod }),
        1 => pod().prop_map(|pod| Step::Node { pod }),
        4 => (1..8_i64).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Real {
    made: i64,
    is_ready: bool,
    /// Somebody deleted the last pod of this name, and this one does not serve yet.
    by_permission: bool,
}

struct World {
    now: i64,
    pods: BTreeMap<String, Real>,
    /// Pods as they were, one entry for each second.
    past: BTreeMap<i64, BTreeMap<String, Real>>,
    gone_by_permission: Vec<String>,
    /// Admitted deletions on their way, with the time.
    flying: BTreeMap<String, i64>,
    budget: Value,
    versions: BTreeMap<i64, Value>,
}

fn name(pod: usize) -> String {
    format!("web-{pod}")
}

impl World {
    fn new() -> Self {
        let real = Real { made: -60, is_ready: true, by_permission: false };
        let mut world = Self {
            now: 0,
            pods: (0..REPLICAS as usize).map(|pod| (name(pod), real)).collect(),
            past: BTreeMap::new(),
            gone_by_permission: Vec::new(),
            flying: BTreeMap::new(),
            budget: object(json!({"maxUnavailable": MOST}), json!({})),
            versions: BTreeMap::new(),
        };
        world.count(0);
        world
    }

    fn time(&self) -> Timestamp {
        after(self.now)
    }

    fn view(name: &str, real: &Real) -> Arc<Pod> {
        pod(name, real.made, if real.is_ready { json!({}) } else { not_ready() })
    }

    fn at_age(&self, age: i64) -> Vec<Arc<Pod>> {
        let then =
            (age > 0).then(|| self.past.range(..=self.now - age).next_back().map(|(_, pods)| pods)).flatten();
        then.unwrap_or(&self.pods).iter().map(|(name, real)| Self::view(name, real)).collect()
    }

    /// A write with a version. Whoever read another one is refused.
    fn write(&mut self, effect: &Effect) -> bool {
        let Effect::Patch { target, patch: Patch::Merge(change), .. } = effect else { panic!("{effect:?}") };
        let version = self.budget["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        if target.resource_version.as_ref().map(Text::as_str) != Some(version.as_str()) {
            return false;
        }
        self.versions.insert(self.now, self.budget.clone());
        patch_model::merge(&mut self.budget, change);
        self.budget["metadata"]["resourceVersion"] = json!((version.parse::<u64>().unwrap() + 1).to_string());
        true
    }

    fn delete(&mut self, pod: usize, pods_age: i64, budget_age: i64) {
        let Some(real) = self.pods.get(&name(pod)).copied() else { return };
        let wanted = Self::view(&name(pod), &real);
        let gates = Gates::default();
        let old = self.versions.range(self.now - budget_age..).next().map(|(_, budget)| budget.clone());
        let mut known = old.filter(|_| budget_age > 0).unwrap_or_else(|| self.budget.clone());
        for _ in 0..3 {
            let budget = read(known.clone());
            let available = counted(&budget.status(), &self.at_age(pods_age));
            let recount = Some(Recount { available, expected: Some(REPLICAS) });
            let asked = Asked {
                pod: &wanted,
                operation: &Operation::Delete,
                record: Kind::Disrupted,
                dry_run: false,
                gates: &gates,
                recount,
                others_first: false,
                now: self.time(),
            };
            match admit(&budget, &asked) {
                Verdict::Refuse(_) => return,
                Verdict::Free => break,
                // The process reads the budget before it believes that.
                Verdict::Open if known != self.budget => {
                    known = self.budget.clone();
                    continue;
                }
                Verdict::Open => break,
                Verdict::Take(status) => {
                    if self.write(&status_write(&budget.object, &status).unwrap()) {
                        break;
                    }
                    known = self.budget.clone();
                    continue;
                }
            }
        }
        // A pod that is down already may always be deleted: it does not serve by another reason.
        if real.is_ready {
            self.flying.insert(name(pod), self.now);
        } else {
            self.pods.remove(&name(pod));
            // An older deletion finds another pod of that name, and the server asks again about that one.
            self.flying.remove(&name(pod));
        }
    }

    fn land(&mut self, pod: &str, is_lost: bool) {
        if self.flying.remove(pod).is_some() && !is_lost && self.pods.remove(pod).is_some() {
            self.gone_by_permission.push(pod.to_owned());
        }
    }

    fn count(&mut self, pods_age: i64) {
        let budget = read(self.budget.clone());
        let pods = self.at_age(pods_age);
        let mut seen = observed(&budget, &pods, REPLICAS, self.time());
        for name in doubtful(&budget.status(), &seen.noticed, |name| seen.recorded.get(name), seen.now) {
            let live = self.pods.get(name.as_str()).map(|real| Self::view(&name, real));
            seen.live.insert(name, live);
        }
        if let Some(effect) = decide(&seen).status {
            self.write(&effect);
        }
    }

    fn wait(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.past.insert(self.now, self.pods.clone());
            self.now += 1;
            let late: Vec<String> = self
                .flying
                .iter()
                .filter(|(_, since)| self.now - **since >= LANDS_WITHIN)
                .map(|(pod, _)| pod.clone())
                .collect();
            late.iter().for_each(|pod| self.land(pod, false));
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Delete { pod, pods_age, budget_age } => self.delete(pod, pods_age, budget_age),
            Step::Land { pod, is_lost } => self.land(&name(pod), is_lost),
            Step::Count { pods_age } => self.count(pods_age),
            Step::Recreate => {
                for pod in (0..REPLICAS as usize).map(name) {
                    let by_permission = self.gone_by_permission.contains(&pod);
                    self.pods.entry(pod).or_insert(Real { made: self.now, is_ready: false, by_permission });
                }
                self.gone_by_permission.clear();
            }
            Step::Ready { pod } => {
                if let Some(real) = self.pods.get_mut(&name(pod)) {
                    (real.is_ready, real.by_permission) = (true, false);
                }
            }
            Step::Node { pod } => {
                if let Some(real) = self.pods.get_mut(&name(pod)).filter(|real| !real.by_permission) {
                    real.is_ready = !real.is_ready;
                }
            }
            Step::Wait { seconds } => self.wait(seconds),
        }
    }

    /// Pods that are down, or about to be, because a budget said yes.
    fn down_by_permission(&self) -> usize {
        let pods =
            self.pods.iter().filter(|(name, real)| real.by_permission || self.flying.contains_key(*name));
        pods.count() + self.gone_by_permission.len()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn never_more_pods_are_down_by_permission_than_the_budget_has(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for (number, one) in steps.iter().enumerate() {
            world.step(*one);
            let down = world.down_by_permission();
            prop_assert!(down <= MOST, "{down} down after step {number} at second {}: {:#?}", world.now, &steps[..=number]);
        }
    }

    /// Whatever happened: once all is calm again, the whole budget is there within the time of the longest record.
    #[test]
    fn nothing_of_a_budget_is_lost_for_longer_than_a_record_lives(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        steps.iter().for_each(|one| world.step(*one));
        world.wait(LANDS_WITHIN + 1);
        world.step(Step::Recreate);
        world.pods.values_mut().for_each(|real| (real.is_ready, real.by_permission) = (true, false));
        for _ in 0..21 {
            world.wait(1);
            world.count(0);
        }
        prop_assert_eq!(&world.budget["status"]["unavailableAllowed"], &json!(MOST), "{:#?}", world.budget);
        prop_assert_eq!(world.budget["status"].get("disruptedPods"), None);
    }
}

/// Something else refuses the deletions of as many pods as the budget has, and somebody tries them every second.
#[test]
fn pods_whose_deletions_are_always_lost_do_not_keep_the_budget() {
    let mut world = World::new();
    for second in 0..45 {
        for pod in 0..MOST {
            world.delete(pod, 0, 0);
            world.land(&name(pod), true);
        }
        world.count(0);
        world.delete(MOST, 0, 0);
        assert!(world.down_by_permission() <= MOST);
        if world.flying.contains_key(&name(MOST)) {
            assert!(second >= 20, "it was granted at second {second}");
            return;
        }
        world.wait(1);
    }
    panic!("nobody else got a share: {:#?}", world.budget);
}
