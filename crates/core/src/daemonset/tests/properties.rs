//! What holds of every plan, whatever it is made from.

use std::{collections::BTreeSet, sync::Arc};

use jiff::SignedDuration;
use kruise_api::gates::Gate;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::kit::{World, node, time};
use crate::{
    daemonset::{
        Desired, Observed, Purpose,
        manage::Why,
        plan,
        view::{Uids, View, is_preparing_delete},
    },
    effect::{Effect, Patch},
    lifecycle,
    object::POD,
    plan::WriteBudget,
    pod::Pod,
};

/// One pod of a random state.
#[derive(Clone, Debug)]
struct Shape {
    new: bool,
    ready: bool,
    phase: &'static str,
    ending: bool,
    bound: bool,
    state: &'static str,
    hooked: bool,
    /// It was made not ready for an update that has not begun.
    held: bool,
    /// It was made not ready for its deletion, and the state comes next.
    leaves: bool,
    orphan: bool,
    unreadable: bool,
    gate: bool,
    age: i64,
}

fn shape() -> impl Strategy<Value = Shape> {
    let phases = ["Running", "Running", "Running", "Running", "Pending", "Failed", "Succeeded"];
    (
        any::<bool>(),
        0..4_u8,
        proptest::sample::select(phases.to_vec()),
        0..8_u8,
        0..8_u8,
        0..6_u8,
        any::<bool>(),
        (0..9_u8, 0..9_u8, 0..12_u8, 0..20_u8),
        0..4_u8,
        1..20_i64,
    )
        .prop_map(|(new, ready, phase, ending, bound, state, hooked, rare, gate, age)| Shape {
            new,
            ready: ready > 0 && phase == "Running",
            phase,
            ending: ending == 0,
            bound: bound > 0,
            state: if state == 0 { "PreparingDelete" } else { "" },
            hooked,
            held: rare.0 == 0 && !new,
            leaves: rare.1 == 0,
            orphan: rare.2 == 0,
            unreadable: rare.3 == 0,
            gate: gate > 0,
            age,
        })
}

/// A node: whether it exists, its taint, whether it is a canary, its pods, and whether it is ready and refuses pods.
type Site = (bool, Option<&'static str>, bool, Vec<Shape>, (bool, bool));

fn site() -> impl Strategy<Value = Site> {
    let taint = prop_oneof![6 => Just(None), 1 => Just(Some("NoSchedule")), 1 => Just(Some("NoExecute"))];
    let pods = prop_oneof![
        6 => proptest::collection::vec(shape(), 1..2),
        1 => Just(Vec::new()),
        1 => proptest::collection::vec(shape(), 2..4),
    ];
    let nature = (0..8_u8, 0..6_u8).prop_map(|(ready, refuses)| (ready > 0, refuses == 0));
    ((0..8_u8).prop_map(|exists| exists > 0), taint, any::<bool>(), pods, nature)
}

fn spec() -> impl Strategy<Value = Value> {
    let limits = prop_oneof![
        3 => (1..4_u32).prop_map(|most| json!({"maxUnavailable": most, "maxSurge": 0})),
        1 => (1..90_u32).prop_map(|most| json!({"maxUnavailable": format!("{most}%"), "maxSurge": 0})),
        2 => (1..4_u32).prop_map(|most| json!({"maxUnavailable": 0, "maxSurge": most})),
    ];
    let partition = prop_oneof![3 => Just(json!(0)), 2 => (0..7_u32).prop_map(|kept| json!(kept)), 1 => (0..100_u32).prop_map(|kept| json!(format!("{kept}%")))];
    (limits, partition, 0..8_u8, 0..6_u8, any::<bool>(), 0..4_u8, any::<bool>()).prop_map(
        |(mut rolling, partition, kind, hook, in_place, selector, partitioned)| {
            rolling["partition"] = partition;
            rolling["paused"] = (kind == 0).into();
            if in_place && rolling["maxSurge"] == 0 {
                rolling["rollingUpdateType"] = "InPlaceIfPossible".into();
            }
            if selector == 0 {
                rolling["selector"] = json!({"matchLabels": {"canary": "true"}});
            }
            json!({
                "burstReplicas": if kind == 2 { json!(1) } else { json!(250) },
                "minReadySeconds": if kind == 3 { 5 } else { 0 },
                "lifecycle": if hook < 2 {
                    json!({"preDelete": {"labelsHandler": {"hold": "yes"}, "markPodNotReady": hook == 0}})
                } else {
                    Value::Null
                },
                "scaleStrategy": {"partitionedScaling": partitioned},
                "updateStrategy": {"type": if kind == 1 { "OnDelete" } else { "RollingUpdate" }, "rollingUpdate": rolling},
            })
        },
    )
}

thread_local! {
    /// A set with two revisions, made once: the slow part of a random state.
    static BASE: Observed = {
        let mut world = World::resting(1, json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}}));
        world.image("app:v2");
        world.rest();
        world.seen()
    };
}

