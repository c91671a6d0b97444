use std::collections::BTreeSet;

use super::*;
use crate::canonical_json;

const NAMESPACE: &str = "kruise-system";

fn set(spec: Value) -> SidecarSet {
    let metadata = json!({"name": "log", "uid": "u1", "labels": {"team": "a"},
        "annotations": {"kruise.io/sidecarset-hash": "h1", LAST_APPLIED_CONFIGURATION: "{}"}});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

fn with_image(image: &str) -> SidecarSet {
    set(json!({"containers": [{"name": "sc", "image": image}], "revisionHistoryLimit": 10}))
}

/// A small world: the revisions that a set has, changed by effects.
#[derive(Default)]
struct World {
    revisions: Vec<Value>,
}

impl World {
    fn read(&self) -> Vec<Arc<Revision>> {
        self.revisions.iter().map(|object| Arc::new(Revision::read(object).unwrap())).collect()
    }

    fn register(&mut self, set: &SidecarSet, used: &[&str]) -> Registered {
        let registered = register(set, &self.read(), NAMESPACE, &|name| used.contains(&name));
        for effect in &registered.effects {
            match effect {
                Effect::Create { object, .. } => self.revisions.push(object.clone()),
                Effect::Patch { target, patch: Patch::Merge(patch), .. } => {
                    let is_it = |one: &&mut Value| one["metadata"]["name"] == target.key.name.as_str();
                    json_patch::merge(self.revisions.iter_mut().find(is_it).unwrap(), patch);
                }
                Effect::Delete { target, .. } => {
                    self.revisions.retain(|one| one["metadata"]["name"] != target.key.name.as_str());
                }
                other => panic!("{other:?}"),
            }
        }
        registered
    }

    /// Numbers and images, from old to new.
    fn history(&self) -> Vec<(i64, String)> {
        let mut all: Vec<(i64, String)> = self
            .revisions
            .iter()
            .map(|one| {
                let image = one["data"]["spec"]["containers"][0]["image"].as_str().unwrap();
                (one["revision"].as_i64().unwrap(), image.to_owned())
            })
            .collect();
        all.sort();
        all
    }
}

/// Recorded from the original.
#[test]
fn bytes_and_names_equal_those_of_the_original() {
    let lines = include_str!("../../../tests/recorded/sidecarset-sets.jsonl").lines();
    let mut count = 0;
    for line in lines.map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let Some(revision) = line.get("revision") else { continue };
        count += 1;
        let data = data(&line["stored"]);
        assert_eq!(canonical_json::text(&data), canonical_json::text(&revision["data"]), "{}", line["case"]);
        let (workload, _) = revision["name"].as_str().unwrap().rsplit_once('-').unwrap();
        assert_eq!(
            revision::name(workload, &revision::hash_of(&data, 0)),
            revision["name"].as_str().unwrap(),
            "{}",
            line["case"]
        );
        // What the original stored is recognised.
        let read = json!({"metadata": {"name": "x"}, "data": revision["data"], "revision": 1});
        assert!(Revision::read(&read).unwrap().means(&comparable(&line["stored"])), "{}", line["case"]);
    }
    assert!(count > 30, "{count}");
}

#[test]
fn a_new_revision_carries_what_the_set_carries() {
    let mut world = World::default();
    let mut wanted = with_image("a");
    wanted.spec.custom_version = Some("v1".to_owned());
    let registered = world.register(&wanted, &[]);
    let object = &world.revisions[0];
    let hash = revision::short_hash(&registered.latest);
    assert_eq!(
        object["metadata"]["labels"],
        json!({"team": "a", "kruise.io/sidecarset-name": "log", "controller.kubernetes.io/hash": hash,
            "apps.kruise.io/sidecarset-custom-version": "v1"})
    );
    assert_eq!(object["metadata"]["annotations"], json!({"kruise.io/sidecarset-hash": "h1"}));
    assert_eq!(object["metadata"]["namespace"], NAMESPACE);
    assert_eq!(object["metadata"]["ownerReferences"][0]["kind"], "SidecarSet");
    assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "u1");
    assert_eq!(object["revision"], 1);
    let spec = object["data"]["spec"].as_object().unwrap();
    let members: Vec<&str> = spec.keys().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(
        members,
        ["$patch", "containers", "imagePullSecrets", "initContainers", "patchPodMetadata", "volumes"]
    );
    assert_eq!(spec["volumes"], Value::Null);
}

