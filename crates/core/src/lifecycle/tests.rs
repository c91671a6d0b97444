use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn pod(state: &str, labels: &[(&str, &str)], node: &str, message: &str) -> Pod {
    let mut all: Map<String, Value> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    if !state.is_empty() {
        all.insert(labels::LIFECYCLE_STATE.to_owned(), state.into());
    }
    serde_json::from_value(json!({
        "metadata": {"name": "web-1", "namespace": "default", "uid": "u1", "labels": all, "finalizers": ["ex.io/f"]},
        "spec": {"nodeName": node, "readinessGates": [{"conditionType": "KruisePodReady"}]},
        "status": {"conditions": [{"type": "KruisePodReady", "status": if message.is_empty() { "True" } else { "False" },
            "message": message}]},
    }))
    .unwrap()
}

fn hook(labels: &[(&str, &str)], finalizers: &[&str], not_ready: bool) -> Hook {
    Hook {
        labels_handler: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        finalizers_handler: finalizers.iter().map(|text| (*text).to_owned()).collect(),
        mark_pod_not_ready: not_ready.then_some(true),
    }
}

/// The state that is written, `ready` or `not ready` for a write of the gate, or `-`.
fn render(effect: Option<Effect>) -> String {
    match effect {
        Some(Effect::Patch { subresource: Some("status"), patch: Patch::Strategic(patch), .. }) => {
            let status = patch["status"]["conditions"][0]["status"] == "True";
            if status { "ready".to_owned() } else { "not ready".to_owned() }
        }
        Some(Effect::Patch { patch: Patch::Strategic(patch), .. }) => {
            assert_eq!(
                patch["metadata"]["annotations"][annotations::LIFECYCLE_TIMESTAMP],
                "2026-01-01T00:00:00Z"
            );
            patch["metadata"]["labels"][labels::LIFECYCLE_STATE].as_str().unwrap().to_owned()
        }
        None => "-".to_owned(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_settle(pod: &Pod, lifecycle: Option<&Lifecycle>, on_target: bool, complete: bool, expected: &str) {
    assert_eq!(render(settle(pod, lifecycle, on_target, &|| complete, now())), expected);
}

fn updating(not_ready: bool) -> Lifecycle {
    Lifecycle { in_place_update: Some(hook(&[("h", "true")], &[], not_ready)), ..Lifecycle::default() }
}

/// INPLACE-30
#[test]
fn a_new_pod_becomes_normal_when_it_has_a_node() {
    check_settle(&pod("PreparingNormal", &[], "", ""), None, true, true, "-");
    check_settle(&pod("PreparingNormal", &[], "n1", ""), None, true, true, "Normal");
    check_settle(&pod("", &[], "n1", ""), None, true, true, "-");
}

/// INPLACE-29
#[test]
fn pre_normal_holds_a_new_pod_until_its_label_is_set() {
    let lifecycle =
        Lifecycle { pre_normal: Some(hook(&[("ok", "true")], &[], false)), ..Lifecycle::default() };
    check_settle(&pod("PreparingNormal", &[], "n1", ""), Some(&lifecycle), true, true, "-");
    check_settle(&pod("PreparingNormal", &[("ok", "true")], "", ""), Some(&lifecycle), true, true, "Normal");
    assert!(!is_in_service(&pod("PreparingNormal", &[], "n1", "")));
}

/// INPLACE-26: the way of a pod through the hook of an update.
#[test]
fn an_update_with_a_hook_goes_through_every_state() {
    let lifecycle = updating(false);
    let hook = lifecycle.in_place_update.as_ref();
    let held = pod("Normal", &[("h", "true")], "n1", "");
    assert!(is_hooked(hook, &held));
    assert_eq!(render(prepare_update(&held, hook, now())), "PreparingUpdate");
    assert_eq!(render(prepare_update(&pod("PreparingUpdate", &[("h", "true")], "n1", ""), hook, now())), "-");
    check_settle(&pod("PreparingUpdate", &[("h", "false")], "n1", ""), Some(&lifecycle), false, true, "-");
    check_settle(&pod("Updating", &[("h", "false")], "n1", ""), Some(&lifecycle), true, false, "-");
    check_settle(&pod("Updating", &[("h", "false")], "n1", ""), Some(&lifecycle), true, true, "Updated");
    check_settle(&pod("Updated", &[("h", "false")], "n1", ""), Some(&lifecycle), true, true, "-");
    check_settle(&pod("Updated", &[("h", "true")], "n1", ""), Some(&lifecycle), true, true, "Normal");
}

/// INPLACE-27: the original left such a pod not ready for ever.
#[test]
fn a_hook_that_is_set_again_early_leaves_the_pod_ready() {
    let lifecycle = updating(true);
    let held = r#"[{"userAgent":"Lifecycle","key":"preUpdateHook"}]"#;
    check_settle(&pod("Updating", &[("h", "true")], "n1", held), Some(&lifecycle), true, true, "Normal");
    check_settle(&pod("Normal", &[("h", "true")], "n1", held), Some(&lifecycle), true, true, "ready");
    check_settle(&pod("Normal", &[("h", "true")], "n1", ""), Some(&lifecycle), true, true, "-");
}

/// INPLACE-28
#[test]
fn a_template_that_goes_back_ends_the_waiting() {
    let lifecycle = updating(false);
    check_settle(&pod("PreparingUpdate", &[("h", "true")], "n1", ""), Some(&lifecycle), true, true, "Normal");
    check_settle(&pod("PreparingUpdate", &[("h", "x")], "n1", ""), Some(&lifecycle), true, true, "Updated");
}

#[test]
fn without_a_hook_of_its_own_an_update_ends_in_normal() {
    let lifecycle = Lifecycle { pre_delete: Some(hook(&[("d", "1")], &[], false)), ..Lifecycle::default() };
    check_settle(&pod("Updating", &[], "n1", ""), Some(&lifecycle), true, true, "Normal");
    check_settle(&pod("Updating", &[], "n1", ""), None, true, true, "Normal");
}

/// INPLACE-23, INPLACE-24: waiting by a finalizer, and not ready before the state says so.
#[test]
fn before_a_deletion_the_pod_is_made_not_ready_first() {
    let quiet = hook(&[], &["ex.io/f"], false);
    let loud = hook(&[], &["ex.io/f"], true);
    let normal = pod("Normal", &[], "n1", "");
    assert!(is_hooked(Some(&quiet), &normal));
    assert_eq!(render(prepare_delete(&normal, Some(&quiet), now())), "PreparingDelete");
    assert_eq!(render(prepare_delete(&normal, Some(&loud), now())), "not ready");
    let held = r#"[{"userAgent":"Lifecycle","key":"preDeleteHook"}]"#;
    assert_eq!(
        render(prepare_delete(&pod("Normal", &[], "n1", held), Some(&loud), now())),
        "PreparingDelete"
    );
    assert_eq!(render(prepare_delete(&pod("PreparingDelete", &[], "n1", held), Some(&loud), now())), "-");
    assert_eq!(
        render(prepare_delete(&pod("PreparingDelete", &[], "n1", ""), Some(&loud), now())),
        "not ready"
    );
}

#[test]
fn a_second_update_asks_the_hook_again_and_keeps_foreign_finalizers() {
    let hook = hook(&[("h", "true")], &["ex.io/g"], false);
    let Some(Effect::Patch { patch: Patch::Strategic(patch), .. }) =
        prepare_update(&pod("Updated", &[("h", "false")], "n1", ""), Some(&hook), now())
    else {
        panic!("a patch")
    };
    assert_eq!(patch["metadata"]["labels"]["h"], "true");
    // A strategic merge adds to the finalizers of a pod.
    assert_eq!(patch["metadata"]["finalizers"], json!(["ex.io/g"]));
}

#[test]
fn an_empty_hook_holds_nothing_and_is_always_complete() {
    let empty = Hook::default();
    let pod = pod("Normal", &[], "n1", "");
    assert!(!is_hooked(Some(&empty), &pod) && is_all_hooked(Some(&empty), &pod));
    assert!(!is_hooked(None, &pod) && !is_all_hooked(None, &pod));
}

#[test]
fn a_deletion_that_made_pods_not_ready_cannot_be_taken_back() {
    assert!(can_cancel(None) && can_cancel(Some(&updating(false))) && !can_cancel(Some(&updating(true))));
}

#[test]
fn conditions_and_the_state_that_follows_from_them_are_one_write() {
    let pod = pod("Updating", &[], "n1", "");
    let ready = |subresource| Effect::Patch {
        target: Target::with_uid(POD, pod.metadata.key(), pod.metadata.uid.clone()),
        subresource,
        patch: Patch::Strategic(json!({"status": {"conditions": []}})),
    };
    let normal = || write(&pod, &State::Normal, now(), None);
    let one = joined(ready(Some("status")), normal);
    let Effect::Patch { subresource, patch: Patch::Strategic(patch), .. } = &one else { panic!("a patch") };
    assert_eq!(*subresource, Some("status"));
    assert_eq!(patch["metadata"]["labels"][labels::LIFECYCLE_STATE], "Normal");
    assert_eq!(patch["status"], json!({"conditions": []}));
    // Alone it is what it was, and other writes are not joined.
    assert_eq!(joined(ready(Some("status")), || None), ready(Some("status")));
    assert_eq!(joined(ready(None), normal), ready(None));
}
