//! Plans reach the goal on a model whose nodes come, go, get tainted and become unready.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::World;
use crate::{daemonset::view::is_preparing_delete, plan::WriteBudget, pod::Pod};

/// What happens in a story.
#[derive(Clone, Debug)]
enum Deed {
    AddNode,
    RemoveNode(usize),
    Taint(usize, bool),
    Untaint(usize),
    Trouble(usize, bool),
    Image(u8),
    Rolling(Value),
    DeletePod(usize),
    FailPod(usize),
    /// Whether the server takes new pods of a node, and deletions there.
    Refuse(usize, bool, bool),
    /// Whether somebody answers the hooks.
    Answer(bool),
    /// How many pods may be written at once, and how many may exist.
    Room(usize, usize),
    Canary(usize),
    Select(bool),
    Crash(bool),
    Wait,
}

fn strategy_change() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        (1..4_u32)
            .prop_map(|most| json!({"rollingUpdateType": "Standard", "maxUnavailable": most, "maxSurge": 0})),
        (1..4_u32).prop_map(
            |most| json!({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": most, "maxSurge": 0})
        ),
        (1..3_u32)
            .prop_map(|most| json!({"rollingUpdateType": "Standard", "maxUnavailable": 0, "maxSurge": most})),
    ];
    (kind, 0..4_u32, any::<bool>()).prop_map(|(mut rolling, partition, paused)| {
        rolling["partition"] = partition.into();
        rolling["paused"] = paused.into();
        rolling
    })
}

/// What a set is like from the beginning.
fn kind_of_set() -> impl Strategy<Value = Value> {
    let burst = prop_oneof![3 => Just(250), 1 => Just(1), 1 => Just(2)];
    let min_ready = prop_oneof![3 => Just(0), 1 => Just(3)];
    (hook(), burst, min_ready, any::<bool>()).prop_map(|(mut spec, burst, min_ready, partitioned)| {
        let rest = json!({"burstReplicas": burst, "minReadySeconds": min_ready,
            "scaleStrategy": {"partitionedScaling": partitioned}});
        crate::patch_model::merge(&mut spec, &rest);
        spec
    })
}

/// No hook, or one that may make pods not ready.
fn hook() -> impl Strategy<Value = Value> {
    let hooked = |marks: bool| {
        json!({"lifecycle": {"preDelete": {"labelsHandler": {"hold": "yes"}, "markPodNotReady": marks}},
            "template": {"metadata": {"labels": {"hold": "yes"}},
                "spec": {"readinessGates": [{"conditionType": "KruisePodReady"}]}}})
    };
    prop_oneof![2 => Just(json!({})), 1 => Just(hooked(false)), 2 => Just(hooked(true))]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        Just(Deed::AddNode),
        (0..6_usize).prop_map(Deed::RemoveNode),
        (0..6_usize, any::<bool>()).prop_map(|(node, harsh)| Deed::Taint(node, harsh)),
        (0..6_usize).prop_map(Deed::Untaint),
        (0..6_usize, any::<bool>()).prop_map(|(node, bad)| Deed::Trouble(node, bad)),
        (1..5_u8).prop_map(Deed::Image),
        strategy_change().prop_map(Deed::Rolling),
        (0..6_usize).prop_map(Deed::DeletePod),
        (0..6_usize).prop_map(Deed::FailPod),
        (0..6_usize, any::<bool>(), any::<bool>())
            .prop_map(|(node, create, delete)| Deed::Refuse(node, create, delete)),
        any::<bool>().prop_map(Deed::Answer),
        (1..5_usize, 2..9_usize).prop_map(|(write, exist)| Deed::Room(write, exist)),
        (0..6_usize).prop_map(Deed::Canary),
        any::<bool>().prop_map(Deed::Select),
        any::<bool>().prop_map(Deed::Crash),
        Just(Deed::Wait),
    ]
}

fn play(world: &mut World, deed: &Deed, next: &mut usize) {
    let names: Vec<String> = world.nodes.keys().cloned().collect();
    let node = |index: &usize| names.get(*index).cloned();
    match deed {
        Deed::AddNode if world.nodes.len() < 6 => {
            *next += 1;
            world.add_node(&format!("n{next}"));
        }
        Deed::RemoveNode(index) => node(index).iter().for_each(|node| world.remove_node(node)),
        Deed::Taint(index, harsh) => {
            let effect = if *harsh { "NoExecute" } else { "NoSchedule" };
            node(index).iter().for_each(|node| world.taint(node, "k", effect));
        }
        Deed::Untaint(index) => node(index).iter().for_each(|node| world.untaint(node)),
        Deed::Trouble(index, true) => world.bad_nodes.extend(node(index)),
        Deed::Trouble(index, false) => {
            node(index).iter().for_each(|node| {
                world.bad_nodes.remove(node);
            });
        }
        Deed::Image(number) => world.image(&format!("app:v{number}")),
        Deed::Rolling(rolling) => world.rolling(rolling.clone()),
        Deed::DeletePod(index) => node(index).iter().for_each(|node| world.delete_pod(node)),
        Deed::FailPod(index) => {
            if let Some(node) = node(index).filter(|node| !world.on(node).is_empty()) {
                world.phase(&node, "Failed");
            }
        }
        Deed::Refuse(index, create, delete) => {
            if let Some(node) = node(index) {
                for (set, refuses) in [(&mut world.no_create, create), (&mut world.no_delete, delete)] {
                    if *refuses {
                        set.insert(node.clone());
                    } else {
                        set.remove(&node);
                    }
                }
            }
        }
        Deed::Answer(answers) => world.answers = *answers,
        Deed::Room(write, exist) => {
            (world.room, world.quota) = (WriteBudget { pods: *write, status: *write }, *exist);
        }
        Deed::Canary(index) => {
            node(index).iter().for_each(|node| world.label_node(node, "canary", "true"));
        }
        Deed::Select(true) => world.rolling(json!({"selector": {"matchLabels": {"canary": "true"}}})),
        Deed::Select(false) => world.rolling(json!({"selector": null})),
        Deed::Crash(on) => world.crash = on.then_some(world.pods.len() as u64),
        Deed::AddNode | Deed::Wait => {}
    }
}

