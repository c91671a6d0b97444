//! Managers with caches of different age admit at once, while one of them counts: no subset is ever booked beyond its limit,
//! and no place is lost for longer than a record lives.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::*, kit::*};

/// How old the cache of pods of the manager that counts may be, in seconds, and how long the server may take to carry out what
/// was admitted: together less than a record stays.
const LAG: i64 = 5;
const LANDS_WITHIN: i64 = 4;
const LIMITS: [(&str, usize); 2] = [("a", 2), ("b", 3)];

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A pod is created through a manager whose spread is this many versions old. Some have no name yet.
    Create { version: bool, has_name: bool, behind: usize },
    /// An admitted creation takes place, or never will.
    Land { which: usize, is_lost: bool },
    /// A pod is deleted through a manager whose spread is this many versions old.
    Delete { which: usize, behind: usize },
    /// An admitted deletion takes place, or never will.
    End { which: usize, is_lost: bool },
    /// A pod of the name of one that is gone is created.
    Again { which: usize, behind: usize },
    /// The request of a pod with a name that is on its way is tried again.
    Retry { which: usize, behind: usize },
    /// The leader counts, with pods as they were a while ago.
    Count { age: i64 },
    /// A second or more.
    Wait { seconds: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<bool>(), any::<bool>(), 0..4_usize)
            .prop_map(|(version, has_name, behind)| Step::Create { version, has_name, behind }),
        6 => (0..8_usize, prop::bool::weighted(0.15)).prop_map(|(which, is_lost)| Step::Land { which, is_lost }),
        5 => (0..12_usize, 0..4_usize).prop_map(|(which, behind)| Step::Delete { which, behind }),
        4 => (0..8_usize, prop::bool::weighted(0.1)).prop_map(|(which, is_lost)| Step::End { which, is_lost }),
        2 => (0..4_usize, 0..4_usize).prop_map(|(which, behind)| Step::Again { which, behind }),
        1 => (0..4_usize, 0..4_usize).prop_map(|(which, behind)| Step::Retry { which, behind }),
        6 => (0..=LAG).prop_map(|age| Step::Count { age }),
        4 => (1..6_i64).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

#[derive(Clone, Debug)]
struct Real {
    version: String,
    subset: String,
    uid: String,
    made: i64,
    /// Somebody was allowed to delete it.
    is_let_go: bool,
}

#[derive(Clone, Debug)]
struct Flying {
    name: String,
    real: Real,
    since: i64,
}

struct World {
    now: i64,
    count: u32,
    object: Value,
    /// The object as it was.
    past: Vec<Value>,
    pods: BTreeMap<String, Real>,
    /// Pods as they were, one entry for each second.
    past_pods: BTreeMap<i64, BTreeMap<String, Real>>,
    /// The time of the pods that were counted last: a cache never goes back.
    counted: i64,
    creations: Vec<Flying>,
    deletions: Vec<(String, i64)>,
    gone: Vec<(String, String)>,
}

impl World {
    fn new() -> Self {
        Self {
            now: 0,
            count: 0,
            object: object("Deployment", "a=2 b=3"),
            past: Vec::new(),
            pods: BTreeMap::new(),
            past_pods: BTreeMap::new(),
            counted: 0,
            creations: Vec::new(),
            deletions: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn write(&mut self, spread: &Spread, status: &kruise_api::workloadspread::v1beta1::Status) -> bool {
        let Some(effect) = status_write(&spread.object, status) else { return true };
        let before = self.object.clone();
        let done = write(&mut self.object, &effect);
        if done {
            self.past.push(before);
        }
        done
    }

    /// The spread as an old cache has it.
    fn behind(&self, behind: usize) -> Spread {
        let place = self.past.len().checked_sub(behind).and_then(|place| self.past.get(place));
        read(place.unwrap_or(&self.object))
    }

    fn create(&mut self, name: String, version: &str, has_name: bool, behind: usize) {
        self.count += 1;
        let (fresh, asks_for) = (format!("uid-{}", self.count), if has_name { name.as_str() } else { "" });
        let mut spread = self.behind(behind);
        let (chosen, by_name) = loop {
            let now = after(self.now);
            let asked = Asked { name: asks_for, fresh: &fresh, version, total: Some(9), now };
            match place(&spread, &asked) {
                Placement::Nowhere => return,
                Placement::Free(position) | Placement::Booked(position) => break (position, false),
                Placement::Book(booking) if self.write(&spread, &booking.status) => {
                    break (booking.subset, booking.by_name);
                }
                Placement::Book(_) => spread = read(&self.object),
            }
        };
        let real = Real {
            version: version.to_owned(),
            subset: spread.subsets[chosen].spec.name.clone(),
            uid: if by_name { String::new() } else { fresh },
            made: 0,
            is_let_go: false,
        };
        self.creations.push(Flying { name, real, since: self.now });
    }

    fn delete(&mut self, name: &str, behind: usize) {
        let real = self.pods[name].clone();
        let mark = Mark { name: "w".into(), subset: real.subset, uid: real.uid };
        let (mut spread, mut is_sure) = (self.behind(behind), false);
        loop {
            let left =
                Left { name, mark: &mark, version: &real.version, total: Some(9), now: after(self.now) };
            match leave(&spread, &left) {
                Leaving::Write(status) if self.write(&spread, &status) => break,
                Leaving::Unknown if is_sure => break,
                Leaving::Nothing => break,
                Leaving::Write(_) | Leaving::Unknown => (spread, is_sure) = (read(&self.object), true),
            }
        }
        if let Some(real) = self.pods.get_mut(name) {
            real.is_let_go = true;
        }
        self.deletions.push((name.to_owned(), self.now));
    }

    fn land(&mut self, which: usize, is_lost: bool) {
        let Flying { name, mut real, .. } = self.creations.remove(which);
        if !is_lost && !self.pods.contains_key(&name) {
            real.made = self.now;
            // Of several requests for one name the others are refused from now on.
            self.creations.retain(|other| other.name != name);
            self.pods.insert(name, real);
        }
    }

    fn end(&mut self, which: usize, is_lost: bool) {
        let (name, _) = self.deletions.remove(which);
        if !is_lost && let Some(real) = self.pods.remove(&name) {
            self.gone.push((name, real.version));
        }
    }

    fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.past_pods.insert(self.now, self.pods.clone());
            self.now += 1;
            while let Some(which) =
                self.creations.iter().position(|flying| self.now - flying.since >= LANDS_WITHIN)
            {
                self.land(which, false);
            }
            while let Some(which) =
                self.deletions.iter().position(|(_, since)| self.now - since >= LANDS_WITHIN)
            {
                self.end(which, false);
            }
        }
    }

