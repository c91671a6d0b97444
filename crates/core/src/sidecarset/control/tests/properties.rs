use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{EMPTY, World, cold, container_of, hot, merge, read};
use crate::{
    effect::{Effect, Patch},
    plan::Purpose as _,
    sidecarset::control::{Limits, Observed, Plan, decide, plan, status},
    waiting::Waits,
};

/// A history is dozens of passes with time between them, so fewer of them are tried; `PROPTEST_CASES` makes it more.
const HISTORIES: u32 = 1_000;
const STATES: u32 = 10_000;

/// Something that people or machines do.
#[derive(Clone, Debug)]
enum Act {
    /// Another image; the last one cannot run.
    Image(usize),
    Pause(bool),
    Partition(usize),
    /// Passes with time between them.
    Pass(usize),
    /// One while the manager dies in the middle.
    Crash(u64),
    Lag(u64),
    Label(usize, usize),
    Recreate(usize),
}

const IMAGES: [&str; 4] = ["side:v1", "side:v2", "side:v3", "nosuch:v9"];
const LABELS: [&str; 3] = ["foo", "bar", "baz"];

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..IMAGES.len()).prop_map(Act::Image),
        1 => any::<bool>().prop_map(Act::Pause),
        1 => (0..5_usize).prop_map(Act::Partition),
        5 => (1..5_usize).prop_map(Act::Pass),
        2 => (0..6_u64).prop_map(Act::Crash),
        1 => (0..3_u64).prop_map(Act::Lag),
        1 => (0..6_usize, 0..LABELS.len()).prop_map(|(pod, label)| Act::Label(pod, label)),
        1 => (0..6_usize).prop_map(Act::Recreate),
    ]
}

fn strategy() -> impl Strategy<Value = Value> {
    let order = prop_oneof![
        Just(json!({})),
        Just(
            json!({"priorityStrategy": {"weightPriority": [{"weight": 20, "matchSelector": {"matchLabels": {"p": "foo"}}}]}})
        ),
        Just(json!({"priorityStrategy": {"orderPriority": [{"orderedKey": "p"}]}})),
        Just(json!({"scatterStrategy": [{"key": "p", "value": "foo"}]})),
        Just(json!({"scatterStrategy": [{"key": "p", "value": "*"}]})),
    ];
    (order, 1..4_usize).prop_map(|(mut strategy, max)| {
        strategy["maxUnavailable"] = max.into();
        strategy
    })
}

thread_local! {
    /// Worlds at rest, by kind of container and number of pods.
    static BASES: RefCell<BTreeMap<(bool, usize), World>> = RefCell::default();
    /// Sets that want an image and have its revision, by kind of container and image.
    static SETS: RefCell<BTreeMap<(bool, usize), World>> = RefCell::default();
    /// Pods as they were seen in histories, by kind of container.
    static SEEN: [Vec<Value>; 2] = [snapshots(false), snapshots(true)];
}

fn base(is_hot: bool, pods: usize) -> World {
    BASES.with_borrow_mut(|bases| {
        let world = bases.entry((is_hot, pods)).or_insert_with(|| {
            let container = if is_hot { hot("sc", IMAGES[0]) } else { cold("sc", IMAGES[0]) };
            let mut world = World::resting(container, json!({}), pods);
            world.broken.push(IMAGES[3].to_owned());
            world
        });
        world.clone()
    })
}

fn world(is_hot: bool, strategy: &Value, pods: usize) -> World {
    let mut world = base(is_hot, pods);
    world.strategy(strategy.clone());
    world
}

/// What pods are like while images change, also to ones that cannot run.
fn snapshots(is_hot: bool) -> Vec<Value> {
    let mut world = world(is_hot, &json!({"maxUnavailable": 2}), 3);
    let mut seen = Vec::new();
    for (round, image) in [1, 3, 1, 2, 3, 0, 1, 0].into_iter().enumerate() {
        world.lag = round as u64 % 3;
        world.image(IMAGES[image]);
        for _ in 0..9 {
            world.pass();
            seen.extend(world.pods.values().cloned());
            world.tick();
            seen.extend(world.pods.values().cloned());
        }
        if round == 3 {
            world.inject("other", json!({"app": "x"}));
        }
    }
    seen
}

fn do_it(world: &mut World, act: &Act, look: &mut dyn FnMut(&World)) {
    match act {
        Act::Image(image) => world.image(IMAGES[*image]),
        Act::Pause(paused) => world.strategy(json!({"paused": paused})),
        Act::Partition(partition) => world.strategy(json!({"partition": partition})),
        Act::Lag(lag) => world.lag = *lag,
        Act::Label(pod, label) => {
            let pod = format!("p-{}", pod % world.pods.len());
            world.label(&pod, "p", LABELS[*label]);
        }
        Act::Recreate(pod) => {
            let name = format!("p-{}", pod % world.pods.len());
            // New pods get the present image; one that cannot run would be down by nobody's update.
            if world.set["spec"]["containers"][0]["image"] != IMAGES[3] {
                world.pods.remove(&name);
                world.inject(&name, json!({"app": "x"}));
                (0..3).for_each(|_| world.tick());
            }
        }
        Act::Pass(count) => {
            for _ in 0..*count {
                world.pass();
                look(world);
                world.tick();
                look(world);
            }
        }
        Act::Crash(crash) => {
            world.crash = Some(*crash);
            world.pass();
            look(world);
            world.tick();
            look(world);
            world.crash = None;
        }
    }
}

