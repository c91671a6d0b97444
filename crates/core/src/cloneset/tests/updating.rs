use kruise_api::gates::Gate;
use serde_json::{Value, json};

use super::kit::World;
use crate::cloneset::Purpose;
use crate::waiting::Reason;

fn in_place(more: Value) -> Value {
    let mut spec = json!({"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}}});
    super::kit::merge(&mut spec, &more);
    spec
}

fn updated(world: &World) -> usize {
    world.images().iter().filter(|image| **image == "app:v2").count()
}

/// CLONESET-20
#[test]
fn pods_are_replaced_one_after_the_other() {
    let mut world = World::resting(json!({}));
    let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.image("app:v2");
    world.rest_while(&mut |world| assert!(world.available() >= 4 && world.pods.len() <= 5));
    assert!(updated(&world) == 5 && before.iter().all(|uid| !world.uids().contains(&uid.as_str())));
    assert_eq!(world.set["status"]["currentRevision"], world.set["status"]["updateRevision"]);
    assert_eq!(world.count("SuccessfulUpdatePodReCreate"), 5, "told once for each pod");
    assert!(world.events[0].starts_with("SuccessfulUpdatePodReCreate successfully patch pod web-"));
    assert!(world.events[0].contains(" specified-delete for update(revision web-"));
}

/// The label is a message to a later pass: it is left out where that pass would only delete the pod.
#[test]
fn only_pods_that_something_holds_are_labelled_before_they_are_replaced() {
    let hook = json!({"preDelete": {"labelsHandler": {"app": "web"}}});
    for (spec, labelled) in [
        (json!({}), false),
        (json!({"lifecycle": hook}), true),
        (json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}}), true),
    ] {
        let mut world = World::resting(spec);
        world.image("app:v2");
        let mut begun = Vec::new();
        for _ in 0..4 {
            begun.extend(world.pass().purposes());
            world.tick();
        }
        let first =
            begun.iter().find(|one| matches!(one, Purpose::ReCreate { .. } | Purpose::Replace { .. }));
        assert_eq!(matches!(first, Some(Purpose::ReCreate { .. })), labelled, "{begun:?}");
        assert!(world.count("SuccessfulUpdatePodReCreate") > 0, "both ways tell of it");
    }
}

/// CLONESET-21
#[test]
fn a_surge_rounds_what_may_be_unavailable_down() {
    for (surge, least, most) in [(0, 2, 3), (1, 3, 4)] {
        let mut world =
            World::resting(json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"maxSurge": surge}}}));
        world.image("app:v2");
        world.rest_while(&mut |world| assert!(world.available() >= least && world.pods.len() <= most));
        assert_eq!((updated(&world), world.pods.len()), (3, 3));
    }
}

/// CLONESET-22
#[test]
fn the_partition_keeps_old_pods() {
    for policy in ["ReCreate", "InPlaceIfPossible"] {
        let mut world = World::resting(
            json!({"updateStrategy": {"rollingUpdate": {"partition": 3, "podUpdatePolicy": policy}}}),
        );
        world.image("app:v2");
        for (partition, expected) in [(3, 2), (1, 4), (0, 5)] {
            world.rolling(json!({"partition": partition}));
            world.rest();
            assert_eq!(updated(&world), expected);
            assert_eq!(world.set["status"]["expectedUpdatedReplicas"], expected);
            let is_over = world.set["status"]["currentRevision"] == world.set["status"]["updateRevision"];
            assert_eq!(is_over, partition == 0);
        }
    }
}

/// CLONESET-23
#[test]
fn a_partition_in_percent_lets_one_pod_through() {
    for (replicas, partition, expected) in [(4, "99%", 1), (1, "50%", 0), (4, "100%", 0), (1, "0%", 1)] {
        let mut world = World::resting(
            json!({"replicas": replicas, "updateStrategy": {"rollingUpdate": {"partition": partition}}}),
        );
        world.image("app:v2");
        world.rest();
        assert_eq!(updated(&world), expected, "{replicas} {partition}");
    }
}

