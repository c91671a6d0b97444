use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::patch::shapes;
use crate::status::GroupKind;

/// Any JSON, a few levels deep, with the words that matter to patches among its names.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f32>().prop_map(|float| json!(float)),
        "[a-c]{0,2}".prop_map(Value::from),
        prop_oneof![Just("delete"), Just("replace"), Just("merge")].prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any_name(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]".prop_map(String::from),
        prop::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "containers",
            "name",
            "env",
            "finalizers",
            "ports",
            "containerPort",
            "conditions",
            "type",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$setElementOrder/finalizers",
            "$setElementOrder",
            "$deleteFromPrimitiveList/finalizers",
            "$deleteFromPrimitiveList",
        ])
        .prop_map(String::from),
    ]
}

fn patched(kind: &str, object: Value, patch: Value) -> Result<Value, Status> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else { panic!("need objects") };
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    apply(object, patch, shapes::of(GroupKind::new(group, kind))).map(Value::Object)
}

#[track_caller]
fn check(kind: &str, object: Value, patch: Value, expected: Value) {
    assert_eq!(patched(kind, object, patch), Ok(expected));
}

/// Checks only the order of a pod's containers, written as one letter each.
#[track_caller]
fn check_order(server: &str, patch: &str, order: Option<&str>, expected: &str) {
    let named = |text: &str| text.chars().map(|c| json!({"name": c.to_string()})).collect::<Vec<_>>();
    let mut spec = json!({});
    if !patch.is_empty() {
        spec["containers"] = json!(named(patch));
    }
    if let Some(order) = order {
        spec["$setElementOrder/containers"] = json!(named(order));
    }
    let object = json!({"spec": {"containers": named(server)}});
    let result = patched("Pod", object, json!({"spec": spec})).unwrap();
    let found: String = result["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|container| container["name"].as_str().unwrap())
        .collect();
    assert_eq!(found, expected);
}

#[track_caller]
fn refused(kind: &str, object: Value, patch: Value, code: u16, message: &str) {
    let status = patched(kind, object, patch).unwrap_err();
    assert_eq!((status.code, status.message.as_str()), (code, message));
}

#[test]
fn containers_merge_by_name_and_keep_other_fields() {
    check(
        "Pod",
        json!({"spec": {"containers": [{"name": "a", "image": "a:1", "tty": true}, {"name": "b", "image": "b:1"}]}}),
        json!({"spec": {"containers": [{"name": "b", "image": "b:2"}]}}),
        json!({"spec": {"containers": [{"name": "a", "image": "a:1", "tty": true}, {"name": "b", "image": "b:2"}]}}),
    );
}

#[test]
fn lists_merge_inside_lists() {
    check(
        "Deployment.apps",
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}],
            "ports": [{"containerPort": 80, "name": "web"}], "args": ["x", "y"]}]}}}}),
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}],
            "ports": [{"containerPort": 80, "protocol": "UDP"}], "args": ["z"]}]}}}}),
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}],
            "ports": [{"containerPort": 80, "name": "web", "protocol": "UDP"}], "args": ["z"]}]}}}}),
    );
}

#[test]
fn every_kind_has_its_own_keys() {
    check(
        "Service",
        json!({"spec": {"ports": [{"port": 80, "targetPort": 1}]}}),
        json!({"spec": {"ports": [{"port": 80, "targetPort": 2}]}}),
        json!({"spec": {"ports": [{"port": 80, "targetPort": 2}]}}),
    );
    check(
        "Node",
        json!({"spec": {"taints": [{"key": "a"}]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        json!({"spec": {"taints": [{"key": "b"}]}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
        json!({"spec": {"taints": [{"key": "b"}]}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
    );
    check(
        "Pod",
        json!({"spec": {"tolerations": [{"key": "a"}], "topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1}]}}),
        json!({"spec": {"tolerations": [{"key": "b"}], "topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 2}]}}),
        json!({"spec": {"tolerations": [{"key": "b"}], "topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 2}]}}),
    );
    check(
        "PodDisruptionBudget.policy",
        json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}),
        json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}}),
        json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}}),
    );
    check(
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
        json!({"webhooks": [{"name": "w", "failurePolicy": "Fail", "clientConfig": {"url": "u"}}]}),
        json!({"webhooks": [{"name": "w", "clientConfig": {"caBundle": "Yg=="}}]}),
        json!({"webhooks": [{"name": "w", "failurePolicy": "Fail", "clientConfig": {"url": "u", "caBundle": "Yg=="}}]}),
    );
    check(
        "CronJob.batch",
        json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}}}}),
        json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"volumes":
            [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}}}}}),
        json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"volumes":
            [{"name": "v", "hostPath": {"path": "/"}}]}}}}}}),
    );
}

