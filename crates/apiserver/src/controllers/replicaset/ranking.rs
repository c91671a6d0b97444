//! Which pods of a ReplicaSet go first when there are too many.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::super::pods::Pod;

/// The pods in the order of their deletion. `related` are all pods of the same workload: where many of them
/// share a node, that node gives first.
pub(super) fn deletion_order(mut pods: Vec<Arc<Pod>>, related: &[Arc<Pod>], now: Timestamp) -> Vec<Arc<Pod>> {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| pod.is_active()) {
        *on_node.entry(&pod.node).or_default() += 1;
    }
    let crowd = |pod: &Pod| on_node.get(&*pod.node).copied().unwrap_or(0);
    pods.sort_by(|a, b| compare(a, b, crowd(a), crowd(b), now));
    pods
}

fn compare(a: &Pod, b: &Pod, crowd_a: usize, crowd_b: usize, now: Timestamp) -> Ordering {
    let by_uid = || a.record.uid.cmp(&b.record.uid);
    a.node
        .is_empty()
        .cmp(&b.node.is_empty())
        .reverse()
        .then_with(|| a.phase.cmp(&b.phase))
        .then_with(|| a.is_ready().cmp(&b.is_ready()))
        .then_with(|| a.deletion_cost.cmp(&b.deletion_cost))
        .then_with(|| crowd_b.cmp(&crowd_a))
        .then_with(|| match (a.ready_since, b.ready_since) {
            (Some(x), Some(y)) if x != y => age_class(x, now).cmp(&age_class(y, now)).then_with(by_uid),
            _ => Ordering::Equal,
        })
        .then_with(|| b.restarts.cmp(&a.restarts))
        .then_with(|| {
            if a.created == b.created {
                Ordering::Equal
            } else {
                age_class(a.created, now).cmp(&age_class(b.created, now)).then_with(by_uid)
            }
        })
        // The real order ends here and leaves the rest to chance; one seed shall give one history.
        .then_with(|| a.record.name.cmp(&b.record.name))
}

/// Ages count by their order of magnitude only, so that the youngest are not always the ones to go.
fn age_class(since: Timestamp, now: Timestamp) -> u32 {
    let age = now.as_nanosecond().saturating_sub(since.as_nanosecond());
    u128::try_from(age).ok().and_then(u128::checked_ilog2).map_or(0, |class| class + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Draft, Record};
    use serde_json::json;

    const NOW: i64 = 1_767_225_600;

    /// `name node phase ready-age cost restarts age`; a dash stands for nothing.
    fn pod(line: &str) -> Arc<Pod> {
        let words: Vec<&str> = line.split(' ').collect();
        let at = |age: &str| Timestamp::from_second(NOW - age.parse::<i64>().unwrap()).unwrap().to_string();
        let mut status = json!({"phase": words[2], "containerStatuses": [{"restartCount": words[5].parse::<i64>().unwrap()}]});
        if words[3] != "-" {
            status["conditions"] =
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": at(words[3])}]);
        }
        let mut value = json!({
            "metadata": {
                "name": words[0], "namespace": "d", "uid": words[0], "creationTimestamp": at(words[6]),
                "annotations": {"controller.kubernetes.io/pod-deletion-cost": words[4]},
            },
            "spec": {}, "status": status,
        });
        if words[1] != "-" {
            value["spec"]["nodeName"] = json!(words[1]);
        }
        let record = Record::encode(Draft::new(value), Some(1)).unwrap();
        Arc::new(Pod::read(&Arc::new(record)))
    }

    #[track_caller]
    fn check(lines: &[&str], expected: &str) {
        let pods: Vec<Arc<Pod>> = lines.iter().map(|line| pod(line)).collect();
        let now = Timestamp::from_second(NOW).unwrap();
        let order = deletion_order(pods.clone(), &pods, now);
        let names: Vec<&str> = order.iter().map(|pod| &*pod.record.name).collect();
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn pods_that_serve_nobody_go_first() {
        check(
            &[
                "ready n1 Running 100 0 0 100",
                "unready n2 Running - 0 0 100",
                "pending n3 Pending - 0 0 100",
                "unscheduled - Pending - 0 0 100",
            ],
            "unscheduled pending unready ready",
        );
    }

    #[test]
    fn cheap_pods_go_before_dear_ones_and_crowded_nodes_give_first() {
        check(
            &[
                "dear n1 Running 100 10 0 100",
                "cheap n2 Running 100 -5 0 100",
                "plain n3 Running 100 0 0 100",
            ],
            "cheap plain dear",
        );
        check(&["a n1 Running 100 0 0 100", "b n2 Running 100 0 0 100", "c n2 Running 100 0 0 100"], "b c a");
    }

    #[test]
    fn young_pods_go_first_but_ages_count_by_magnitude() {
        check(&["old n1 Running 10000 0 0 10000", "young n2 Running 10 0 0 10"], "young old");
        check(&["a n1 Running 101 0 0 200", "b n2 Running 100 0 0 200"], "a b");
        check(&["calm n1 Running - 0 0 200", "shaky n2 Running - 0 3 200"], "shaky calm");
    }
}
