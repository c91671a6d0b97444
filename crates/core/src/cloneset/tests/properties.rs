use std::sync::Arc;

use kruise_api::gates::Gate;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{World, time};
use crate::{
    cloneset::{Desired, Observed, Plan, Purpose, plan, view::View},
    effect::Effect,
    lifecycle,
    object::POD,
    plan::WriteBudget,
    pod::Pod,
    revision::is_on,
};

/// One pod of a random state.
#[derive(Clone, Debug)]
struct Shape {
    new: bool,
    ready: bool,
    node: bool,
    specified: bool,
    state: &'static str,
    hooked: bool,
    grace: bool,
    /// It was made not ready for an update that has not begun.
    held: bool,
    ready_since: i64,
}

fn shape() -> impl Strategy<Value = Shape> {
    let states = [
        "Normal",
        "Normal",
        "Normal",
        "",
        "PreparingNormal",
        "PreparingUpdate",
        "Updating",
        "Updated",
        "PreparingDelete",
    ];
    (
        any::<bool>(),
        0..4_u8,
        0..8_u8,
        0..6_u8,
        proptest::sample::select(states.to_vec()),
        any::<bool>(),
        0..9_u8,
        1..20_i64,
    )
        .prop_map(|(new, ready, node, specified, state, hooked, grace, ready_since)| Shape {
            new,
            ready: ready > 0,
            node: node > 0,
            specified: specified == 0,
            state,
            hooked,
            grace: grace == 0 && new && state == "Updating",
            held: grace == 1 && !new,
            ready_since,
        })
}

fn share() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..4_i64).prop_map(|number| json!(number)),
        (0..100_u32).prop_map(|share| json!(format!("{share}%")))
    ]
}

fn spec() -> impl Strategy<Value = Value> {
    let policy = proptest::sample::select(vec!["ReCreate", "InPlaceIfPossible", "InPlaceOnly"]);
    (0..9_u32, share(), share(), share(), policy, 0..8_u8, 0..6_u8, prop_oneof![Just(Value::Null), share()]).prop_map(
        |(replicas, partition, max_unavailable, max_surge, policy, paused, hooks, scale)| {
            let hook = json!({"labelsHandler": {"hold": "yes"}});
            json!({
                "replicas": replicas,
                "lifecycle": match hooks { 0 => json!({"preDelete": hook}), 1 => json!({"inPlaceUpdate": hook}), _ => Value::Null },
                "scaleStrategy": {"maxUnavailable": scale, "excludePreparingDelete": hooks == 0 && paused % 2 == 0},
                "updateStrategy": {"type": if paused == 1 { "OnDelete" } else { "RollingUpdate" }, "rollingUpdate": {
                    "partition": partition, "maxUnavailable": max_unavailable,
                    "maxSurge": if policy == "InPlaceOnly" { json!(0) } else { max_surge },
                    "podUpdatePolicy": policy, "paused": paused == 0}},
            })
        },
    )
}

/// Most pods of a set do not wait for anything: only among such does an update begin.
fn calm(shape: Shape) -> Shape {
    match shape.state {
        "PreparingDelete" => Shape { hooked: true, ..shape },
        _ => Shape { state: "Normal", node: true, specified: false, hooked: false, grace: false, ..shape },
    }
}

fn pods() -> impl Strategy<Value = Vec<Shape>> {
    prop_oneof![
        proptest::collection::vec(shape(), 0..10),
        proptest::collection::vec(shape().prop_map(calm), 0..10),
    ]
}

/// A random state: a set in the middle of an update from v1 to v2, with pods in any condition.
fn state() -> impl Strategy<Value = Observed> {
    (spec(), pods(), any::<bool>(), any::<u64>()).prop_map(|(spec, pods, rollback, seed)| {
        let mut seen = BASE.with(Clone::clone);
        let mut set = serde_json::to_value(&*seen.set).unwrap();
        super::kit::merge(&mut set["spec"], &spec);
        seen.set = Arc::new(serde_json::from_value(set).unwrap());
        seen.seed = seed;
        if rollback {
            seen.gates = Arc::new(seen.gates.as_ref().clone().with(Gate::CloneSetPartitionRollback));
        }
        let names: Vec<&str> = {
            let mut sorted: Vec<_> = seen.revisions.iter().collect();
            sorted.sort_by_key(|one| one.number);
            sorted.iter().map(|one| one.name()).collect()
        };
        seen.pods = pods
            .iter()
            .enumerate()
            .map(|(index, shape)| Arc::new(pod(index, shape, names[usize::from(shape.new)])))
            .collect();
        seen
    })
}