#[test]
fn null_removes_a_field_and_is_dropped_where_nothing_is() {
    check(
        "Pod",
        json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
        json!({"metadata": {"labels": {"a": null, "c": null}, "annotations": {"x": null, "y": "1"}}}),
        json!({"metadata": {"labels": {"b": "2"}, "annotations": {"y": "1"}}}),
    );
}

#[test]
fn patch_delete_removes_items_by_key_and_empties_objects() {
    check(
        "Pod",
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
        json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
        json!({"spec": {"containers": [{"name": "b"}]}}),
    );
    check(
        "Pod",
        json!({"metadata": {"labels": {"a": "1"}}}),
        json!({"metadata": {"labels": {"$patch": "delete"}}}),
        json!({"metadata": {"labels": {}}}),
    );
    check(
        "Pod",
        json!({"spec": {"containers": [{"name": "b"}]}}),
        json!({"spec": {"containers": [{"name": "zz", "$patch": "delete"}]}}),
        json!({"spec": {"containers": [{"name": "b"}]}}),
    );
}

#[test]
fn patch_replace_replaces_an_object_or_a_list() {
    check(
        "Pod",
        json!({"metadata": {"labels": {"a": "1"}}}),
        json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}}}),
        json!({"metadata": {"labels": {"b": "2"}}}),
    );
    check(
        "Pod",
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "image": "x"}]}}),
        json!({"spec": {"containers": [{"name": "b"}, {"$patch": "replace"}]}}),
        json!({"spec": {"containers": [{"name": "b"}]}}),
    );
}

#[test]
fn finalizers_are_a_set() {
    check(
        "Pod",
        json!({"metadata": {"finalizers": ["a", "b"]}}),
        json!({"metadata": {"finalizers": ["b", "c"], "$deleteFromPrimitiveList/finalizers": ["a"]}}),
        json!({"metadata": {"finalizers": ["b", "c"]}}),
    );
    check(
        "Pod",
        json!({"metadata": {}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        json!({"metadata": {}}),
    );
    check(
        "Pod",
        json!({"metadata": {"finalizers": ["a", "b"]}}),
        json!({"metadata": {"$setElementOrder/finalizers": ["b", "a"]}}),
        json!({"metadata": {"finalizers": ["b", "a"]}}),
    );
}

#[test]
fn deleting_the_last_finalizer_leaves_an_empty_list() {
    check(
        "Pod",
        json!({"metadata": {"finalizers": ["a"]}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": []}}),
        json!({"metadata": {"finalizers": []}}),
    );
}

#[test]
fn new_items_stand_before_the_servers_other_items() {
    check_order("ab", "c", None, "cab");
    check_order("ab", "b", None, "ab");
    check_order("ab", "ba", None, "ba");
    check_order("abc", "ca", None, "bca");
    check_order("abc", "cx", None, "abcx");
}

#[test]
fn the_element_order_of_the_patch_wins() {
    check_order("ab", "", Some("ba"), "ba");
    check_order("ab", "c", Some("abc"), "abc");
    check_order("ab", "c", Some("acb"), "acb");
    check_order("axb", "", Some("ba"), "xba");
    check_order("abz", "c", Some("abc"), "abcz");
}

#[test]
fn kubectl_apply_of_a_changed_and_removed_container() {
    check(
        "Deployment.apps",
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}}}),
        json!({"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "a"}],
            "containers": [{"$patch": "delete", "name": "b"}, {"name": "a", "image": "2"}],
        }}}}),
        json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "2"}]}}}}),
    );
}

