//! Where new pods go, and what deletions give back.

use serde_json::{Value, json};

use super::{super::*, kit::*};

/// Admits so many pods with names at second 0 and says where they went.
fn fill(object: &mut Value, count: u32) -> String {
    (0..count).map(|pod| admit(object, &format!("p{pod}"), IGNORED, count, 0)).collect::<Vec<_>>().join("")
}

#[track_caller]
fn check(subsets: &str, count: u32, expected: &str) {
    assert_eq!(fill(&mut object("CloneSet", subsets), count), expected);
}

/// SPREAD-1, SPREAD-3, SPREAD-4, SPREAD-7: subsets are filled in order; shares are rounded up.
#[test]
fn subsets_are_filled_in_order() {
    check("a=3 b=3", 6, "aaabbb");
    check("a=2 b", 5, "aabbb");
    check("a=30% b=70%", 10, "aaabbbbbbb");
    check("a=30% b=70%", 4, "aabb");
    check("a=2", 4, "aa--");
    check("a=0 b=1 c", 3, "bcc");
    check("a=30 b=1", 2, "aa");
}

/// SPREAD-6: the only subset without a limit takes all, and nothing is written.
#[test]
fn an_open_subset_books_nothing() {
    let mut only = object("CloneSet", "a");
    assert!(read(&only).is_open() && !read(&object("CloneSet", "a=3")).is_open());
    assert_eq!(fill(&mut only, 3), "aaa");
    assert!(only.get("status").is_none(), "{only}");
}

/// SPREAD-10: an ordinal says where its pod goes, whatever was there before.
#[test]
fn pods_of_a_statefulset_go_by_ordinal() {
    let of = |subsets: &str, pod: &str| {
        let spread = read(&object("StatefulSet", subsets));
        by_ordinal(&spread, pod).map_or("-".to_owned(), |position| spread.subsets[position].spec.name.clone())
    };
    let all =
        |subsets: &str| (0..6).map(|ordinal| of(subsets, &format!("web-{ordinal}"))).collect::<String>();
    assert_eq!(all("a=2 b=2 c"), "aabbcc");
    assert_eq!(all("a=2 b=2"), "aabb--");
    assert_eq!(of("a=2 b", "web"), "a");
    let mut closed = object("StatefulSet", "a=2 b=2 c");
    closed["status"] = json!({"subsetStatuses": [{"name": "a", "replicas": 0, "missingReplicas": 2, "conditions": [condition("False", 0)]}]});
    let spread = read(&closed);
    assert_eq!(
        [0, 1, 2].map(|ordinal| by_ordinal(&spread, &format!("web-{ordinal}"))),
        [Some(1), Some(1), Some(2)]
    );
}

fn condition(status: &str, since: i64) -> Value {
    let reason = if status == "True" { "Sufficient" } else { "PodUnschedulable" };
    json!({"type": "Schedulable", "status": status, "reason": reason, "message": "", "lastTransitionTime": at(since)})
}

/// A pod that asks again, because an answer was lost, gets its place and no second one.
#[test]
fn a_pod_is_booked_once() {
    let mut object = object("CloneSet", "a=2 b");
    assert_eq!(admit(&mut object, "p0", IGNORED, 3, 0), "a");
    let version = object["metadata"]["resourceVersion"].clone();
    assert_eq!(admit(&mut object, "p0", IGNORED, 3, 0), "a");
    assert_ne!(
        object["metadata"]["resourceVersion"], version,
        "only a write shows that the place is still there"
    );
    assert_eq!(told(&read(&object).status().versioned_subset_statuses[IGNORED]), "a 0/1 +p0, b 0/-1");
    let since = read(&object).status().versioned_subset_statuses[IGNORED][0].creating_pods["p0"].0;
    assert_eq!(since, after(1), "the second request has as much time as the first");
}

/// SPREAD-8: each version has all places of a subset, and a closed subset is closed for new versions too.
#[test]
fn versions_are_booked_apart() {
    let mut object = object("Deployment", "a=1 b");
    assert_eq!(admit(&mut object, "u1", "v1", 2, 0), "a");
    assert_eq!(admit(&mut object, "u2", "v2", 2, 0), "a");
    assert_eq!(admit(&mut object, "u3", "v2", 2, 0), "b");
    object["status"]["subsetStatuses"] =
        json!([{"name": "a", "replicas": 0, "missingReplicas": 1, "conditions": [condition("False", 0)]}]);
    assert_eq!(admit(&mut object, "u4", "v3", 2, 0), "b");
}

