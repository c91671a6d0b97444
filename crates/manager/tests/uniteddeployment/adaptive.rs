//! Replicas move away from subsets that cannot take pods.

use std::time::Duration;

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, KINDS, subset},
    stage::{Stage, embedded_only, managed},
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Subsets a, b and c, of which b is on no node.
fn spec(replicas: i64, critical: i64, duration: i64, b: Value) -> Value {
    let limits = json!({"maxReplicas": 2});
    json!({"replicas": replicas, "topology": {
        "subsets": [subset("a", "zone-a", limits), subset("b", "nowhere", b), subset("c", "zone-c", json!({}))],
        "scheduleStrategy": {"type": "Adaptive",
            "adaptive": {"rescheduleCriticalSeconds": critical, "unschedulableDuration": duration}}}})
}

/// UNITED-20, WAITING-21
async fn replicas_move_away_from_a_subset_that_takes_none(stage: &mut Stage) -> Outcome {
    for field in KINDS {
        let fleet = Fleet::prepare(stage, &format!("ud-adaptive-{}", field.to_lowercase()), field).await;
        fleet.create(spec(3, 10, 60, json!({"maxReplicas": 2}))).await;
        fleet.divided("2/1/0").await;
        fleet.divided("2/0/1").await;
        fleet.until("all pods are ready", |web| web["status"]["readyReplicas"] == 3).await;
        let condition = fleet.entry("b").await["conditions"][0].clone();
        assert_eq!(
            [&condition["type"], &condition["status"], &condition["reason"], &condition["message"]],
            [
                &json!("Schedulable"),
                &json!("False"),
                &json!("reschedule"),
                &json!("timeout pending pods found")
            ]
        );
        fleet
            .until("the subset is reported", |web| {
                let all = web["status"]["conditions"].as_array().cloned().unwrap_or_default();
                all.iter().any(|one| {
                    one["type"] == "Waiting"
                        && one["status"] == "True"
                        && one["reason"] == "SubsetUnschedulable"
                })
            })
            .await;
        let waiting = fleet.condition("Waiting").await;
        let since: jiff::Timestamp = condition["lastTransitionTime"].as_str().unwrap().parse().unwrap();
        let next = since + jiff::SignedDuration::from_secs(60);
        assert_eq!(
            waiting["message"],
            format!(
                "subset b cannot take pods since {since} (1 of its pods was not scheduled in time); 1 replica is in other \
                 subsets, it is tried again at {next}"
            )
        );
        stage.sim().advance(seconds(12)).await;
        let told = fleet.told("SubsetAllocation").await;
        assert_eq!(
            told.last().unwrap(),
            &format!(
                "3 replicas: a 2 (keeps its 2 ready pods), b 1 -> 0 (unschedulable since {since}: only its 0 ready pods \
                 count), c 0 -> 1 (takes the rest)"
            )
        );
        fleet.scale(5).await;
        fleet.divided("2/0/3").await;
        fleet.scale(4).await;
        fleet.divided("2/0/2").await;
        stage.sim().advance(seconds(60)).await;
        let condition = fleet.entry("b").await["conditions"][0].clone();
        assert_eq!(
            [&condition["status"], &condition["reason"], &condition["message"]],
            [
                &json!("True"),
                &json!("recover"),
                &json!("unschedulable subset recovered after 60.000000 seconds")
            ]
        );
        assert_eq!(fleet.condition("Waiting").await["status"], "False");
        fleet.scale(5).await;
        fleet.divided("2/1/2").await;
        fleet.divided("2/0/3").await;
    }
    Ok(())
}
embedded_only!(replicas_move_away_from_a_subset_that_takes_none, []);

/// UNITED-20: on a real cluster for CloneSets.
async fn a_clone_set_moves_to_another_zone(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-moves", "cloneSetTemplate").await;
    fleet.create(spec(3, 3, 300, json!({"maxReplicas": 2}))).await;
    fleet.divided("2/0/1").await;
    fleet.until("all pods are ready", |web| web["status"]["readyReplicas"] == 3).await;
    assert_eq!(fleet.condition("Waiting").await["reason"], "SubsetUnschedulable");
    Ok(())
}
managed!(a_clone_set_moves_to_another_zone, []);

