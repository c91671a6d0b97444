use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kruise_api::lifecycle::State;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::World;
use crate::{
    availability::is_available,
    effect::{Effect, Patch},
    object::{PERSISTENT_VOLUME_CLAIM, POD},
    pod::Pod,
    revision,
    statefulset::{Desired, Observed, Purpose, parts, plan},
    volume_claim::VolumeClaim,
};

/// One pod of a random state.
#[derive(Clone, Debug)]
struct Shape {
    ordinal: i64,
    new: bool,
    ready: bool,
    phase: &'static str,
    specified: bool,
    deleting: bool,
    state: &'static str,
    hooked: bool,
    unreadable: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    let states = [
        "Normal",
        "Normal",
        "Normal",
        "",
        "PreparingNormal",
        "PreparingUpdate",
        "Updated",
        "PreparingDelete",
    ];
    let phases = ["Running", "Running", "Running", "Running", "Pending", "Failed"];
    (
        (0..9_i64, any::<bool>(), 0..4_u8, proptest::sample::select(phases.to_vec())),
        (0..6_u8, 0..8_u8, proptest::sample::select(states.to_vec()), any::<bool>(), 0..20_u8),
    )
        .prop_map(|((ordinal, new, ready, phase), (specified, deleting, state, hooked, unreadable))| {
            Shape {
                ordinal,
                new,
                ready: ready > 0,
                phase,
                specified: specified == 0,
                deleting: deleting == 0,
                state,
                hooked,
                unreadable: unreadable == 0,
            }
        })
}

fn share() -> impl Strategy<Value = Value> {
    prop_oneof![
        (1..4_i64).prop_map(|number| json!(number)),
        (1..100_u32).prop_map(|share| json!(format!("{share}%")))
    ]
}

/// What a strategy of specs is limited to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    Anything,
    OrderedReady,
    /// Updates go by ordinal.
    InOrder,
    /// They do not.
    Unordered,
}

fn spec(only: Only) -> impl Strategy<Value = Value> {
    let policy = proptest::sample::select(vec!["ReCreate", "InPlaceIfPossible", "InPlaceOnly"]);
    (
        (0..7_u32, proptest::collection::vec(0..8_i64, 0..3), 0..4_u8),
        (0..4_u32, share(), policy, 0..8_u8, any::<bool>()),
        (0..6_u8, any::<bool>(), prop_oneof![Just(Value::Null), share()]),
        (0..4_u8, any::<bool>(), any::<bool>()),
    )
        .prop_map(
            move |(
                (replicas, reserved, management),
                (partition, most, policy, paused, unordered),
                (hooks, marks, scale),
                (claims, with_set, with_pod),
            )| {
                let hook = json!({"labelsHandler": {"hold": "yes"}, "markPodNotReady": marks});
                let ordered = (management == 0 && only != Only::Unordered) || only == Only::OrderedReady;
                let unordered = (unordered && only != Only::InOrder) || only == Only::Unordered;
                let retention = |deletes: bool| if deletes { "Delete" } else { "Retain" };
                let rolling = json!({"partition": partition, "maxUnavailable": most, "podUpdatePolicy": policy,
                    "paused": paused == 0, "unorderedUpdate": if unordered && !ordered { json!({}) } else { Value::Null }});
                json!({
                    "replicas": replicas,
                    "reserveOrdinals": reserved,
                    "podManagementPolicy": if ordered { "OrderedReady" } else { "Parallel" },
                    "lifecycle": match hooks { 0 => json!({"preDelete": hook}), 1 => json!({"inPlaceUpdate": hook}), _ => Value::Null },
                    "volumeClaimTemplates": if claims > 0 { claim_templates() } else { Value::Null },
                    "persistentVolumeClaimRetentionPolicy":
                        {"whenDeleted": retention(with_set), "whenScaled": retention(with_pod)},
                    "scaleStrategy": {"maxUnavailable": if ordered { Value::Null } else { scale }},
                    "updateStrategy": {"type": if paused == 1 { "OnDelete" } else { "RollingUpdate" }, "rollingUpdate": rolling},
                })
            },
        )
}

