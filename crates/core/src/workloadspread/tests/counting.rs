//! Accounts and deletion costs.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::*, kit::*};

fn pods(words: &str) -> Vec<std::sync::Arc<crate::pod::Pod>> {
    let one = |(place, word): (usize, &str)| {
        pod(&format!("{word}{place}"), word, i64::try_from(place).unwrap(), json!({}))
    };
    words.split_whitespace().enumerate().map(one).collect()
}

/// SPREAD-1, SPREAD-3, SPREAD-6: an account counts its pods, and a subset without a limit misses none.
#[test]
fn pods_are_counted_by_subset() {
    let plan = decide(&seen(&object("CloneSet", "a=3 b"), pods("a a b b b"), 60));
    assert_eq!(told(&plan.counted.subset_statuses), "a 2/1, b 3/-1");
    assert_eq!(told(&plan.counted.versioned_subset_statuses[IGNORED]), "a 2/1, b 3/-1");
    assert_eq!(plan.counted.observed_generation, Some(1));
    let none = decide(&seen(&object("CloneSet", "a=3 b"), Vec::new(), 60));
    assert_eq!(told(&none.counted.subset_statuses), "a 0/3, b 0/-1");
    assert!(none.counted.versioned_subset_statuses.is_empty());
}

#[track_caller]
fn check_costs(subsets: &str, words: &str, expected: &str) {
    let plan = decide(&seen(&object("CloneSet", subsets), pods(words), 60));
    assert_eq!(costs(&plan), expected);
}

/// SPREAD-1, SPREAD-2, SPREAD-7, SPREAD-21: earlier subsets are more expensive; what is too much or in no subset is cheap.
#[test]
fn costs_follow_the_order_of_subsets() {
    check_costs("a=3 b=3", "a b a", "a0=200 a2=200 b1=100");
    // The youngest goes first.
    check_costs("a=2 b=2", "a a a b b b", "a0=200 a1=200 a2=-100 b3=100 b4=100 b5=-200");
    check_costs("a=2", "a a - -", "-2=-200 -3=-200 a0=100 a1=100");
    check_costs("a", "a b b", "a0=100 b1=-200 b2=-200");
    check_costs("a b c=1", "c c a", "a2=300 c0=100 c1=-300");
    assert_eq!(costs(&decide(&seen(&object("Job", "a=1 b"), pods("a b"), 60))), "");
    assert_eq!(costs(&decide(&seen(&object("StatefulSet", "a=1 b"), pods("a b"), 60))), "");
}

/// SPREAD-9: an old version shrinks from its first subset, while the new one fills it.
#[test]
fn old_versions_shrink_from_their_first_subset() {
    let of = |version: &str, subset: &str| pod(&format!("{version}-{subset}"), subset, 0, versioned(version));
    let pods = || vec![of("v1", "a"), of("v1", "b"), of("v2", "a"), of("v2", "b")];
    let mut observed = seen(&object("Deployment", "a=2 b"), pods(), 60);
    observed.newest = Newest::Version("v2".to_owned());
    let plan = decide(&observed);
    assert_eq!(costs(&plan), "v1-a=100 v1-b=200 v2-a=200 v2-b=100");
    assert_eq!(plan.counted.versioned_subset_statuses.keys().collect::<Vec<_>>(), ["v1", "v2"]);
    assert_eq!(told(&plan.counted.subset_statuses), "a 2/0, b 2/-1");
    observed.newest = Newest::Unknown;
    let plan = decide(&observed);
    assert_eq!((costs(&plan).as_str(), plan.status.is_some(), plan.wake_after.is_some()), ("", true, true));
}

/// SPREAD-22: records follow their subset by name, and costs its place.
#[test]
fn reordered_subsets_keep_their_records() {
    let mut old = object("CloneSet", "b=3 a=3");
    old["status"] = json!({"versionedSubsetStatuses": {IGNORED: [
        {"name": "a", "replicas": 1, "missingReplicas": 1, "creatingPods": {"x": at(50)}},
        {"name": "b", "replicas": 1, "missingReplicas": 3, "deletingPods": {"b1": at(55)}}]}});
    let plan = decide(&seen(&old, pods("a b"), 60));
    assert_eq!(told(&plan.counted.versioned_subset_statuses[IGNORED]), "b 1/3 -b1, a 1/1 +x");
    assert_eq!(costs(&plan), "a0=100 b1=200");
}

/// SPREAD-26, SPREAD-27: records live for 30 and 15 seconds; people hear of it once.
#[test]
fn records_run_out() {
    let mut object = object("CloneSet", "a=3");
    object["status"] = json!({"versionedSubsetStatuses": {IGNORED: [{"name": "a", "replicas": 1, "missingReplicas": 2,
        "creatingPods": {"x": at(0)}, "deletingPods": {"a0": at(10), "gone": at(10)}}]}});
    let count = |now: i64| decide(&seen(&object, pods("a"), now));
    let plan = count(25);
    assert_eq!(told(&plan.counted.versioned_subset_statuses[IGNORED]), "a 1/2 +x -a0");
    assert_eq!(plan.wake_after.unwrap().as_millis(), 1);
    let plan = count(26);
    assert_eq!(told(&plan.counted.versioned_subset_statuses[IGNORED]), "a 1/1 +x");
    assert_eq!(events(&plan), ["DeletePodFailed: Pod shop/a0 was expected to be deleted but it wasn't"]);
    let plan = count(31);
    assert_eq!(told(&plan.counted.versioned_subset_statuses[IGNORED]), "a 1/2");
    assert!(
        events(&plan)
            .contains(&"CreatePodFailed: Pod shop/x was expected to be created but it wasn't".to_owned())
    );
}

