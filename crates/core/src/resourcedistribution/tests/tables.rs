//! One rule each.

use kruise_api::{
    gates::{self, Gates},
    resourcedistribution::v1beta1::Status,
};
use serde_json::{Value, json};

use super::{
    super::{
        Affected, Problem, Source, Standing, Targets, hash, hash_of, is_concerned, is_controlled, reference,
        status, status_write,
        validate::{TrialRefused, to_try},
    },
    model::{World, counts, failing, steps, time},
};
use crate::{
    admission::{
        Answer, Kind, Operation, Request,
        kinds::{Cluster, Context, validate},
    },
    pod::Metadata,
    waiting::{Reason, Waits},
};

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data})
}

fn secret(change: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}});
    object.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    object
}

fn included(names: &[&str]) -> Value {
    let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"includedNamespaces": {"list": list}})
}

fn metadata(value: Value) -> Metadata {
    serde_json::from_value(value).unwrap()
}

/// Places are written as `name:Target`.
#[track_caller]
fn places(targets: Value, expected: &str) {
    let targets = Targets::new(&serde_json::from_value(targets).unwrap()).unwrap();
    let existing = ["a", "b", "c", "kube-public", "kube-system"].map(|name| {
        let team = if name < "c" { "red" } else { "blue" };
        metadata(json!({"name": name, "labels": {"team": team}}))
    });
    let leaving = metadata(
        json!({"name": "d", "labels": {"team": "red"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}),
    );
    let sorted = targets.sort(existing.iter().chain([&leaving]));
    let found: Vec<String> =
        sorted.iter().map(|namespace| format!("{}:{:?}", namespace.name, namespace.place)).collect();
    let found: Vec<&str> =
        found.iter().map(String::as_str).filter(|place| !place.ends_with("Outside")).collect();
    assert_eq!(found.join(" "), expected);
}

/// DISTRIBUTION-2 to DISTRIBUTION-7: which namespaces get a copy, and which are missed.
#[test]
fn targets_are_what_any_rule_chooses_without_the_excluded() {
    let red = json!({"matchLabels": {"team": "red"}});
    places(json!({}), "d:Leaving");
    places(json!({"namespaceSelector": {}}), "d:Leaving");
    places(included(&["a", "kube-system", "nowhere"]), "a:Target d:Leaving nowhere:Missing");
    places(included(&["d"]), "d:Missing");
    places(json!({"namespaceSelector": red}), "a:Target b:Target d:Leaving");
    places(json!({"allNamespaces": true}), "a:Target b:Target c:Target d:Leaving");
    let mut all = included(&["nowhere", "d"]);
    all["allNamespaces"] = json!(true);
    places(all, "a:Target b:Target c:Target d:Leaving");
    let mut both = included(&["c", "gone"]);
    both["namespaceSelector"] = red;
    both["excludedNamespaces"] = json!({"list": [{"name": "b"}, {"name": "gone"}]});
    places(both, "a:Target c:Target d:Leaving");
}

#[test]
fn only_changes_that_move_a_namespace_wake() {
    let spec = json!({"namespaceSelector": {"matchLabels": {"team": "red"}}, "includedNamespaces": {"list": [{"name": "n"}]}});
    let targets = Targets::new(&serde_json::from_value(spec).unwrap()).unwrap();
    let red = metadata(json!({"name": "a", "labels": {"team": "red"}}));
    let also = metadata(json!({"name": "a", "labels": {"team": "red", "x": "y"}}));
    let blue = metadata(json!({"name": "a", "labels": {"team": "blue"}}));
    let leaving = metadata(
        json!({"name": "a", "labels": {"team": "red"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}),
    );
    let named = metadata(json!({"name": "n"}));
    for (old, new, expected) in [
        (None, Some(&red), true),
        (None, Some(&blue), false),
        (Some(&red), Some(&also), false),
        (Some(&red), Some(&blue), true),
        (Some(&blue), Some(&red), true),
        (Some(&red), Some(&leaving), true),
        (Some(&leaving), None, false),
        (Some(&red), None, true),
        (Some(&named), None, true),
        (None, Some(&named), true),
    ] {
        assert_eq!(targets.is_concerned(old, new), expected, "{old:?} {new:?}");
    }
}

#[test]
fn the_reference_of_the_controller_decides_whose_an_object_is() {
    let own = reference(&World::new(config(json!({})), json!({})).typed());
    let owner = |change: Value| {
        let mut owner = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": "rd",
            "uid": "rd-uid", "controller": true});
        owner.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        metadata(json!({"name": "x", "ownerReferences": [owner]}))
    };
    for (change, expected) in [
        (json!({}), true),
        (json!({"uid": "other"}), false),
        (json!({"controller": false}), false),
        (json!({"uid": ""}), true),
        (json!({"uid": "", "name": "other"}), false),
        (json!({"uid": "", "kind": "Other"}), false),
        (json!({"uid": "", "apiVersion": "example.com/v1"}), false),
    ] {
        assert_eq!(is_controlled(&owner(change.clone()), &own), expected, "{change}");
    }
    let annotated =
        metadata(json!({"name": "x", "annotations": {"kruise.io/resourcedistribution.resource.from": "rd"}}));
    assert!(!is_controlled(&annotated, &own));
    let (ours, foreign) = (owner(json!({})), owner(json!({"uid": "other"})));
    let edited = metadata(json!({"name": "x", "labels": {"a": "b"}, "ownerReferences": [
        {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "name": "rd", "uid": "other", "controller": true}]}));
    for (old, new, expected) in [
        (None, Some(&ours), true),
        (Some(&ours), Some(&ours), true),
        (Some(&ours), None, true),
        (Some(&foreign), Some(&edited), false),
        (Some(&foreign), None, true),
        (Some(&foreign), Some(&annotated), true),
    ] {
        assert_eq!(is_concerned(old, new, &own), expected, "{old:?} {new:?}");
    }
}