    fn count(&mut self, age: i64) {
        let then = (self.now - age).max(self.counted);
        self.counted = then;
        let pods = match self.past_pods.get(&then).filter(|_| then < self.now) {
            Some(pods) => pods.clone(),
            None => self.pods.clone(),
        };
        let view = |(name, real): (&String, &Real)| {
            let mark = Mark { name: "w".into(), subset: real.subset.clone(), uid: real.uid.clone() };
            let mut change = versioned(&real.version);
            change["metadata"]["annotations"] =
                json!({kruise_api::annotations::MATCHED_WORKLOADSPREAD: mark.text()});
            pod(name, &real.subset, real.made, change)
        };
        let mut observed = seen(&self.object, pods.iter().map(view).collect(), self.now);
        observed.total = Some(9);
        let plan = decide(&observed);
        if plan.status.is_some() {
            let spread = observed.spread.clone();
            assert!(self.write(&spread, &plan.counted));
        }
    }

    /// Pods that were given a place and that nobody was allowed to delete, with those on their way.
    fn holds(&self) -> Result<(), String> {
        for version in ["v1", "v2"] {
            for (subset, most) in LIMITS {
                let is_it = |real: &Real| real.version == version && real.subset == subset && !real.is_let_go;
                let there = self.pods.values().filter(|real| is_it(real)).count();
                // Of several requests for one name only one succeeds.
                let coming: BTreeSet<&str> = self
                    .creations
                    .iter()
                    .filter(|one| is_it(&one.real) && !self.pods.contains_key(&one.name))
                    .map(|one| one.name.as_str())
                    .collect();
                let coming = coming.len();
                if there + coming > most {
                    return Err(format!(
                        "{there} pods and {coming} on their way in {subset} of {version} at {}: {}",
                        self.now, self.object["status"]
                    ));
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_subset_is_booked_beyond_its_limit(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in steps {
            match step {
                Step::Create { version, has_name, behind } => {
                    let name = format!("p{}", world.count);
                    world.create(name, if version { "v2" } else { "v1" }, has_name, behind);
                }
                Step::Land { which, is_lost } if which < world.creations.len() => world.land(which, is_lost),
                Step::Delete { which, behind } => {
                    if let Some(name) = world.pods.keys().nth(which).cloned()
                        && !world.deletions.iter().any(|(known, _)| *known == name)
                    {
                        world.delete(&name, behind);
                    }
                }
                Step::End { which, is_lost } if which < world.deletions.len() => world.end(which, is_lost),
                Step::Again { which, behind } if which < world.gone.len() => {
                    let (name, version) = world.gone.remove(which);
                    world.create(name, &version, true, behind);
                }
                Step::Retry { which, behind } => {
                    let named = world.creations.iter().filter(|flying| flying.real.uid.is_empty());
                    let again = named.map(|flying| (flying.name.clone(), flying.real.version.clone())).nth(which);
                    if let Some((name, version)) = again {
                        world.create(name, &version, true, behind);
                    }
                }
                Step::Count { age } => world.count(age),
                Step::Wait { seconds } => world.pass(seconds),
                Step::Land { .. } | Step::End { .. } | Step::Again { .. } => {}
            }
            if let Err(problem) = world.holds() {
                prop_assert!(false, "{problem}");
            }
        }
        // Whatever was lost on the way is free again after the time of a booking.
        world.pass(31 + LAG);
        world.count(0);
        let status = read(&world.object).status();
        for (version, accounts) in &status.versioned_subset_statuses {
            for (account, (subset, most)) in accounts.iter().zip(LIMITS) {
                let there = world.pods.values().filter(|real| real.version == *version && real.subset == subset);
                let there = there.count();
                prop_assert_eq!(account.missing_replicas, i32::try_from(most.saturating_sub(there)).unwrap());
                prop_assert!(account.creating_pods.is_empty() && account.deleting_pods.is_empty());
            }
        }
    }
}