/// CLONESET-24
#[test]
fn a_larger_partition_takes_pods_back_only_with_the_gate() {
    for (gate, expected) in [(false, 2), (true, 0)] {
        let mut world = World::new(in_place(json!({})));
        if gate {
            world = world.with_gate(Gate::CloneSetPartitionRollback);
        }
        world.rest();
        world.rolling(json!({"partition": 3}));
        world.image("app:v2");
        world.rest();
        assert_eq!(updated(&world), 2);
        world.rolling(json!({"partition": 5}));
        world.rest();
        assert_eq!(updated(&world), expected);
    }
}

/// CLONESET-24, with a hook: each pod that goes back asks it once, and is where it should be in the end.
#[test]
fn pods_that_are_taken_back_wait_for_their_hook() {
    let mut world = World::new(in_place(json!({
        "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"h": "true"}}},
        "template": {"metadata": {"labels": {"app": "web", "h": "true"}}},
    })))
    .with_gate(Gate::CloneSetPartitionRollback);
    world.rest();
    world.rolling(json!({"partition": 3}));
    world.image("app:v2");
    release_in_turn(&mut world, 2);
    assert_eq!(updated(&world), 2);
    world.rolling(json!({"partition": 5}));
    release_in_turn(&mut world, 2);
    assert_eq!(updated(&world), 0);
    assert!(world.names().iter().all(|name| world.state(name) == "Normal"));
}

/// Lets so many pods through their hooks, one after the other.
fn release_in_turn(world: &mut World, count: usize) {
    for _ in 0..count {
        world.rest();
        let waits = |name: &String| world.state(name) == "PreparingUpdate";
        let name = world.names().into_iter().find(waits).expect("a pod waits for its hook");
        world.label(&name, "h", "false");
        world.rest();
        assert_eq!(world.state(&name), "Updated");
        world.label(&name, "h", "true");
    }
    world.rest();
}

/// CLONESET-25
#[test]
fn scaling_during_a_partition_keeps_the_old_pods() {
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}}));
    world.image("app:v2");
    world.rest();
    world.edit(json!({"replicas": 8}));
    world.rest();
    assert_eq!((updated(&world), world.pods.len()), (5, 8));
    world.edit(json!({"replicas": 4}));
    world.rest();
    assert_eq!((updated(&world), world.pods.len()), (1, 4));
}

/// Recorded from the original: changes of replicas and partition, and where they come to rest.
#[test]
fn replicas_and_partition_come_to_rest_where_the_original_does() {
    let mut sets: std::collections::BTreeMap<&str, World> = Default::default();
    let mut compared = 0;
    for line in include_str!("../../../tests/recorded/scale-and-partition.tsv").lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let share = |text: &str| {
            text.parse::<i64>().map_or_else(|_| json!(text.trim_matches('"')), |number| json!(number))
        };
        let number = |index: usize| cells[index].parse::<usize>().unwrap();
        let world = sets.entry(cells[0]).or_insert_with(|| {
            let mut world = World::resting(json!({"replicas": number(3), "updateStrategy": {"rollingUpdate": {
                "podUpdatePolicy": "InPlaceIfPossible", "maxSurge": share(cells[1]), "maxUnavailable": share(cells[2]),
                "partition": number(3)}}}));
            world.image("app:v2");
            world.rest();
            world
        });
        let old = world.pods.len() - updated(world);
        assert_eq!((old, updated(world)), (number(3), number(4)), "before {line}");
        world.edit(json!({"replicas": number(5)}));
        world.rolling(json!({"partition": share(cells[6])}));
        world.rest();
        let old = world.pods.len() - updated(world);
        assert_eq!((old, updated(world)), (number(7), number(8)), "{line}");
        compared += 1;
        // The original began a new update where one had ended.
        if old == 0 && updated(world) > 0
            || world.set["status"]["currentRevision"] == world.set["status"]["updateRevision"]
        {
            sets.remove(cells[0]);
        }
    }
    assert_eq!(compared, 75);
}