thread_local! {
    /// A set with two revisions, made once: the slow part of a random state.
    static BASE: Observed = {
        let mut world = World::resting(json!({"replicas": 1, "updateStrategy": {"rollingUpdate": {"partition": 1}}}));
        world.image("app:v2");
        world.rest();
        world.seen()
    };
}

fn pod(index: usize, shape: &Shape, revision: &str) -> Pod {
    let image = if shape.new && !shape.grace { "app:v2" } else { "app:v1" };
    let truth = |truth: bool| if truth { "True" } else { "False" };
    let mut labels = json!({"app": "web", "controller-revision-hash": revision,
        "pod-template-hash": revision.rsplit_once('-').unwrap().1, "apps.kruise.io/cloneset-instance-id": format!("id{index}")});
    if !shape.state.is_empty() {
        labels["lifecycle.apps.kruise.io/state"] = shape.state.into();
    }
    if shape.specified {
        labels["apps.kruise.io/specified-delete"] = "true".into();
    }
    if shape.hooked {
        labels["hold"] = "yes".into();
    }
    let annotations = if shape.grace {
        json!({"apps.kruise.io/inplace-update-state": json!({"revision": revision, "updateTimestamp": "2026-01-01T00:00:00Z", "lastContainerStatuses": null}).to_string(),
            "apps.kruise.io/inplace-update-grace": json!({"revision": revision, "containerImages": {"main": "app:v2"}, "graceSeconds": 100_000}).to_string()})
    } else {
        json!({})
    };
    let since = time() - jiff::SignedDuration::from_secs(shape.ready_since);
    serde_json::from_value(json!({
        "metadata": {"name": format!("web-p{index}"), "namespace": "default", "uid": format!("uid-{index}"), "resourceVersion": "1",
            "labels": labels, "annotations": annotations, "creationTimestamp": since.to_string(),
            "ownerReferences": [{"kind": "CloneSet", "name": "web", "uid": "set-uid", "controller": true}]},
        "spec": {"nodeName": if shape.node { "n1" } else { "" }, "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
            "containers": [{"name": "main", "image": image}]},
        "status": {"phase": if shape.node { "Running" } else { "Pending" },
            "conditions": [
                {"type": "Ready", "status": truth(shape.ready && shape.node && !shape.held), "lastTransitionTime": since.to_string()},
                {"type": "ContainersReady", "status": truth(shape.ready && shape.node && !shape.held)},
                {"type": "InPlaceUpdateReady", "status": truth(!shape.grace && !shape.held)},
            ],
            "containerStatuses": [{"name": "main", "image": image, "imageID": image, "ready": shape.ready}]},
    }))
    .unwrap()
}

