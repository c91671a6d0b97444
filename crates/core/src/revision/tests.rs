use serde_json::{Value, json};

use super::*;
use crate::{effect::Effect, effect::Patch, object::ObjectKey, object::Resource};

fn recorded() -> Vec<Value> {
    include_str!("../../tests/recorded/revisions.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn owner() -> ObjectRef {
    ObjectRef {
        resource: Resource::namespaced("apps.kruise.io", "v1beta1", "CloneSet", "clonesets"),
        key: ObjectKey::new("default", "web"),
        uid: "u0".into(),
    }
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}

fn stored(number: i64, image: &str) -> Revision {
    let Found::Missing(mut new) = find_in(&[], image, 0, &|_| false) else { panic!("there is none") };
    new.object["revision"] = number.into();
    Revision::read(&new.object).unwrap()
}

fn find_in<'a>(
    revisions: &[&'a Revision],
    image: &str,
    collisions: i32,
    taken: &dyn Fn(&str) -> bool,
) -> Found<'a> {
    let reference = owner();
    let owner = Owner {
        reference: &reference,
        annotations: json!({"team": "x"}),
        collision_count: collisions,
        follows: Some(("claims", String::new())),
        hash_label: kruise_api::labels::REVISION_HASH,
    };
    find(&owner, &template(image), revisions, taken)
}

/// 88 templates, recorded from the original.
#[test]
fn bytes_and_names_equal_those_of_the_original() {
    let recorded = recorded();
    assert_eq!(recorded.len(), 88);
    for line in recorded {
        let (expected, revision) = (line["data"].as_str().unwrap(), line["revision"].as_str().unwrap());
        let data = data(&line["stored"]);
        assert_eq!(canonical_json::text(&data), expected);
        let (workload, _) = revision.rsplit_once('-').unwrap();
        assert_eq!(name(workload, &hash_of(&data, 0)), revision);
        // What the original stored is recognised, also when it is read back from its data.
        let read = Revision {
            template: comparable(&serde_json::from_str::<Value>(expected).unwrap()["spec"]["template"]),
            ..Revision::default()
        };
        assert!(read.means(&comparable(&line["stored"])), "{revision}");
    }
}

/// CLONESET-1: what a person sends gets the defaults, and then the name that the original gives it.
#[test]
fn defaults_lead_to_the_same_revision() {
    use kruise_api::kubernetes::defaults::{Options, pod_template_spec};
    for line in recorded().iter().filter(|line| line["kind"] == "cloneset") {
        let (mut sent, labels) = (line["sent"].clone(), &line["stored"]["metadata"]["labels"]);
        sent["metadata"]["labels"] = labels.clone();
        pod_template_spec(&mut sent, &Options::KRUISE_TEMPLATE);
        assert_eq!(
            canonical_json::text(&data(&sent)),
            line["data"].as_str().unwrap(),
            "{}",
            line["revision"]
        );
    }
}

#[test]
fn the_hash_changes_with_the_collision_count() {
    let data: Value = serde_json::from_str(
        r#"{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"demo"}},"spec":{"containers":[{"image":"nginx:1.25","name":"main","resources":{}}]}}}}"#,
    )
    .unwrap();
    assert_eq!(hash_of(&data, 0), "788944f45");
    assert_eq!(hash_of(&data, 1), "788944f44");
}

/// INPLACE-32: the forms that only look different.
#[test]
fn templates_that_mean_the_same_are_the_same_revision() {
    let sent = json!({"metadata": {}, "$patch": "replace", "spec": {"containers": [
        {"name": "main", "image": "a", "args": ["<"], "resources": {"limits": {"cpu": "1000m"}}},
        {"name": "b", "image": "b", "resources": {}, "env": []},
    ]}});
    let stored = json!({"metadata": {"creationTimestamp": null}, "spec": {"containers": [
        {"name": "main", "image": "a", "args": ["<"], "resources": {"limits": {"cpu": "1"}}},
        {"name": "b", "image": "b"},
    ]}});
    assert_eq!(comparable(&sent), comparable(&stored));
    let other = json!({"spec": {"containers": [{"name": "main", "image": "a", "novelty": true}]}});
    let plain = json!({"spec": {"containers": [{"name": "main", "image": "a"}]}});
    assert_ne!(comparable(&other), comparable(&plain), "a member newer than this build counts");
}

