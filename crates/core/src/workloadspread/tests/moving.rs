//! Pods that find no node.

use serde_json::{Value, json};

use super::{super::*, kit::*};
use crate::effect::Effect;

fn adaptive(subsets: &str, seconds: i64) -> Value {
    let mut object = object("CloneSet", subsets);
    object["spec"]["scheduleStrategy"] =
        json!({"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}});
    object
}

fn moved(plan: &Plan) -> Vec<String> {
    let name = |write: &Write| match &write.effect {
        Effect::Delete { target, .. } => target.key.name.to_string(),
        other => panic!("{other:?}"),
    };
    plan.moves.iter().map(name).collect()
}

/// SPREAD-23: pods that wait for too long close their subset for 300 seconds and move; the last subset stays open.
#[test]
fn pods_that_find_no_node_move() {
    let mut object = adaptive("a=2 b", 5);
    let pods = |made: i64| {
        let mut change = unschedulable();
        change["metadata"] = json!({"resourceVersion": "5"});
        let waiting = |name: &str| pod(name, "a", made, change.clone());
        vec![waiting("p1"), waiting("p2"), pod("p3", "b", 0, json!({})), pod("p4", "b", 0, unschedulable())]
    };
    let early = decide(&seen(&object, pods(0), 3));
    assert_eq!((moved(&early), early.wake_after.unwrap().as_millis()), (vec![], 2001));
    assert_eq!(told(&early.counted.subset_statuses), "a 2/0, b 2/-1");
    carry_out(&mut object, &early);
    let late = decide(&seen(&object, pods(0), 6));
    assert_eq!(moved(&late), ["p1", "p2"]);
    // One that has found a node since is another version, and stays.
    let versions = late.moves.iter().map(|write| match &write.effect {
        Effect::Delete { target, .. } => target.resource_version.clone(),
        other => panic!("{other:?}"),
    });
    assert_eq!(versions.collect::<Vec<_>>(), [Some("5".into()), Some("5".into())]);
    assert_eq!(told(&late.counted.subset_statuses), "a 2/0 closed, b 2/-1");
    assert_eq!(told(&late.counted.versioned_subset_statuses[IGNORED]), "a 2/0 closed, b 2/-1");
    let text = &late.moves[0].failed.message;
    assert_eq!(text, "Failed to delete unschedulabe Pod shop/p1 in Subset a of WorkloadSpread shop/w");
    carry_out(&mut object, &late);
    assert_eq!(admit(&mut object, "p5", IGNORED, 5, 7), "b");
    // Nothing waits in a any more: it stays closed until 300 seconds are over.
    let rest = || vec![pod("p3", "b", 0, json!({}))];
    let closed = decide(&seen(&object, rest(), 305));
    assert_eq!((closed.wake_after.unwrap().as_millis(), closed.events.len()), (1001, 0));
    assert_eq!(
        closed.waits.message(),
        "subset a cannot take pods since 2026-11-16T00:00:06Z (1 of its pods were not scheduled in time); 1 replica is in \
         other subsets, it is tried again at 2026-11-16T00:05:06Z"
    );
    let open = decide(&seen(&object, rest(), 306));
    assert_eq!(told(&open.counted.subset_statuses), "a 0/2, b 1/-1");
    assert_eq!(
        events(&open),
        [
            "RecoverSchedulable: Subset a of WorkloadSpread shop/w is recovered from unschedulable to schedulable"
        ]
    );
    carry_out(&mut object, &open);
    assert!(decide(&seen(&object, rest(), 307)).events.is_empty());
}

/// The window is measured from the first time, also when more pods time out within it.
#[test]
fn a_second_timeout_does_not_prolong_the_window() {
    let mut object = adaptive("a=2 b", 5);
    let first = decide(&seen(&object, vec![pod("p1", "a", 0, unschedulable())], 10));
    carry_out(&mut object, &first);
    let second = decide(&seen(&object, vec![pod("p2", "a", 100, unschedulable())], 200));
    let conditions = &second.counted.subset_statuses[0].conditions;
    assert_eq!((moved(&second), conditions[0].last_transition_time.0), (vec!["p2".to_owned()], after(10)));
}

/// SPREAD-25: Fixed moves nothing and has no condition.
#[test]
fn fixed_moves_nothing() {
    let mut object = object("CloneSet", "a=2 b");
    object["status"] = json!({"subsetStatuses": [{"name": "a", "replicas": 1, "missingReplicas": 1, "conditions": [
        {"type": "Schedulable", "status": "False", "reason": "PodUnschedulable", "message": "", "lastTransitionTime": at(0)}]}]});
    let plan = decide(&seen(&object, vec![pod("p1", "a", 0, unschedulable())], 1000));
    assert!(plan.moves.is_empty());
    assert!(plan.counted.subset_statuses[0].conditions.is_empty());
    let mut off = adaptive("a=2 b", 0);
    off["status"] = json!({});
    assert!(decide(&seen(&off, vec![pod("p1", "a", 0, unschedulable())], 1000)).moves.is_empty());
}

/// A zone that stays full is tried again every 300 seconds, and each pod sent there moves once.
#[test]
fn a_zone_that_stays_full_costs_one_try_in_each_window() {
    let mut object = adaptive("a=1 b", 5);
    let (mut tries, mut made) = (0, 0);
    for now in 0..1500 {
        let waiting: Vec<_> = (made < now && tries % 2 == 1)
            .then(|| pod("p", "a", made, unschedulable()))
            .into_iter()
            .collect();
        let plan = decide(&seen(&object, waiting, now));
        if let Some(status) = &plan.status {
            assert!(write(&mut object, status));
        }
        if !plan.moves.is_empty() {
            tries += 1;
        }
        // Somebody scales out all the time.
        if tries % 2 == 0 && admit(&mut object, &format!("p{now}"), IGNORED, 9, now) == "a" {
            (made, tries) = (now, tries + 1);
        }
    }
    assert!((8..=12).contains(&tries), "{tries}");
}