/// The pods that a plan takes out of service: deleted, made not ready, changed, or held by a hook.
fn taken<'a>(seen: &'a Observed, plan: &Plan) -> Vec<&'a Pod> {
    let hit = |pod: &&Pod| {
        plan.effects().into_iter().any(|effect| match effect {
            Effect::Delete { target, .. } => target.resource == POD && target.key.name == pod.metadata.name,
            Effect::Patch { target, patch, .. }
                if target.resource == POD && target.key.name == pod.metadata.name =>
            {
                let text = format!("{patch:?}");
                text.contains("StartInPlaceUpdate")
                    || text.contains("\"Updating\"")
                    || text.contains("\"Preparing")
            }
            _ => false,
        })
    };
    seen.pods.iter().map(AsRef::as_ref).filter(hit).collect()
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn never_takes_more_pods_down_than_the_budget(seen in state()) {
        let plan = plan(&seen);
        let desired = Desired::of(&seen).unwrap();
        let view = View::new(&seen, &desired);
        let available = count(view.pods.iter().filter(|pod| view.is_available(pod)).count());
        let down = count(taken(&seen, &plan).iter().filter(|pod| view.is_available(pod)).count());
        prop_assert!(down == 0 || available - down >= desired.replicas - desired.max_unavailable,
            "{available} available, {down} taken down, {} wanted, {} may be away", desired.replicas, desired.max_unavailable);
    }

    #[test]
    fn never_makes_more_pods_than_the_surge_allows(seen in state()) {
        let plan = plan(&seen);
        let desired = Desired::of(&seen).unwrap();
        let made = plan.purposes().iter().filter(|one| matches!(one, Purpose::CreatePod(_))).count();
        let waiting = seen.pods.iter().filter(|pod| lifecycle::is(pod, &kruise_api::lifecycle::State::PreparingDelete)).count();
        let left_out = if desired.exclude_preparing_delete { waiting } else { 0 };
        let all = count(seen.pods.len() - left_out + made);
        prop_assert!(made == 0 || all <= desired.replicas + desired.max_surge);
    }

    #[test]
    fn no_pod_goes_beyond_the_partition(seen in state()) {
        let plan = plan(&seen);
        let desired = Desired::of(&seen).unwrap();
        let view = View::new(&seen, &desired);
        let revisions = view.revisions();
        let started = plan.steps.iter().map(|step| &step.purpose).filter(|one| matches!(one, Purpose::UpdateInPlace { .. } | Purpose::ReCreate { .. } | Purpose::Replace { .. }));
        let started = count(started.count());
        let (new, old): (Vec<&Pod>, Vec<&Pod>) = view.pods.iter().copied()
            .filter(|pod| !lifecycle::is(pod, &kruise_api::lifecycle::State::PreparingDelete))
            .partition(|pod| is_on(pod, &revisions.update));
        let forward = (count(old.len()) - desired.partition).max(0);
        let back = (count(new.len()) - (desired.replicas - desired.partition)).max(0);
        prop_assert!(started <= forward.max(back), "{started} started, {forward} forward, {back} back");
        prop_assert!(!desired.paused && desired.policy.is_some() || started == 0);
    }

    #[test]
    fn the_order_of_caches_does_not_matter(seen in state(), turn in 0..10_usize) {
        let mut shuffled = seen.clone();
        let turn = if shuffled.pods.is_empty() { 0 } else { turn % shuffled.pods.len() };
        shuffled.pods.rotate_left(turn);
        shuffled.pods.reverse();
        shuffled.revisions.reverse();
        prop_assert_eq!(plan(&shuffled), plan(&seen));
    }

    #[test]
    fn effects_name_each_pod_once(seen in state()) {
        let plan = plan(&seen);
        let mut names: Vec<&str> = plan.effects().into_iter().filter_map(|effect| match effect {
            Effect::Patch { target, .. } | Effect::Delete { target, .. } if target.resource == POD => Some(target.key.name.as_str()),
            _ => None,
        }).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        prop_assert_eq!(names.len(), all);
    }

    #[test]
    fn a_state_that_is_as_wanted_gives_an_empty_plan(spec in spec(), seed in any::<u64>()) {
        let mut seen = BASE.with(Clone::clone);
        let mut set = serde_json::to_value(&*seen.set).unwrap();
        super::kit::merge(&mut set["spec"], &spec);
        let replicas = usize::try_from(spec["replicas"].as_u64().unwrap()).unwrap();
        seen.set = Arc::new(serde_json::from_value(set).unwrap());
        seen.seed = seed;
        let desired = Desired::of(&seen).unwrap();
        let mut sorted: Vec<_> = seen.revisions.iter().map(|one| (one.number, one.name().to_owned())).collect();
        sorted.sort();
        let normal = Shape { new: true, ready: true, node: true, specified: false, state: "Normal", hooked: true, grace: false, held: false, ready_since: 5 };
        seen.pods = (0..replicas).map(|index| {
            let new = count(index) >= desired.partition;
            Arc::new(pod(index, &Shape { new, ..normal.clone() }, &sorted[usize::from(new)].1))
        }).collect();
        prop_assert_eq!(plan(&seen).steps, vec![]);
    }
}