fn claim_templates() -> Value {
    json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}])
}

thread_local! {
    /// A set in the middle of an update from v1 to v2.
    static BASE: Observed = {
        let mut world = World::resting(json!({"replicas": 1}));
        world.image("app:v2");
        world.pass();
        world.seen()
    };
}

fn pod(shape: &Shape, revision: &str) -> Pod {
    let Shape { ordinal, ready, phase, specified, deleting, state, hooked, .. } = shape;
    let mut labels = json!({"app": "web", "controller-revision-hash": revision,
        "statefulset.kubernetes.io/pod-name": format!("web-{ordinal}"), "lifecycle.apps.kruise.io/state": state});
    if *specified {
        labels["apps.kruise.io/specified-delete"] = "true".into();
    }
    if *hooked {
        labels["hold"] = "yes".into();
    }
    let image = if shape.new { "app:v2" } else { "app:v1" };
    let status = if *ready { "True" } else { "False" };
    let mut pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": format!("web-{ordinal}"), "namespace": "default", "uid": format!("uid-{ordinal}"),
            "resourceVersion": "1", "labels": labels,
            "deletionTimestamp": if *deleting { json!("2026-01-01T00:00:00Z") } else { Value::Null },
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "uid": "set-uid", "controller": true}]},
        "spec": {"nodeName": "n", "containers": [{"name": "main", "image": image}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": format!("data-web-{ordinal}")}}],
            "readinessGates": [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]},
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": status, "lastTransitionTime": "2025-12-31T00:00:00Z"},
            {"type": "ContainersReady", "status": status},
            {"type": "InPlaceUpdateReady", "status": "True"}]},
    }))
    .unwrap();
    pod.metadata.unreadable = shape.unreadable;
    pod
}

/// The claim of an ordinal, and who owns it.
fn claim(ordinal: usize, owner: u8) -> Arc<VolumeClaim> {
    let pod = |uid: String| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("web-{ordinal}"), "uid": uid});
    let owners = match owner {
        0 => json!([pod(format!("uid-{ordinal}"))]),
        1 => json!([pod("before".to_owned())]),
        2 => {
            json!([{"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", "uid": "set-uid"}])
        }
        _ => json!([]),
    };
    let claim = json!({"metadata": {"name": format!("data-web-{ordinal}"), "namespace": "default",
        "uid": format!("claim-{ordinal}"), "ownerReferences": owners}, "status": {"phase": "Bound"}});
    Arc::new(serde_json::from_value(claim).unwrap())
}

fn state() -> impl Strategy<Value = Observed> {
    state_of(Only::Anything)
}

fn state_of(only: Only) -> impl Strategy<Value = Observed> {
    let claims = proptest::collection::vec(0..6_u8, 9);
    (spec(only), proptest::collection::vec(shape(), 0..9), claims).prop_map(|(spec, shapes, owners)| {
        let mut seen = BASE.with(Clone::clone);
        let mut set = serde_json::to_value(&*seen.set).unwrap();
        crate::patch_model::merge(&mut set["spec"], &spec);
        seen.set = Arc::new(serde_json::from_value(set).unwrap());
        let mut sorted: Vec<_> = seen.revisions.iter().collect();
        sorted.sort_by_key(|one| one.number);
        let names: Vec<String> = sorted.iter().map(|one| one.name().to_owned()).collect();
        let pods: BTreeMap<i64, Arc<Pod>> = shapes
            .iter()
            .map(|shape| (shape.ordinal, Arc::new(pod(shape, &names[usize::from(shape.new)]))))
            .collect();
        seen.pods = pods.into_values().collect();
        let owners = owners.into_iter().enumerate().filter(|(_, owner)| *owner < 5);
        seen.claims = owners.map(|(ordinal, owner)| claim(ordinal, owner)).collect();
        seen
    })
}