/// Two pods of one revision never live on one node, besides one that waits for its deletion.
fn no_twins(world: &World) {
    for node in world.nodes.keys() {
        let mut revisions = BTreeSet::new();
        for name in world.on(node) {
            let pod: Pod = serde_json::from_value(world.pods[&name].clone()).unwrap();
            let revision =
                pod.metadata.labels.text("controller-revision-hash").unwrap_or_default().to_owned();
            let lives = pod.is_active() && !is_preparing_delete(&pod);
            assert!(
                !lives || revisions.insert(revision),
                "two pods of one revision on {node}: {}",
                world.images()
            );
        }
    }
}

/// One reconcile. A pod is never made on a node that does not want it.
fn pass(world: &mut World) {
    let known: BTreeSet<String> = world.pods.keys().cloned().collect();
    world.pass();
    no_twins(world);
    for node in world.nodes.keys() {
        let is_new = world.on(node).iter().any(|pod| !known.contains(pod));
        let taints = &world.nodes[node]["spec"]["taints"];
        assert!(!is_new || *taints == json!([]), "a new pod on {node}: {taints}");
    }
}

/// A story is dozens of reconciles with time between them, so fewer of them are tried; `PROPTEST_CASES` makes it more.
const STORIES: u32 = 400;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(STORIES))]

    #[test]
    fn every_node_that_fits_gets_its_pod_whatever_happened(
        deeds in proptest::collection::vec((deed(), 0..4_usize), 1..14),
        slow_end in any::<bool>(),
        spec in kind_of_set(),
    ) {
        let mut world = World::resting(4, spec);
        world.slow_end = slow_end;
        let mut next = 4;
        for (deed, passes) in &deeds {
            play(&mut world, deed, &mut next);
            for _ in 0..*passes {
                pass(&mut world);
                world.tick();
            }
        }
        // Everything is well again.
        world.crash = None;
        world.answers = true;
        (world.room, world.quota) = (WriteBudget::default(), usize::MAX);
        world.no_create.clear();
        world.no_delete.clear();
        world.bad_nodes.clear();
        let names: Vec<String> = world.nodes.keys().cloned().collect();
        names.iter().for_each(|node| world.untaint(node));
        world.rolling(json!({"paused": false, "partition": 0, "selector": null}));
        world.rest_while(&mut no_twins);
        let image = world.set["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
        let image = image.trim_start_matches("app:").to_owned();
        let expected: Vec<String> = names.iter().map(|node| format!("{node}={image}")).collect();
        prop_assert_eq!(world.images(), expected.join(" "));
        let wanted = i64::try_from(names.len()).unwrap();
        prop_assert_eq!(world.number("updatedNumberScheduled"), wanted);
        prop_assert_eq!(world.number("numberAvailable"), wanted);
        prop_assert_eq!(world.number("observedGeneration"), world.set["metadata"]["generation"].as_i64().unwrap());
    }

    /// Nodes that were up go down only as far as the limit lets them, counted with those that are down for other reasons.
    #[test]
    fn an_update_takes_no_more_nodes_down_than_allowed(
        most in 1..4_usize,
        in_place in any::<bool>(),
        images in proptest::collection::vec((2..5_u8, 0..7_usize), 1..5),
        crash in any::<Option<u8>>(),
        hook in hook(),
        refuses in 0..9_usize,
    ) {
        let kind = if in_place { "InPlaceIfPossible" } else { "Standard" };
        let mut spec = hook;
        let rolling = json!({"maxUnavailable": most, "rollingUpdateType": kind});
        crate::patch_model::merge(&mut spec, &json!({"updateStrategy": {"rollingUpdate": rolling}}));
        let mut world = World::resting(5, spec);
        world.crash = crash.map(u64::from);
        world.answers = true;
        world.no_delete.insert(format!("n{refuses}"));
        for (image, passes) in &images {
            world.image(&format!("app:v{image}"));
            for _ in 0..*passes {
                world.pass();
                prop_assert!(world.down() <= most, "{} down: {}", world.down(), world.images());
                world.tick();
                prop_assert!(world.down() <= most, "{} down: {}", world.down(), world.images());
            }
        }
        world.crash = None;
        world.no_delete.clear();
        world.rest_while(&mut |world| assert!(world.down() <= most));
        prop_assert_eq!(world.number("updatedNumberScheduled"), 5);
    }
}