/// A booking ends when its pod is seen, by its name or by the key in its mark; an older pod of the name is not meant.
#[test]
fn a_booking_ends_when_its_pod_is_seen() {
    let mut object = object("CloneSet", "a=4");
    object["status"] = json!({"versionedSubsetStatuses": {IGNORED: [{"name": "a", "replicas": 0, "missingReplicas": 1,
        "creatingPods": {"new": at(58), "uid-1": at(58), "old": at(58)}}]}});
    let mark = r#"{"name":"w","subset":"a","uid":"uid-1"}"#;
    let annotations = json!({"metadata": {"annotations": {"apps.kruise.io/matched-workloadspread": mark}}});
    let pods = vec![
        pod("new", "a", 59, json!({})),
        pod("other", "a", 59, annotations),
        pod("old", "a", 0, json!({"metadata": {"deletionTimestamp": at(59)}})),
    ];
    let plan = decide(&seen(&object, pods, 60));
    assert_eq!(told(&plan.counted.versioned_subset_statuses[IGNORED]), "a 2/1 +old");
}

/// SPREAD-12: completed pods free their place.
#[test]
fn pods_that_are_over_do_not_count() {
    let done = json!({"status": {"phase": "Succeeded"}});
    let plan =
        decide(&seen(&object("Job", "a=2 b"), vec![pod("x", "a", 0, done), pod("y", "a", 0, json!({}))], 60));
    assert_eq!(told(&plan.counted.subset_statuses), "a 1/1, b 0/-1");
}

/// A value that an older version accepted keeps the status as it is, and people hear why.
#[test]
fn a_limit_that_cannot_be_resolved_keeps_the_status() {
    let mut object = object("CloneSet", "a=30 b");
    object["spec"]["subsets"][0]["maxReplicas"] = json!("30");
    object["status"] = json!({"observedGeneration": 1});
    let plan = decide(&seen(&object, pods("b b"), 60));
    assert_eq!(plan.status, None);
    assert_eq!(costs(&plan), "b0=100 b1=100");
    let text = &plan.notices[0].message;
    assert!(text.starts_with("maxReplicas \"30\" of subset a cannot be resolved: "), "{text}");
    assert!(text.ends_with("; the status is kept and new pods skip the subset"), "{text}");
    let waits = plan.waits.message();
    assert!(waits.starts_with("the spec cannot be carried out: spec.subsets[0].maxReplicas: "), "{waits}");
}

/// Shares of an unknown number are nothing, and people hear of it.
#[test]
fn shares_of_an_unknown_number_are_nothing() {
    let mut observed = seen(&object("CloneSet", "a=50% b"), pods("a b"), 60);
    observed.total = None;
    let plan = decide(&observed);
    assert_eq!(told(&plan.counted.subset_statuses), "a 1/0, b 1/-1");
    assert_eq!(plan.notices[0].reason, "UnknownReplicas");
    assert_eq!(
        plan.notices[0].message,
        "replicas of CloneSet shop/web are unknown (no replicasPath, no scale subresource); percentages in maxReplicas count as 0"
    );
    observed.spread = read(&object("CloneSet", "a=5 b"));
    assert!(decide(&observed).notices.is_empty());
}

/// WAITING-22: all subsets are full.
#[test]
fn full_subsets_are_reported() {
    let plan = decide(&seen(&object("CloneSet", "a=2 b=1"), pods("a a b - -"), 60));
    assert_eq!(plan.waits.message(), "all subsets are full (a 2/2, b 1/1); 2 pods are without a subset");
    assert_eq!(decide(&seen(&object("CloneSet", "a=3 b=1"), pods("a a b - -"), 60)).waits.main(), None);
    assert_eq!(decide(&seen(&object("CloneSet", "a=2 b=1"), pods("a a b"), 60)).waits.main(), None);
}

fn words() -> impl Strategy<Value = Vec<(usize, bool, i64)>> {
    prop::collection::vec((0..4_usize, prop::bool::weighted(0.2), 0..40_i64), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The order in which pods are found changes nothing; a pass after its own writes has nothing to do.
    #[test]
    fn a_plan_does_not_depend_on_order_and_settles(
        words in words(), turn in 0..12_usize, limits in prop::array::uniform3(0..5_i64), key in 0..14_usize,
    ) {
        let all: Vec<_> = words
            .iter()
            .enumerate()
            .map(|(index, (subset, ends, made))| {
                let change = if *ends { json!({"metadata": {"deletionTimestamp": at(1)}}) } else { json!({}) };
                pod(&format!("p{index}"), ["a", "b", "c", "-"][*subset], *made, change)
            })
            .collect();
        let mut object = object("CloneSet", &format!("a={} b={} c={}", limits[0], limits[1], limits[2]));
        object["status"] = json!({"versionedSubsetStatuses": {IGNORED: [{"name": "b", "replicas": 0, "missingReplicas": 0,
            "creatingPods": {format!("p{key}"): at(30)}, "deletingPods": {format!("p{}", key / 2): at(40)}}]}});
        let mut turned = all.clone();
        turned.rotate_left(turn.min(all.len()));
        let plan = decide(&seen(&object, all.clone(), 45));
        prop_assert_eq!(&plan, &decide(&seen(&object, turned, 45)));
        let Some(status) = &plan.status else { return Ok(()) };
        prop_assert!(write(&mut object, status));
        prop_assert_eq!(decide(&seen(&object, all, 45)).status, None);
        let status: Value = object["status"].clone();
        for account in status["subsetStatuses"].as_array().unwrap() {
            prop_assert!(account["missingReplicas"].as_i64().unwrap() >= 0);
        }
    }
}