/// What a plan does to pods. One that is taken out of service for a hook is as good as deleted, or changed.
struct Deeds {
    created: Vec<i64>,
    deleted: BTreeSet<i64>,
    changed: BTreeSet<i64>,
}

/// The pod that a write takes out of service before its deletion (true) or its update (false).
fn prepared(effect: &Effect) -> Option<(i64, bool)> {
    let Effect::Patch { target, patch: Patch::Strategic(patch), .. } = effect else { return None };
    if target.resource != POD {
        return None;
    }
    let state = patch["metadata"]["labels"]["lifecycle.apps.kruise.io/state"].as_str();
    let held = patch["status"]["conditions"].as_array().into_iter().flatten();
    let held = held.filter(|one| one["type"] == "KruisePodReady" && one["status"] == "False");
    let held = held.map(|one| one["message"].to_string().contains("preDeleteHook")).next();
    let for_deletion = match state {
        Some("PreparingDelete") => Some(true),
        Some("PreparingUpdate") => Some(false),
        _ => held,
    };
    Some((parts(&target.key.name)?.1, for_deletion?))
}

fn deeds(seen: &Observed) -> Deeds {
    let mut deeds = Deeds { created: Vec::new(), deleted: BTreeSet::new(), changed: BTreeSet::new() };
    let ordinal = |name: &str| parts(name).unwrap().1;
    for step in plan(seen).steps {
        match (&step.purpose, &step.effect) {
            (Purpose::CreatePod(name), _) => deeds.created.push(ordinal(name)),
            (Purpose::DeletePod(name), Effect::Delete { .. }) => drop(deeds.deleted.insert(ordinal(name))),
            (Purpose::UpdateInPlace { pod, .. } | Purpose::PrepareInPlace { pod, .. }, _) => {
                deeds.changed.insert(ordinal(pod));
            }
            (_, effect) => match prepared(effect) {
                Some((ordinal, true)) => drop(deeds.deleted.insert(ordinal)),
                Some((ordinal, false)) => drop(deeds.changed.insert(ordinal)),
                None => {}
            },
        }
        if let Effect::Patch { target, .. } | Effect::Delete { target, .. } = &step.effect {
            let touched =
                seen.pods.iter().find(|pod| target.resource == POD && pod.metadata.name == target.key.name);
            assert!(touched.is_none_or(|pod| !pod.metadata.unreadable), "an unreadable pod was written");
        }
    }
    deeds
}

fn ordinal_of(pod: &Pod) -> i64 {
    parts(&pod.metadata.name).unwrap().1
}