#[test]
fn a_revision_without_a_readable_template_equals_nothing() {
    let broken = Revision::read(&json!({"metadata": {"name": "x"}, "data": {"other": 1}})).unwrap();
    assert!(!broken.means(&Value::Null));
}

/// INPLACE-33
#[test]
fn going_back_gives_the_old_revision_the_newest_number() {
    let (first, second) = (stored(1, "a"), stored(2, "b"));
    let known = [&first, &second];
    let Found::Older(revision, Effect::Patch { patch: Patch::Merge(patch), .. }) =
        find_in(&known, "a", 0, &|_| false)
    else {
        panic!("the older one is found")
    };
    assert_eq!((revision.name(), patch), (first.name(), json!({"revision": 3})));
    assert!(
        matches!(find_in(&known, "b", 0, &|_| false), Found::Newest(newest) if newest.name() == second.name())
    );
}

/// INPLACE-34
#[test]
fn a_taken_name_counts_and_the_next_one_differs() {
    let Found::Missing(free) = find_in(&[], "a", 0, &|_| false) else { panic!("new") };
    let Found::Missing(other) = find_in(&[], "a", 0, &|name| name == free.name) else { panic!("new") };
    assert_eq!((free.collision_count, other.collision_count), (0, 1));
    assert_ne!(free.name, other.name);
    assert_eq!(free.name.len(), other.name.len());
}

#[test]
fn a_new_revision_carries_labels_annotations_and_its_owner() {
    let first = stored(7, "a");
    let Found::Missing(new) = find_in(&[&first], "b", 0, &|_| false) else { panic!("new") };
    let hash = short_hash(&new.name).to_owned();
    assert_eq!(new.object["revision"], 8);
    assert_eq!(
        new.object["metadata"]["labels"],
        json!({"app": "web", "controller.kubernetes.io/hash": hash})
    );
    assert_eq!(new.object["metadata"]["annotations"], json!({"team": "x", "claims": ""}));
    assert_eq!(new.object["metadata"]["ownerReferences"][0]["apiVersion"], "apps.kruise.io/v1beta1");
    assert_eq!(new.object["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
}

/// INPLACE-35
#[test]
fn only_the_newest_unused_revisions_stay() {
    let all: Vec<Revision> = (1..=6).map(|number| stored(number, &format!("v{number}"))).collect();
    let mut sorted: Vec<&Revision> = all.iter().rev().collect();
    sort(&mut sorted);
    let live = |revision: &Revision| revision.number == 6 || revision.number == 2;
    let gone = |limit| outdated(&sorted, limit, &live).iter().map(|gone| gone.number).collect::<Vec<_>>();
    assert_eq!(gone(2), [1, 3]);
    assert_eq!(gone(0), [1, 3, 4, 5]);
    assert_eq!(gone(10), [] as [i64; 0]);
}

#[test]
fn labels_are_names_or_hashes() {
    assert!(
        is_label_of("web-abc", "web-abc") && is_label_of("abc", "web-abc") && !is_label_of("abd", "web-abc")
    );
    assert_eq!(label("web-abc", false), "web-abc");
    assert_eq!(label("web-abc", true), "abc");
    assert_eq!(label(&name(&"n".repeat(60), "abc"), false), "abc", "a label has at most 63 letters");
    assert_eq!(name(&"n".repeat(300), "abc").len(), 227);
}

/// Recorded from the original.
#[test]
fn claim_templates_have_the_fingerprints_of_the_original() {
    let vector: Value = serde_json::from_str(
        r#"{"metadata":{"name":"pvc-1","labels":{"any":"thing"}},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"},"limits":{"storage":"2048Mi"}}}}"#,
    )
    .unwrap();
    assert_eq!(claim_hash(&[vector]), "1129974074");
    let claim = |size: &str| {
        json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}, "storageClassName": "cap-a-static"}, "status": {"phase": "Pending"}})
    };
    assert_eq!(claim_hash(&[claim("1Gi")]), "610666049");
    assert_eq!(claim_hash(&[claim("2Gi")]), "3749571639");
    assert_eq!(claim_hash(&[]), "");
}