/// A random state: a set in the middle of an update from v1 to v2, with nodes and pods in any condition.
fn state() -> impl Strategy<Value = Observed> {
    let budget = prop_oneof![3 => Just(usize::MAX), 1 => 1..6_usize];
    let rest = (any::<u64>(), budget, 0..4_u8, 0..5_u8);
    (spec(), proptest::collection::vec(site(), 1..8), rest).prop_map(|(spec, sites, rest)| {
        let (seed, budget, prunes, refused) = rest;
        let mut seen = BASE.with(Clone::clone);
        seen.write_budget = WriteBudget { pods: budget, status: budget };
        if prunes == 0 {
            seen.gates = Arc::new((*seen.gates).clone().with(Gate::DaemonSetPruneIneligibleNodes));
        }
        let mut set = serde_json::to_value(&*seen.set).unwrap();
        crate::patch_model::merge(&mut set["spec"], &spec);
        seen.set = Arc::new(serde_json::from_value(set).unwrap());
        seen.seed = seed;
        let mut sorted: Vec<_> = seen.revisions.iter().collect();
        sorted.sort_by_key(|one| one.number);
        let hashes: Vec<String> =
            sorted.iter().map(|one| crate::revision::short_hash(one.name()).to_owned()).collect();
        seen.nodes.clear();
        seen.pods.clear();
        for (index, (exists, taint, canary, shapes, (is_ready, refuses))) in sites.iter().enumerate() {
            let name = format!("n{index}");
            if *refuses {
                seen.backoff.deleted(seen.set.metadata.generation, &name.as_str().into(), time());
                let purpose = Purpose::CreatePod { pod: "new".into(), node: name.as_str().into() };
                seen.refused.note(&purpose, false);
                seen.refused.note(&Purpose::DeletePod(format!("agent-{index}-0").into()), false);
            }
            if *exists {
                let mut node = node(&name, &json!({"canary": canary.to_string()}));
                let taints: Vec<Value> =
                    taint.iter().map(|effect| json!({"key": "k", "effect": effect})).collect();
                node["spec"]["taints"] = taints.into();
                node["status"]["conditions"][0]["status"] = json!(if *is_ready { "True" } else { "Unknown" });
                seen.nodes.push(Arc::new(serde_json::from_value(node).unwrap()));
            }
            for (number, shape) in shapes.iter().enumerate() {
                let hash = &hashes[usize::from(shape.new)];
                let mut pod = pod(&name, &format!("agent-{index}-{number}"), shape, hash);
                pod.metadata.unreadable = shape.unreadable;
                if refused == 0 && shape.gate && !shape.new {
                    let name = &pod.metadata.name;
                    seen.refusals.refuse(&hashes[1].as_str().into(), name, "no", false, time());
                }
                seen.pods.push(Arc::new(pod));
            }
        }
        seen
    })
}