/// UNITED-21
async fn a_minimum_stays_where_nothing_runs(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-minimum", "cloneSetTemplate").await;
    fleet.create(spec(5, 5, 60, json!({"minReplicas": 1, "maxReplicas": 2}))).await;
    fleet.divided("2/2/1").await;
    fleet.divided("2/1/2").await;
    fleet.stays("2/1/2", seconds(50)).await;
    let told = fleet.told("SubsetAllocation").await;
    assert!(told.last().unwrap().contains("b 2 -> 1 (unschedulable, but minReplicas 1)"), "{told:?}");
    Ok(())
}
embedded_only!(a_minimum_stays_where_nothing_runs, []);

/// UNITED-22: fixed nodes first, elastic ones after them, and back in the other order.
async fn later_subsets_shrink_first(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-elastic", "cloneSetTemplate").await;
    let spec = json!({"replicas": 2, "topology": {
        "subsets": [subset("fixed", "zone-a", json!({"maxReplicas": 3})), subset("elastic", "zone-b", json!({}))],
        "scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}}});
    fleet.create(spec).await;
    // Subsets are shown by name.
    for (total, expected) in [(2, "0/2"), (5, "2/3"), (4, "1/3"), (3, "0/3"), (1, "0/1")] {
        fleet.scale(total).await;
        fleet.divided(expected).await;
        fleet.settled().await;
    }
    Ok(())
}
embedded_only!(later_subsets_shrink_first, []);

/// A zone that is lost takes no pods; they run elsewhere, and nobody is moved back when it returns.
async fn a_zone_is_lost_and_returns(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-zone", "deploymentTemplate").await;
    let spec = json!({"replicas": 4, "topology": {
        "subsets": [subset("a", "zone-a", json!({"maxReplicas": 2})), subset("b", "zone-b", json!({"maxReplicas": 4})),
            subset("c", "zone-c", json!({}))],
        "scheduleStrategy": {"type": "Adaptive",
            "adaptive": {"rescheduleCriticalSeconds": 10, "unschedulableDuration": 120}}}});
    fleet.create(spec).await;
    fleet.divided("2/2/0").await;
    fleet.settled().await;
    fleet.cordon("hollow-1", true).await;
    fleet.scale(6).await;
    fleet.divided("2/2/2").await;
    fleet.settled().await;
    fleet.cordon("hollow-1", false).await;
    stage.sim().advance(seconds(200)).await;
    assert_eq!(fleet.numbers().await, "2/2/2");
    fleet.scale(8).await;
    fleet.divided("2/4/2").await;
    fleet.settled().await;
    Ok(())
}
embedded_only!(a_zone_is_lost_and_returns, []);

/// No subset takes pods: it is said which are full, and which one the rest waits for.
async fn full_subsets_are_reported(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-full", "cloneSetTemplate").await;
    let spec = json!({"replicas": 5, "topology": {
        "subsets": [subset("a", "zone-a", json!({"maxReplicas": 2})), subset("b", "nowhere", json!({}))],
        "scheduleStrategy": {"type": "Adaptive",
            "adaptive": {"rescheduleCriticalSeconds": 5, "unschedulableDuration": 600}}}});
    fleet.create(spec).await;
    fleet.divided("2/0").await;
    fleet
        .until("the object waits", |web| {
            let all = web["status"]["conditions"].as_array().cloned().unwrap_or_default();
            all.iter().any(|one| {
                let message = one["message"].as_str().unwrap_or_default();
                one["type"] == "Waiting"
                    && one["reason"] == "SubsetUnschedulable"
                    && message
                        .ends_with("no subset with room can take pods: a 2/2 is full; 3 replicas wait in b")
            })
        })
        .await;
    Ok(())
}
embedded_only!(full_subsets_are_reported, []);
