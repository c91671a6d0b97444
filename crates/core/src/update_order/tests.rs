use kruise_api::rollout::{OrderTerm, WeightTerm};
use kruise_api::selector::LabelSelector;
use serde_json::{Value, json};

use super::*;

/// A pod that is ready, made `age` seconds before the others; labels as `a=b,c=d` or `-`.
fn pod(index: usize, labels: &str) -> Pod {
    let pairs: serde_json::Map<String, Value> = labels
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": format!("p-{index}"), "labels": pairs, "creationTimestamp": format!("2026-01-01T00:00:{index:02}Z")},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True",
            "lastTransitionTime": "2026-01-01T00:01:00Z"}]},
    }))
    .unwrap()
}

fn names(pods: &[&Pod]) -> Vec<String> {
    pods.iter().map(|pod| pod.metadata.name.trim_start_matches("p-").to_owned()).collect()
}

/// One pod after the other, sorted anew each time, as an update with maxUnavailable 1 does.
fn sequence(pods: &[Pod], strategy: &Strategy) -> Vec<String> {
    let all: Vec<&Pod> = pods.iter().collect();
    let mut waiting = all.clone();
    let mut order = Vec::new();
    while let Some(next) = update_order(&waiting, &all, strategy).first().copied() {
        order.push(next);
        waiting.retain(|pod| pod.metadata.name != next.metadata.name);
    }
    names(&order)
}

fn strategy(scatter: &Value, weights: &Value, keys: &Value) -> Strategy {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let scatter: Vec<ScatterTerm> =
        list(scatter).iter().map(|term| ScatterTerm { key: text(&term[0]), value: text(&term[1]) }).collect();
    let priority = PriorityStrategy {
        weight_priority: list(weights)
            .iter()
            .map(|term| WeightTerm {
                weight: i32::try_from(term[0].as_i64().unwrap()).unwrap(),
                match_selector: LabelSelector {
                    match_labels: [(text(&term[1]), text(&term[2]))].into(),
                    ..LabelSelector::default()
                },
            })
            .collect(),
        order_priority: list(keys).iter().map(|key| OrderTerm { ordered_key: text(key) }).collect(),
    };
    Strategy::new(Some(&priority), &scatter).unwrap()
}

/// Recorded from the original: scatter terms, weights, keys, pods from old to new, and the order of their updates.
#[test]
fn sequences_equal_those_of_the_original() {
    for line in include_str!("../../tests/recorded/update-order.tsv").lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let json = |index: usize| serde_json::from_str::<Value>(cells[index]).unwrap();
        let strategy = strategy(&json(1), &json(2), &json(3));
        let pods: Vec<Pod> = cells[4]
            .split(' ')
            .map(|pod| pod.split_once(':').unwrap())
            .map(|(index, labels)| pod(index.parse().unwrap(), labels))
            .collect();
        let expected: Vec<&str> = cells[5].split(' ').map(|pod| pod.split_once(':').unwrap().0).collect();
        assert_eq!(sequence(&pods, &strategy), expected, "{line}");
    }
}

#[track_caller]
fn check_scatter(all: &str, waiting: usize, expected: &str) {
    let pods: Vec<Pod> = all
        .chars()
        .enumerate()
        .map(|(index, one)| pod(index, if one == '1' { "z=a" } else { "-" }))
        .collect();
    let all: Vec<&Pod> = pods.iter().collect();
    let term = ScatterTerm { key: "z".into(), value: "a".into() };
    let order = scatter(all.iter().copied().take(waiting).collect(), &all, &[term]);
    assert_eq!(names(&order).join(" "), expected);
}

#[test]
fn one_term_spreads_its_pods() {
    check_scatter("0000000111", 10, "7 0 1 2 3 8 4 5 6 9");
    check_scatter("000011", 6, "4 0 1 2 3 5");
    check_scatter("001011111", 9, "2 4 0 5 6 1 7 3 8");
    check_scatter("0000111", 6, "0 1 4 2 3 5");
    check_scatter("1100000001", 7, "2 0 3 4 5 6 1");
}

/// INPLACE-38
#[test]
fn three_of_ten_labelled_pods_are_updated_first_fifth_and_last() {
    let pods: Vec<Pod> = (0..10).map(|index| pod(index, if index < 3 { "z=a" } else { "-" })).collect();
    let order = sequence(&pods, &strategy(&json!([["z", "a"]]), &json!(null), &json!(null)));
    let places: Vec<usize> = order
        .iter()
        .enumerate()
        .filter(|(_, name)| name.parse::<usize>().unwrap() < 3)
        .map(|(place, _)| place + 1)
        .collect();
    assert_eq!(places, [1, 5, 10]);
}

/// INPLACE-36
#[test]
fn heavier_pods_are_updated_first() {
    let pods = [pod(0, "-"), pod(1, "w=lo"), pod(2, "-"), pod(3, "w=hi")];
    let strategy = strategy(&json!(null), &json!([[100, "w", "hi"], [50, "w", "lo"]]), &json!(null));
    assert_eq!(sequence(&pods, &strategy), ["3", "1", "2", "0"]);
}

/// INPLACE-37
#[test]
fn numbers_at_the_end_of_a_label_order_pods() {
    let pods = [pod(0, "o=a-1"), pod(1, "o=a-10"), pod(2, "o=a-2"), pod(3, "-")];
    assert_eq!(sequence(&pods, &strategy(&json!(null), &json!(null), &json!(["o"]))), ["3", "1", "2", "0"]);
    assert_eq!(trailing_number("abc"), 0);
    assert_eq!(trailing_number("99999999999999999999"), 0);
}

#[test]
fn pods_that_serve_nobody_come_first() {
    let mut pods: Vec<Pod> = (0..7).map(|index| pod(index, "-")).collect();
    pods[0].spec.node_name = "".into();
    pods[1].status.phase = "Pending".into();
    pods[2].status.conditions[0].status = "False".into();
    pods[3].status.conditions[0].last_transition_time = Some("2026-01-01T00:02:00Z".parse().unwrap());
    pods[4].status.container_statuses =
        Box::new([ContainerStatus { restart_count: 3, ..ContainerStatus::default() }]);
    assert_eq!(sequence(&pods, &Strategy::default()), ["0", "1", "2", "3", "4", "6", "5"]);
    pods[5].metadata.labels =
        [("lifecycle.apps.kruise.io/state".into(), "PreparingUpdate".into())].into_iter().collect();
    assert_eq!(sequence(&pods, &Strategy::default())[0], "5");
}