#[test]
fn an_item_that_takes_the_place_of_a_deleted_one_counts_as_the_servers_last() {
    check(
        "Pod",
        json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "d"}]}}),
        json!({"spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}],
            "containers": [{"name": "c"}, {"name": "a", "$patch": "delete"}],
        }}),
        json!({"spec": {"containers": [{"name": "b"}, {"name": "d"}, {"name": "c"}]}}),
    );
}

#[test]
fn directives_never_reach_the_object() {
    check(
        "Pod",
        json!({"spec": {}}),
        json!({"spec": {"$setElementOrder/containers": [{"name": "a"}],
            "containers": [{"name": "a", "$retainKeys": ["name"], "x": {"$patch": "replace"}}],
            "securityContext": {"$retainKeys": ["y"], "z": {"$patch": "delete"}}}}),
        json!({"spec": {"containers": [{"name": "a"}], "securityContext": {}}}),
    );
}

#[test]
fn bad_patches_are_refused_in_the_real_servers_words() {
    let pod = || json!({"spec": {"containers": [{"name": "a"}]}, "metadata": {"finalizers": ["a"]}});
    refused(
        "Pod",
        pod(),
        json!({"spec": {"containers": [{"image": "x"}]}}),
        500,
        "map: map[image:x] does not contain declared merge key: name",
    );
    refused(
        "Pod",
        pod(),
        json!({"spec": {"$patch": "what"}}),
        500,
        "unknown patch type: what in map: map[$patch:what]",
    );
    refused("Pod", pod(), json!({"spec": {"$retainKeys": 1}}), 400, "invalid patch format of retainKeys");
    refused(
        "Pod",
        pod(),
        json!({"spec": {"$retainKeys": ["a"], "b": 1}}),
        400,
        "invalid patch format of retainKeys",
    );
    refused(
        "Pod",
        pod(),
        json!({"metadata": {"$deleteFromPrimitiveListfinalizers": ["a"]}}),
        400,
        "invalid patch format of primitive list",
    );
    refused(
        "Pod",
        pod(),
        json!({"spec": {"$setElementOrder": [{"name": "a"}]}}),
        400,
        "invalid patch format of setElementOrder list",
    );
    refused(
        "Pod",
        pod(),
        json!({"spec": {"containers": ["a"]}}),
        500,
        "list element types are not identical: [[map[name:a]] [a]]",
    );
    refused(
        "Pod",
        pod(),
        json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}}),
        500,
        "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
    );
    refused(
        "Pod",
        json!({"metadata": {"finalizers": []}}),
        json!({"metadata": {"finalizers": [["a"]]}}),
        422,
        "the server rejected our request due to an error in our request",
    );
}

proptest! {
    #[test]
    fn no_patch_panics_or_leaves_a_directive(object in any_json(), patch in any_json()) {
        let object = cleaned(json!({"metadata": &object, "spec": &object}).as_object().unwrap().clone());
        let patch = json!({"metadata": &patch, "spec": &patch});
        if let Ok(result) = patched("Pod", Value::Object(object), patch) {
            prop_assert!(!result.to_string().contains("\"$"), "{}", result);
        }
    }

    #[test]
    fn a_patch_of_the_object_itself_changes_nothing(labels in prop::collection::btree_map("[a-c]", "[a-c]", 0..4),
        names in prop::collection::btree_set("[a-z]", 0..6)) {
        let containers: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "x"})).collect();
        let object = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        prop_assert_eq!(patched("Pod", object.clone(), object.clone()).unwrap(), object);
    }
}