fn pod(node: &str, name: &str, shape: &Shape, hash: &str) -> Pod {
    let image = if shape.new { "app:v2" } else { "app:v1" };
    let truth = |truth: bool| if truth { "True" } else { "False" };
    let mut labels = json!({"app": "agent", "controller-revision-hash": hash});
    if !shape.state.is_empty() {
        labels["lifecycle.apps.kruise.io/state"] = shape.state.into();
    }
    if shape.hooked {
        labels["hold"] = "yes".into();
    }
    let since = time() - SignedDuration::from_secs(shape.age);
    let mut gates = vec![json!({"conditionType": "KruisePodReady"})];
    gates.extend(shape.gate.then(|| json!({"conditionType": "InPlaceUpdateReady"})));
    let ready = truth(shape.ready && !(shape.held && shape.gate) && !shape.leaves);
    let aim = json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]});
    let mut conditions = vec![
        json!({"type": "Ready", "status": ready, "lastTransitionTime": since.to_string()}),
        json!({"type": "ContainersReady", "status": ready}),
    ];
    if shape.gate {
        conditions.push(json!({"type": "InPlaceUpdateReady", "status": truth(!shape.held)}));
    }
    if shape.leaves {
        let message = json!([{"userAgent": "Lifecycle", "key": "preDeleteHook"}]).to_string();
        conditions.push(json!({"type": "KruisePodReady", "status": "False", "message": message}));
    }
    let owner = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "DaemonSet", "name": "agent", "uid": "set-uid",
        "controller": true});
    let owners = if shape.orphan { json!([]) } else { json!([owner]) };
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "labels": labels, "creationTimestamp": since.to_string(),
            "deletionTimestamp": shape.ending.then(|| since.to_string()),
            "ownerReferences": owners},
        "spec": {"nodeName": if shape.bound { node } else { "" }, "readinessGates": gates,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": aim}},
            "containers": [{"name": "main", "image": image}]},
        "status": {"phase": shape.phase, "conditions": conditions,
            "containerStatuses": [{"name": "main", "image": image, "imageID": image, "ready": shape.ready}]},
    }))
    .unwrap()
}

/// The nodes of new pods.
fn created(plan: &crate::plan::Plan<crate::daemonset::Purpose>) -> Vec<String> {
    let object = |effect: &Effect| match effect {
        Effect::Create { resource: POD, object, .. } => {
            Some(serde_json::from_value::<Pod>(object.clone()).unwrap().node().to_string())
        }
        _ => None,
    };
    plan.steps.iter().filter_map(|step| object(&step.effect)).collect()
}

/// The pods that a plan takes out of service: deleted, made not ready, changed, or held by a hook.
fn taken<'a>(seen: &'a Observed, plan: &crate::plan::Plan<crate::daemonset::Purpose>) -> Vec<&'a Pod> {
    let is_hit = |pod: &&Pod| {
        plan.steps.iter().any(|step| match &step.effect {
            Effect::Delete { target, .. } => target.resource == POD && target.key.name == pod.metadata.name,
            Effect::Patch { target, patch: Patch::Strategic(patch), .. } => {
                let text = patch.to_string();
                target.resource == POD
                    && target.key.name == pod.metadata.name
                    && (text.contains("StartInPlaceUpdate")
                        || text.contains("inplace-update-state")
                        || text.contains("PreparingDelete")
                        || text.contains("preDeleteHook"))
            }
            _ => false,
        })
    };
    seen.pods.iter().map(AsRef::as_ref).filter(is_hit).collect()
}

