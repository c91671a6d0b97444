use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kruise_api::{imagelistpulljob::v1beta1::ImageListPullJob, imagepulljob::v1beta1::ImagePullJob};
use serde_json::{Value, json};

use super::*;
use crate::effect::{Effect, Patch};

fn at(seconds: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn text(seconds: i64) -> String {
    at(seconds).to_string()
}

/// A list and its children, as a server has them.
#[derive(Clone, Debug)]
struct World {
    list: Option<Value>,
    children: BTreeMap<String, Value>,
    made: usize,
    events: Vec<String>,
}

impl World {
    fn new(spec: Value) -> Self {
        let mut list = json!({
            "metadata": {"name": "lst", "namespace": "ns", "uid": "list-1"},
            "spec": {"images": ["app:v1", "app:v2"], "completionPolicy": {"type": "Always"}},
        });
        crate::patch_model::merge(&mut list["spec"], &spec);
        Self { list: Some(list), children: BTreeMap::new(), made: 0, events: Vec::new() }
    }

    fn read(&self) -> Arc<ImageListPullJob> {
        Arc::new(serde_json::from_value(self.list.clone().unwrap()).unwrap())
    }

    fn plan(&self, seconds: i64) -> Plan {
        let child = |child: &Value| Arc::new(serde_json::from_value::<ImagePullJob>(child.clone()).unwrap());
        plan(&Observed {
            list: self.read(),
            children: self.children.values().map(child).collect(),
            now: at(seconds),
        })
    }

    fn pass(&mut self, seconds: i64) {
        let (plan, list) = (self.plan(seconds), self.read());
        let count = |deed: Deed| plan.deeds.iter().filter(|one| **one == deed).count();
        let events = [created(&list, count(Deed::Create)), deleted(&list, count(Deed::Delete))];
        self.events
            .extend(events.into_iter().flatten().map(|event| format!("{}: {}", event.reason, event.message)));
        let status = plan.status.as_ref().and_then(|status| status_write(&list, status));
        for effect in plan.effects.into_iter().chain(status) {
            match effect {
                Effect::Create { object, .. } => {
                    let mut object = object;
                    self.made += 1;
                    object["metadata"]["uid"] = json!(format!("uid-{}", self.made));
                    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                    assert!(self.children.insert(name, object).is_none());
                }
                Effect::Delete { target, .. } if target.resource == IMAGE_LIST_PULL_JOB => self.list = None,
                Effect::Delete { target, .. } => drop(self.children.remove(target.key.name.as_str())),
                Effect::Patch { target, patch: Patch::Merge(change), .. } => {
                    let object = match target.resource == IMAGE_LIST_PULL_JOB {
                        true => self.list.as_mut().unwrap(),
                        false => self.children.get_mut(target.key.name.as_str()).unwrap(),
                    };
                    crate::patch_model::merge(object, &change);
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn finish(&mut self, image: &str, failed: i32, seconds: i64) {
        let child = self.children.values_mut().find(|child| child["spec"]["image"] == image).unwrap();
        child["status"] = json!({"startTime": text(0), "desired": 2, "active": 0, "succeeded": 2 - failed, "failed": failed});
        if child["spec"]["completionPolicy"]["type"] == "Always" {
            child["status"]["completionTime"] = json!(text(seconds));
        }
    }

    fn images(&self) -> Vec<&str> {
        let mut images: Vec<&str> =
            self.children.values().map(|child| child["spec"]["image"].as_str().unwrap()).collect();
        images.sort_unstable();
        images
    }

    fn uids(&self) -> Vec<String> {
        self.children.values().map(|child| child["metadata"]["uid"].to_string()).collect()
    }

    fn status(&self) -> Value {
        self.list.as_ref().map(|list| list["status"].clone()).unwrap_or_default()
    }
}

/// IMAGES-34: children go with their list, and no image is pulled twice (IMG-D8).
#[test]
fn every_image_has_one_child_and_the_list_ends_after_all_of_them() {
    let mut world =
        World::new(json!({"completionPolicy": {"ttlSecondsAfterFinished": 20}, "parallelism": 3}));
    world.pass(0);
    assert_eq!(world.images(), ["app:v1", "app:v2"]);
    let hash = world.list.as_ref().unwrap()["metadata"]["labels"]["controller-revision-hash"].clone();
    assert!(hash.is_string());
    for child in world.children.values() {
        assert_eq!(child["metadata"]["labels"]["controller-revision-hash"], hash);
        assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], "list-1");
        assert_eq!(child["spec"]["parallelism"], 3);
        assert_eq!(child["spec"]["completionPolicy"], json!({"type": "Always"}), "it does not go by itself");
    }
    assert_eq!(world.plan(1).effects, []);
    world.finish("app:v1", 0, 5);
    world.pass(5);
    assert_eq!(world.status()["completed"], 1);
    world.finish("app:v2", 0, 6);
    world.pass(6);
    assert_eq!(
        world.status(),
        json!({"startTime": text(0), "completionTime": text(6), "desired": 2, "active": 0, "completed": 2, "succeeded": 2})
    );
    assert_eq!(world.plan(16).wake_after, Some(Duration::from_secs(10)));
    world.pass(26);
    assert_eq!((world.list, world.made), (None, 2));
    assert_eq!(world.events, ["Successful create ImagePullJob: Create 2 ImagePullJob"]);
}

/// Admission refuses such a list; one that was stored before must neither be tried for ever nor keep its other images back.
#[test]
fn images_that_nobody_can_pull_are_left_out_and_named_and_the_others_are_pulled() {
    let mut world = World::new(json!({"images": ["app:v1", "UPPER/x", "", "app:v1", "app:v2"]}));
    world.pass(0);
    assert_eq!(world.images(), ["app:v1", "app:v2"]);
    let plan = world.plan(1);
    assert_eq!(plan.effects, []);
    let told = plan.notice.unwrap().message;
    let problems = "invalid image UPPER/x: invalid reference format: repository name must be lowercase; \
                    image can not be empty; image app:v1 is listed before";
    assert_eq!(told, format!("no ImagePullJob is made for some images: {problems}"));
    let status = world.status();
    assert_eq!(
        (&status["desired"], &status["failedImageStatuses"][0]["name"]),
        (&json!(5), &json!("UPPER/x"))
    );
    world.finish("app:v1", 0, 5);
    world.finish("app:v2", 0, 6);
    world.pass(7);
    assert_eq!(world.status()["completionTime"], Value::Null, "it is not complete");
}

/// IMAGES-35
#[test]
fn an_image_that_failed_somewhere_is_named() {
    let mut world = World::new(json!({}));
    world.pass(0);
    world.finish("app:v1", 0, 5);
    world.finish("app:v2", 1, 6);
    world.pass(7);
    let status = world.status();
    assert_eq!((&status["completed"], &status["succeeded"]), (&json!(2), &json!(1)));
    let child = world.children.values().find(|child| child["spec"]["image"] == "app:v2").unwrap();
    let name = child["metadata"]["name"].as_str().unwrap();
    assert_eq!(
        status["failedImageStatuses"],
        json!([{"imagePullJob": name, "name": "app:v2",
            "message": format!("Please check for details which nodes failed by 'kubectl get ImagePullJob {name}'.")}])
    );
}

/// IMAGES-36, as in the fixture `list-never-edited`.
#[test]
fn edits_bring_children_and_take_them_away() {
    let mut world = World::new(json!({"completionPolicy": {"type": "Never"}}));
    world.pass(0);
    let before = world.uids();
    world.list.as_mut().unwrap()["spec"]["images"] = json!(["app:v1", "job:v1"]);
    world.pass(1);
    assert_eq!(world.images(), ["app:v1", "job:v1"]);
    assert_eq!(world.uids().iter().filter(|uid| before.contains(uid)).count(), 1, "the other one goes on");
    let before = world.uids();
    world.list.as_mut().unwrap()["spec"]["parallelism"] = json!(2);
    world.pass(2);
    assert_eq!(world.images(), ["app:v1", "job:v1"]);
    assert!(world.uids().iter().all(|uid| !before.contains(uid)), "all are replaced");
    assert_eq!(
        world.events,
        [
            "Successful create ImagePullJob: Create 2 ImagePullJob",
            "Successful create ImagePullJob: Create 1 ImagePullJob",
            "Successful delete ImagePullJob: Delete 1 ImagePullJob",
            "Successful create ImagePullJob: Create 2 ImagePullJob",
            "Successful delete ImagePullJob: Delete 2 ImagePullJob",
        ]
    );
}

/// IMAGES-37
#[test]
fn a_list_without_end_counts_and_goes_on() {
    let mut world = World::new(json!({"completionPolicy": {"type": "Never"}}));
    world.pass(0);
    world.finish("app:v1", 0, 1);
    world.finish("app:v2", 0, 1);
    world.pass(2);
    assert_eq!(
        world.status(),
        json!({"startTime": text(0), "desired": 2, "active": 0, "completed": 2, "succeeded": 2})
    );
    assert_eq!(world.plan(3).effects, []);
}

/// IMAGES-38
#[test]
fn a_list_that_is_complete_does_nothing_more() {
    let mut world = World::new(json!({}));
    world.pass(0);
    world.finish("app:v1", 0, 1);
    world.finish("app:v2", 0, 1);
    world.pass(2);
    world.list.as_mut().unwrap()["spec"]["images"] = json!(["other:v1"]);
    assert_eq!(world.plan(3), Plan::default());
}

/// IMAGES-39: children of another release have another fingerprint and a time of their own (IMG-D11).
#[test]
fn children_of_another_release_go_on() {
    let mut world = World::new(
        json!({"completionPolicy": {"ttlSecondsAfterFinished": 20}, "selector": {"names": ["n"]}}),
    );
    for (number, image) in ["app:v1", "app:v2"].into_iter().enumerate() {
        let name = format!("lst-{number}");
        let child = json!({
            "metadata": {"name": name, "namespace": "ns", "uid": format!("old-{number}"),
                "labels": {"controller-revision-hash": "5847b95897"}},
            "spec": {"image": image, "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 20},
                "imagePullPolicy": "IfNotPresent", "pullPolicy": {"backoffLimit": 3, "timeoutSeconds": 600},
                "selector": {"names": ["n"]}},
        });
        world.children.insert(name, child);
    }
    world.pass(0);
    assert_eq!(world.made, 0);
    assert_eq!(world.uids(), ["\"old-0\"", "\"old-1\""]);
    for child in world.children.values() {
        let label = &child["metadata"]["labels"]["controller-revision-hash"];
        assert_eq!(label, &world.list.as_ref().unwrap()["metadata"]["labels"]["controller-revision-hash"]);
        assert_eq!(child["spec"]["completionPolicy"], json!({"type": "Always"}));
    }
    assert_eq!(world.plan(1).effects, []);
}

#[test]
fn of_two_children_for_one_image_the_older_one_stays() {
    let mut world = World::new(json!({"images": ["app:v1"]}));
    world.pass(0);
    let mut twin = world.children.values().next().unwrap().clone();
    twin["metadata"]["creationTimestamp"] = json!(text(9));
    twin["metadata"]["name"] = json!("twin");
    world.children.values_mut().next().unwrap()["metadata"]["creationTimestamp"] = json!(text(0));
    world.children.insert("twin".into(), twin);
    world.pass(1);
    assert_eq!(world.children.len(), 1);
    assert!(!world.children.contains_key("twin"));
}

#[test]
fn a_child_is_made_under_the_same_name_when_it_is_tried_again() {
    let world = World::new(json!({}));
    let names = |plan: Plan| -> Vec<Value> {
        let objects = plan.effects.into_iter().filter_map(|effect| match effect {
            Effect::Create { object, .. } => Some(object["metadata"]["name"].clone()),
            _ => None,
        });
        objects.collect()
    };
    let first = names(world.plan(0));
    assert_eq!(first.len(), 2);
    assert_ne!(first[0], first[1]);
    assert_eq!(first, names(world.plan(60)));
}

#[test]
fn that_a_child_counts_is_no_news() {
    let mut world = World::new(json!({}));
    world.pass(0);
    let child = |active: i32, succeeded: i32| {
        let mut child = world.children.values().next().unwrap().clone();
        child["status"] = json!({"startTime": text(0), "desired": 5, "active": active, "succeeded": succeeded, "failed": 0});
        serde_json::from_value::<ImagePullJob>(child).unwrap()
    };
    assert!(!is_news_of_child(Some(&child(2, 1)), Some(&child(1, 2))));
    assert!(is_news_of_child(Some(&child(1, 4)), Some(&child(0, 5))));
    assert!(is_news_of_child(None, Some(&child(1, 0))));
}
