//! Our conversion gives what the original's gave, on objects recorded from it running.

use kruise_api::convert::convert;
use serde_json::{Value, json};

/// One object as the original served it in both versions.
struct Recorded {
    case: String,
    old: Value,
    hub: Value,
}

fn recorded(lines: &str) -> Vec<Recorded> {
    let read = |line: &str| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        let case = row["case"].as_str().unwrap().to_owned();
        Recorded { case, old: row["old"].take(), hub: row["hub"].take() }
    };
    lines.lines().map(read).collect()
}

/// What a user sees of the two, without empty objects that mean nothing.
fn meaning(object: &Value) -> Value {
    fn tidy(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| (key.clone(), tidy(value)));
                // The server's schema default writes `enablePVCReuse: false` beside conversion, on some ways only.
                let means = |key: &str, value: &Value| {
                    !value.is_null()
                        && *value != json!({})
                        && !(key == "enablePVCReuse" && *value == json!(false))
                };
                Value::Object(fields.filter(|(key, value)| means(key, value)).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(tidy).collect()),
            other => other.clone(),
        }
    }
    json!({ "spec": tidy(&object["spec"]), "status": tidy(&object["status"]) })
}

#[track_caller]
fn check(lines: &str, group: &str) {
    let rows = recorded(lines);
    assert!(!rows.is_empty());
    for Recorded { case, old, hub } in rows {
        // The original loses hub-only fields on the way down: such a row says nothing about the way up.
        if case.contains("v1alpha1") {
            let up = convert(old.clone(), &format!("{group}/v1beta1")).unwrap();
            assert_eq!(meaning(&up), meaning(&hub), "{case}: up");
        }
        let down = convert(hub, &format!("{group}/v1alpha1")).unwrap();
        assert_eq!(meaning(&down), meaning(&old), "{case}: down");
    }
}

#[test]
fn clonesets_convert_as_the_original_did() {
    check(include_str!("../recorded/conversion-cloneset.jsonl"), "apps.kruise.io");
}

#[test]
fn daemonsets_convert_as_the_original_did() {
    check(include_str!("../recorded/conversion-daemonset.jsonl"), "apps.kruise.io");
}

#[test]
fn statefulsets_convert_as_the_original_did() {
    check(include_str!("../recorded/conversion-statefulset.jsonl"), "apps.kruise.io");
}

#[test]
fn uniteddeployments_convert_as_the_original_did() {
    check(include_str!("../recorded/conversion-uniteddeployment.jsonl"), "apps.kruise.io");
}

#[test]
fn container_recreate_requests_convert_as_the_original_did() {
    check(include_str!("../recorded/conversion-containerrecreaterequest.jsonl"), "apps.kruise.io");
}

#[test]
fn persistent_pod_states_convert_as_the_original_did() {
    check(include_str!("../recorded/conversion-persistentpodstate.jsonl"), "apps.kruise.io");
}

#[test]
fn workloadspreads_convert_as_the_original_did() {
    check(include_str!("../recorded/conversion-workloadspread.jsonl"), "apps.kruise.io");
}
