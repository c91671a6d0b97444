//! Rules of definitions, through the whole server.

use serde_json::{Value, json};

use crate::kit::{Cluster, DEFINITION, WIDGETS, widget, widgets};

fn ruled(rules: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {"size": {"type": "integer"}, "color": {"type": "string"}, "replicas": {"type": "integer"}},
        "x-kubernetes-validations": rules,
    })
}

#[tokio::test(start_paused = true)]
async fn a_definition_with_a_wrong_rule_is_refused() {
    let cluster = Cluster::new();
    let refused = cluster.define(&widgets(&ruled(&json!([{"rule": "self.sze > 1"}])))).await;
    let (code, message) = refused.refused();
    assert_eq!(code, 422);
    assert!(message.contains("compilation failed: ERROR: <input>:1:5: undefined field 'sze'"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn objects_and_changes_that_break_a_rule_are_refused() {
    let cluster = Cluster::new();
    let rules = json!([
        {"rule": "self.size <= 10", "message": "too large"},
        {"rule": "!has(oldSelf.color) || self.color == oldSelf.color", "message": "the color stays"},
    ]);
    cluster.define(&widgets(&ruled(&rules))).await.ok();
    let refused = cluster.post(WIDGETS, &widget("a", &json!({"size": 11}))).await;
    assert_eq!(
        refused.refused(),
        (422, "Widget.example.com \"a\" is invalid: spec: Invalid value: too large")
    );
    cluster.post(WIDGETS, &widget("a", &json!({"size": 1, "color": "red"}))).await.ok();
    let path = format!("{WIDGETS}/a");
    let refused = cluster.patch(&path, &json!({"spec": {"color": "blue"}})).await;
    assert_eq!(
        refused.refused(),
        (422, "Widget.example.com \"a\" is invalid: spec: Invalid value: the color stays")
    );
    cluster.patch(&path, &json!({"spec": {"size": 2}})).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_stricter_rule_lets_unchanged_values_be_and_says_so() {
    let cluster = Cluster::new();
    let definition = |limit: u32| {
        let rule = json!([{"rule": format!("self <= {limit}")}]);
        let size = json!({"type": "integer", "x-kubernetes-validations": rule});
        json!({"type": "object", "properties": {"size": size, "replicas": {"type": "integer"}}})
    };
    cluster.define(&widgets(&definition(10))).await.ok();
    cluster.post(WIDGETS, &widget("a", &json!({"size": 7, "replicas": 1}))).await.ok();
    let mut stored = cluster.get(DEFINITION).await.ok();
    stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = definition(5);
    cluster.put(DEFINITION, &stored).await.ok();

    let path = format!("{WIDGETS}/a");
    let warning = ["299 - \"spec.size: Invalid value: 7: failed rule: self <= 5\""];
    let reply = cluster.patch(&path, &json!({"spec": {"replicas": 2}})).await;
    assert_eq!(reply.warnings, warning);
    reply.ok();
    let reply = cluster.patch(&format!("{path}/scale"), &json!({"spec": {"replicas": 3}})).await;
    assert_eq!(reply.warnings, warning);
    reply.ok();
    assert_eq!(cluster.patch(&path, &json!({"spec": {"size": 8}})).await.code, 422);
    cluster.patch(&path, &json!({"spec": {"size": 5}})).await.ok();
}