/// CLONESET-26
#[test]
fn a_paused_update_changes_no_pod() {
    let mut world = World::resting(in_place(json!({})));
    world.rolling(json!({"paused": true, "maxSurge": 2}));
    world.image("app:v2");
    world.rest();
    assert_eq!((updated(&world), world.pods.len()), (0, 5));
    world.edit(json!({"replicas": 6}));
    world.rest();
    assert_eq!(world.available(), 6, "a new pod becomes ready all the same");
    world.rolling(json!({"paused": false}));
    world.rest();
    assert_eq!((updated(&world), world.pods.len()), (6, 6));
}

/// CLONESET-27
#[test]
fn a_broken_image_stops_after_one_pod_and_that_one_is_mended_first() {
    for policy in ["ReCreate", "InPlaceIfPossible"] {
        let mut world = World::resting(
            json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "podUpdatePolicy": policy}}}),
        );
        world.broken.push("nosuch:v1".into());
        world.image("nosuch:v1");
        world.passes(30);
        assert_eq!(world.images(), ["app:v1", "app:v1", "app:v1", "app:v1", "nosuch:v1"]);
        assert_eq!(world.available(), 4);
        world.image("app:v2");
        let mut mended = false;
        world.rest_while(&mut |world| {
            assert!(world.available() >= 4);
            mended |= !world.images().contains(&"nosuch:v1");
            assert!(mended || updated(world) == 0, "the broken pod comes first");
        });
        assert_eq!(updated(&world), 5);
    }
}

/// CLONESET-28
#[test]
fn even_broken_pods_are_updated_by_and_by() {
    let mut world = World::new(
        json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2, "podUpdatePolicy": "InPlaceIfPossible"}}}),
    );
    world.broken.push("nosuch:v1".into());
    world.image("nosuch:v1");
    world.passes(10);
    assert_eq!(world.available(), 0);
    world.image("app:v2");
    let mut most = 0;
    world.rest_while(&mut |world| {
        let waiting = updated(world).saturating_sub(world.available());
        most = most.max(waiting);
    });
    assert_eq!((updated(&world), most), (5, 2));
}

/// CLONESET-29
#[test]
fn going_back_to_the_old_template_moves_only_what_it_must() {
    let mut world = World::resting(in_place(json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}})));
    world.image("app:v2");
    world.rest();
    assert_eq!(updated(&world), 2);
    world.image("app:v1");
    world.rest();
    assert_eq!(updated(&world), 2);
    world.rolling(json!({"partition": 0}));
    world.rest();
    assert_eq!(updated(&world), 0);
    let mut numbers: Vec<i64> =
        world.revisions.values().map(|one| one["revision"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
}

/// CLONESET-30
#[test]
fn with_a_surge_new_pods_come_first_and_old_ones_are_updated_in_place() {
    let mut world = World::resting(in_place(json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 2}}})));
    let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.image("app:v2");
    let mut most = 0;
    world.rest_while(&mut |world| {
        assert!(world.available() >= 4, "{}", world.available());
        most = most.max(world.pods.len());
    });
    assert_eq!((most, world.pods.len(), updated(&world)), (7, 5, 5));
    let kept = before.iter().filter(|uid| world.uids().contains(&uid.as_str())).count();
    assert_eq!(kept, 3);
    assert_eq!((world.count("SuccessfulUpdatePodInPlace"), world.count("SuccessfulDelete")), (3, 2));
}