fn serves(seen: &Observed, desired: &Desired, pod: &Pod) -> bool {
    is_available(pod, desired.min_ready, seen.now) && !pod.metadata.is_deleting()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn only_wanted_ordinals_that_nobody_has_are_created(seen in state()) {
        let desired = Desired::of(&seen).unwrap();
        let existing: BTreeSet<i64> = seen.pods.iter().map(|pod| ordinal_of(pod)).collect();
        let created = deeds(&seen).created;
        let once: BTreeSet<i64> = created.iter().copied().collect();
        prop_assert_eq!(once.len(), created.len());
        for ordinal in created {
            prop_assert!(desired.ordinals.contains(ordinal) && !existing.contains(&ordinal));
        }
    }

    #[test]
    fn ordered_ready_creates_a_pod_only_when_all_lower_ones_are_available(seen in state_of(Only::OrderedReady)) {
        let desired = Desired::of(&seen).unwrap();
        let deeds = deeds(&seen);
        prop_assert!(deeds.created.len() <= 1);
        for created in deeds.created {
            for lower in desired.ordinals.iter().take_while(|ordinal| *ordinal < created) {
                let pod = seen.pods.iter().find(|pod| ordinal_of(pod) == lower);
                prop_assert!(pod.is_some_and(|pod| serves(&seen, &desired, pod)));
            }
        }
        let condemned = deeds.deleted.iter().filter(|ordinal| !desired.ordinals.contains(**ordinal)).count();
        prop_assert!(condemned <= 1);
    }

    #[test]
    fn no_more_pods_are_taken_down_than_may_be_unavailable(seen in state()) {
        let desired = Desired::of(&seen).unwrap();
        let deeds = deeds(&seen);
        let serving: BTreeSet<i64> =
            seen.pods.iter().filter(|pod| serves(&seen, &desired, pod)).map(|pod| ordinal_of(pod)).collect();
        let wanted: Vec<i64> = desired.ordinals.iter().collect();
        let down = wanted.iter().filter(|ordinal| !serving.contains(*ordinal)).count();
        let taken = deeds.deleted.union(&deeds.changed);
        let taken = taken.filter(|ordinal| desired.ordinals.contains(**ordinal) && serving.contains(*ordinal)).count();
        let most = if desired.policy.is_some() { desired.max_unavailable } else { 1 };
        prop_assert!(taken == 0 || i64::try_from(down + taken).unwrap() <= most, "{down} down, {taken} taken");
    }

    #[test]
    fn pods_that_the_partition_keeps_are_not_updated(seen in state_of(Only::InOrder)) {
        let desired = Desired::of(&seen).unwrap();
        let deeds = deeds(&seen);
        let kept: Vec<i64> = desired.ordinals.iter().take(usize::try_from(desired.partition).unwrap()).collect();
        for pod in seen.pods.iter().filter(|pod| kept.contains(&ordinal_of(pod))) {
            let is_asked = pod.metadata.labels.contains("apps.kruise.io/specified-delete") || pod.status.phase == "Failed";
            // A deletion that was announced before, and cannot be taken back, is completed.
            let was_begun = crate::lifecycle::is(pod, &State::PreparingDelete);
            prop_assert!(is_asked || was_begun || !deeds.deleted.contains(&ordinal_of(pod)));
            prop_assert!(!deeds.changed.contains(&ordinal_of(pod)));
        }
    }

    #[test]
    fn the_order_of_what_is_seen_does_not_matter(seen in state(), turn in 0..9_usize) {
        let mut shuffled = seen.clone();
        shuffled.pods.reverse();
        let middle = turn.min(shuffled.pods.len());
        shuffled.pods.rotate_left(middle);
        shuffled.revisions.reverse();
        shuffled.claims.reverse();
        prop_assert_eq!(plan(&seen), plan(&shuffled));
    }

    #[test]
    fn unordered_updates_leave_as_many_pods_old_as_the_partition_says(seen in state_of(Only::Unordered)) {
        let desired = Desired::of(&seen).unwrap();
        let newest = seen.revisions.iter().max_by_key(|one| one.number).unwrap();
        let wanted = seen.pods.iter().filter(|pod| desired.ordinals.contains(ordinal_of(pod)));
        let old: BTreeSet<i64> =
            wanted.filter(|pod| !revision::is_on(pod, newest)).map(|pod| ordinal_of(pod)).collect();
        let missing = desired.ordinals.iter().count() - seen.pods.iter().filter(|pod| desired.ordinals.contains(ordinal_of(pod))).count();
        let changed = deeds(&seen).changed.iter().filter(|ordinal| old.contains(*ordinal)).count();
        let left = i64::try_from(old.len() - changed + missing).unwrap();
        prop_assert!(changed == 0 || left >= desired.partition, "{left} left");
    }

    #[test]
    fn a_pod_that_is_wanted_is_not_deleted_while_its_claim_would_be(seen in state()) {
        let desired = Desired::of(&seen).unwrap();
        for step in plan(&seen).steps {
            let Purpose::DeletePod(pod) = &step.purpose else { continue };
            let uid = seen.pods.iter().find(|one| one.metadata.name == *pod).map(|one| one.metadata.uid.clone());
            let name = format!("data-{pod}");
            let owned = seen.claims.iter().filter(|claim| claim.metadata.name.as_str() == name);
            let owned = owned.flat_map(|claim| &claim.metadata.owner_references);
            let dies = owned.filter(|owner| Some(&owner.uid) == uid.as_ref()).count() > 0;
            let is_wanted = desired.ordinals.contains(parts(pod).unwrap().1);
            if desired.claims.is_empty() {
                continue;
            }
            prop_assert!(!(is_wanted && dies), "the claim of {pod} goes with it");
            let keeps = !desired.retention.delete_with_pod;
            prop_assert!(!(keeps && dies), "the claim of {pod} goes with it against whenScaled");
        }
    }

    #[test]
    fn no_claim_is_deleted_and_one_write_is_planned_for_a_pod(seen in state()) {
        let mut written = BTreeSet::new();
        for step in plan(&seen).steps {
            if let Effect::Delete { target, .. } = &step.effect {
                prop_assert!(target.resource != PERSISTENT_VOLUME_CLAIM);
            }
            if let Effect::Patch { target, .. } | Effect::Delete { target, .. } = &step.effect
                && target.resource == POD
            {
                prop_assert!(written.insert(target.key.name.clone()), "{} is written twice", target.key.name);
            }
        }
    }

    #[test]
    fn plans_reach_the_goal_and_stay_there(
        first in spec(Only::Anything),
        second in spec(Only::Anything),
        (passes, breaks, asked) in (0..12_usize, any::<bool>(), 0..12_i64),
    ) {
        let mut world = World::new(first);
        world.edit(json!({"template": {"metadata": {"labels": {"hold": "yes"}}}}));
        let go_on = |world: &mut World| for _ in 0..passes {
            world.pass();
            world.tick();
        };
        go_on(&mut world);
        let is_ordered = world.set["spec"]["podManagementPolicy"] == "OrderedReady";
        // With OrderedReady somebody has to delete a pod that its image broke.
        if breaks && !is_ordered {
            world.broken.push("app:broken".to_owned());
            world.image("app:broken");
            go_on(&mut world);
        }
        if let Some(pod) = world.pods.get_mut(&format!("web-{asked}")) {
            pod["metadata"]["labels"]["apps.kruise.io/specified-delete"] = "true".into();
        }
        let before = Desired::of(&world.seen()).unwrap().ordinals;
        let kept = world.claims.clone();
        let management = world.set["spec"]["podManagementPolicy"].clone();
        world.edit(second);
        world.edit(json!({"podManagementPolicy": management}));
        if management == "OrderedReady" {
            world.edit(json!({"scaleStrategy": null}));
            world.rolling(json!({"unorderedUpdate": null}));
        }
        // Who pauses, or keeps pods on a revision that breaks them, has to go on by hand.
        world.rolling(json!({"paused": false}));
        if breaks {
            world.rolling(json!({"partition": 0}));
            world.edit(json!({"updateStrategy": {"type": "RollingUpdate"}}));
        }
        world.image("app:v2");
        world.rest();
        while world.answer_hooks() {
            world.rest();
        }
        let seen = world.seen();
        let desired = Desired::of(&seen).unwrap();
        for ordinal in before.iter().filter(|ordinal| desired.ordinals.contains(*ordinal)) {
            let name = format!("data-web-{ordinal}");
            if let Some(claim) = kept.get(&name) {
                let now = world.claims.get(&name).map(|claim| &claim["metadata"]["uid"]);
                prop_assert_eq!(now, Some(&claim["metadata"]["uid"]), "the data of {} is lost", ordinal);
            }
        }
        let ordinals: BTreeSet<i64> = seen.pods.iter().map(|pod| ordinal_of(pod)).collect();
        prop_assert_eq!(ordinals, desired.ordinals.iter().collect::<BTreeSet<i64>>());
        prop_assert!(seen.pods.iter().all(|pod| serves(&seen, &desired, pod)));
        if desired.policy.is_some() && !desired.paused {
            let newest = seen.revisions.iter().max_by_key(|one| one.number).unwrap();
            let old = seen.pods.iter().filter(|pod| !revision::is_on(pod, newest)).count();
            prop_assert!(i64::try_from(old).unwrap() <= desired.partition);
        }
        prop_assert_eq!(plan(&seen).steps, Vec::new());
    }
}
