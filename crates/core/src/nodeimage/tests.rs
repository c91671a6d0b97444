use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    effect::{Effect, Patch},
    object::ObjectKey,
    text::Text,
};

fn at(seconds: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn text(seconds: i64) -> String {
    at(seconds).to_string()
}

/// A node that is ready since second zero.
fn node(labels: Value) -> Value {
    json!({
        "metadata": {"name": "n1", "uid": "node-1", "labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": text(0)}]},
    })
}

fn object(images: Value, statuses: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "n1", "uid": "image-1", "resourceVersion": "7", "generation": 3, "labels": {"a": "1"}},
        "spec": {"images": images},
    });
    if !statuses.is_null() {
        object["status"] = json!({"desired": 0, "imageStatuses": statuses});
    }
    object
}

fn tag(name: &str, created: i64, ttl: i64) -> Value {
    json!({"tag": name, "createdAt": text(created),
        "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": ttl}})
}

fn owned(mut tag: Value, uids: &[&str]) -> Value {
    let owner = |uid: &&str| json!({"kind": "ImagePullJob", "namespace": "ns", "name": format!("job-{uid}"), "uid": uid});
    tag["ownerReferences"] = uids.iter().map(owner).collect();
    tag
}

fn done(name: &str, phase: &str, completed: i64) -> Value {
    json!({"tag": name, "phase": phase, "startTime": text(0), "completionTime": text(completed), "imageID": "x",
        "message": "kept"})
}

#[derive(Debug)]
struct World {
    node: Option<Value>,
    object: Option<Value>,
    gone_owners: BTreeSet<Text>,
    busy_owners: BTreeSet<Text>,
    gone_secrets: BTreeSet<ObjectKey>,
    delay: u64,
}

impl World {
    fn of(images: Value, statuses: Value) -> Self {
        Self { object: Some(object(images, statuses)), ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            node: Some(node(json!({"a": "1"}))),
            object: None,
            gone_owners: BTreeSet::new(),
            busy_owners: BTreeSet::new(),
            gone_secrets: BTreeSet::new(),
            delay: 30,
        }
    }

    fn gone(mut self, uids: &[&str]) -> Self {
        self.gone_owners = uids.iter().map(|uid| (*uid).into()).collect();
        self
    }

    fn plan(&self, seconds: i64) -> Plan {
        let read = |value: &Value| Arc::new(serde_json::from_value(value.clone()).unwrap());
        plan(&Observed {
            node: self.node.as_ref().map(|node| Arc::new(serde_json::from_value(node.clone()).unwrap())),
            image: self.object.as_ref().map(read),
            gone_owners: self.gone_owners.clone(),
            busy_owners: self.busy_owners.clone(),
            gone_secrets: self.gone_secrets.clone(),
            creation_delay: Duration::from_secs(self.delay),
            now: at(seconds),
        })
    }