/// CLONESET-31: one that got past admission stays, and that is told.
#[test]
fn in_place_only_never_replaces_a_pod() {
    let mut world = World::resting(
        json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly"}}}),
    );
    let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.image("app:v2");
    world.rest();
    assert_eq!(updated(&world), 2);
    world.edit(json!({"template": {"spec": {"containers": [{"name": "main", "image": "app:v2", "env": [{"name": "A", "value": "b"}]}]}}}));
    world.passes(5);
    assert_eq!(world.uids(), before);
    let message = world.condition("FailedUpdate")["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("find Pod web-")
            && message.ends_with(" update strategy is InPlaceOnly but can not update in-place")
    );
}

/// CLONESET-32
#[test]
fn on_delete_waits_for_people() {
    let mut world = World::resting(json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}));
    world.image("app:v2");
    world.rest();
    assert_eq!(updated(&world), 0);
    for name in world.names().drain(..2) {
        world.delete_pod(&name);
    }
    world.rest();
    assert_eq!(updated(&world), 2);
    world.edit(json!({"replicas": 3}));
    world.rest();
    assert_eq!((updated(&world), world.pods.len()), (2, 3));
    let old = world
        .pods
        .iter()
        .find(|(_, pod)| pod["spec"]["containers"][0]["image"] == "app:v1")
        .unwrap()
        .0
        .clone();
    world.label(&old, "apps.kruise.io/specified-delete", "true");
    world.rest();
    assert_eq!(updated(&world), 3);
    world.edit(json!({"replicas": 5}));
    world.rest();
    assert_eq!(updated(&world), 5);
}

fn claims(size: &str) -> Value {
    json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": size}}}}]})
}

fn sizes(world: &World) -> Vec<&str> {
    world
        .claims
        .values()
        .map(|one| one["spec"]["resources"]["requests"]["storage"].as_str().unwrap())
        .collect()
}

/// CLONESET-33
#[test]
fn other_claims_replace_pods_only_with_the_gate() {
    for gate in [false, true] {
        let mut world = World::new(in_place(json!({"replicas": 2})));
        if gate {
            world = world.with_gate(Gate::RecreatePodWhenChangeVCTInCloneSetGate);
        }
        world.edit(claims("1Gi"));
        world.rest();
        let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
        world.edit(claims("2Gi"));
        world.image("app:v2");
        world.rest();
        assert_eq!(
            (world.uids() == before, sizes(&world)),
            if gate { (false, vec!["2Gi", "2Gi"]) } else { (true, vec!["1Gi", "1Gi"]) }
        );
        let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
        world.edit(claims("3Gi"));
        world.rest();
        assert_eq!(world.uids(), before, "claims alone are no update");
        world.image("app:v3");
        world.rest();
        assert_eq!(world.uids() == before, !gate);
        assert_eq!(sizes(&world), if gate { ["3Gi", "3Gi"] } else { ["1Gi", "1Gi"] });
    }
}

/// CLONESET-35, CLONESET-36: whatever comes in between, the last template wins.
#[test]
fn many_changes_in_a_row_end_with_the_last() {
    for policy in ["ReCreate", "InPlaceIfPossible"] {
        let mut world = World::resting(json!({
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "podUpdatePolicy": policy}},
            "volumeClaimTemplates": claims("1Gi")["volumeClaimTemplates"],
        }));
        for (image, replicas) in [("app:v3", 10), ("app:v4", 10), ("app:v2", 3)] {
            world.image(image);
            world.edit(json!({"replicas": replicas}));
            world.passes(2);
        }
        world.rest();
        assert_eq!((updated(&world), world.pods.len(), world.claims.len()), (3, 3, 3));
    }
}

/// CLONESET-36: what only a revision in between has changed is changed too.
#[test]
fn each_container_ends_with_the_last_template_also_where_only_one_in_between_changed_it() {
    let images = |first: &str, second: &str| json!({"template": {"spec": {"containers": [{"name": "a", "image": first}, {"name": "b", "image": second}]}}});
    let mut world = World::resting(in_place(images("a:v1", "b:v1")));
    let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.edit(images("a:v1", "b:v2"));
    world.passes(4);
    world.edit(images("a:v2", "b:v2"));
    world.passes(4);
    world.edit(images("a:v2", "b:v1"));
    world.rest();
    assert_eq!(world.uids(), before);
    for pod in world.pods.values() {
        let containers = &pod["spec"]["containers"];
        assert_eq!([&containers[0]["image"], &containers[1]["image"]], ["a:v2", "b:v1"]);
    }
    assert_eq!(world.available(), 5);
}

