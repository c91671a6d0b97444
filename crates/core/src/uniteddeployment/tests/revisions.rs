//! Revisions, recorded from the original.

use serde_json::{Value, json};

use crate::{
    revision::{self, Revision},
    uniteddeployment::{
        Kind,
        revision::{comparable, data, is_template},
    },
};

fn recorded() -> impl Iterator<Item = Value> {
    let text = include_str!("../../../tests/recorded/uniteddeployment-revisions.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn kind_of(template: &Value) -> Kind {
    Kind::ALL.into_iter().find(|kind| template.get(kind.field()).is_some()).unwrap()
}

/// UNITED-13, UNITED-31
#[test]
fn bytes_and_names_equal_those_of_the_original() {
    for line in recorded() {
        let (name, template) = (line["name"].as_str().unwrap(), &line["stored"]);
        let kind = kind_of(template);
        let made = data(kind, &template[kind.field()]);
        assert_eq!(crate::canonical_json::text(&made), line["data"].as_str().unwrap(), "{name}");
        let hash = revision::hash_of(&made, 0);
        assert_eq!(revision::name(name, &hash), line["revision"].as_str().unwrap());
    }
}

/// UNITED-31: what was stored is found again, whoever wrote it and in whatever version.
#[test]
fn what_was_stored_means_the_same() {
    for line in recorded() {
        let stored: Value = serde_json::from_str(line["data"].as_str().unwrap()).unwrap();
        let object = json!({"metadata": {"name": line["revision"]}, "data": stored, "revision": 1});
        let found = Revision::read(&object).unwrap();
        assert!(is_template(&found.template));
        assert!(found.means(&comparable(&line["stored"])), "{}", line["name"]);
        assert!(
            found.means(&comparable(&line["template"]))
                || line["name"].as_str().unwrap().starts_with("state")
        );
    }
}

/// UNITED-32: both shapes of a CloneSet are one.
#[test]
fn both_shapes_of_a_clone_set_are_one() {
    let template = |strategy: Value, scale: Value| {
        json!({"cloneSetTemplate": {"metadata": {"labels": {"app": "x"}}, "spec": {
            "scaleStrategy": scale, "updateStrategy": strategy,
            "template": {"spec": {"containers": [{"name": "main", "image": "app:v1"}]}}}}})
    };
    let older = template(json!({"type": "InPlaceIfPossible", "maxUnavailable": "20%"}), json!({}));
    let newer = template(
        json!({"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "20%"}}),
        json!({"enablePVCReuse": true}),
    );
    assert_eq!(comparable(&older), comparable(&newer));
    let other = template(json!({"type": "InPlaceIfPossible", "maxUnavailable": "30%"}), json!({}));
    assert_ne!(comparable(&older), comparable(&other));
}

/// What is empty means what is absent; a quantity means its amount.
#[test]
fn equal_templates_are_equal_in_any_form() {
    let template = |container: Value| {
        json!({"deploymentTemplate": {"metadata": {"labels": {"app": "x"}}, "spec": {"template": {"spec": {
            "containers": [container]}}}}})
    };
    let first = template(
        json!({"name": "main", "image": "app:v1", "resources": {"limits": {"cpu": "1000m"}}, "env": []}),
    );
    let second = template(
        json!({"name": "main", "image": "app:v1", "resources": {"limits": {"cpu": 1}}, "command": null}),
    );
    assert_eq!(comparable(&first), comparable(&second));
    let third = template(json!({"name": "main", "image": "app:v1", "resources": {"limits": {"cpu": 2}}}));
    assert_ne!(comparable(&first), comparable(&third));
}
