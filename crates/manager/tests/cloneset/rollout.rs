//! Updates of pods: how many, how far, and back.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::ControllerRevision, core::v1::Pod};
use kruise_testkit::{Backend, Outcome};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, image_of, is_active, is_available, merged, name, revision, rolling, updated},
    stage::{Stage, managed},
};

/// A while in which nothing may happen.
const WHILE: Duration = Duration::from_secs(5);

fn in_place(members: Value) -> Value {
    rolling(merged(json!({"podUpdatePolicy": "InPlaceIfPossible"}), &members))
}

fn partition(partition: impl Into<Value>) -> Value {
    let partition: Value = partition.into();
    rolling(json!({"partition": partition}))
}

/// CLONESET-21
async fn a_surge_rounds_what_may_be_unavailable_down(stage: &mut Stage) -> Outcome {
    for (surge, available, active) in [(0, 2, 3), (1, 3, 4)] {
        let change = rolling(json!({"maxUnavailable": "20%", "maxSurge": surge}));
        let change = merged(change, &json!({"spec": {"replicas": 3}}));
        let demo = Demo::start(stage, &format!("surge{surge}"), change).await;
        let film = demo.film().await;
        demo.set_image("app:v2").await;
        demo.rolled_out().await;
        assert_eq!((film.fewest_available(), film.most_active()), (available, active), "surge {surge}");
    }
    Ok(())
}
managed!(a_surge_rounds_what_may_be_unavailable_down, []);

/// CLONESET-22
async fn the_partition_keeps_old_pods(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "partition", partition(3)).await;
    let old = demo.set().await.status.unwrap().current_revision;
    demo.set_image("app:v2").await;
    for (keep, moved) in [(3, 2), (1, 4)] {
        demo.change(partition(keep)).await;
        demo.at_rest(moved).await;
        demo.always("no pod more", WHILE, |set, pods| {
            updated(pods, set) == moved && pods.iter().all(is_available)
        })
        .await;
        let status = demo.set().await.status.unwrap();
        assert_eq!(status.expected_updated_replicas.and_then(|it| usize::try_from(it).ok()), Some(moved));
        assert_eq!(status.current_revision, old);
        assert_ne!(status.update_revision, old);
    }
    demo.change(partition(0)).await;
    demo.rolled_out().await;
    assert_ne!(demo.set().await.status.unwrap().current_revision, old);
    Ok(())
}
managed!(the_partition_keeps_old_pods, []);

/// CLONESET-23
async fn a_partition_in_percent_lets_one_pod_through_unless_it_is_all(stage: &mut Stage) -> Outcome {
    for (replicas, share, moved) in [(4, "99%", 1), (1, "50%", 0), (1, "100%", 0)] {
        let change = merged(partition(share), &json!({"spec": {"replicas": replicas}}));
        let demo = Demo::start(stage, "share", change).await;
        demo.set_image("app:v2").await;
        demo.at_rest(moved).await;
        demo.always("no pod more", WHILE, |set, pods| updated(pods, set) == moved).await;
    }
    Ok(())
}
managed!(a_partition_in_percent_lets_one_pod_through_unless_it_is_all, []);

async fn after_a_larger_partition(stage: &Stage) -> (Demo, usize) {
    let demo = Demo::start(stage, "larger", in_place(json!({"partition": 3}))).await;
    demo.set_image("app:v2").await;
    demo.at_rest(2).await;
    let before = demo.uids().await;
    demo.change(in_place(json!({"partition": 5}))).await;
    tokio::time::sleep(WHILE).await;
    let set = demo.set().await;
    let moved = updated(&demo.pods().await, &set);
    demo.at_rest(moved).await;
    demo.always("it stays so", WHILE, |set, pods| updated(pods, set) == moved).await;
    assert_eq!(demo.uids().await, before, "all in place");
    (demo, moved)
}

/// CLONESET-24, first half
async fn a_larger_partition_takes_no_pod_back(stage: &mut Stage) -> Outcome {
    let (_, moved) = after_a_larger_partition(stage).await;
    assert_eq!(moved, 2);
    Ok(())
}
managed!(a_larger_partition_takes_no_pod_back, []);

/// CLONESET-24, second half
async fn with_its_gate_a_larger_partition_takes_pods_back(stage: &mut Stage) -> Outcome {
    let (demo, moved) = after_a_larger_partition(stage).await;
    assert_eq!(moved, 0);
    let current = demo.set().await.status.unwrap().current_revision.unwrap();
    let pods = demo.pods().await;
    assert!(pods.iter().all(|pod| revision(pod) == current && image_of(pod, "main") == demo.image("app:v1")));
    Ok(())
}
managed!(
    with_its_gate_a_larger_partition_takes_pods_back,
    ["--feature-gates=CloneSetPartitionRollback=true"]
);