fn down(world: &World) -> usize {
    world.pods.keys().filter(|pod| !world.is_ready(pod)).count()
}

fn serving(pod: &Value) -> Vec<&'static str> {
    let serves = |twin: &&str| {
        let status = container_of(pod, twin);
        status["ready"] == true && status["image"] != format!("docker.io/library/{EMPTY}").as_str()
    };
    ["sc-1", "sc-2"].into_iter().filter(serves).collect()
}

/// The pods whose images a plan changes, with the containers.
fn changed(plan: &Plan) -> Vec<(String, Vec<String>)> {
    let pod = |effect: &Effect| match effect {
        Effect::Patch { target, patch: Patch::Strategic(patch), .. } => {
            let containers = patch.get("spec")?["containers"].as_array()?;
            let names = containers.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
            Some((target.key.name.to_string(), names))
        }
        _ => None,
    };
    plan.steps.iter().map(|step| &step.effect).filter_map(pod).collect()
}

/// A random state: pods as they were seen in histories, and a set that wants one of the images.
#[derive(Clone, Debug)]
struct State {
    is_hot: bool,
    image: usize,
    strategy: Value,
    pods: Vec<(prop::sample::Index, usize)>,
}

fn state() -> impl Strategy<Value = State> {
    let pods = prop::collection::vec((any::<prop::sample::Index>(), 0..LABELS.len()), 0..9);
    let partition = prop_oneof![
        (0..5_i64).prop_map(|kept| json!(kept)),
        (0..100_u8).prop_map(|share| json!(format!("{share}%")))
    ];
    (any::<bool>(), 0..3_usize, strategy(), partition, pods).prop_map(
        |(is_hot, image, mut strategy, partition, pods)| {
            strategy["partition"] = partition;
            State { is_hot, image, strategy, pods }
        },
    )
}