fn delete(object: &mut Value, name: &str, subset: &str, now: i64) -> bool {
    let spread = read(object);
    let mark = Mark { name: "w".into(), subset: subset.into(), uid: String::new() };
    let left = Left { name, mark: &mark, version: IGNORED, total: Some(4), now: after(now) };
    match leave(&spread, &left) {
        Leaving::Write(status) => write(object, &status_write(&spread.object, &status).unwrap()),
        Leaving::Nothing | Leaving::Unknown => false,
    }
}

/// A deletion gives its place back at once, and once.
#[test]
fn a_deletion_gives_its_place_back() {
    let mut object = object("CloneSet", "a=1 b=1 c");
    object["status"] = json!({"versionedSubsetStatuses": {IGNORED: [
        {"name": "a", "replicas": 1, "missingReplicas": 0}, {"name": "b", "replicas": 1, "missingReplicas": 0},
        {"name": "c", "replicas": 1, "missingReplicas": -1}]}});
    assert!(delete(&mut object, "p", "a", 0));
    assert!(!delete(&mut object, "p", "a", 1), "it is recorded already");
    assert!(!delete(&mut object, "q", "c", 1), "nothing is counted where there is no limit");
    assert!(!delete(&mut object, "q", "gone", 1));
    assert_eq!(told(&read(&object).status().versioned_subset_statuses[IGNORED]), "a 1/1 -p, b 1/0, c 1/-1");
    assert_eq!(admit(&mut object, "new", IGNORED, 3, 2), "a");
    assert_eq!(admit(&mut object, "more", IGNORED, 3, 2), "c");
    let stateful = read(&self::object("StatefulSet", "a=1 b"));
    let mark = Mark { name: "w".into(), subset: "a".into(), uid: String::new() };
    assert_eq!(
        leave(&stateful, &Left { name: "web-0", mark: &mark, version: IGNORED, total: None, now: after(0) }),
        Leaving::Nothing
    );
}

/// A subset with more pods than it should have gives no place away when one of them goes.
#[test]
fn a_subset_that_is_too_full_gives_no_place_back() {
    let mut object = object("CloneSet", "a=2 b");
    object["status"] = json!({"versionedSubsetStatuses": {IGNORED: [
        {"name": "a", "replicas": 4, "missingReplicas": 0}, {"name": "b", "replicas": 0, "missingReplicas": -1}]}});
    assert!(delete(&mut object, "p", "a", 0) && delete(&mut object, "q", "a", 0));
    assert_eq!(told(&read(&object).status().versioned_subset_statuses[IGNORED]), "a 4/0 -p -q, b 0/-1");
    assert_eq!(admit(&mut object, "new", IGNORED, 4, 1), "b");
    assert!(delete(&mut object, "r", "a", 2));
    assert_eq!(admit(&mut object, "next", IGNORED, 4, 3), "a");
}

/// The next pod of a name takes the place that the one before leaves, and nobody else does.
#[test]
fn the_next_pod_of_a_name_takes_its_place() {
    let mut object = object("CloneSet", "a=1 b=1");
    object["status"] = json!({"versionedSubsetStatuses": {IGNORED: [
        {"name": "a", "replicas": 1, "missingReplicas": 0}, {"name": "b", "replicas": 1, "missingReplicas": 0}]}});
    assert!(delete(&mut object, "y", "b", 0));
    assert_eq!(admit(&mut object, "y", IGNORED, 2, 1), "b");
    assert_eq!(admit(&mut object, "z", IGNORED, 2, 1), "-");
    // Its booking has a key of its own: the pod before, which a cache may still show, does not end it.
    let booked = "a 1/0, b 1/0 +key-of-y-1";
    assert_eq!(told(&read(&object).status().versioned_subset_statuses[IGNORED]), booked);
    let count = |pods| decide(&Observed { total: Some(2), ..seen(&object, pods, 2) });
    let before = vec![pod("x", "a", 0, json!({})), pod("y", "b", 0, json!({}))];
    assert_eq!(told(&count(before).counted.versioned_subset_statuses[IGNORED]), booked);
    let gone = count(vec![pod("x", "a", 0, json!({}))]);
    assert_eq!(told(&gone.counted.versioned_subset_statuses[IGNORED]), "a 1/0, b 0/0 +key-of-y-1");
}