/// CLONESET-25
async fn scaling_during_a_partition_keeps_the_old_pods(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "between", partition(3)).await;
    demo.set_image("app:v2").await;
    demo.at_rest(2).await;
    let set = demo.set().await;
    let old = |pods: &[Pod]| {
        let new = set.status.clone().unwrap().update_revision.unwrap();
        let mut names: Vec<String> = pods.iter().filter(|pod| revision(pod) != new).map(name).collect();
        names.sort();
        names
    };
    let kept = old(&demo.pods().await);
    let film = demo.film().await;
    demo.change(json!({"spec": {"replicas": 8}})).await;
    demo.at_rest(5).await;
    demo.change(json!({"spec": {"replicas": 4}})).await;
    demo.at_rest(1).await;
    assert_eq!(old(&demo.pods().await), kept);
    for frame in film.frames() {
        let active: Vec<Pod> = frame.active().cloned().collect();
        assert_eq!(old(&active), kept);
    }
    Ok(())
}
managed!(scaling_during_a_partition_keeps_the_old_pods, []);

/// CLONESET-26
async fn a_paused_update_changes_no_pod(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "paused", json!({})).await;
    demo.change(rolling(json!({"paused": true, "maxSurge": 2}))).await;
    let before = demo.uids().await;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    let long = if stage.cluster.backend() == Backend::Real { 15 } else { 60 };
    demo.always("no pod changes", Duration::from_secs(long), |_, pods| {
        pods.len() == 5
            && pods.iter().all(|pod| is_available(pod) && image_of(pod, "main") == demo.image("app:v1"))
    })
    .await;
    assert_eq!(demo.uids().await, before);
    assert_eq!(film.most_active(), 5, "no surge");
    let (lost, _) = before.first_key_value().unwrap();
    demo.sandbox.delete::<Pod>(lost).await;
    demo.at_rest(1).await;
    assert_eq!(film.most_active(), 5);
    demo.change(rolling(json!({"paused": false, "maxSurge": 2}))).await;
    demo.rolled_out().await;
    assert_eq!(film.most_active(), 7);
    Ok(())
}
managed!(a_paused_update_changes_no_pod, []);

/// CLONESET-29
async fn going_back_to_the_old_template_moves_only_what_it_must(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "back", in_place(json!({"partition": 3}))).await;
    let first = demo.set().await.status.unwrap().update_revision.unwrap();
    let before = demo.uids().await;
    demo.set_image("app:v2").await;
    demo.at_rest(2).await;
    demo.set_image("app:v1").await;
    demo.until("the first revision is the newest again", |set, _| {
        let status = set.status.clone().unwrap_or_default();
        status.update_revision.as_ref() == Some(&first)
            && status.observed_generation == set.metadata.generation
    })
    .await;
    let on_second = |pods: &[Pod]| pods.iter().filter(|pod| revision(pod) != first).count();
    demo.always("nothing happens", WHILE, |_, pods| on_second(pods) == 2 && pods.iter().all(is_available))
        .await;
    demo.change(in_place(json!({"partition": 0}))).await;
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, before);
    assert_eq!(on_second(&demo.pods().await), 0);
    let mut revisions: Vec<ControllerRevision> = demo.sandbox.list().await;
    revisions.sort_by_key(|one| one.revision);
    let numbers: Vec<(i64, bool)> =
        revisions.iter().map(|one| (one.revision, one.metadata.name.as_ref() == Some(&first))).collect();
    assert_eq!(numbers, [(2, false), (3, true)]);
    Ok(())
}
managed!(going_back_to_the_old_template_moves_only_what_it_must, []);

/// CLONESET-30
async fn with_a_surge_new_pods_come_first_and_old_ones_are_updated_in_place(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "inplace", in_place(json!({"maxSurge": 2}))).await;
    let before = demo.uids().await;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    let after = demo.uids().await;
    assert_eq!(before.values().filter(|uid| after.values().any(|other| other == *uid)).count(), 3);
    assert_eq!(film.most_active(), 7);
    assert!(film.fewest_available() >= 4, "{}", film.fewest_available());
    let frames = film.frames();
    let moved = frames.iter().position(|frame| {
        let is_changed =
            |pod: &&Pod| before.contains_key(&name(pod)) && image_of(pod, "main") == demo.image("app:v2");
        frame.active().any(|pod| is_changed(&pod))
            || frame.active().filter(|pod| before.contains_key(&name(pod))).count() < 5
    });
    let surged = frames.iter().position(|frame| frame.active().count() == 7);
    assert!(surged < moved, "surge pods come first: {surged:?}, {moved:?}");
    assert_eq!(demo.events("SuccessfulUpdatePodInPlace").await.len(), 3);
    assert_eq!(demo.events("SuccessfulDelete").await.len(), 2);
    assert_eq!(demo.events("SuccessfulCreate").await.len(), 7);
    Ok(())
}
managed!(with_a_surge_new_pods_come_first_and_old_ones_are_updated_in_place, []);

/// CLONESET-35, without claims; with claims it is among those.
async fn of_many_changes_at_once_the_last_wins(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "many", json!({})).await;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    demo.change(json!({"spec": {"replicas": 10}})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    demo.change(json!({"spec": {"replicas": 3}})).await;
    demo.rolled_out().await;
    assert!(film.most_active() <= 10);
    demo.always("it stays so", WHILE, |set, pods| updated(pods, set) == 3 && pods.iter().all(is_active))
        .await;
    Ok(())
}
managed!(of_many_changes_at_once_the_last_wins, []);