/// CLONESET-37
#[test]
fn switching_to_short_labels_updates_nothing() {
    let mut world = World::resting(json!({"updateStrategy": {"rollingUpdate": {"partition": 3}}}));
    world.image("app:v2");
    world.rest();
    let before = world.pods.clone();
    world = world.with_gate(Gate::CloneSetShortHash);
    world.rest();
    assert_eq!(world.pods, before);
    world.edit(json!({"replicas": 6}));
    world.rest();
    let new = world.pods.iter().find(|(name, _)| !before.contains_key(*name)).unwrap().1;
    let labels = &new["metadata"]["labels"];
    assert_eq!(labels["controller-revision-hash"], labels["pod-template-hash"]);
    assert_eq!(updated(&world), 3);
}

/// CLONESET-45: the original read 33.3% as none and never went on.
#[test]
fn a_third_is_a_share_too() {
    let mut world = World::resting(json!({"replicas": 9, "updateStrategy": {"rollingUpdate": {
        "maxUnavailable": "33.3%", "podUpdatePolicy": "InPlaceIfPossible"}}}));
    world.image("app:v2");
    let mut most = 0;
    world.rest_while(&mut |world| most = most.max(9 - world.available()));
    assert_eq!((most, updated(&world)), (3, 9));
}

/// CLONESET-49, and pods whose revision is gone: they are replaced.
#[test]
fn pods_of_old_releases_get_only_the_label_that_they_lack() {
    let mut world = World::resting(in_place(json!({"replicas": 2})));
    for pod in world.pods.values_mut() {
        let labels = pod["metadata"]["labels"].as_object_mut().unwrap();
        labels.remove("pod-template-hash");
        labels.remove("lifecycle.apps.kruise.io/state");
    }
    let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.rest();
    assert_eq!(world.uids(), before);
    for pod in world.pods.values() {
        let labels = &pod["metadata"]["labels"];
        assert_eq!(
            format!("web-{}", labels["pod-template-hash"].as_str().unwrap()),
            labels["controller-revision-hash"].as_str().unwrap()
        );
        assert_eq!(labels.get("lifecycle.apps.kruise.io/state"), None);
    }
    world.revisions.clear();
    world.image("app:v2");
    world.rest();
    assert!(updated(&world) == 2 && before.iter().all(|uid| !world.uids().contains(&uid.as_str())));
}

/// INPLACE-1, INPLACE-26: the way of each pod through its hooks, and the events.
#[test]
fn a_hook_holds_each_pod_before_and_after_its_update() {
    let mut world = World::resting(in_place(json!({
        "replicas": 2,
        "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"h": "true"}}},
        "template": {"metadata": {"labels": {"app": "web", "h": "true"}}},
    })));
    world.image("app:v2");
    world.rest();
    let first = world.names().into_iter().find(|name| world.state(name) == "PreparingUpdate").unwrap();
    assert_eq!(updated(&world), 0);
    world.label(&first, "h", "false");
    world.rest();
    assert_eq!((updated(&world), world.state(&first)), (1, "Updated"));
    assert_eq!(world.available(), 1);
    world.label(&first, "h", "true");
    world.passes(4);
    assert_eq!(world.state(&first), "Normal");
    let second = world.names().into_iter().find(|name| *name != first).unwrap();
    world.rest();
    assert_eq!(world.state(&second), "PreparingUpdate");
    let revision = world.set["status"]["updateRevision"].as_str().unwrap();
    assert_eq!(
        world.events,
        [format!("SuccessfulUpdatePodInPlace successfully update pod {first} in-place(revision {revision})")]
    );
}

