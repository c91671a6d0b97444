use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::apply::{Schema, errors};

const DEPLOYMENT: (&str, &str, &str) = ("apps", "v1", "Deployment");
const NO_STATUS: Reset = Reset::Except(&[&["status"]]);

fn deployment() -> Typed<'static> {
    Schema::built_in(DEPLOYMENT.0, DEPLOYMENT.1, DEPLOYMENT.2)
}

fn by(name: &str, operation: Operation) -> Write {
    let manager =
        Manager { name: name.into(), operation, api_version: "apps/v1".into(), subresource: "".into() };
    Write { manager, now: 0 }
}

/// Each manager with its fields, one line each.
fn shown(managed: &Managed) -> Vec<String> {
    let lines = managed.entries().iter().map(|entry| {
        let mut text = format!("{} {:?} ", entry.manager.name, entry.manager.operation);
        crate::apply::wire::write(&entry.fields, &mut text);
        text
    });
    lines.collect()
}

fn applied(
    live: &Value,
    config: &Value,
    managed: &Managed,
    name: &str,
    force: bool,
) -> Result<Applied, String> {
    let nothing = json!({});
    let write = by(name, Operation::Apply);
    apply(deployment(), &nothing, live, config, managed, &write, NO_STATUS, force)
        .map_err(|conflicts| conflicts.told().0)
}

fn containers(list: Value) -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"template": {"spec": {"containers": list}}}})
}

#[test]
fn a_create_owns_what_it_sets_and_pointers_themselves() {
    let zero = json!({"metadata": {}, "spec": {"selector": null, "template": {"metadata": {}, "spec": {"containers": null}}, "strategy": {}}});
    let new = json!({
        "kind": "Deployment", "metadata": {"name": "web", "uid": "u", "labels": {"app": "web"}},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                "containers": [{"name": "web", "image": "i", "resources": {}, "ports": [{"containerPort": 80, "protocol": "TCP"}]}],
                "nodeSelector": {"a": "b"},
            }},
        },
        "status": {"replicas": 3},
    });
    let managed =
        update(deployment(), &zero, &new, &Managed::default(), &by("kubectl", Operation::Update), NO_STATUS);
    assert_eq!(
        shown(&managed),
        [
            "kubectl Update {\"f:metadata\":{\"f:labels\":{\".\":{},\"f:app\":{}}},\"f:spec\":{\"f:replicas\":{},\"f:selector\":{},\
         \"f:strategy\":{\"f:rollingUpdate\":{\".\":{},\"f:maxSurge\":{}},\"f:type\":{}},\"f:template\":{\
         \"f:metadata\":{\"f:labels\":{\".\":{},\"f:app\":{}}},\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"web\\\"}\":{\
         \".\":{},\"f:image\":{},\"f:name\":{},\"f:ports\":{\".\":{},\
         \"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},\"f:containerPort\":{},\"f:protocol\":{}}},\
         \"f:resources\":{}}},\"f:nodeSelector\":{}}}}}"
        ]
    );
}

#[test]
fn an_update_takes_fields_over_and_forgets_removed_ones() {
    let (first, second) = (
        json!({"spec": {"replicas": 1, "paused": true}}),
        json!({"spec": {"replicas": 2, "minReadySeconds": 5}}),
    );
    let kind = deployment();
    let managed = update(
        kind,
        &json!({"spec": {}}),
        &first,
        &Managed::default(),
        &by("a", Operation::Update),
        NO_STATUS,
    );
    let managed = update(kind, &first, &second, &managed, &by("b", Operation::Update), NO_STATUS);
    assert_eq!(shown(&managed), ["b Update {\"f:spec\":{\"f:minReadySeconds\":{},\"f:replicas\":{}}}"]);
}