    /// One pass. Tells what is due next.
    fn pass(&mut self, seconds: i64) -> Option<Duration> {
        let plan = self.plan(seconds);
        for effect in plan.effects {
            match effect {
                Effect::Create { object, .. } => self.object = Some(object),
                Effect::Delete { .. } => self.object = None,
                Effect::Event(_) => {}
                Effect::Patch { patch: Patch::Json(steps), subresource, .. } => {
                    let object = self.object.as_mut().unwrap();
                    let steps: json_patch::Patch = serde_json::from_value(steps).unwrap();
                    json_patch::patch(object, &steps).unwrap();
                    if subresource.is_none() {
                        object["metadata"]["generation"] =
                            json!(object["metadata"]["generation"].as_i64().unwrap() + 1);
                    }
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        plan.wake_after
    }

    fn get(&self, pointer: &str) -> Value {
        self.object.as_ref().and_then(|object| object.pointer(pointer)).cloned().unwrap_or_default()
    }
}

fn messages(plan: &Plan) -> Vec<String> {
    let events = plan.effects.iter().filter_map(|effect| match effect {
        Effect::Event(event) => {
            Some(format!("{} {}: {}", event.regarding.resource.kind, event.regarding.key, event.message))
        }
        _ => None,
    });
    events.collect()
}

/// IMAGES-1 and IMAGES-3: named and labelled like the node, with an empty spec, when the node was ready for a while.
#[test]
fn a_node_that_is_ready_for_long_enough_gets_one() {
    let mut world = World::empty();
    assert_eq!(world.plan(29).wake_after, Some(Duration::from_secs(1)));
    assert!(world.plan(29).reason.unwrap().contains("--nodeimage-creation-delay"));
    world.pass(29);
    assert_eq!(world.object, None);
    world.pass(30);
    assert_eq!(world.get("/metadata"), json!({"name": "n1", "labels": {"a": "1"}}));
    assert_eq!(world.get("/spec"), json!({}));
}

/// IMAGES-3: without a delay at once.
#[test]
fn without_a_delay_it_comes_at_once_but_never_for_a_node_that_is_not_ready() {
    let mut world = World { delay: 0, ..World::empty() };
    world.node.as_mut().unwrap()["status"]["conditions"][0]["status"] = json!("False");
    assert_eq!(world.plan(0).reason.as_deref(), Some("node n1 is not ready"));
    world.node = World::empty().node;
    world.pass(0);
    assert!(world.object.is_some());
}

/// IMAGES-1
#[test]
fn a_virtual_node_has_none() {
    let world = World { node: Some(node(json!({"type": "virtual-kubelet"}))), ..World::empty() };
    assert_eq!(world.plan(1000), Plan::default());
}

/// IMAGES-2
#[test]
fn labels_follow_the_node_and_the_object_goes_with_it() {
    let mut world = World::of(json!({}), Value::Null);
    world.node = Some(node(json!({"b": "2"})));
    world.pass(0);
    assert_eq!(world.get("/metadata/labels"), json!({"b": "2"}));
    assert_eq!(world.plan(0).effects, [], "once is enough");
    world.node = None;
    world.pass(0);
    assert_eq!(world.object, None);
    let mut fake = World::of(json!({}), Value::Null);
    fake.object.as_mut().unwrap()["metadata"]["labels"] = json!({"apps.kruise.io/fake-nodeimage": "true"});
    fake.node = None;
    assert_eq!(fake.plan(0).effects, [], "one that is made for tests needs no node");
}

/// IMAGES-26: a tag goes with the last job that wants it. Whether a job is gone is asked anew in each pass.
#[test]
fn a_tag_goes_with_its_last_owner() {
    let tags = json!([owned(tag("v1", 0, 600), &["a", "b"]), owned(tag("v2", 0, 600), &["a"])]);
    let mut world = World::of(json!({"x.io/app": {"tags": tags}}), Value::Null).gone(&["a"]);
    world.pass(1);
    let left = world.get("/spec/images/x.io~1app/tags");
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["tag"], "v1");
    assert_eq!(left[0]["ownerReferences"].as_array().unwrap().len(), 1);
    let mut world = world.gone(&["a", "b"]);
    world.pass(2);
    assert_eq!(world.get("/spec/images"), json!({}), "an image without tags goes too");
}

#[test]
fn tags_of_people_and_of_other_kinds_are_not_asked_for_owners() {
    let mut other = owned(tag("v2", 0, 600), &["a"]);
    other["ownerReferences"][0]["kind"] = json!("Something");
    let world = World::of(json!({"app": {"tags": [tag("v1", 0, 600), other]}}), Value::Null);
    let read: NodeImage = serde_json::from_value(world.object.clone().unwrap()).unwrap();
    assert_eq!(owners(&read).count(), 0);
    assert_eq!(world.plan(1).effects, []);
}

/// IMAGES-32: about 30 seconds after the end of the pull; the rest of an image stays.
#[test]
fn a_finished_tag_goes_after_its_time() {
    let images = json!({"app": {"tags": [tag("v1", 0, 30), tag("v2", 0, 3000)]}});
    let statuses = json!({"app": {"tags": [done("v1", "Succeeded", 5), done("v2", "Succeeded", 5)]}});
    let mut world = World::of(images, statuses);
    assert_eq!(world.plan(10).wake_after, Some(Duration::from_secs(28)), "a tenth of its time later at most");
    world.pass(34);
    assert_eq!(world.get("/spec/images/app/tags/1/tag"), "v2");
    world.pass(35);
    assert_eq!(world.get("/spec/images/app/tags/0/tag"), "v2");
    assert_eq!(world.get("/spec/images/app/tags/1"), Value::Null);
    world.pass(45);
    let left = world.get("/status/imageStatuses/app/tags");
    assert_eq!(left, json!([done("v2", "Succeeded", 5)]), "what the daemon told stays word for word");
    assert_eq!(world.get("/status/desired"), 1);
    assert_eq!(world.get("/status/succeeded"), 1);
}

/// IMAGES-42: the time of a tag of a job that never ends is about a day; then it goes, and the job writes it again.
#[test]
fn a_tag_of_a_day_goes_after_a_day() {
    let mut world = World::of(
        json!({"app": {"tags": [owned(tag("v1", 0, 86_400), &["a"])]}}),
        json!({"app": {"tags": [done("v1", "Succeeded", 100)]}}),
    );
    assert!(world.pass(86_499).is_some());
    assert_eq!(world.get("/spec/images/app/tags/0/tag"), "v1");
    world.pass(86_500);
    assert_eq!(world.get("/spec/images"), json!({}));
}

/// A job with many nodes and little parallelism takes longer than the time of its tags: the first nodes must not be asked
/// again before the last ones are.
#[test]
fn a_tag_stays_while_a_job_that_will_end_wants_it() {
    let mut world = World::of(
        json!({"app": {"tags": [owned(tag("v1", 0, 30), &["a"])]}}),
        json!({"app": {"tags": [done("v1", "Succeeded", 5)]}}),
    );
    world.busy_owners = BTreeSet::from(["a".into()]);
    world.pass(10);
    assert_eq!(world.pass(1000), Some(Duration::from_secs(1800)), "nobody tells when the job ends");
    assert_eq!(world.get("/spec/images/app/tags/0/tag"), "v1");
    world.busy_owners.clear();
    world.pass(1001);
    assert_eq!(world.get("/spec/images"), json!({}));
}

#[test]
fn a_status_of_an_older_round_does_not_end_a_tag() {
    let mut newer = tag("v1", 100, 30);
    newer["version"] = json!(1);
    let mut world =
        World::of(json!({"app": {"tags": [newer]}}), json!({"app": {"tags": [done("v1", "Succeeded", 5)]}}));
    world.pass(600);
    assert_eq!(world.get("/spec/images/app/tags/0/tag"), "v1");
    world.pass(700);
    assert_eq!(world.get("/status/imageStatuses/app/tags/0/phase"), "Failed");
    assert_eq!(world.get("/status/imageStatuses/app/tags/0/version"), 1);
}

/// IMAGES-30: to the second, and everybody hears of it.
#[test]
fn a_node_that_says_nothing_for_ten_minutes_has_failed() {
    let mut world =
        World::of(json!({"x.io/slow/app": {"tags": [owned(tag("v1", 0, 600), &["a"])]}}), Value::Null);
    assert_eq!(world.plan(590).wake_after, Some(Duration::from_secs(10)));
    assert_eq!(world.plan(599).effects, []);
    let told = "Failed to pull image x.io/slow/app:v1 on node n1 for node has not responded for a long time";
    assert_eq!(
        messages(&world.plan(600)),
        [format!("ImagePullJob ns/job-a: {told}"), format!("NodeImage n1: {told}")]
    );
    world.pass(600);
    let mut status = world.get("/status");
    assert_eq!(
        status.as_object_mut().unwrap().remove("firstSyncStatus").unwrap(),
        json!({"syncAt": text(600), "status": "Failed", "message": "failed: x.io/slow/app:v1"})
    );
    assert_eq!(
        status,
        json!({"desired": 1, "failed": 1, "pulling": 0, "succeeded": 0, "waiting": 0, "imageStatuses":
            {"x.io/slow/app": {"tags": [{"tag": "v1", "phase": "Failed", "completionTime": text(600),
                "message": "node has not responded for a long time"}]}}})
    );
    assert_eq!(world.plan(601).effects, [], "once is enough");
}

#[test]
fn a_pull_that_goes_on_after_its_deadline_has_failed_ten_minutes_later() {
    let mut slow = tag("v1", 0, 600);
    slow["pullPolicy"]["activeDeadlineSeconds"] = json!(50);
    let running = json!({"tag": "v1", "phase": "Pulling", "startTime": text(3)});
    let statuses = json!({"app": {"tags": [done("v0", "Failed", 5), running]}});
    let mut world =
        World::of(json!({"app": {"tags": [tag("v0", 0, 6000), slow, tag("v2", 600, 60)]}}), statuses);
    world.pass(649);
    assert_eq!(world.get("/status/imageStatuses/app/tags/1/phase"), "Pulling");
    world.pass(650);
    assert_eq!(
        world.get("/status/imageStatuses/app/tags/1"),
        json!({"tag": "v1", "phase": "Failed", "startTime": text(3), "completionTime": text(650),
            "message": "pulling exceeds the activeDeadlineSeconds"})
    );
    assert_eq!(world.get("/status/failed"), 2);
    assert_eq!(world.get("/status/firstSyncStatus"), Value::Null, "v2 is not done");
    world.pass(1200);
    assert_eq!(world.get("/status/imageStatuses/app/tags/2/tag"), "v2", "in the order of tags");
}

/// IMAGES-43: told once, and never changed.
#[test]
fn the_end_of_the_first_list_is_noted_once() {
    let statuses =
        json!({"a": {"tags": [done("1", "Succeeded", 5)]}, "b": {"tags": [done("1", "Failed", 6)]}});
    let images = json!({"a": {"tags": [tag("1", 0, 600)]}, "b": {"tags": [tag("1", 0, 600)]}});
    let mut world = World::of(images, statuses);
    world.pass(10);
    let first = json!({"syncAt": text(10), "status": "Failed", "message": "failed: b:1"});
    assert_eq!(world.get("/status/firstSyncStatus"), first);
    world.object.as_mut().unwrap()["status"]["imageStatuses"]["b"]["tags"][0] = done("1", "Succeeded", 7);
    assert_eq!(world.plan(20).effects, []);
    assert_eq!(world.get("/status/firstSyncStatus"), first);
}

#[test]
fn secrets_that_are_gone_go_but_copies_live_as_long_as_the_image() {
    let secrets =
        json!([{"namespace": "c", "name": "copy", "mode": "batch"}, {"namespace": "c", "name": "own"}]);
    let mut world =
        World::of(json!({"app": {"pullSecrets": secrets, "tags": [tag("v1", 0, 600)]}}), Value::Null);
    world.gone_secrets = ["copy", "own"].map(|name| ObjectKey::new("c", name)).into();
    let read: NodeImage = serde_json::from_value(world.object.clone().unwrap()).unwrap();
    assert_eq!(super::secrets(&read).map(|secret| secret.name.as_str()).collect::<Vec<_>>(), ["own"]);
    world.pass(1);
    assert_eq!(
        world.get("/spec/images/app/pullSecrets"),
        json!([{"namespace": "c", "name": "copy", "mode": "batch"}])
    );
}

#[test]
fn a_tag_without_a_time_is_taken_out() {
    let mut world = World::of(json!({"app": {"tags": [{"tag": "v1"}]}}), Value::Null);
    world.pass(1);
    assert_eq!(world.get("/spec/images"), json!({}));
}

fn read(value: &Value) -> NodeImage {
    serde_json::from_value(value.clone()).unwrap()
}

/// A pull has three changes of a NodeImage: the tag comes, it is being pulled, it is done. None of them needs a pass at once.
#[test]
fn what_happens_while_images_are_pulled_needs_no_pass_at_once() {
    let idle = read(&object(json!({}), json!({})));
    let images = json!({"app": {"tags": [owned(tag("v1", 100, 900), &["a"])]}});
    let wanted = read(&object(images.clone(), json!({})));
    let pulling =
        read(&object(images.clone(), json!({"app": {"tags": [{"tag": "v1", "phase": "Pulling"}]}})));
    let mut ended = object(images, json!({"app": {"tags": [done("v1", "Succeeded", 200)]}}));
    ended["status"]["firstSyncStatus"] = json!({});
    let ended = read(&ended);
    let delay =
        |old: &NodeImage, new: &NodeImage| delay(Some(old), Some(new), at(200)).map(|delay| delay.as_secs());
    assert_eq!(delay(&idle, &wanted), Some(500), "ten minutes after it came");
    assert_eq!(delay(&wanted, &pulling), None);
    assert_eq!(delay(&pulling, &ended), Some(960), "its time, and a minute more");
    let mut daily = ended.clone();
    for image in daily.spec.iter_mut().flat_map(|spec| spec.images.values_mut()) {
        for policy in image.tags.iter_mut().filter_map(|tag| tag.pull_policy.as_mut()) {
            policy.ttl_seconds_after_finished = Some(86_400);
        }
    }
    assert_eq!(delay(&pulling, &daily), Some(86_400 + 180), "its time, and three minutes more");
    assert_eq!(delay(&ended, &ended), None);
    assert_eq!(delay(&ended, &idle), None);
    assert_eq!(super::delay(None, Some(&idle), at(0)), Some(Duration::ZERO));
    assert_eq!(super::delay(Some(&idle), None, at(0)), Some(Duration::ZERO));
}

#[test]
fn what_the_daemon_leaves_behind_is_looked_at_when_it_had_time_enough() {
    let statuses = json!({"app": {"tags": [done("v1", "Succeeded", 5)]}});
    let before = read(&object(json!({"app": {"tags": [tag("v1", 0, 60)]}}), statuses.clone()));
    let after = read(&object(json!({}), statuses));
    assert_eq!(delay(Some(&before), Some(&after), at(9)), Some(Duration::from_secs(600)));
}

prop_compose! {
    fn any_tag(name: &'static str)(
        created in prop::option::weighted(0.9, 0..700i64), ttl in 0..900i64, version in 0..2i64,
        deadline in prop::option::of(1..100i64), uids in prop::sample::subsequence(vec!["a", "b", "c"], 0..3),
    ) -> Value {
        let mut tag = owned(tag(name, created.unwrap_or(0), ttl), &uids);
        if created.is_none() { tag.as_object_mut().unwrap().remove("createdAt"); }
        tag["version"] = json!(version);
        if let Some(deadline) = deadline { tag["pullPolicy"]["activeDeadlineSeconds"] = json!(deadline); }
        tag
    }
}

prop_compose! {
    fn any_status(name: &'static str)(
        phase in prop::sample::select(vec!["Waiting", "Pulling", "Succeeded", "Failed"]),
        completed in 0..900i64, version in 0..2i64,
    ) -> Value {
        let mut status = json!({"tag": name, "phase": phase, "version": version});
        if matches!(phase, "Succeeded" | "Failed") { status["completionTime"] = json!(text(completed)); }
        status
    }
}

fn some_of(
    one: impl Strategy<Value = Value>,
    two: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Value> {
    (prop::option::of(one), prop::option::of(two)).prop_map(|(one, two)| one.into_iter().chain(two).collect())
}

prop_compose! {
    fn any_world()(
        a in some_of(any_tag("v1"), any_tag("v2")), b in some_of(any_tag("v1"), any_tag("v3")),
        c in prop::option::of(some_of(any_status("v1"), any_status("v2"))),
        d in some_of(any_status("v0"), any_status("v3")),
        gone in prop::sample::subsequence(vec!["a", "b", "c"], 0..3),
    ) -> World {
        let statuses = match c {
            Some(c) => json!({"x/a": {"tags": c}, "x/b": {"tags": d}}),
            None => Value::Null,
        };
        World::of(json!({"x/a": {"tags": a}, "x/b": {"tags": b}}), statuses).gone(&gone)
    }
}

proptest! {
    /// Every step can be carried out, and a few passes at one moment bring the object to rest: no tag that is over, no status
    /// of what nobody wants, numbers that are right.
    #[test]
    fn passes_at_one_moment_come_to_rest(mut world in any_world(), now in 0..2000i64) {
        for _ in 0..4 {
            world.pass(now);
        }
        let plan = world.plan(now);
        prop_assert_eq!(&plan.effects, &[]);
        let object = read(world.object.as_ref().unwrap());
        prop_assert!(due(&object).is_none_or(|due| due > at(now) - SignedDuration::from_secs(60)));
        prop_assert!(owners(&object).all(|owner| !world.gone_owners.contains(&owner.uid)));
        for (_, image) in object.images() {
            prop_assert!(!image.tags.is_empty());
        }
        for (name, status) in object.status.iter().filter_map(|status| status.image_statuses.as_ref()).flatten() {
            for known in &status.tags {
                prop_assert!(object.image(name).and_then(|image| image.tag(&known.tag)).is_some());
            }
        }
    }
}
