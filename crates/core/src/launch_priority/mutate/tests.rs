use super::*;

/// Containers are written as `name` or `name=value`, where the value is the priority.
fn pod(containers: &str) -> Value {
    let containers: Vec<Value> = containers
        .split_whitespace()
        .map(|text| match text.split_once('=') {
            Some((name, value)) => json!({"name": name, "env": [
                {"name": "FIRST", "value": "x"}, {"name": CONTAINER_PRIORITY, "value": value}]}),
            None => json!({"name": text}),
        })
        .collect();
    json!({"metadata": {"name": "web-1"}, "spec": {"containers": containers}})
}

fn ordered(mut pod: Value) -> Value {
    pod["metadata"]["annotations"] = json!({CONTAINER_LAUNCH_PRIORITY: "Ordered"});
    pod
}

/// The keys that containers wait for, or why the pod is refused. Empty when nothing changed.
fn keys(mut pod: Value) -> String {
    let before = pod.clone();
    match mutate(&mut pod, 0) {
        Err(error) => return error.to_string(),
        Ok(changed) => assert_eq!(changed, before != pod),
    }
    let containers = pod["spec"]["containers"].as_array().unwrap().iter();
    let keys = containers.filter_map(|container| {
        let last = container["env"].as_array()?.last()?;
        let source = &last["valueFrom"]["configMapKeyRef"];
        assert!(last["name"] != CONTAINER_BARRIER || source["name"] == "web-1-barrier", "{last}");
        source["key"].as_str()
    });
    keys.collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(containers: &str, expected: &str) {
    assert_eq!(keys(pod(containers)), expected, "{containers}");
}

/// LAUNCH-1, LAUNCH-5, LAUNCH-7
#[test]
fn containers_wait_for_the_key_of_their_priority() {
    check("main c2=10", "p_0 p_10");
    check("a=5 b=5 c=1", "p_5 p_5 p_1");
    check("a=-1 b", "p_-1 p_0");
    check("a=+3 b", "p_3 p_0");
    check("a=2147483647 b=-2147483648", "p_2147483647 p_-2147483648");
    for without_effect in ["a b", "a=0 b", "a=-0 b", "a=7 b=7", "a=1", ""] {
        check(without_effect, "");
    }
}

/// LAUNCH-3, LAUNCH-4, LAUNCH-6
#[test]
fn the_annotation_orders_containers_as_they_stand() {
    assert_eq!(keys(ordered(pod("c1 c2 c3"))), "p_0 p_-1 p_-2");
    assert_eq!(keys(ordered(pod("a=1 b=5 c=10"))), "p_0 p_-1 p_-2");
    assert_eq!(keys(ordered(pod("a=abc b"))), "p_0 p_-1", "what is ignored may be anything");
    assert_eq!(keys(ordered(pod("one"))), "");
    let mut lower = pod("a b");
    lower["metadata"]["annotations"] = json!({CONTAINER_LAUNCH_PRIORITY: "ordered"});
    assert_eq!(keys(lower), "");
}

/// LAUNCH-8
#[test]
fn a_priority_that_is_no_number_refuses_the_pod() {
    for value in ["abc", "", "1.5", "0x10", "1e3", "１", "--1", "1_000", "2147483648", "-2147483649"] {
        let expected =
            format!("container a: invalid KRUISE_CONTAINER_PRIORITY {value:?}: must be an integer");
        check(&format!("a={value} b"), &expected);
    }
    let mut from = pod("a b");
    from["spec"]["containers"][0]["env"] =
        json!([{"name": CONTAINER_PRIORITY, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]);
    assert_eq!(keys(from), "container a: invalid KRUISE_CONTAINER_PRIORITY \"\": must be an integer");
    for value in [" 1", "1 "] {
        let mut blank = pod("a=1 b");
        blank["spec"]["containers"][0]["env"][1]["value"] = value.into();
        assert!(keys(blank).ends_with("must be an integer"));
    }
}

#[test]
fn of_several_entries_the_last_counts_and_all_must_be_numbers() {
    let entries = |first: &str, second: &str| {
        let mut pod = pod("a b");
        pod["spec"]["containers"][0]["env"] = json!([{"name": CONTAINER_PRIORITY, "value": first}, {"name": CONTAINER_PRIORITY, "value": second}]);
        keys(pod)
    };
    assert_eq!(entries("7", "4"), "p_4 p_0");
    assert!(entries("abc", "4").contains("\"abc\""));
}

/// LAUNCH-16
#[test]
fn an_entry_of_a_copied_manifest_is_replaced() {
    let mut copied = pod("a=7 b");
    copied["spec"]["containers"][0]["env"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"name": CONTAINER_BARRIER, "value": "x"}));
    let mut once = copied.clone();
    mutate(&mut once, 0).unwrap();
    let env = once["spec"]["containers"][0]["env"].as_array().unwrap();
    let names: Vec<&str> = env.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, [CONTAINER_BARRIER, "FIRST", CONTAINER_PRIORITY]);
    assert_eq!(env[0]["valueFrom"]["configMapKeyRef"]["key"], "p_7");
    let mut twice = once.clone();
    mutate(&mut twice, 0).unwrap();
    assert_eq!(twice, once);
}

/// LAUNCH-2
#[test]
fn a_pod_without_a_name_gets_one() {
    let named = |prefix: &str, seed: u64| {
        let mut pod = pod("a=1 b");
        pod["metadata"] = json!({"generateName": prefix});
        mutate(&mut pod, seed).unwrap();
        let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
        let barrier = &pod["spec"]["containers"][1]["env"][0]["valueFrom"]["configMapKeyRef"]["name"];
        assert_eq!(*barrier, format!("{name}-barrier"));
        name
    };
    assert_eq!(named("web-", 0), "web-bbbbb");
    assert_eq!(named(&"x".repeat(70), 1).len(), 63);
    assert!(named("web-", 123_456_789).strip_prefix("web-").is_some_and(|rest| {
        rest.len() == 5 && rest.bytes().all(|letter| safe_letters().contains(&letter))
    }));
    assert_ne!(named("web-", 5), named("web-", 6));
    let mut nameless = pod("a=1 b");
    nameless["metadata"] = json!({});
    assert_eq!(keys(nameless), "", "the server says what is missing");
}
