use super::*;
use proptest::prelude::*;
use serde_json::json;

fn bounds(behavior: Value) -> Bounds {
    Bounds::of(&json!({"spec": {"minReplicas": 2, "maxReplicas": 20, "behavior": behavior}}))
}

fn rules(window: i64, select: &str, policies: Value) -> Value {
    json!({"stabilizationWindowSeconds": window, "selectPolicy": select, "policies": policies})
}

/// Plays proposals at seconds and returns the numbers that came of them, with the reason of a limit.
fn play(bounds: &Bounds, first: i64, steps: &[(i64, i64)]) -> Vec<String> {
    let mut memory = Memory::default();
    let mut current = first;
    let at = |second: i64| Timestamp::from_second(1_000_000 + second).unwrap();
    let mut seen = Vec::new();
    for (second, proposed) in steps {
        memory.begin(current, at(*second));
        let decision = memory.decide(bounds, current, *proposed, at(*second));
        if decision.replicas != current {
            memory.note_change(bounds.rules.is_some(), current, decision.replicas, at(*second));
        }
        current = decision.replicas;
        seen.push(if decision.limited.0 {
            format!("{current} {}", decision.limited.1)
        } else {
            current.to_string()
        });
    }
    seen
}

#[test]
fn without_rules_it_doubles_and_waits_five_minutes_before_it_shrinks() {
    let plain = bounds(Value::Null);
    assert_eq!(
        play(&plain, 3, &[(0, 15), (15, 15), (30, 40)]),
        ["6 ScaleUpLimit", "12 ScaleUpLimit", "20 TooManyReplicas"]
    );
    assert_eq!(play(&plain, 8, &[(0, 3), (150, 3), (299, 3), (301, 3), (316, 1)]), ["8", "8", "8", "3", "3"]);
    assert_eq!(play(&plain, 2, &[(0, 1), (400, 0)]), ["2", "2 TooFewReplicas"]);
}

#[test]
fn rules_limit_how_much_changes_in_a_period() {
    let four = json!([{"type": "Pods", "value": 4, "periodSeconds": 60}]);
    let calm = bounds(json!({
        "scaleUp": rules(0, "Max", four.clone()),
        "scaleDown": rules(0, "Min", json!([{"type": "Pods", "value": 4, "periodSeconds": 60}, {"type": "Percent", "value": 10, "periodSeconds": 60}])),
    }));
    assert_eq!(
        play(&calm, 4, &[(0, 20), (30, 20), (61, 20)]),
        ["8 ScaleUpLimit", "8 ScaleUpLimit", "12 ScaleUpLimit"]
    );
    // Of twenty, ten percent are two, which is less than four.
    assert_eq!(
        play(&calm, 20, &[(0, 2), (30, 2), (61, 2)]),
        ["18 ScaleDownLimit", "18 ScaleDownLimit", "16 ScaleDownLimit"]
    );
    let never =
        bounds(json!({"scaleUp": rules(0, "Max", four), "scaleDown": rules(0, "Disabled", json!([]))}));
    assert_eq!(play(&never, 9, &[(0, 2)]), ["9 ScaleDownLimit"]);
}

#[test]
fn a_window_waits_for_the_lowest_or_the_highest_recommendation() {
    let all = json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]);
    let slow = bounds(json!({"scaleUp": rules(60, "Max", all.clone()), "scaleDown": rules(60, "Max", all)}));
    assert_eq!(play(&slow, 4, &[(0, 6), (30, 8), (59, 8), (61, 8), (100, 8)]), ["4", "4", "4", "8", "8"]);
    assert_eq!(play(&slow, 8, &[(0, 4), (30, 3), (59, 3), (61, 2)]), ["8", "8", "8", "3"]);
}

proptest! {
    #[test]
    fn numbers_stay_within_the_bounds_and_memory_stays_small(
        steps in prop::collection::vec((1..40i64, 0..60i64), 1..200), window in 0..600i64,
    ) {
        let policies = json!([{"type": "Percent", "value": 50, "periodSeconds": 30}]);
        let bounds = bounds(json!({"scaleUp": rules(0, "Max", policies.clone()), "scaleDown": rules(window, "Max", policies)}));
        let mut memory = Memory::default();
        let (mut current, mut second) = (5, 0);
        for (pause, proposed) in steps {
            second += pause;
            let now = Timestamp::from_second(second).unwrap();
            memory.begin(current, now);
            let decision = memory.decide(&bounds, current, proposed, now);
            memory.note_change(true, current, decision.replicas, now);
            current = decision.replicas;
            prop_assert!((2..=20).contains(&current));
        }
        prop_assert!(memory.recommendations.len() <= 602 && memory.up.len() <= 42);
    }
}
