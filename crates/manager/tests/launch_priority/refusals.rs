//! Pods that ask for nothing, and pods that ask for what cannot be.

use k8s_openapi::api::core::v1::Pod;
use kruise_api::env::{CONTAINER_BARRIER, CONTAINER_PRIORITY};
use kruise_testkit::{Outcome, pod::is_ready};
use serde_json::{Value, json};

use crate::{
    kit::name,
    stage::{Stage, managed},
    words::{Room, assert_order, is_completed, ordered, pod, waits_for},
};

/// Waits until a pod is ready, and checks that nobody cared about the order of its containers.
async fn is_left_alone(room: &Room, made: &Pod) {
    let found = room.until("the pod is ready", &name(made), is_ready).await;
    assert!(!waits_for(&found).contains("p_"), "{}", waits_for(&found));
    assert!(!is_completed(&found));
    assert!(room.barrier(&name(made)).await.is_none());
}

/// LAUNCH-5: without an order in them, priorities change nothing.
async fn equal_priorities_everywhere_are_no_order(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "nothing").await?;
    let pods = [
        pod("none", &[room.container("a"), room.container("b")]),
        pod("zero", &[room.prior("a", "0"), room.prior("b", "0"), room.container("c")]),
        pod("same", &[room.prior("a", "7"), room.prior("b", "7")]),
    ];
    for object in pods {
        let made: Pod = room.sandbox.create(object).await;
        assert!(made.spec.as_ref().unwrap().containers.iter().all(|one| !has_barrier(one)));
        is_left_alone(&room, &made).await;
    }
    Ok(())
}
managed!(equal_priorities_everywhere_are_no_order, []);

fn has_barrier(container: &k8s_openapi::api::core::v1::Container) -> bool {
    container.env.iter().flatten().any(|variable| variable.name == CONTAINER_BARRIER)
}

/// LAUNCH-6: one container alone has no order.
async fn one_container_alone_has_no_order(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "alone").await?;
    let made: Pod = room.sandbox.create(ordered(pod("single", &[room.prior("a", "3")]))).await;
    assert!(made.spec.as_ref().unwrap().containers.iter().all(|one| !has_barrier(one)));
    is_left_alone(&room, &made).await;
    Ok(())
}
managed!(one_container_alone_has_no_order, []);

/// LAUNCH-8: a priority that is no number is refused, with the container and the value.
async fn a_priority_that_is_no_number_is_refused(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "refused").await?;
    let referred =
        json!({"name": CONTAINER_PRIORITY, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    let cases: [(Value, &str); 5] = [
        (json!({"name": CONTAINER_PRIORITY, "value": "abc"}), "abc"),
        (json!({"name": CONTAINER_PRIORITY, "value": ""}), ""),
        (json!({"name": CONTAINER_PRIORITY, "value": " 1"}), " 1"),
        (json!({"name": CONTAINER_PRIORITY, "value": "2147483648"}), "2147483648"),
        (referred, ""),
    ];
    for (variable, value) in cases {
        let mut bad = room.container("bad");
        bad["env"].as_array_mut().unwrap().push(variable);
        let message = room.sandbox.refused::<Pod>(pod("refused", &[room.container("good"), bad])).await;
        let wanted = format!("container bad: invalid {CONTAINER_PRIORITY} {value:?}: must be an integer");
        assert!(message.contains(&wanted), "{message}");
    }
    let none: Vec<Pod> = room.sandbox.list().await;
    assert_eq!(none, []);
    Ok(())
}
managed!(a_priority_that_is_no_number_is_refused, []);

/// LAUNCH-16: a variable of the barrier's name that came with the manifest is replaced where there is an order, and means
/// nothing where there is none.
async fn a_barrier_in_a_manifest_does_no_harm(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "copied").await?;
    let copied = |mut container: Value| {
        let variable = json!({"name": CONTAINER_BARRIER, "value": "mine"});
        container["env"].as_array_mut().unwrap().push(variable);
        container
    };
    let containers = [copied(room.prior("late", "1")), copied(room.prior("early", "2"))];
    let (_, film) = room.start(pod("copied", &containers)).await;
    let found = room.completed("copied").await;
    assert_eq!(waits_for(&found), "late:p_1 early:p_2");
    for container in &found.spec.as_ref().unwrap().containers {
        let variables = container.env.iter().flatten();
        assert_eq!(variables.filter(|variable| variable.name == CONTAINER_BARRIER).count(), 1);
    }
    assert_order(&film, &found, &[&["early"], &["late"]]);

    let containers = [copied(room.container("one")), copied(room.container("other"))];
    let made: Pod = room.sandbox.create(pod("plain", &containers)).await;
    is_left_alone(&room, &made).await;
    // The manager goes on with others.
    let _: Pod = room.sandbox.create(pod("next", &[room.prior("a", "1"), room.container("b")])).await;
    room.completed("next").await;
    Ok(())
}
managed!(a_barrier_in_a_manifest_does_no_harm, []);