/// DISTRIBUTION-13: a stored object is no different for what the server fills in or writes in another way.
#[test]
fn equal_contents_are_equal_however_they_are_written() {
    let check = |written: Value, stored: Value, expected: bool| {
        let mut world = World::new(written, included(&["a"]));
        world.namespace("a", json!({}));
        world.pass();
        let made = world.objects["a"].clone();
        let mut object = stored.clone();
        object["metadata"] = made["metadata"].clone();
        world.put("a", object);
        let (plan, _) = world.pass();
        assert_eq!(plan.steps.is_empty(), expected, "{stored}");
        assert!(world.pass().0.steps.is_empty(), "it is settled by one write");
    };
    let word = json!({"data": {"a": "d29yZA=="}, "type": "Opaque"});
    check(secret(json!({"stringData": {"a": "word"}})), word.clone(), true);
    check(secret(json!({"stringData": {"a": "word"}, "data": {"a": "b2xk"}})), word.clone(), true);
    check(secret(json!({"data": {"a": "d29y\nZA=="}, "type": ""})), word.clone(), true);
    check(secret(json!({"data": {"a": "d29yZA=="}, "immutable": false, "type": null})), word.clone(), true);
    check(
        secret(json!({"data": {"a": "d29yZB=="}})),
        json!({"data": {"a": "d29yZA=="}, "type": "Opaque"}),
        true,
    );
    check(secret(json!({"data": {"a": null}})), json!({"data": {"a": ""}, "type": "Opaque"}), true);
    check(secret(json!({"data": {}})), json!({"type": "Opaque"}), true);
    check(
        secret(json!({"data": {"a": "d29yZA=="}})),
        json!({"data": {"a": "b2xk"}, "type": "Opaque"}),
        false,
    );
    check(secret(json!({})), word, false);
    check(config(json!({"a": "d29y\nZA=="})), json!({"data": {"a": "d29yZA=="}}), false);
    check(config(json!({"a": "1"})), json!({"data": {"a": "1"}, "binaryData": {}}), true);
    check(config(json!({"a": "1"})), json!({"data": {"a": "1"}, "binaryData": {"b": "AAAA"}}), false);
    check(config(json!(null)), json!({"data": {"a": "1", "b": "2"}}), false);
}