#[test]
fn a_conflict_names_the_field_and_the_other_manager() {
    let config = json!({"spec": {"replicas": 1, "paused": true}});
    let first = applied(&json!({}), &config, &Managed::default(), "a", false).unwrap();
    let other = json!({"spec": {"replicas": 2}});
    assert_eq!(
        applied(&first.object, &other, &first.managed, "b", false).unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas"
    );
    let both = json!({"spec": {"replicas": 2, "paused": false}});
    assert_eq!(
        applied(&first.object, &both, &first.managed, "b", false).unwrap_err(),
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.paused\n- .spec.replicas"
    );
    let forced = applied(&first.object, &other, &first.managed, "b", true).unwrap();
    assert_eq!(forced.object, json!({"spec": {"replicas": 2, "paused": true}}));
    assert_eq!(
        shown(&forced.managed),
        ["a Apply {\"f:spec\":{\"f:paused\":{}}}", "b Apply {\"f:spec\":{\"f:replicas\":{}}}"]
    );
    // The same value is no conflict: both own it.
    let same = applied(&first.object, &json!({"spec": {"replicas": 1}}), &first.managed, "b", false).unwrap();
    assert_eq!(shown(&same.managed).len(), 2);
    assert_eq!(same.object, first.object);
}

#[test]
fn what_is_no_longer_applied_goes_unless_somebody_owns_it() {
    let config =
        json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"paused": true, "replicas": 1}});
    let first = applied(&json!({}), &config, &Managed::default(), "a", false).unwrap();
    let other =
        applied(&first.object, &json!({"spec": {"replicas": 1}}), &first.managed, "b", false).unwrap();
    let less = json!({"metadata": {"labels": {"a": "1"}}});
    let second = applied(&other.object, &less, &other.managed, "a", false).unwrap();
    assert_eq!(second.object, json!({"metadata": {"labels": {"a": "1"}}, "spec": {"replicas": 1}}));
}

#[test]
fn items_with_keys_come_and_go_by_themselves() {
    let live = containers(json!([{"name": "a", "image": "1"}]));
    let first = applied(&json!({}), &live, &Managed::default(), "one", false).unwrap();
    let more = containers(json!([{"name": "b", "image": "2", "env": [{"name": "X", "value": "1"}]}]));
    let second = applied(&first.object, &more, &first.managed, "two", false).unwrap();
    let names = |object: &Value| -> Vec<String> {
        let list = object.pointer("/spec/template/spec/containers").and_then(Value::as_array).unwrap();
        list.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&second.object), ["a", "b"]);
    let gone = applied(&second.object, &containers(json!([])), &second.managed, "two", false).unwrap();
    assert_eq!(names(&gone.object), ["a"]);
    // An empty list says nothing, so that nothing is owned.
    assert_eq!(shown(&gone.managed).len(), 1, "{:?}", shown(&gone.managed));
}

#[test]
fn an_object_that_nobody_kept_account_of_belongs_to_somebody_unknown() {
    let live = json!({"spec": {"replicas": 3}});
    let conflict =
        applied(&live, &json!({"spec": {"replicas": 1}}), &Managed::default(), "a", false).unwrap_err();
    assert_eq!(
        conflict,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using apps/v1: .spec.replicas"
    );
}

#[test]
fn an_eleventh_updater_puts_the_oldest_two_together() {
    let mut managed = Managed::default();
    let mut old = json!({"metadata": {"labels": {}}});
    for i in 0..12 {
        let mut new = old.clone();
        new["metadata"]["labels"][format!("l{i}")] = json!("x");
        let mut write = by(&format!("m{i:02}"), Operation::Update);
        write.now = i;
        managed = update(deployment(), &old, &new, &managed, &write, NO_STATUS);
        old = new;
    }
    let names: Vec<&str> = managed.entries().iter().map(|entry| entry.manager.name.as_ref()).collect();
    assert_eq!(names.len(), 10);
    assert_eq!(names.first(), Some(&"ancient-changes"));
}

#[test]
fn only_what_a_subresource_writes_is_owned() {
    let set = Set::of_field(&["spec", "ephemeralContainers"]).union(&Set::of_field(&["spec", "replicas"]));
    let left = Reset::Only(&[&["spec", "ephemeralContainers"]]).left(&set);
    assert_eq!(left, Set::of_field(&["spec", "ephemeralContainers"]));
}

#[track_caller]
fn wrong(config: &Value, expected: &str) {
    assert_eq!(errors(deployment(), config).as_deref(), Some(expected));
}

