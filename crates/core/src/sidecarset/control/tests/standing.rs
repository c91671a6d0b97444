use std::collections::BTreeMap;

use serde_json::json;

use super::kit::{World, cold, hot, read};
use crate::{
    pod::Pairs,
    sidecarset::control::{needs_namespaces, plan, status, status_write, wakes},
};

/// SIDECARSET-1, SIDECARSET-2, SIDECARSET-42
#[test]
fn only_active_pods_with_all_sidecars_of_the_set_count() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 6);
    let edit = |world: &mut World, pod: &str, path: &str, value: serde_json::Value| {
        *world.pods.get_mut(pod).unwrap().pointer_mut(path).unwrap() = value;
    };
    edit(&mut world, "p-0", "/status/phase", json!("Succeeded"));
    world.pods.get_mut("p-1").unwrap()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    edit(&mut world, "p-2", "/metadata/labels", json!({"app": "y"}));
    edit(&mut world, "p-3", "/metadata/annotations/kruise.io~1sidecarset-injected-list", json!("t,u"));
    edit(&mut world, "p-4", "/spec/containers/0/name", json!("other"));
    let standing = status(&world.seen());
    assert_eq!((standing.matched_pods, standing.updated_pods, standing.ready_pods), (1, 1, 1));
}

#[test]
fn a_hot_sidecar_counts_only_with_both_twins_and_a_working_one() {
    let mut world = World::resting(hot("mesh", "mesh:v1"), json!({}), 3);
    world.pods.get_mut("p-0").unwrap()["spec"]["containers"][1]["name"] = "mesh-3".into();
    let annotations = world.pods.get_mut("p-1").unwrap()["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove("kruise.io/sidecarset-working-hotupgrade-container");
    assert_eq!(status(&world.seen()).matched_pods, 1);
}

#[test]
fn pods_of_namespaces_that_are_not_chosen_do_not_count() {
    let spec = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
    let mut world = World::new(cold("sc", "sidecar:v1"), spec);
    world.pods = World::resting(cold("sc", "sidecar:v1"), json!({}), 1).pods;
    assert!(needs_namespaces(&world.typed()));
    let mut seen = world.seen();
    assert_eq!(status(&seen).matched_pods, 0);
    let labels: Pairs = [("team".into(), "a".into())].into_iter().collect();
    seen.namespaces = BTreeMap::from([("default".into(), labels)]);
    assert_eq!(status(&seen).matched_pods, 1);
    world.edit(json!({"namespaceSelector": {"matchLabels": {"team": null, "kubernetes.io/metadata.name": "default"}}}));
    assert_eq!(status(&world.seen()).matched_pods, 1, "the name of a namespace is known without its labels");
}

/// All counters are written, also those that the original leaves out at zero.
#[test]
fn the_status_is_written_when_it_differs_and_as_the_original_writes_it() {
    let mut world = World::new(cold("sc", "sidecar:v1"), json!({}));
    world.rest();
    let revision = world.set["status"]["latestRevision"].as_str().unwrap().to_owned();
    assert!(revision.starts_with("s-"));
    assert_eq!(
        world.set["status"],
        json!({"observedGeneration": 1, "matchedPods": 0, "updatedPods": 0, "readyPods": 0,
            "updatedReadyPods": 0, "latestRevision": revision, "collisionCount": 0})
    );
    let seen = world.seen();
    assert_eq!(status_write(&seen.set, &status(&seen)), None);
    world.edit(json!({"updateStrategy": {"paused": true}}));
    let seen = world.seen();
    let write = format!("{:?}", status_write(&seen.set, &status(&seen)).unwrap());
    assert!(write.contains("observedGeneration") && !write.contains("matchedPods"), "{write}");
}

/// SIDECARSET-39
#[test]
fn ten_revisions_stay_and_going_back_makes_the_old_one_the_newest() {
    let mut world = World::new(cold("sc", "h:0"), json!({}));
    world.rest();
    let numbers = |world: &World| {
        let mut numbers: Vec<i64> =
            world.revisions.values().map(|one| one["revision"].as_i64().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    };
    for content in 1..15 {
        world.image(&format!("h:{content}"));
        world.rest();
    }
    assert_eq!(numbers(&world), (6..=15).collect::<Vec<_>>());
    world.image("h:11");
    world.rest();
    assert_eq!(numbers(&world), (6..=11).chain(13..=16).collect::<Vec<_>>());
}

/// SIDECARSET-39: a revision that a pod follows stays.
#[test]
fn a_revision_that_a_pod_follows_stays() {
    let spec = json!({"revisionHistoryLimit": 1, "updateStrategy": {"partition": "100%"}});
    let mut world = World::resting(cold("sc", "h:0"), spec, 1);
    let first = world.set["status"]["latestRevision"].as_str().unwrap().to_owned();
    for content in 1..4 {
        world.image(&format!("h:{content}"));
        world.rest();
    }
    assert_eq!(world.revisions.len(), 2);
    assert!(world.revisions.contains_key(&first));
    world.strategy(json!({"partition": 0}));
    world.rest();
    assert_eq!(world.revisions.len(), 1);
}

#[test]
fn a_spec_that_cannot_be_carried_out_is_told_and_changes_nothing() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 1);
    let before = world.set["status"].clone();
    world.edit(json!({"updateStrategy": {"partition": "what"}}));
    let plan = plan(&world.seen());
    assert!(plan.steps.is_empty());
    assert!(
        plan.failures[0].message.starts_with("spec.updateStrategy.partition is invalid: "),
        "{:?}",
        plan.failures
    );
    assert_eq!(serde_json::to_value(status(&world.seen())).unwrap(), before);
}

#[test]
fn a_set_that_is_being_deleted_does_nothing() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 1);
    world.image("sidecar:v2");
    world.set["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert!(plan(&world.seen()).steps.is_empty());
}

#[test]
fn a_change_of_a_pod_wakes_the_sets_that_it_names() {
    let mut world = World::resting(cold("sc", "sidecar:v1"), json!({}), 1);
    let before = read(&world.pods["p-0"]);
    assert!(wakes(Some(&before), Some(&before)).is_empty());
    world.pods.get_mut("p-0").unwrap()["metadata"]["resourceVersion"] = "999999".into();
    assert!(wakes(Some(&before), Some(&read(&world.pods["p-0"]))).is_empty(), "nothing changed that is read");
    world.pods.get_mut("p-0").unwrap()["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] =
        "s,t".into();
    let after = read(&world.pods["p-0"]);
    let names = |before, after| wakes(before, after).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(Some(&before), Some(&after)), ["s", "t"]);
    assert_eq!(names(Some(&before), None), ["s"]);
    assert_eq!(names(None, Some(&after)), ["s", "t"]);
}