#[test]
fn copies_carry_what_is_theirs_and_nothing_that_binds_them() {
    let mut resource = config(json!({"a": "1"}));
    resource["metadata"] = json!({
        "name": "x", "namespace": "elsewhere", "uid": "1", "resourceVersion": "7", "generateName": "y-",
        "labels": {"own": "yes"}, "finalizers": ["f"], "managedFields": [{}],
        "annotations": {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "kruise.io/resourcedistribution.resource.from": "somebody"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "2"}],
    });
    let mut world = World::new(resource.clone(), included(&["a"]));
    world.namespace("a", json!({}));
    let (plan, status) = world.pass();
    assert_eq!((steps(&plan).as_str(), counts(&status)), ("create a", (1, 1, 0)));
    let mut copy = world.objects["a"].clone();
    let own = &mut copy["metadata"];
    assert!(own["uid"].take().is_string() && own["resourceVersion"].take().is_string());
    let hash = hash_of(&resource);
    assert_eq!(
        copy,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}, "metadata": {
            "name": "x", "namespace": "a", "uid": null, "resourceVersion": null, "labels": {"own": "yes"},
            "annotations": {"note": "n", "kruise.io/resourcedistribution.resource.from": "rd",
                "kruise.io/resourcedistribution.resource.hashcode": hash},
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "name": "rd",
                "uid": "rd-uid", "controller": true, "blockOwnerDeletion": true}],
        }})
    );
}