/// What people do, in any order, to a set that is running.
#[derive(Clone, Debug)]
enum Deed {
    Replicas(u32),
    Image(u8),
    Partition(u32),
    Pause(bool),
    Delete(usize),
    Specify(usize),
    /// Other labels: the set lets it go.
    Release(usize),
    /// It ends by itself.
    Fail(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (0..6_u32).prop_map(Deed::Replicas),
        (1..4_u8).prop_map(Deed::Image),
        (0..6_u32).prop_map(Deed::Partition),
        any::<bool>().prop_map(Deed::Pause),
        (0..6_usize).prop_map(Deed::Delete),
        (0..6_usize).prop_map(Deed::Specify),
        (0..6_usize).prop_map(Deed::Release),
        (0..6_usize).prop_map(Deed::Fail),
    ]
}

impl World {
    fn does(&mut self, deed: &Deed) {
        match deed {
            Deed::Replicas(replicas) => self.edit(json!({"replicas": replicas})),
            Deed::Image(version) => self.image(&format!("app:v{version}")),
            Deed::Partition(partition) => self.rolling(json!({"partition": partition})),
            Deed::Pause(paused) => self.rolling(json!({"paused": paused})),
            Deed::Delete(index) => {
                if let Some(name) = self.names().get(*index) {
                    self.delete_pod(name);
                }
            }
            Deed::Specify(index) => {
                if let Some(name) = self.names().get(*index) {
                    self.label(name, "apps.kruise.io/specified-delete", "true");
                }
            }
            Deed::Release(index) => {
                if let Some(name) = self.names().get(*index) {
                    self.label(name, "app", "other");
                }
            }
            Deed::Fail(index) => {
                if let Some(name) = self.names().get(*index) {
                    self.pods.get_mut(name).unwrap()["status"]["phase"] = "Failed".into();
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    /// CLONESET-34: also when the process dies after any part of a plan.
    #[test]
    fn plans_reach_the_goal_and_stay_there(
        surge in 0..3_u32, away in 1..3_u32, policy in proptest::sample::select(vec!["ReCreate", "InPlaceIfPossible", "InPlaceOnly"]),
        hooked in any::<bool>(), rollback in any::<bool>(), room in 1..5_usize, slow_end in any::<bool>(), claims in any::<bool>(), crash in proptest::option::of(0..9_u64), deeds in proptest::collection::vec((deed(), 0..4_usize), 1..8),
    ) {
        let mut world = World::new(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {
            "maxSurge": if policy == "InPlaceOnly" { 0 } else { surge }, "maxUnavailable": away, "podUpdatePolicy": policy}}}));
        world.slow_end = slow_end;
        world.room = WriteBudget { pods: room, status: room };
        if rollback {
            world = world.with_gate(Gate::CloneSetPartitionRollback);
        }
        if hooked {
            world.answers = true;
            world.edit(json!({
                "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"update": "hold"}}, "preDelete": {"labelsHandler": {"delete": "hold"}}},
                "template": {"metadata": {"labels": {"app": "web", "update": "hold", "delete": "hold"}}},
            }));
        }
        if claims {
            world.edit(json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}], "scaleStrategy": {"enablePVCReuse": slow_end}}));
        }
        for (deed, passes) in &deeds {
            world.does(deed);
            world.passes(*passes);
            // Then the process dies in the middle of a few passes.
            world.crash = crash.map(|crash| crash + *passes as u64);
            world.passes(*passes);
            world.crash = None;
        }
        world.rolling(json!({"paused": false}));
        world.rest();
        let seen = world.seen();
        let desired = Desired::of(&seen).unwrap();
        let view = View::new(&seen, &desired);
        let revisions = view.revisions();
        let old = count(view.pods.iter().filter(|pod| !is_on(pod, &revisions.update)).count());
        prop_assert_eq!(count(view.pods.len()), desired.replicas);
        prop_assert!(old <= desired.partition);
        prop_assert!(view.pods.iter().all(|pod| view.is_available(pod)));
        if claims {
            // With reuse the claim of a pod that a person deleted waits for a later pod.
            let is_whole = |pod: &String| world.claims.contains_key(&format!("data-{pod}"));
            prop_assert!(world.names().iter().all(is_whole));
            prop_assert!(slow_end || world.claims.len() == world.pods.len());
        }
        prop_assert_eq!(plan(&seen).steps, vec![]);
    }
}