/// WAITING-11, WAITING-12: hooks and updates that last are reported, those that are over soon are not.
#[test]
fn pods_that_wait_for_long_say_what_for() {
    let hook = json!({"labelsHandler": {"h": "true"}});
    let hooked = |name: &str| {
        in_place(json!({
            "replicas": 2,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}},
            "lifecycle": {name: hook},
            "template": {"metadata": {"labels": {"app": "web", "h": "true"}}},
        }))
    };
    let mut updates = World::resting(hooked("inPlaceUpdate"));
    updates.image("app:v2");
    let mut deletes = World::resting(hooked("preDelete"));
    deletes.edit(json!({"replicas": 0}));
    for (world, reason, hook) in [
        (&mut updates, Reason::InPlaceHook, "inPlaceUpdate"),
        (&mut deletes, Reason::PreDeleteHook, "preDelete"),
    ] {
        world.passes(4);
        assert_eq!(world.pass().waits.sentence(reason), None, "it may be over soon");
        world.passes(12);
        let names = world.names();
        let expected = format!(
            "2 pods wait for their {hook} hook ({}): label h=true is still on {}",
            names.join(", "),
            names[0]
        );
        assert_eq!(world.pass().waits.sentence(reason), Some(expected.as_str()));
    }
    let mut stuck = World::resting(in_place(json!({"replicas": 1})));
    let name = stuck.names().remove(0);
    stuck.image("app:v2");
    stuck.passes(2);
    for _ in 0..20 {
        // The node does not start its container anew.
        let status = stuck.pods[&name]["status"]["containerStatuses"].clone();
        stuck.passes(1);
        stuck.pods.get_mut(&name).unwrap()["status"]["containerStatuses"] = status;
    }
    let waits = stuck.pass().waits;
    let sentence = waits.sentence(Reason::InPlaceUpdateRunning).unwrap_or_default();
    assert!(sentence.starts_with(&format!("1 pod is being updated in place ({name}): ")), "{waits:?}");
}

/// INPLACE-44: the others go on, and the condition names the pod.
#[test]
fn a_pod_that_cannot_be_read_holds_up_nobody_else() {
    let mut world = World::resting(in_place(
        json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 3}}}),
    ));
    let bad = world.names().remove(0);
    world.pods.get_mut(&bad).unwrap()["metadata"]["annotations"]["apps.kruise.io/inplace-update-state"] =
        "{".into();
    world.passes(3);
    let message = world.condition("FailedUpdate")["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with(&format!("pod default/{bad} has an annotation")), "{message}");
    world.image("app:v2");
    world.passes(12);
    assert_eq!(updated(&world), 3);
    assert_eq!(world.condition("FailedUpdate"), Value::Null, "a new update replaces the annotation");
}

/// INPLACE-14: a pod in its grace period is counted and left alone, also when the policy changes.
#[test]
fn a_grace_period_ends_in_place() {
    let mut world = World::resting(in_place(json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {
        "inPlaceUpdateStrategy": {"gracePeriodSeconds": 8}}}})));
    world.image("app:v2");
    world.passes(4);
    assert_eq!((updated(&world), &world.set["status"]["updatedReplicas"]), (0, &json!(1)));
    let first: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.rolling(json!({"podUpdatePolicy": "ReCreate"}));
    world.rest();
    assert_eq!(updated(&world), 2);
    assert_eq!(first.iter().filter(|uid| world.uids().contains(&uid.as_str())).count(), 1);
}

