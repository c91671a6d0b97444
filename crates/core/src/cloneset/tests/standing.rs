use serde_json::{Value, json};

use super::kit::World;

fn deadline(more: Value) -> World {
    let mut spec = json!({"replicas": 2, "progressDeadlineSeconds": 30, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}}});
    super::kit::merge(&mut spec, &more);
    World::resting(spec)
}

fn reason(world: &World) -> String {
    world.condition("Progressing")["reason"].as_str().unwrap_or("-").to_owned()
}

/// CLONESET-4
#[test]
fn the_selector_is_told_as_text() {
    let world = World::resting(json!({"replicas": 1}));
    assert_eq!(world.set["status"]["labelSelector"], "app=web");
    let mut world = World::new(json!({"replicas": 0, "selector": {"matchExpressions": [
        {"key": "z", "operator": "DoesNotExist"}, {"key": "a", "operator": "NotIn", "values": ["y", "x"]},
        {"key": "b", "operator": "Exists"}]}, "template": {"metadata": {"labels": {"b": "1"}}}}));
    world.rest();
    assert_eq!(world.set["status"]["labelSelector"], "a notin (x,y),app=web,b,!z");
}

/// CLONESET-39
#[test]
fn an_update_that_does_not_move_is_told_after_the_deadline() {
    let mut world = deadline(json!({}));
    assert_eq!(reason(&world), "CloneSetAvailable");
    world.broken.push("nosuch:v1".into());
    world.image("nosuch:v1");
    world.passes(29);
    assert_eq!(reason(&world), "CloneSetUpdated");
    world.passes(6);
    let condition = world.condition("Progressing");
    let revision = world.set["status"]["updateRevision"].as_str().unwrap();
    assert_eq!(condition["status"], "False");
    assert_eq!(condition["message"], format!("CloneSet revision {revision} has timed out progressing"));
    assert_eq!(condition["reason"], "ProgressDeadlineExceeded");
    world.image("app:v2");
    world.passes(1);
    assert_eq!(reason(&world), "CloneSetUpdated");
    world.rest();
    assert_eq!(reason(&world), "CloneSetAvailable");
}

/// CLONESET-40: the original told at once that the deadline was over.
#[test]
fn idle_time_does_not_count() {
    let mut world = deadline(json!({}));
    world.passes(300);
    world.image("app:v2");
    world.passes(2);
    assert_eq!(reason(&world), "CloneSetUpdated");
}

/// CLONESET-41
#[test]
fn time_that_is_paused_or_waits_at_the_partition_does_not_count() {
    let mut world = deadline(json!({}));
    world.rolling(json!({"paused": true}));
    world.image("app:v2");
    world.passes(60);
    assert_eq!(reason(&world), "CloneSetPaused");
    world.rolling(json!({"paused": false, "partition": 1}));
    world.passes(2);
    assert_eq!(reason(&world), "CloneSetUpdated");
    world.rest();
    assert_eq!(reason(&world), "ProgressPartitionAvailable");
    world.edit(json!({"progressDeadlineSeconds": null}));
    world.rest();
    assert_eq!(reason(&world), "-");
    world.edit(json!({"progressDeadlineSeconds": 2_147_483_647}));
    world.rest();
    assert_eq!(reason(&world), "-");
}

/// CLONESET-42
#[test]
fn pods_are_available_after_they_were_ready_for_a_while() {
    let mut world = World::new(json!({"minReadySeconds": 20}));
    world.passes(6);
    world.pass();
    assert_eq!(
        (&world.set["status"]["readyReplicas"], &world.set["status"]["availableReplicas"]),
        (&json!(5), &json!(0))
    );
    assert_eq!(
        world.set["status"]["updatedAvailableReplicas"], 0,
        "other tools take an absent count for a pause"
    );
    let wake = world.pass().wake_after.unwrap();
    assert!(wake.as_secs() >= 10 && wake.as_secs() <= 20, "{wake:?}");
    world.passes(25);
    assert_eq!(
        (&world.set["status"]["availableReplicas"], &world.set["status"]["updatedAvailableReplicas"]),
        (&json!(5), &json!(5))
    );
}

/// A stored object that cannot be carried out is told, and tried only when it changes.
#[test]
fn a_broken_spec_becomes_a_condition() {
    for (spec, expected) in [
        (json!({"selector": {"matchLabels": null}}), "spec.selector is empty"),
        (json!({"template": {"spec": {"containers": null}}}), "spec.template is no pod template"),
        (
            json!({"template": {"metadata": {"labels": {"app": "x"}}}}),
            "spec.selector does not match the labels of spec.template",
        ),
        (
            json!({"scaleStrategy": {"maxUnavailable": "x"}}),
            "spec.scaleStrategy.maxUnavailable is invalid: invalid value \"x\": invalid type: string is not a percentage; allowed are a whole number such as 3 or a percentage such as \"20%\" or \"33.3%\"",
        ),
        (
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
            "spec.selector is invalid: \"Near\" is not a valid label selector operator (In, NotIn, Exists, DoesNotExist) for key \"a\"",
        ),
    ] {
        let mut world = World::new(spec);
        world.rest();
        assert!(world.pods.is_empty());
        assert_eq!(world.condition("FailedScale")["message"], expected);
    }
}

/// INPLACE-34
#[test]
fn a_collision_is_counted_in_the_status() {
    let mut world = World::resting(json!({"replicas": 1}));
    assert_eq!(world.set["status"]["collisionCount"], 0);
    let mut other = world.clone();
    other.image("app:v2");
    other.rest();
    let name = other.set["status"]["updateRevision"].as_str().unwrap().to_owned();
    let mut foreign = other.revisions[&name].clone();
    foreign["data"] = json!({"other": true});
    foreign["metadata"]["ownerReferences"] = json!([]);
    foreign["metadata"]["labels"] = json!({});
    world.revisions.insert(name.clone(), foreign);
    world.image("app:v2");
    world.rest();
    assert_eq!(world.set["status"]["collisionCount"], 1);
    assert_ne!(world.set["status"]["updateRevision"], name.as_str());
}

/// INPLACE-35
#[test]
fn old_revisions_go() {
    for limit in [2, 0] {
        let mut world = World::resting(json!({"replicas": 1, "revisionHistoryLimit": limit}));
        for version in 2..=7 {
            world.image(&format!("app:v{version}"));
            world.rest();
        }
        assert_eq!(world.revisions.len(), limit + 1);
    }
}