/// SIDECARSET-39
#[test]
fn ten_revisions_stay_and_going_back_renumbers() {
    let mut world = World::default();
    for number in 0..15 {
        world.register(&with_image(&format!("h:{number}")), &[]);
    }
    let numbers = |world: &World| world.history().iter().map(|(number, _)| *number).collect::<Vec<_>>();
    assert_eq!(numbers(&world), (6..=15).collect::<Vec<_>>());
    let back = world.register(&with_image("h:11"), &[]);
    assert_eq!(numbers(&world), [6, 7, 8, 9, 10, 11, 13, 14, 15, 16]);
    assert_eq!(world.history().last().unwrap().1, "h:11");
    let again = world.register(&with_image("h:11"), &[]);
    assert_eq!((again.effects, again.latest), (Vec::new(), back.latest), "at rest nothing is written");
}

/// SIDECARSET-39
#[test]
fn revisions_that_somebody_needs_stay() {
    let mut world = World::default();
    let limited = |image: &str, injection: Value| {
        set(json!({"containers": [{"name": "sc", "image": image}], "revisionHistoryLimit": 1,
            "injectionStrategy": injection}))
    };
    let first = world.register(&limited("a", json!({})), &[]).latest;
    let second = world.register(&limited("b", json!({})), &[&first]).latest;
    assert_eq!(world.revisions.len(), 2, "a pod follows the first");
    world.register(&limited("c", json!({"revision": {"revisionName": second}})), &[]);
    let images: Vec<String> = world.history().into_iter().map(|(_, image)| image).collect();
    assert_eq!(images, ["b", "c"], "the second is chosen, the first is needed by nobody now");
    let none = set(json!({"containers": [{"name": "sc", "image": "d"}], "revisionHistoryLimit": -1}));
    world.register(&none, &[]);
    assert_eq!(world.revisions.len(), 1, "the newest stays whatever the limit is");
}

#[test]
fn the_custom_version_follows_the_set() {
    let mut world = World::default();
    world.register(&with_image("a"), &[]);
    let mut named = with_image("a");
    named.spec.custom_version = Some("v2".to_owned());
    world.register(&named, &[]);
    assert_eq!(world.revisions[0]["metadata"]["labels"]["apps.kruise.io/sidecarset-custom-version"], "v2");
    assert_eq!(world.register(&named, &[]).effects, []);
    named.spec.custom_version = Some("no label can hold this".to_owned());
    assert_eq!(world.register(&named, &[]).effects, []);
}

/// The original takes such a revision for its own; it goes with the set that is gone.
#[test]
fn a_revision_of_an_earlier_set_of_the_name_is_not_used() {
    let mut world = World::default();
    let first = world.register(&with_image("a"), &[]);
    let mut later = with_image("a");
    later.metadata.uid = Some("u2".to_owned());
    let second = world.register(&later, &[]);
    assert_eq!((first.collision_count, second.collision_count), (0, 1));
    assert_ne!(first.latest, second.latest);
    world.revisions[0]["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(of_set(&later, &world.read()).len(), 2, "one without an owner is taken over");
}

/// SIDECARSET-21, SIDECARSET-22
#[test]
fn a_revision_is_chosen_by_name_or_by_custom_version() {
    let mut world = World::default();
    let names: Vec<String> = ["0", "1", "0"]
        .iter()
        .enumerate()
        .map(|(index, version)| {
            let mut wanted = with_image(&format!("h:{index}"));
            wanted.spec.custom_version = Some((*version).to_owned());
            world.register(&wanted, &[]).latest
        })
        .collect();
    let revisions = world.read();
    let choose = |choice: Value| {
        let choice: InjectionRevision = serde_json::from_value(choice).unwrap();
        match chosen("log", &choice, &revisions) {
            Ok(found) => found.map(|one| one.name().to_owned()).unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(choose(json!({"customVersion": "1"})), names[1]);
    assert_eq!(choose(json!({"customVersion": "0"})), names[2], "the newest one");
    assert_eq!(choose(json!({"customVersion": "0", "revisionName": names[0]})), names[0], "the name wins");
    assert_eq!(choose(json!({})), "");
    assert_eq!(choose(json!({"revisionName": "nope"})), "ControllerRevision.apps \"nope\" not found");
    assert_eq!(choose(json!({"customVersion": "9"})), "ControllerRevision.apps \"log\" not found");
    let choice = InjectionRevision { revision_name: Some(names[0].clone()), ..InjectionRevision::default() };
    assert!(
        chosen("other", &choice, &revisions).is_err(),
        "revisions of other workloads are not given to pods"
    );
}