#[test]
fn what_is_not_of_the_type_is_refused_in_the_servers_words() {
    wrong(&json!({"spec": {"foo": 1}}), ".spec.foo: field not declared in schema");
    wrong(&json!({"spec": {"replicas": "1"}}), ".spec.replicas: expected numeric (int or float), got string");
    wrong(
        &containers(json!([{"name": "a", "image": 1}])),
        ".spec.template.spec.containers[name=\"a\"].image: expected string, got &value.valueUnstructured{Value:1}",
    );
    wrong(
        &containers(json!([{"name": "a"}, {"name": "a"}])),
        ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
    );
    wrong(&json!({"spec": []}), ".spec: expected map, got &{[]}");
    assert_eq!(
        errors(deployment(), &containers(json!([{"name": "a", "resources": {"limits": {"cpu": 1}}}]))),
        None
    );
}

/// Deployments with some fields in any order of containers, labels and ports.
fn any_config() -> impl Strategy<Value = Value> {
    let labels = prop::collection::btree_map("[ab]", "[xy]", 0..3);
    let ports = prop::collection::btree_set(80_u16..84, 0..3)
        .prop_map(|ports| ports.into_iter().map(|port| json!({"containerPort": port})).collect::<Vec<_>>())
        .prop_shuffle();
    let container = ("[a-d]", "[12]", ports).prop_map(|(name, image, ports)| {
        let mut container = json!({"name": name, "image": image});
        if !ports.is_empty() {
            container["ports"] = json!(ports);
        }
        container
    });
    let containers = prop::collection::vec(container, 0..4).prop_map(|mut list| {
        list.sort_by_key(|one| one["name"].to_string());
        list.dedup_by_key(|one| one["name"].to_string());
        list
    });
    (labels, containers.prop_shuffle(), prop::option::of(0..3)).prop_map(|(labels, containers, replicas)| {
        let mut object = json!({"metadata": {"name": "web"}});
        if !labels.is_empty() {
            object["metadata"]["labels"] = json!(labels);
        }
        if !containers.is_empty() {
            object["spec"]["template"]["spec"]["containers"] = json!(containers);
        }
        if let Some(replicas) = replicas {
            object["spec"]["replicas"] = json!(replicas);
        }
        object
    })
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(first in any_config(), second in any_config()) {
        let one = applied(&json!({}), &first, &Managed::default(), "a", false).unwrap();
        let two = applied(&one.object, &second, &one.managed, "b", true).unwrap();
        let again = applied(&two.object, &second, &two.managed, "b", false).unwrap();
        prop_assert_eq!(&again, &two);
    }

    #[test]
    fn a_manager_owns_exactly_what_it_sent(first in any_config(), second in any_config()) {
        let one = applied(&json!({}), &first, &Managed::default(), "a", false).unwrap();
        let two = applied(&one.object, &second, &one.managed, "b", true).unwrap();
        let sent = stripped(&fields_of(deployment(), &second));
        let owned = two.managed.entries().iter().find(|entry| &*entry.manager.name == "b");
        prop_assert_eq!(owned.map(|entry| (*entry.fields).clone()).unwrap_or_default(), sent);
        // What it sent is there.
        prop_assert_eq!(merge(deployment(), &two.object, &second), two.object);
    }

    #[test]
    fn whoever_is_alone_gets_what_it_applies(first in any_config(), second in any_config()) {
        let one = applied(&json!({}), &first, &Managed::default(), "a", false).unwrap();
        let two = applied(&one.object, &second, &one.managed, "a", false).unwrap();
        let fresh = applied(&json!({}), &second, &Managed::default(), "a", false).unwrap();
        let fields = |object: &Value| fields_of(deployment(), object);
        prop_assert_eq!(fields(&two.object), fields(&fresh.object));
    }

    #[test]
    fn a_difference_is_empty_only_between_equals(first in any_config(), second in any_config()) {
        let there = compare(deployment(), &first, &second);
        let back = compare(deployment(), &second, &first);
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.modified, &back.modified);
        prop_assert_eq!(compare(deployment(), &first, &first), Difference::default());
    }
}