/// INPLACE-18, CLONESET-5: counted as unavailable while it is resized.
#[test]
fn new_amounts_of_cpu_reach_every_pod() {
    let resources = |cpu: &str| {
        json!({"template": {"spec": {"containers": [
        {"name": "main", "image": "app:v1", "resources": {"requests": {"cpu": cpu}}}]}}})
    };
    let mut world = World::new(in_place(resources("100m"))).with_gate(Gate::InPlaceWorkloadVerticalScaling);
    world.rest();
    let before: Vec<String> = world.uids().into_iter().map(str::to_owned).collect();
    world.edit(resources("200m"));
    let mut fewest = 5;
    world.rest_while(&mut |world| fewest = fewest.min(world.available()));
    assert_eq!(
        (world.uids().iter().eq(&before), fewest),
        (true, 4),
        "one at a time, and counted as unavailable"
    );
    assert!(
        world.pods.values().all(|pod| pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m")
    );
}

/// INPLACE-41
#[test]
fn images_are_pulled_ahead_of_a_slow_update() {
    let mut world = World::new(in_place(json!({}))).with_gate(Gate::PreDownloadImageForInPlaceUpdate);
    world.rest();
    world.rolling(json!({"partition": 4, "inPlaceUpdateStrategy": {"imagePreDownloadParallelism": 2}}));
    world.image("app:v2");
    world.rest();
    let revision = world.set["status"]["updateRevision"].as_str().unwrap().to_owned();
    let (name, job) = world.jobs.iter().next().unwrap();
    assert_eq!(*name, format!("{revision}-main"));
    let hash = revision.rsplit_once('-').unwrap().1;
    assert_eq!(job["metadata"]["labels"], json!({"app": "web", "controller.kubernetes.io/hash": hash}));
    assert_eq!(
        job["spec"],
        json!({
            "image": "app:v2", "parallelism": 2,
            "podSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [
                {"key": "controller-revision-hash", "operator": "NotIn", "values": [revision, hash]}]},
            "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": 300},
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 600},
            "sandboxConfig": {"labels": {"app": "web", "controller.kubernetes.io/hash": hash}},
        })
    );
    assert_eq!(
        world.revisions[&revision]["metadata"]["labels"]["apps.kruise.io/pre-predownload-created"],
        "true"
    );
    assert!(
        world.events.contains(&format!("CreatedImagePullJob created ImagePullJob {name} for image: app:v2"))
    );
    world.rolling(json!({"partition": 0}));
    world.rest();
    assert!(world.jobs.is_empty() && updated(&world) == 5);
    let mut small =
        World::new(in_place(json!({"replicas": 3}))).with_gate(Gate::PreDownloadImageForInPlaceUpdate);
    small.rest();
    small.image("app:v2");
    small.rest();
    assert!(small.jobs.is_empty());
    let revision = small.set["status"]["updateRevision"].as_str().unwrap();
    assert_eq!(
        small.revisions[revision]["metadata"]["labels"]["apps.kruise.io/image-predownload-ignored"],
        "true"
    );
}

/// A job that is there already pulls the image as well, whoever made it; it is not ours to delete.
#[test]
fn a_job_of_somebody_else_that_has_the_name_is_as_good() {
    let mut world = World::new(in_place(json!({}))).with_gate(Gate::PreDownloadImageForInPlaceUpdate);
    world.rest();
    world.rolling(json!({"partition": 4}));
    world.image("app:v2");
    let old: Vec<String> = world.revisions.keys().cloned().collect();
    world.pass();
    let revision = world.revisions.keys().find(|name| !old.contains(name)).unwrap().clone();
    let job = format!("{revision}-main");
    world
        .jobs
        .insert(job.clone(), json!({"metadata": {"name": job, "namespace": "default", "uid": "theirs"}}));
    world.rest();
    let labels = &world.revisions[&revision]["metadata"]["labels"];
    assert_eq!(labels["apps.kruise.io/pre-predownload-created"], "true");
    assert_eq!(world.count("FailedCreateImagePullJob"), 0);
    world.rolling(json!({"partition": 0}));
    world.rest();
    assert_eq!((updated(&world), world.jobs.len()), (5, 1));
}