#[test]
fn the_hash_is_of_the_bytes_of_the_server() {
    assert_eq!(hash("{}"), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    assert_eq!(hash_of(&json!({"b": "<", "a": 1})), hash("{\"a\":1,\"b\":\"\\u003c\"}"));
}

#[test]
fn what_is_refused_rests_and_holds_up_no_other() {
    let mut world = World::new(config(json!({"a": "1"})), included(&["a", "b", "c"]));
    ["a", "b", "c"].iter().for_each(|name| world.namespace(name, json!({})));
    let full = "configmaps \"x\" is forbidden: exceeded quota: few, requested: count/configmaps=1, used: count/configmaps=0, limited: count/configmaps=0";
    world.refusals.insert("a".to_owned(), (403, full.to_owned()));
    let (plan, status) = world.pass();
    assert_eq!((steps(&plan).as_str(), counts(&status)), ("create a, create b, create c", (3, 2, 1)));
    assert_eq!(failing(&status), ["CreateResourceFailed: a", "Waiting: a"]);
    assert_eq!(world.events, [format!("CreateResourceFailed 1 of 3 namespaces (a): {full}")]);
    let mut tries = 0;
    for second in 1..3600 {
        world.now = second;
        let (plan, status) = world.pass();
        tries += plan.steps.len();
        assert_eq!((counts(&status), failing(&status).len()), ((3, 2, 1), 2), "it stays reported");
    }
    assert!((15..25).contains(&tries), "{tries} tries");
    assert_eq!(world.events.len(), 1);
    // A change of the spec is tried at once.
    world.change(json!({"resource": {"data": {"a": "2"}}}));
    assert_eq!(steps(&world.pass().0), "update b, update c, create a");
    // An earlier process has reported it: it is tried at once and reported no more.
    world.restart();
    world.refusals.clear();
    let (plan, status) = world.pass();
    assert_eq!((steps(&plan).as_str(), counts(&status)), ("create a", (3, 3, 0)));
    assert_eq!((failing(&status).len(), world.events.len()), (0, 1));
}

#[test]
fn with_little_room_what_was_never_refused_comes_first() {
    let names: Vec<String> = (0..6).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new(config(json!({"a": "1"})), included(&names));
    names.iter().for_each(|name| world.namespace(name, json!({})));
    world.refusals.insert("n0".to_owned(), (500, "no".to_owned()));
    world.refusals.insert("n1".to_owned(), (500, "no".to_owned()));
    world.room = 2;
    let mut seen = Vec::new();
    for second in 0..4 {
        world.now = second * 10;
        seen.push(steps(&world.pass().0));
    }
    assert_eq!(
        seen,
        ["create n0, create n1", "create n2, create n3", "create n4, create n5", "create n0, create n1"]
    );
    // A large resource is written in small passes, so that a pass takes no memory.
    let mut large = World::new(config(json!({"a": "1".repeat(5 << 20)})), included(&names));
    large.namespaces.clone_from(&world.namespaces);
    assert_eq!(large.pass().0.steps.len(), 1);
}

#[test]
fn a_server_that_knows_better_is_believed() {
    let mut world = World::new(config(json!({"a": "1"})), included(&["a", "b", "c", "d"]));
    ["a", "b", "c", "d"].iter().for_each(|name| world.namespace(name, json!({})));
    let answers = [
        (
            "a",
            403,
            "configmaps \"x\" is forbidden: unable to create new content in namespace a because it is being terminated",
        ),
        ("b", 404, "namespaces \"b\" not found"),
        ("c", 409, "an object of this name exists and belongs to somebody else"),
        ("d", 403, "configmaps is forbidden: User \"u\" cannot create resource \"configmaps\""),
    ];
    for (namespace, code, message) in answers {
        world.refusals.insert(namespace.to_owned(), (code, message.to_owned()));
    }
    for second in 0..2 {
        world.now = second;
        let (_, status) = world.pass();
        assert_eq!(counts(&status), (4, 0, 4));
        assert_eq!(
            failing(&status),
            ["CreateResourceFailed: d", "ConflictOccurred: c", "NamespaceNotExists: a b", "Waiting: d"]
        );
        assert_eq!(status.conditions.last().unwrap().reason.as_deref(), Some("PermissionMissing"));
    }
}

#[test]
fn what_cannot_be_read_is_not_written() {
    let mut world = World::new(config(json!({"a": "1"})), included(&["a", "gone"]));
    world.namespace("a", json!({}));
    world.unreadable = Some("no permission".to_owned());
    let (plan, status) = world.pass();
    assert!(plan.steps.is_empty());
    assert_eq!(counts(&status), (2, 0, 2));
    assert_eq!(failing(&status), ["GetResourceFailed: a", "NamespaceNotExists: gone", "Waiting: gone"]);
}

#[test]
fn an_event_comes_when_namespaces_are_added_and_not_too_often() {
    let mut world = World::new(config(json!({"a": "1"})), included(&["a", "b", "c", "d", "e"]));
    world.pass();
    let text = "namespace not found or is terminating";
    let first = format!("NamespaceNotExists 5 of 5 namespaces (a, b, c and 2 more): {text}");
    assert_eq!(world.events, [first]);
    ["a", "b", "c"].iter().for_each(|name| world.namespace(name, json!({})));
    (world.now, _) = (10, world.pass());
    world.namespaces.remove("a");
    for second in [20, 299] {
        world.now = second;
        world.pass();
    }
    assert_eq!(world.events.len(), 1);
    world.now = 300;
    world.pass();
    assert_eq!(world.events[1..], [format!("NamespaceNotExists 3 of 5 namespaces (a, d, e): {text}")]);
}

/// A spec that was stored past the rules is reported; what was known of copies stays.
#[test]
fn a_spec_that_cannot_be_carried_out_is_reported() {
    let mut world = World::new(config(json!({"a": "1"})), included(&["a", "b"]));
    world.namespace("a", json!({}));
    let (_, before) = world.pass();
    let (mut waits, affected) = (Waits::default(), Affected::new());
    waits.add(
        Reason::SpecInvalid,
        "the spec cannot be carried out: spec.resource: empty resource is not allowed",
    );
    let object = world.typed();
    let standing = Standing { ledger: None, waits: &waits, affected: &affected, now: time(1) };
    let after = status(&object, standing);
    assert_eq!(counts(&after), counts(&before));
    assert_eq!(failing(&after), ["NamespaceNotExists: b", "Waiting: "]);
    assert!(status_write(&object, &after).is_some());
    assert!(status_write(&object, &before).is_none());
    assert_eq!(Source::parse(&serde_json::Map::new()), Err(Problem::Empty));
}

/// DISTRIBUTION-14: a status of another release is taken as it is, by types and not by places.
#[test]
fn an_equal_status_in_another_order_keeps_its_times() {
    let mut world = World::new(config(json!({"a": "1"})), included(&["a"]));
    world.namespace("a", json!({}));
    let (_, mut old) = world.pass();
    old.conditions.reverse();
    world.object["status"] = serde_json::to_value(&old).unwrap();
    world.now = 100;
    let (_, new) = world.pass();
    old.conditions.reverse();
    assert_eq!(Status { conditions: old.conditions, ..new.clone() }, new);
}

struct Refusing(Option<TrialRefused>);

impl Cluster for Refusing {
    fn refused_trial(&self) -> Option<TrialRefused> {
        self.0.clone()
    }
}

fn asked(resource: Value, targets: Value, old: Option<Value>, trial: Option<(u16, &str)>) -> Answer {
    let object = |resource: Value, targets: &Value| {
        json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "metadata": {"name": "rd"},
            "spec": {"resource": resource, "targets": targets}})
    };
    let request = Request {
        kind: Kind {
            group: "apps.kruise.io".to_owned(),
            version: "v1beta1".to_owned(),
            kind: "ResourceDistribution".to_owned(),
        },
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        old_object: old.map(|old| object(old, &targets)).unwrap_or_default(),
        object: object(resource, &targets),
        ..Request::default()
    };
    let (gates, _) = Gates::parse("ResourceDistributionGate=true", &gates::Options::default()).unwrap();
    let cluster = Refusing(trial.map(|(code, message)| TrialRefused { code, message: message.to_owned() }));
    let context = Context { gates: &gates, allow_privileged: true, now: time(0), seed: 0, cluster: &cluster };
    validate(&request, &context)
}

