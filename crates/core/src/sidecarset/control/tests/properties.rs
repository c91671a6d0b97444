use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{EMPTY, World, cold, container_of, hot};
use crate::{
    effect::{Effect, Patch},
    sidecarset::control::{Limits, Observed, Plan, plan, status},
};

/// Something that people or machines do.
#[derive(Clone, Debug)]
enum Act {
    /// Another image; the last one cannot run.
    Image(usize),
    Pause(bool),
    Partition(usize),
    /// Passes with time between them.
    Pass(usize),
    /// The same while the manager dies in the middle of each.
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
        Just(json!({"priorityStrategy": {"weightPriority": [{"weight": 20, "matchSelector": {"matchLabels": {"p": "foo"}}}]}})),
        Just(json!({"priorityStrategy": {"orderPriority": [{"orderedKey": "p"}]}})),
        Just(json!({"scatterStrategy": [{"key": "p", "value": "foo"}]})),
        Just(json!({"scatterStrategy": [{"key": "p", "value": "*"}]})),
    ];
    (order, 1..4_usize).prop_map(|(mut strategy, max)| {
        strategy["maxUnavailable"] = max.into();
        strategy
    })
}

fn world(is_hot: bool, strategy: &Value, pods: usize) -> World {
    let container = if is_hot { hot("sc", IMAGES[0]) } else { cold("sc", IMAGES[0]) };
    let mut world = World::resting(container, json!({"updateStrategy": strategy}), pods);
    world.broken.push(IMAGES[3].to_owned());
    world
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
                world.tick();
                world.tick();
                world.tick();
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

fn serves(world: &World, pod: &str) -> bool {
    ["sc-1", "sc-2"].iter().any(|twin| {
        let status = container_of(&world.pods[pod], twin);
        status["ready"] == true && status["image"] != format!("docker.io/library/{EMPTY}").as_str()
    })
}

/// The pods whose images a plan changes.
fn changed(plan: &Plan) -> Vec<String> {
    let pod = |effect: &Effect| match effect {
        Effect::Patch { target, patch: Patch::Strategic(patch), .. } if patch.get("spec").is_some() => {
            Some(target.key.name.to_string())
        }
        _ => None,
    };
    plan.effects.iter().filter_map(pod).collect()
}

/// The same in another order.
fn shuffled(seen: &Observed, by: usize) -> Observed {
    let mut other = seen.clone();
    other.pods.reverse();
    let count = other.pods.len().max(1);
    other.pods.rotate_left(by % count);
    other.revisions.reverse();
    other
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

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
            // A partition that keeps a broken pod is the choice of its user; the next property looks at it.
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
        prop_assert_eq!((resting.effects, resting.reasons), (Vec::new(), Vec::new()));
    }

    /// One pass takes no more ready pods than the numbers of the specification, and no pod beyond the partition.
    #[test]
    fn a_pass_stays_within_its_numbers(
        strategy in strategy(), is_hot in any::<bool>(), pods in 1..6_usize, acts in prop::collection::vec(act(), 1..12)
    ) {
        let mut world = world(is_hot, &strategy, pods);
        for act in &acts {
            do_it(&mut world, act, &mut |_| {});
            let seen = world.seen();
            let (plan, standing) = (plan(&seen), status(&seen));
            let spec = seen.set.spec.update_strategy.clone().unwrap_or_default();
            if plan.purposes.iter().any(|purpose| purpose.done().is_some()) {
                prop_assert!(is_hot);
                continue;
            }
            let limits = Limits::of(
                spec.partition.unwrap_or_else(|| 0.into()).parse().unwrap(),
                spec.max_unavailable.unwrap_or_else(|| 1.into()).parse().unwrap(),
                pods,
            );
            let changed = changed(&plan);
            let not_updated = usize::try_from(standing.matched_pods - standing.updated_pods).unwrap();
            prop_assert!(changed.len() <= not_updated.saturating_sub(limits.kept));
            let both_images = |pod: &str| is_hot && ["sc-1", "sc-2"].iter().all(|twin| world.image_of(pod, twin) != EMPTY);
            let ready = changed.iter().filter(|pod| world.is_ready(pod) && !both_images(pod)).count();
            let used = standing.updated_pods - standing.updated_ready_pods.unwrap_or(0);
            prop_assert!(ready <= limits.max_unavailable.saturating_sub(usize::try_from(used).unwrap()));
        }
    }

    /// Of two twins one always serves, as long as there is an image that can.
    #[test]
    fn a_hot_upgrade_never_loses_both_containers(
        strategy in strategy(), pods in 1..4_usize, acts in prop::collection::vec(act(), 1..12)
    ) {
        let mut world = world(true, &strategy, pods);
        let mut lost = Vec::new();
        let mut look = |world: &World| {
            lost.extend(world.pods.keys().filter(|pod| !serves(world, pod)).cloned());
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
        prop_assert_eq!((resting.effects, resting.reasons), (Vec::new(), Vec::new()));
    }

    /// The order in which a cache gives its objects decides nothing.
    #[test]
    fn order_of_input_decides_nothing(
        strategy in strategy(), is_hot in any::<bool>(), pods in 1..6_usize,
        acts in prop::collection::vec(act(), 1..8), by in 0..6_usize
    ) {
        let mut world = world(is_hot, &strategy, pods);
        for act in &acts {
            do_it(&mut world, act, &mut |_| {});
        }
        let seen = world.seen();
        let other = shuffled(&seen, by);
        prop_assert_eq!(plan(&seen), plan(&other));
        prop_assert_eq!(status(&seen), status(&other));
    }

    /// Pods that anybody may have damaged make no plan fail, and give no write without a precondition.
    #[test]
    fn damaged_annotations_harm_only_their_pod(
        is_hot in any::<bool>(), damage in prop::collection::vec((0..3_usize, 0..6_usize, "[a-z{}\":0-9]{0,12}"), 1..6)
    ) {
        let mut world = world(is_hot, &json!({}), 3);
        world.image("side:v2");
        world.pass();
        let keys = [
            "kruise.io/sidecarset-hash",
            "kruise.io/sidecarset-hash-without-image",
            "kruise.io/sidecarset-inplace-update-state",
            "kruise.io/sidecarset-working-hotupgrade-container",
            "kruise.io/sidecarset-injected-list",
            "version.sidecarset.kruise.io/sc-1",
        ];
        for (pod, key, text) in &damage {
            let pod = world.pods.get_mut(&format!("p-{pod}")).unwrap();
            pod["metadata"]["annotations"][keys[*key]] = text.as_str().into();
        }
        let seen = world.seen();
        let first = plan(&seen);
        for effect in &first.effects {
            if let Effect::Patch { target, .. } = effect {
                prop_assert!(target.uid.is_some() && target.resource_version.is_some());
            }
        }
        prop_assert!(first.failures.is_empty());
        let whole = (0..3).filter(|pod| damage.iter().all(|(damaged, ..)| damaged != pod)).count();
        prop_assert!(usize::try_from(status(&seen).matched_pods).unwrap() >= whole);
    }
}