impl State {
    fn observed(&self) -> (Observed, BTreeMap<String, Value>) {
        let mut world = SETS.with_borrow_mut(|sets| {
            let set = sets.entry((self.is_hot, self.image)).or_insert_with(|| {
                let mut world = base(self.is_hot, 1);
                world.image(IMAGES[self.image]);
                world.pass();
                world
            });
            set.clone()
        });
        merge(&mut world.set["spec"]["updateStrategy"], &self.strategy);
        world.pods = SEEN.with(|seen| {
            let library = &seen[usize::from(self.is_hot)];
            let pod = |(number, (index, label)): (usize, &(prop::sample::Index, usize))| {
                let (name, mut pod) = (format!("q-{number}"), index.get(library).clone());
                merge(
                    &mut pod,
                    &json!({"metadata": {"name": name, "uid": name, "labels": {"p": LABELS[*label]}}}),
                );
                (name, pod)
            };
            self.pods.iter().enumerate().map(pod).collect()
        });
        (world.seen(), world.pods)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(STATES))]

    /// One pass takes no more ready pods than the numbers of the specification, and no pod beyond the partition.
    #[test]
    fn a_pass_stays_within_its_numbers(state in state()) {
        let (seen, pods) = state.observed();
        let (plan, standing) = decide(&seen);
        let changed = changed(&plan);
        for (pod, containers) in &changed {
            // A pod that has not started serves nobody yet.
            let serving = serving(&pods[pod]);
            let is_left = |twin: &&str| !containers.iter().any(|one| one == twin);
            let stays = serving.is_empty() || serving.iter().any(is_left);
            prop_assert!(!state.is_hot || stays, "{pod} would stop to serve: {containers:?}");
        }
        if plan.purposes().iter().any(|purpose| !purpose.done(&crate::sidecarset::reference(&seen.set)).is_empty()) {
            prop_assert!(state.is_hot);
            return Ok(());
        }
        let share = |field: &str| match &state.strategy[field] {
            Value::String(text) => text.as_str().into(),
            number => number.as_i64().unwrap().into(),
        };
        let parsed = |field: &str| { let share: kruise_api::int_or_percent::IntOrString = share(field); share.parse().unwrap() };
        let limits = Limits::of(parsed("partition"), parsed("maxUnavailable"), pods.len());
        let not_updated = usize::try_from(standing.matched_pods - standing.updated_pods).unwrap();
        prop_assert!(changed.len() <= not_updated.saturating_sub(limits.kept));
        let is_ready = |pod: &Value| super::kit::condition(pod, "Ready")["status"] == "True";
        let both_images = |pod: &Value| {
            let containers = pod["spec"]["containers"].as_array().unwrap();
            state.is_hot && containers.iter().all(|container| container["image"] != EMPTY)
        };
        let ready = changed.iter().filter(|(pod, _)| is_ready(&pods[pod]) && !both_images(&pods[pod])).count();
        let used = standing.updated_pods - standing.updated_ready_pods.unwrap_or(0);
        prop_assert!(ready <= limits.max_unavailable.saturating_sub(usize::try_from(used).unwrap()));
    }

    /// The order in which a cache gives its objects decides nothing.
    #[test]
    fn order_of_input_decides_nothing(state in state(), by in 0..6_usize) {
        let (seen, _) = state.observed();
        let mut other = seen.clone();
        other.pods.reverse();
        let count = other.pods.len().max(1);
        other.pods.rotate_left(by % count);
        other.revisions.reverse();
        prop_assert_eq!(decide(&seen), decide(&other));
    }

    /// Pods that anybody may have damaged make no plan fail, and give no write without a precondition.
    #[test]
    fn damaged_annotations_harm_only_their_pod(
        state in state(), damage in prop::collection::vec((0..9_usize, 0..6_usize, "[a-z{}\":0-9]{0,12}"), 1..6)
    ) {
        let (mut seen, mut pods) = state.observed();
        let whole = status(&seen).matched_pods;
        let keys = [
            "kruise.io/sidecarset-hash",
            "kruise.io/sidecarset-hash-without-image",
            "kruise.io/sidecarset-inplace-update-state",
            "kruise.io/sidecarset-working-hotupgrade-container",
            "kruise.io/sidecarset-injected-list",
            "version.sidecarset.kruise.io/sc-1",
        ];
        for (pod, key, text) in &damage {
            if let Some(pod) = pods.get_mut(&format!("q-{pod}")) {
                pod["metadata"]["annotations"][keys[*key]] = text.as_str().into();
            }
        }
        seen.pods = pods.values().map(|pod| Arc::new(read(pod))).collect();
        let (plan, standing) = decide(&seen);
        for effect in plan.effects() {
            if let Effect::Patch { target, .. } = effect {
                prop_assert!(target.uid.is_some());
                prop_assert!(target.resource_version.is_some() || target.resource.kind == "ControllerRevision");
            }
        }
        prop_assert!(plan.failures.is_empty());
        let damaged = i32::try_from(damage.len()).unwrap();
        prop_assert!(standing.matched_pods >= whole - damaged);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(HISTORIES))]

    /// Whatever happens, our updates never take more pods down than they may, and where all is well in the end, all pods
    /// get there and nothing is written any more.
    #[test]
    fn budgets_hold_and_updates_arrive(
        strategy in strategy(), pods in 1..6_usize, acts in prop::collection::vec(act(), 1..12)
    ) {
        let mut world = world(false, &strategy, pods);
        let max = usize::try_from(strategy["maxUnavailable"].as_u64().unwrap()).unwrap();
        let mut most = 0;
        let mut look = |world: &World| most = most.max(down(world));
        for act in &acts {
            // A partition that keeps a broken pod is the choice of its user; the numbers of a pass are above.
            if !matches!(act, Act::Partition(_)) {
                do_it(&mut world, act, &mut look);
            }
        }
        world.image("side:v4");
        world.strategy(json!({"paused": false}));
        world.lag = 0;
        world.rest_while(&mut look);
        prop_assert!(most <= max, "{most} pods were down");
        prop_assert_eq!(world.counts(), [i64::try_from(pods).unwrap(); 4]);
        prop_assert!(world.images("sc").iter().all(|image| *image == "side:v4"));
        let resting = plan(&world.seen());
        prop_assert_eq!((resting.steps, resting.waits), (Vec::new(), Waits::default()));
    }

    /// Of two twins one always serves, as long as there is an image that can.
    #[test]
    fn a_hot_upgrade_never_loses_both_containers(
        strategy in strategy(), pods in 1..4_usize, acts in prop::collection::vec(act(), 1..12)
    ) {
        let mut world = world(true, &strategy, pods);
        let mut lost = Vec::new();
        let mut look = |world: &World| {
            let silent = world.pods.iter().filter(|(_, pod)| serving(pod).is_empty());
            lost.extend(silent.map(|(name, _)| name.clone()));
        };
        for act in &acts {
            do_it(&mut world, act, &mut look);
        }
        world.image("side:v4");
        world.strategy(json!({"paused": false, "partition": 0}));
        world.lag = 0;
        world.rest_while(&mut look);
        prop_assert_eq!(lost, Vec::<String>::new());
        prop_assert_eq!(world.counts(), [i64::try_from(pods).unwrap(); 4]);
        let resting = plan(&world.seen());
        prop_assert_eq!((resting.steps, resting.waits), (Vec::new(), Waits::default()));
    }
}