/// INPLACE-24, INPLACE-27: with a hold the pod is not ready while it waits, and only then.
#[test]
fn a_hook_that_makes_pods_not_ready_holds_them_until_it_is_released() {
    let mut world = World::resting(in_place(json!({
        "replicas": 1,
        "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"h": "true"}, "markPodNotReady": true}},
        "template": {"metadata": {"labels": {"app": "web", "h": "true"}}},
    })));
    let name = world.names().remove(0);
    let gates = json!([{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]);
    let pod = world.pods.get_mut(&name).unwrap();
    pod["spec"]["readinessGates"] = gates;
    pod["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "KruisePodReady", "status": "True"}));
    let is = |world: &World, kind: &str| -> Value {
        let conditions = world.pods[&name]["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|one| one["type"] == kind).unwrap()["status"].clone()
    };
    world.image("app:v2");
    world.rest();
    assert_eq!((world.state(&name), is(&world, "KruisePodReady")), ("PreparingUpdate", json!("False")));
    assert_eq!(is(&world, "InPlaceUpdateReady"), "True", "its containers do not change yet");
    world.label(&name, "h", "wait");
    world.rest();
    assert_eq!((world.state(&name), is(&world, "KruisePodReady")), ("Updated", json!("True")));
    world.image("app:v3");
    world.rest();
    assert_eq!(
        (world.state(&name), is(&world, "KruisePodReady")),
        ("PreparingUpdate", json!("False")),
        "asked again"
    );
    assert_eq!(world.pods[&name]["metadata"]["labels"]["h"], "true");
    world.image("app:v2");
    world.rest();
    assert_eq!((world.state(&name), is(&world, "KruisePodReady")), ("Normal", json!("True")));
}

/// A higher partition ends the wait of pods for their hook, whether the hook has let them go or not: otherwise they are
/// unavailable for as long as the partition stays, and the surge that replaced them cannot be deleted.
#[test]
fn pods_that_the_partition_keeps_return_from_their_hook_to_service() {
    let mut world = World::resting(in_place(json!({
        "replicas": 3,
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}},
        "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"h": "true"}}},
        "template": {"metadata": {"labels": {"app": "web", "h": "true"}}},
    })));
    world.image("app:v2");
    world.rest();
    let waiting = |world: &World| {
        world.names().into_iter().filter(|name| world.state(name) == "PreparingUpdate").count()
    };
    assert_eq!((waiting(&world), world.available()), (2, 1));
    world.rolling(json!({"paused": true, "partition": 3}));
    world.rest();
    assert_eq!(waiting(&world), 2, "a paused set leaves everything as it is");
    world.rolling(json!({"paused": false, "partition": 2}));
    world.rest();
    assert_eq!((waiting(&world), world.available()), (1, 2));
    let name = world.names().into_iter().find(|name| world.state(name) == "PreparingUpdate").unwrap();
    world.pods.get_mut(&name).unwrap()["metadata"]["labels"]["h"] = "false".into();
    world.rolling(json!({"partition": 3}));
    world.pass();
    assert_eq!((world.state(&name), updated(&world)), ("Updated", 0), "its handler puts the label back");
    world.label(&name, "h", "true");
    world.rest();
    assert_eq!((world.state(&name), world.available(), updated(&world)), ("Normal", 3, 0));
}

/// A pod that was just made waits for the hook of an update: it becomes ready all the same.
#[test]
fn a_new_pod_that_waits_for_a_hook_becomes_ready() {
    let mut world = World::new(in_place(json!({
        "replicas": 1,
        "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"h": "true"}}},
        "template": {"metadata": {"labels": {"app": "web", "h": "true"}}},
    })));
    world.passes(2);
    world.image("app:v2");
    world.rest();
    let name = world.names().remove(0);
    assert_eq!(world.state(&name), "PreparingUpdate");
    assert_eq!(world.set["status"]["readyReplicas"], 1);
}