/// A place that an old cache shows as booked for a pod is taken by a write, and that says how old the cache is.
#[test]
fn an_old_booking_in_an_old_cache_is_no_place() {
    let mut object = object("CloneSet", "a=1 b");
    assert_eq!(admit(&mut object, "p", IGNORED, 2, 0), "a");
    let old = read(&object);
    // Counted, deleted, counted again; another pod has the place now.
    object["status"] = json!({"versionedSubsetStatuses": {IGNORED: [
        {"name": "a", "replicas": 1, "missingReplicas": 0}, {"name": "b", "replicas": 0, "missingReplicas": -1}]}});
    object["metadata"]["resourceVersion"] = json!("9");
    let asked = Asked { name: "p", fresh: "f", version: IGNORED, total: Some(2), now: after(9) };
    let Placement::Book(booking) = place(&old, &asked) else { panic!() };
    assert!(!write(&mut object, &status_write(&old.object, &booking.status).unwrap()));
    assert_eq!(admit(&mut object, "p", IGNORED, 2, 9), "b");
}

/// What is not in the accounts that are known may be in newer ones.
#[test]
fn a_deletion_of_a_pod_that_is_not_known_is_looked_up() {
    let of = |subsets: &str, subset: &str| {
        let mark = Mark { name: "w".into(), subset: subset.into(), uid: String::new() };
        let left = Left { name: "p", mark: &mark, version: IGNORED, total: None, now: after(0) };
        leave(&read(&object("CloneSet", subsets)), &left)
    };
    assert_eq!(of("a=1 b", "a"), Leaving::Unknown);
    assert_eq!(of("a=1 b", "b"), Leaving::Nothing);
    assert_eq!(of("a=1 b", "gone"), Leaving::Nothing);
    assert_eq!(of("a", "a"), Leaving::Nothing);
}

/// A spec that is younger than the status counts at once.
#[test]
fn a_changed_spec_counts_at_once() {
    let mut object = object("CloneSet", "b=1 new=1 a=3");
    object["status"] = json!({"versionedSubsetStatuses": {IGNORED: [
        {"name": "a", "replicas": 2, "missingReplicas": 0}, {"name": "b", "replicas": 1, "missingReplicas": 5}]}});
    let placed: Vec<String> =
        (0..3).map(|pod| admit(&mut object, &format!("p{pod}"), IGNORED, 9, 0)).collect();
    assert_eq!(placed, ["new", "a", "-"]);
}

/// A limit that cannot be read takes nobody and stops nobody.
#[test]
fn a_limit_that_cannot_be_read_is_passed_over() {
    let mut broken = object("CloneSet", "a b=2");
    broken["spec"]["subsets"][0]["maxReplicas"] = json!("abc");
    assert_eq!(fill(&mut broken, 3), "bb-");
    let mut selector = object("CloneSet", "a");
    selector["spec"]["targetFilter"] =
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}});
    assert!(!read(&selector).filter.accepts(|_| None));
    selector["spec"]["targetFilter"] = json!({});
    assert!(read(&selector).filter.accepts(|_| None), "no selector is no filter");
}

/// A pod that does not come after all gives its booking back.
#[test]
fn a_booking_is_given_back() {
    let mut object = object("CloneSet", "a=1 b");
    assert_eq!(admit(&mut object, "p", IGNORED, 2, 0), "a");
    let spread = read(&object);
    let status = give_back(&spread, IGNORED, "p").unwrap();
    assert_eq!(told(&status.versioned_subset_statuses[IGNORED]), "a 0/1, b 0/-1");
    assert_eq!(give_back(&spread, IGNORED, "q"), None);
    assert_eq!(give_back(&spread, "v9", "p"), None);
}
