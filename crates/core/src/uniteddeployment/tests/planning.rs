//! What plans do, on a cluster whose workloads reach what they want at once.

use serde_json::{Value, json};

use super::kit::World;
use crate::{
    effect::Effect,
    plan::Part,
    uniteddeployment::{Kind, Purpose, decide},
    waiting::Reason,
};

/// UNITED-1, UNITED-2, UNITED-3
#[test]
fn every_kind_gets_a_workload_for_each_subset_and_rests() {
    for kind in Kind::ALL {
        let mut world = World::new(
            kind,
            json!({"replicas": 10, "topology": {"subsets": [
            {"name": "a", "replicas": 2, "nodeSelectorTerm": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                "tolerations": [{"key": "t", "operator": "Exists"}]},
            {"name": "b", "replicas": "50%"}, {"name": "c"}]}}),
        );
        world.settle();
        let partition = if kind == Kind::Deployment { "" } else { "/0" };
        assert_eq!(world.shown(), format!("a 2{partition} b 5{partition} c 3{partition}"));
        let first = &world.children[0];
        let revision = &world.revisions[0]["metadata"]["name"];
        assert!(first["metadata"]["name"].as_str().unwrap().starts_with("web-a-"));
        assert_eq!(first["metadata"]["generateName"], "web-a-");
        assert_eq!(first["metadata"]["annotations"]["apps.kruise.io/subset-patch"], "");
        let selector = json!({"matchLabels": {"app": "web", "apps.kruise.io/subset-name": "a"}});
        assert_eq!(first["spec"]["selector"], selector);
        let labels = json!({"app": "web", "apps.kruise.io/subset-name": "a", "apps.kruise.io/controller-revision-hash": revision});
        assert_eq!(first["metadata"]["labels"], labels);
        assert_eq!(first["spec"]["template"]["metadata"]["labels"], labels);
        let pods = &first["spec"]["template"]["spec"];
        let terms = &pods["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
        assert_eq!(
            (&terms[0]["matchExpressions"][0]["key"], &terms[0]["matchFields"][0]["key"]),
            (&json!("zone"), &json!("metadata.name"))
        );
        assert_eq!(pods["tolerations"], json!([{"key": "t", "operator": "Exists"}]));
    }
}

/// UNITED-33
#[test]
fn a_selector_of_expressions_alone_works() {
    let mut world = World::new(
        Kind::Deployment,
        json!({"selector": {"matchLabels": null, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}}),
    );
    world.settle();
    assert_eq!(world.shown(), "a 2 b 2 c 2");
    let selector = &world.children[0]["spec"]["selector"];
    assert_eq!(selector["matchLabels"], json!({"apps.kruise.io/subset-name": "a"}));
    assert_eq!(selector["matchExpressions"][0]["key"], "app");
}

/// UNITED-9: only the subset whose patch changes is written.
#[test]
fn a_patch_changes_one_subset() {
    let patch = |value: &str| {
        json!({"topology": {"subsets": [{"name": "a", "patch": {"metadata": {"labels": {"zone": "a"}}, "spec": {"containers": [
            {"name": "main", "env": [{"name": "ZONE", "value": value}]}]}}}, {"name": "b"}, {"name": "c"}]}})
    };
    let mut world = World::new(Kind::CloneSet, patch("a"));
    world.settle();
    let main = |world: &World| world.children[0]["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(
        main(&world),
        json!({"name": "main", "image": "app:v1", "env": [{"name": "ZONE", "value": "a"}]})
    );
    world.change(&patch("other"));
    let purposes = world.step().purposes();
    assert!(matches!(&purposes[..], [Purpose::UpdateSubset { subset, .. }] if subset == "a"), "{purposes:?}");
    assert_eq!(main(&world)["env"][0]["value"], "other");
    world.change(&json!({"topology": {"subsets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}));
    world.settle();
    assert_eq!(main(&world), json!({"name": "main", "image": "app:v1"}));
}

fn image(kind: Kind, image: &str) -> Value {
    let containers = json!([{"name": "main", "image": image}]);
    json!({"template": {kind.field(): {"spec": {"template": {"spec": {"containers": containers}}}}}})
}

/// UNITED-11, UNITED-12, UNITED-13
#[test]
fn partitions_pace_an_update_and_going_back_finds_the_revision() {
    let kind = Kind::StatefulSet;
    let mut world = World::new(kind, json!({}));
    world.settle();
    let first = world.revisions[0]["metadata"]["name"].clone();
    world.change(&image(kind, "app:v2"));
    world.change(&json!({"updateStrategy": {"manualUpdate": {"partitions": {"a": 1, "b": 20}}}}));
    world.settle();
    assert_eq!(world.shown(), "a 2/1 b 2/2 c 2/0");
    assert_eq!(world.object["status"]["subsetStatuses"][1]["partition"], 2);
    assert_eq!(world.revisions.len(), 2);
    world.change(&image(kind, "app:v1"));
    world.settle();
    assert_eq!(world.revisions.len(), 2);
    let revision = world.revisions.iter().find(|one| one["metadata"]["name"] == first).unwrap();
    assert_eq!(revision["revision"], 3);
    assert_eq!(world.children[0]["metadata"]["labels"]["apps.kruise.io/controller-revision-hash"], first);
}

/// UNITED-14: for all kinds, also CloneSets.
#[test]
fn old_revisions_are_limited() {
    for kind in Kind::ALL {
        let mut world = World::new(kind, json!({"revisionHistoryLimit": 3}));
        for number in 0..12 {
            world.change(&image(kind, &format!("app:v{number}")));
            world.settle();
        }
        assert!(world.revisions.len() <= 5, "{kind:?}: {}", world.revisions.len());
        assert_eq!(world.revisions[0]["metadata"]["labels"]["app"], "web");
    }
}

/// UNITED-16, UNITED-17
#[test]
fn subsets_and_kinds_come_and_go() {
    let mut world = World::new(Kind::Deployment, json!({}));
    world.settle();
    world.change(
        &json!({"topology": {"subsets": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]}}),
    );
    world.settle();
    assert_eq!(world.shown(), "a 1 b 2 c 2 d 1");
    world.change(&json!({"topology": {"subsets": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}));
    // Others grow in the same reconcile.
    let purposes = world.step().purposes();
    assert!(purposes.iter().any(|one| matches!(one, Purpose::DeleteSubset { .. })), "{purposes:?}");
    assert_eq!(world.shown(), "a 2 b 2 c 2");
    world.settle();
    assert_eq!(world.object["status"]["subsetStatuses"].as_array().unwrap().len(), 3);
}

/// UNITED-18
#[test]
fn the_older_workload_of_a_subset_stays() {
    let mut world = World::new(Kind::CloneSet, json!({}));
    world.settle();
    let mut twin = world.children[0].clone();
    twin["metadata"]["name"] = json!("web-a-twin");
    twin["metadata"]["uid"] = json!("twin");
    twin["metadata"]["creationTimestamp"] = json!(super::kit::time(60).to_string());
    world.children.insert(0, twin);
    // One that somebody has taken away from the object since is another version, and stays.
    let plan = decide(&world.seen()).0;
    let deletions = plan.effects().into_iter().filter_map(|effect| match effect {
        Effect::Delete { target, .. } => {
            Some((target.uid.as_deref() == Some("twin"), target.resource_version.is_some()))
        }
        _ => None,
    });
    assert_eq!(deletions.collect::<Vec<_>>(), [(true, true)]);
    world.settle();
    assert_eq!(world.shown(), "a 2/0 b 2/0 c 2/0");
    assert!(world.children.iter().all(|one| one["metadata"]["uid"] != "twin"));
}

/// UNITED-6: numbers that do not fit change nothing, and are reported.
#[test]
fn numbers_that_do_not_fit_are_reported() {
    let halves = json!({"replicas": 4, "topology": {"subsets": [{"name": "a", "replicas": "50%"}, {"name": "b", "replicas": "50%"}]}});
    let mut world = World::new(Kind::Deployment, halves);
    world.settle();
    world.change(&json!({"replicas": 5}));
    let plan = world.step();
    assert_eq!(world.shown(), "a 2 b 2");
    assert_eq!(plan.waits.main(), Some(Reason::SpecInvalid));
    let text = "specified subsets' replica (6) is greater than UnitedDeployment replica (5)";
    assert_eq!(plan.failure(Part::Update), Some(text));
    let told = format!("{:?}", plan.effects());
    assert!(told.contains(&format!("Specified subset replicas is ineffective: {text}")), "{told}");
    let status = &world.object["status"];
    assert_eq!(status["observedGeneration"], 2);
    let updated =
        status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "SubsetUpdated").unwrap();
    assert_eq!((&updated["status"], &updated["reason"]), (&json!("False"), &json!("Error")));
    world.change(&json!({"replicas": 6}));
    world.settle();
    assert_eq!(world.shown(), "a 3 b 3");
}

/// UNITED-34
#[test]
fn workloads_of_nobody_are_adopted_with_their_revision() {
    let mut world = World::new(Kind::CloneSet, json!({}));
    world.settle();
    world.object["metadata"]["uid"] = json!("another");
    world.object["status"] = Value::Null;
    for object in world.children.iter_mut().chain(&mut world.revisions) {
        object["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    }
    // Those of another object whose name begins alike.
    let mut other = world.revisions[0].clone();
    other["metadata"]["name"] = json!("web-2-5c6978b6d7");
    other["metadata"]["uid"] = json!("of-web-2");
    world.revisions.push(other);
    let plan = decide(&world.seen()).0;
    let adopted = plan.purposes().into_iter().filter(|one| matches!(one, Purpose::Adopt(_))).count();
    assert_eq!((adopted, plan.steps.len()), (4, 4), "{:?}", plan.purposes());
}

/// UNITED-10: a patch that does not apply holds up no other subset.
#[test]
fn a_patch_that_does_not_apply_is_reported() {
    let mut world = World::new(
        Kind::CloneSet,
        json!({"topology": {"subsets": [{"name": "a"},
        {"name": "b", "patch": {"spec": {"containers": [{"image": "x"}]}}}, {"name": "c"}]}}),
    );
    world.step();
    let plan = world.step();
    assert_eq!(world.shown(), "a 2/0 c 2/0");
    let failure = plan.failure(Part::Scale).unwrap();
    assert!(
        failure.starts_with("fail to manage Subset provision: fail to create Subset (CloneSet) b: "),
        "{failure}"
    );
}

/// Durations of zero are taken for one second: a reconcile never follows itself at once.
#[test]
fn durations_of_zero_are_no_busy_loop() {
    let adaptive = json!({"rescheduleCriticalSeconds": 0, "unschedulableDuration": 0});
    let strategy = json!({"topology": {"scheduleStrategy": {"type": "Adaptive", "adaptive": adaptive}}});
    let mut world = World::new(Kind::CloneSet, strategy);
    world.step();
    // The workloads are about to be created, and are looked at again soon.
    assert_eq!(decide(&world.seen()).0.wake_after, Some(std::time::Duration::from_secs(1)));
}