#[track_caller]
fn refused(answer: Answer, expected: &str) {
    match answer {
        Answer::Denied { code: 422, message } => assert_eq!(message, expected),
        other => panic!("{other:?}"),
    }
}

/// DISTRIBUTION-17: the words of refusals, none of which repeats what a resource holds.
#[test]
fn refusals_name_the_field_and_the_rule() {
    let good = || config(json!({"a": "hunter2"}));
    let none = || json!({});
    assert_eq!(asked(good(), none(), None, None), Answer::allowed());
    refused(
        asked(json!({}), none(), None, None),
        "spec.resource: Invalid value: null: empty resource is not allowed",
    );
    refused(
        asked(json!({"data": {"a": "hunter2"}}), none(), None, None),
        "spec.resource: Internal error: failed to deserialize resource, please check your spec.resource, err Object 'Kind' is missing",
    );
    refused(
        asked(json!({"apiVersion": "apps/v1", "kind": "Deployment", "data": "hunter2"}), none(), None, None),
        "spec.resource: Invalid value: \"Deployment.apps\": unknown or unsupported resource GroupKind, only support [Secret ConfigMap]",
    );
    refused(
        asked(json!({"apiVersion": "v1", "kind": "Secret"}), none(), None, None),
        "spec.resource.metadata.name: Required value",
    );
    refused(
        asked(good(), none(), Some(secret(json!({}))), None),
        "spec.resource: Invalid value: null: resource apiVersion, kind, and name are immutable",
    );
    for (code, expected) in [
        (422, "Invalid value: null: spec.resource is invalid: no"),
        (400, "Invalid value: null: spec.resource is invalid: no"),
        (403, "Forbidden: spec.resource is forbidden: no"),
        (500, "Internal error: failed to dry-run validate spec.resource: no"),
    ] {
        refused(asked(good(), none(), None, Some((code, "no"))), &format!("spec.resource: {expected}"));
    }
    let mut both = included(&["a", "b"]);
    both["excludedNamespaces"] = json!({"list": [{"name": "b"}]});
    let Answer::Denied { message, .. } = asked(good(), both, None, None) else { panic!("it is refused") };
    assert!(message.starts_with("spec.targets: Invalid value: {"), "{message}");
    assert!(message.ends_with(
        "ambiguous targets because namespace [b] is in both IncludedNamespaces.List and ExcludedNamespaces.List"
    ));
    let Answer::Denied { message, .. } = asked(good(), included(&["Bad_Name"]), None, None) else {
        panic!("it is refused")
    };
    assert!(
        message.starts_with("spec.targets.includedNamespaces: Invalid value: \"Bad_Name\": "),
        "{message}"
    );
}

/// The server is asked about what is new, in the form in which its author wrote it.
#[test]
fn the_server_is_asked_about_new_resources_only() {
    let object = |resource: Value| json!({"spec": {"resource": resource}});
    let mut resource = config(json!({"a": 1}));
    resource["metadata"] =
        json!({"name": "x", "namespace": "n", "uid": "u", "labels": {"a": 2}, "finalizers": ["f"]});
    let (_, asked) = to_try(&object(resource.clone()), &Value::Null, "kruise-system").unwrap();
    let expected = json!({"name": "x", "namespace": "kruise-system", "labels": {"a": 2}});
    assert_eq!((&asked["metadata"], &asked["data"]), (&expected, &json!({"a": 1})));
    assert!(to_try(&object(resource.clone()), &object(resource.clone()), "n").is_none());
    assert!(to_try(&object(resource.clone()), &object(config(json!({}))), "n").is_some());
    let mut leaving = object(config(json!({})));
    leaving["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    assert!(to_try(&object(resource), &leaving, "n").is_none());
    assert!(to_try(&object(json!({"kind": "Pod"})), &Value::Null, "n").is_none());
}