fn with_view<T>(seen: &Observed, look: impl FnOnce(&View<'_>) -> T) -> T {
    let desired = Desired::of(&seen.set, &seen.gates, true).unwrap();
    look(&View::new(seen, &desired))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn the_order_of_what_is_seen_does_not_matter(seen in state()) {
        let mut turned = seen.clone();
        turned.pods.reverse();
        turned.nodes.reverse();
        turned.revisions.reverse();
        prop_assert_eq!(plan(&seen), plan(&turned));
    }

    #[test]
    fn pods_are_made_only_where_they_are_wanted_and_one_on_a_node(seen in state()) {
        let plan = plan(&seen);
        let nodes = created(&plan);
        prop_assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), nodes.len());
        with_view(&seen, |view| {
            for node in &nodes {
                let place = &view.places[node.as_str()];
                prop_assert!(place.fit.should_run);
                let lives = |pod: &&&Pod| !pod.metadata.is_deleting() && view.is_updated(pod) && pod.is_active()
                    && !crate::daemonset::view::is_preparing_delete(pod);
                prop_assert!(place.pods.iter().find(lives).is_none(), "a second pod of one revision on {}", node);
                prop_assert!(view.surges() || place.pods.is_empty());
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_more_nodes_lose_their_available_pod_than_the_limit_allows(seen in state()) {
        let plan = plan(&seen);
        let taken: BTreeSet<&str> = taken(&seen, &plan).iter().map(|pod| pod.metadata.uid.as_str()).collect();
        with_view(&seen, |view| {
            if view.surges() || view.desired.rolling.is_none() {
                return Ok(());
            }
            let (mut before, mut lost) = (0, 0);
            // Of several pods the oldest stays, whichever is ready: that is no matter of the update, but such a node is down.
            let managed = crate::daemonset::manage::run(view);
            let leaving: Uids<'_> = managed.delete.iter().map(|one| &one.pod.metadata.uid).collect();
            // Nodes that the partition leaves out are not counted, neither here nor by the update.
            let rolling = view.desired.rolling.as_ref().unwrap();
            for place in crate::daemonset::rollout::choose(view, rolling, &leaving) {
                let serves = |pod: &&&Pod| {
                    !pod.metadata.is_deleting() && !leaving.contains(&pod.metadata.uid) && view.is_available(pod)
                };
                let stays = |pod: &&&Pod| serves(pod) && !taken.contains(pod.metadata.uid.as_str());
                before += usize::from(place.pods.iter().find(serves).is_none());
                lost += usize::from(place.pods.iter().find(serves).is_some() && place.pods.iter().find(stays).is_none());
            }
            let most = view.limits.max_unavailable.saturating_sub(before);
            prop_assert!(lost <= most, "{} nodes lose their pod, {} were down, {} may be", lost, before, view.limits.max_unavailable);
            Ok(())
        })?;
    }

    #[test]
    fn a_surge_takes_no_available_pod_before_its_successor_is_available(seen in state()) {
        let plan = plan(&seen);
        let taken = taken(&seen, &plan);
        with_view(&seen, |view| {
            if !view.surges() {
                return Ok(());
            }
            let managed = crate::daemonset::manage::run(view);
            let is_surplus = |pod: &Pod| {
                let mut deletions = managed.delete.iter().filter(|one| one.pod.metadata.uid == pod.metadata.uid);
                deletions.any(|one| one.why == Why::Surplus)
            };
            for pod in taken.iter().filter(|pod| view.is_available(pod)) {
                let place = &view.places[pod.node().as_str()];
                if !place.fit.should_continue {
                    continue;
                }
                let other = place.pods.iter().any(|other| {
                    other.metadata.uid != pod.metadata.uid && !taken.iter().any(|one| one.metadata.uid == other.metadata.uid)
                        // Of two pods of one revision the older one stays, whichever is ready.
                        && (view.is_available(other)
                            || (is_surplus(pod) && view.is_updated(other) == view.is_updated(pod)))
                });
                prop_assert!(other, "{} has no successor", pod.metadata.name);
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_partition_is_kept(seen in state()) {
        let plan = plan(&seen);
        let taken: BTreeSet<&str> = taken(&seen, &plan).iter().map(|pod| pod.metadata.uid.as_str()).collect();
        with_view(&seen, |view| {
            // What leaves its node for another reason is none of the update's business.
            let managed = crate::daemonset::manage::run(view);
            let others: BTreeSet<&str> = managed.delete.iter().map(|one| one.pod.metadata.uid.as_str()).collect();
            let rolling = view.desired.rolling.as_ref().filter(|rolling| !rolling.paused);
            let updated = taken.iter().filter(|uid| !others.contains(**uid)).count();
            let Some(rolling) = rolling else {
                prop_assert_eq!(updated, 0);
                return Ok(());
            };
            let leaving = managed.delete.iter().map(|one| &one.pod.metadata.uid).collect();
            let chosen = crate::daemonset::rollout::choose(view, rolling, &leaving);
            let nodes: BTreeSet<&str> = chosen.iter().map(|place| place.name).collect();
            for pod in seen.pods.iter().filter(|pod| taken.contains(pod.metadata.uid.as_str())) {
                if others.contains(pod.metadata.uid.as_str()) {
                    continue;
                }
                prop_assert!(nodes.contains(pod.node().as_str()) && !view.is_updated(pod));
                if let Some(selector) = &rolling.selector {
                    let place = &view.places[pod.node().as_str()];
                    let node = place.node.unwrap();
                    let is_begun = place.pods.iter().any(|one| view.is_updated(one)) || place.pods.len() > 1;
                    prop_assert!(is_begun || selector.accepts(|key| node.metadata.labels.text(key)));
                }
            }
            Ok(())
        })?;
    }

    /// Nobody else would make a pod ready again that was made not ready for its deletion.
    #[test]
    fn a_deletion_that_was_begun_goes_on(mut seen in state()) {
        seen.write_budget = WriteBudget::default();
        let written = plan(&seen).written(POD);
        with_view(&seen, |view| {
            let hook = view.desired.pre_delete.as_ref();
            let places = view.places.values().filter(|place| place.node.is_some() && !place.is_unreadable());
            let begun = |pod: &&&Pod| !pod.metadata.is_deleting() && is_preparing_delete(pod);
            let nodes = places.flat_map(|place| place.pods.iter().filter(begun));
            let open: Vec<&&Pod> = nodes.filter(|pod| !written.contains(&pod.metadata.name)).collect();
            let has_room = view.limits.burst > 1;
            for pod in open {
                let waits = lifecycle::is_hooked(hook, pod)
                    && lifecycle::prepare_delete(pod, hook, view.now()).is_none();
                prop_assert!(waits || !has_room, "{} is forgotten", pod.metadata.name);
            }
            Ok(())
        })?;
    }

    /// What the server refused last time does not take the place of what it may take.
    #[test]
    fn what_was_refused_comes_last(seen in state()) {
        with_view(&seen, |view| {
            let managed = crate::daemonset::manage::run(view);
            let leaving: Uids<'_> = managed.delete.iter().map(|one| &one.pod.metadata.uid).collect();
            let Some(rolling) = &view.desired.rolling else { return Ok(()) };
            let rollout = crate::daemonset::rollout::run(view, rolling, &leaving);
            let is_refused = |node: &&str| {
                let pods = view.places[*node].pods.iter();
                let mut pods = pods.filter(|pod| !leaving.contains(&pod.metadata.uid) && !pod.metadata.is_deleting());
                if view.surges() { view.seen.refused.has_node(node) } else { pods.any(|pod| view.seen.refused.has_pod(pod)) }
            };
            let waits = rollout.next.iter().any(|node| !is_refused(node));
            let took = rollout.replace.iter().filter(|pod| view.is_available(pod));
            let refused_first = took.filter(|pod| view.seen.refused.has_pod(pod)).count();
            prop_assert!(!waits || refused_first == 0, "{:?} wait for what is refused", rollout.next);
            Ok(())
        })?;
    }

    #[test]
    fn no_more_pods_are_written_than_there_is_room_for(seen in state()) {
        let plan = plan(&seen);
        let endpoint = |wanted| move |effect: &&&Effect| effect.endpoint() == Some((POD, wanted));
        let count = |wanted| plan.effects().iter().filter(endpoint(wanted)).count();
        // Each of changes, deletions and new pods has room for one.
        prop_assert!(count(None) <= seen.write_budget.pods.max(3));
        prop_assert!(count(Some("status")) <= seen.write_budget.status);
    }

    #[test]
    fn a_pod_is_written_once_and_only_where_that_was_seen(seen in state()) {
        let plan = plan(&seen);
        let mut written = BTreeSet::new();
        for step in &plan.steps {
            if let Effect::Patch { target, .. } | Effect::Delete { target, .. } = &step.effect
                && target.resource == POD
            {
                prop_assert!(written.insert(target.key.name.clone()), "{} is written twice", target.key.name);
                prop_assert!(target.uid.is_some());
            }
        }
    }
}
