use kruise_core::{
    nodeimage::NodeImage,
    pod::{Metadata, Pod},
};
use serde::Deserialize;
use serde_json::json;

use super::*;

/// What could not be read of a pod with these members, as a list of paths.
#[track_caller]
fn check(members: &str, expected: &str) -> Pod {
    let text = format!(r#"{{"metadata": {{"name": "a"}}, {members}}}"#);
    let (read, unread) = lenient::<Pod>(&text);
    let paths: Vec<String> = unread.iter().map(|field| field.path.to_string()).collect();
    assert_eq!(paths.join(" "), expected, "{unread:?}");
    read.expect("a pod can always be read")
}

#[test]
fn fields_that_cannot_be_read_are_left_out_and_named() {
    check(r#""status": {"phase": "Running"}"#, "");
    check(r#""status": {"phase": 7}"#, "status.phase");
    check(r#""status": {"phase": null}"#, "status.phase");
    check(r#""status": true"#, "status");
    check(r#""spec": "x", "status": 1"#, "spec status");
    check(r#""status": {"startTime": "soon"}"#, "status.startTime");
    check(r#""status": {"startTime": {"seconds": 1}}"#, "status.startTime");
    let pod = check(
        r#""status": {"phase": "Running", "conditions": [7, {"type": "Ready", "status": "True"}, {"type": []}]}"#,
        "status.conditions[0] status.conditions[1].type",
    );
    assert!(pod.condition("Ready").is_some_and(kruise_core::pod::Condition::is_true));
    let pod = check(
        r#""spec": {"nodeName": "n", "containers": [{"name": "main", "ports": [{"name": "web", "containerPort": 99999999999}]}]}"#,
        "spec.containers[0].ports[0].containerPort",
    );
    assert_eq!((pod.spec.node_name.as_str(), pod.spec.containers.len()), ("n", 1));
}

#[test]
fn metadata_are_read_as_far_as_they_go() {
    let text = r#"{"metadata": {"name": "a", "uid": "u", "labels": {"a": 1, "b": "2"}, "creationTimestamp": 5,
        "ownerReferences": [{"uid": 1, "controller": true}, 3], "finalizers": "x", "generation": 1.5}}"#;
    let (pod, unread) = lenient::<Pod>(text);
    let Metadata { uid, labels, owner_references, .. } = pod.unwrap().metadata;
    assert_eq!((uid.as_str(), labels.text("b"), labels.text("a")), ("u", Some("2"), None));
    assert_eq!(owner_references.len(), 1);
    assert_eq!(unread.len(), 6, "{unread:?}");
}

#[test]
fn what_is_being_deleted_stays_so_whatever_the_time_is() {
    for time in [r#""9999-12-31T23:59:59Z""#, r#""soon""#, "5", "[]", r#"{"a": 1}"#, r#""""#, "true"] {
        let text = format!(r#"{{"metadata": {{"name": "a", "deletionTimestamp": {time}}}}}"#);
        let (pod, unread) = lenient::<Pod>(&text);
        assert!(pod.unwrap().metadata.is_deleting(), "{time}");
        assert!(unread.iter().all(Unread::is_harmless), "{unread:?}");
    }
    let (pod, _) = lenient::<Pod>(r#"{"metadata": {"name": "a", "deletionTimestamp": null}, "status": 5}"#);
    assert!(!pod.unwrap().metadata.is_deleting());
}

#[test]
fn times_beyond_the_calendar_are_its_ends() {
    let pod = check(
        r#""status": {"startTime": "9999-12-31T23:59:59Z", "conditions": [
            {"type": "A", "lastTransitionTime": "10000-01-01T00:00:00Z"},
            {"type": "B", "lastTransitionTime": "-9999-01-01T00:00:00+10:00"},
            {"type": "9999-12-31T23:59:59Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}"#,
        "",
    );
    assert_eq!(pod.status.start_time, Some(jiff::Timestamp::MAX));
    let times: Vec<_> = pod.status.conditions.iter().map(|one| one.last_transition_time.unwrap()).collect();
    assert_eq!(times[..2], [jiff::Timestamp::MAX, jiff::Timestamp::MIN]);
    assert_eq!(pod.status.conditions[2].r#type, "9999-12-31T23:59:59Z", "a text stays what it is");
}

#[test]
fn more_times_than_fields_may_be_left_out_are_no_trouble() {
    let conditions: Vec<_> = (0..1000)
        .map(|index| json!({"type": index.to_string(), "lastTransitionTime": "9999-12-31T23:59:59Z"}))
        .collect();
    let pod = check(&format!(r#""status": {}"#, json!({"conditions": conditions})), "");
    assert_eq!(pod.status.conditions.len(), 1000);
}

#[test]
fn of_a_member_that_is_there_twice_the_last_counts() {
    let pod =
        check(r#""status": {"phase": "Pending"}, "status": {"phase": "Running", "phase": "Failed"}"#, "");
    assert_eq!(pod.status.phase, "Failed");
}

#[test]
fn texts_with_half_characters_are_read() {
    let pod = check(r#""status": {"phase": "\ud800x", "conditions": [{"type": "\udc00", "\ud800": 1}]}"#, "");
    assert!(pod.status.phase.ends_with('x') && !pod.status.phase.starts_with('x'));
}

#[test]
fn what_is_too_large_or_too_deep_for_a_tree_is_named() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    // What nobody reads may be as deep as it likes.
    check(&format!(r#""extra": {deep}"#), "");
    let (value, unread) = tree(&format!(r#"{{"a": {{"b": 1e999, "c": 1}}, "deep": {deep}, "e": -0.5}}"#));
    assert_eq!(value["a"], json!({"b": null, "c": 1}));
    assert_eq!(value["e"], json!(-0.5));
    let paths: Vec<String> = unread.iter().map(|field| field.path.to_string()).collect();
    assert_eq!(paths[0], "a.b");
    assert!(paths[1].starts_with("deep[0][0]") && paths[1].ends_with("..."), "{paths:?}");
}

#[test]
fn what_is_no_object_is_an_error_and_no_panic() {
    for text in ["7", "null", "[]", r#""x""#, "1e999", r#"{"metadata": 5}"#, r#"{"metadata": []}"#, "{}"] {
        #[derive(Debug, Deserialize)]
        struct Strict {
            #[expect(dead_code, reason = "only whether it is there matters")]
            metadata: std::collections::BTreeMap<String, String>,
        }
        let (read, _) = lenient::<Strict>(text);
        assert!(read.is_err(), "{text}");
    }
}

#[test]
fn an_object_full_of_nonsense_is_given_up() {
    let labels: serde_json::Map<String, Value> =
        (0..1000).map(|index| (index.to_string(), json!(index))).collect();
    let text = json!({"metadata": {"name": "a", "labels": labels}}).to_string();
    let (read, unread) = lenient::<Pod>(&text);
    assert!(read.is_err() && unread.len() <= MOST + 1);
}

#[test]
fn enums_and_maps_of_our_kinds_are_followed() {
    let text = r#"{"metadata": {"name": "n"}, "spec": {"images": {"nginx": {"tags": [{"tag": "1", "version": "x"},
        {"tag": "2", "createdAt": "9999-12-31T23:59:59Z", "pullPolicy": {"timeoutSeconds": "x"}}]}, "odd": 5}},
        "status": {"imageStatuses": {"nginx": {"tags": [{"tag": "1", "phase": 7}]}}}}"#;
    let (read, unread) = lenient::<NodeImage>(text);
    let image = read.unwrap();
    assert_eq!(image.image("nginx").unwrap().tags[1].created_at, Some(jiff::Timestamp::MAX));
    let paths: Vec<String> = unread.iter().map(|field| field.path.to_string()).collect();
    assert_eq!(
        paths,
        [
            "spec.images.nginx.tags[0].version",
            "spec.images.nginx.tags[1].pullPolicy.timeoutSeconds",
            "spec.images.odd",
            "status.imageStatuses.nginx.tags[0].phase",
        ]
    );
}

#[test]
fn only_a_status_and_what_nobody_goes_by_may_be_missing() {
    let is_harmless = |path: &[&str]| Unread::new(Path::of(path), "odd").is_harmless();
    assert!(is_harmless(&["status", "conditions"]));
    assert!(is_harmless(&["metadata", "creationTimestamp"]));
    assert!(is_harmless(&["metadata", "managedFields", "time"]));
    assert!(!is_harmless(&["status"]));
    assert!(!is_harmless(&["metadata", "labels", "app"]));
    assert!(!is_harmless(&["spec"]));
    assert!(!is_harmless(&[]));
}
