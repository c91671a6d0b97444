//! Containers that change one after the other, in the order in which they are launched.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kruise_testkit::{Backend, Outcome, Skip, cluster::REAL_NODES};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, annotation, image_of, is_ready},
    node_daemon::NodeDaemon,
    stage::{Stage, embedded_only, managed},
    words::{batches, in_place, only_pod, restarts, state, status_of, with_images},
};

/// A container that is launched with a priority.
fn container(name: &str, image: &str, port: u16, priority: u32) -> Value {
    let barrier = json!({"configMapKeyRef": {"name": "demo-barrier", "key": format!("p_{priority}")}});
    json!({
        "name": name, "image": image,
        "env": [{"name": "PORT", "value": port.to_string()}, {"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": barrier}],
        "readinessProbe": {"httpGet": {"port": port}, "periodSeconds": 1},
    })
}

/// One pod with the containers `a` (priority 10) and `b` (0).
async fn two_priorities(stage: &Stage, purpose: &str, template: Value) -> Result<Demo, Skip> {
    stage.cluster.require_nodes(REAL_NODES).await?;
    let demo = Demo::prepare(stage, purpose).await;
    let map = json!({"metadata": {"name": "demo-barrier"}, "data": {"p_10": "true", "p_0": "true"}});
    let _: ConfigMap = demo.sandbox.create(map).await;
    let image = demo.image("app:v1");
    let containers = [container("a", &image, 8080, 10), container("b", &image, 8081, 0)];
    let template = crate::kit::merged(json!({"spec": {"containers": containers}}), &template);
    demo.create(in_place(1, &json!({"spec": {"template": template}}))).await;
    demo.settled().await;
    Ok(demo)
}

/// INPLACE-10: the second container changes after the first one is ready with its new image.
async fn containers_change_by_priority(stage: &mut Stage) -> Outcome {
    let demo = two_priorities(stage, "priorities", json!({})).await?;
    let before = only_pod(&demo).await;
    let film = demo.film().await;
    demo.change(with_images(&demo, &["app:v2", "app:v2"]).await).await;
    demo.rolled_out().await;
    let after = only_pod(&demo).await;
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(batches(&after), [json!(["a"]), json!(["b"])]);
    assert_eq!([restarts(&after, "a"), restarts(&after, "b")], [1, 1]);
    let new = demo.image("app:v2");
    let mut seen_a_alone = false;
    for frame in film.frames() {
        for pod in frame.pods.values() {
            let first = status_of(pod, "a");
            let first_done = first.is_some_and(|a| a.ready && a.restart_count == 1);
            let second_changed = image_of(pod, "b") == new;
            assert!(!second_changed || image_of(pod, "a") == new);
            seen_a_alone |= image_of(pod, "a") == new && !second_changed && !first_done;
            if second_changed {
                assert!(first_done || restarts(pod, "b") == 1, "b changed while a was {first:?}");
            }
        }
    }
    assert!(seen_a_alone);
    Ok(())
}
managed!(containers_change_by_priority, []);

/// Begins an update whose first batch cannot be pulled.
async fn stuck_in_the_first_batch(stage: &Stage, purpose: &str) -> Result<Demo, Skip> {
    let demo = two_priorities(stage, purpose, json!({})).await?;
    demo.change(with_images(&demo, &["app:v2-fail", "app:v2"]).await).await;
    let bad = demo.image("app:v2-fail");
    demo.until("the first container waits for its image", |_, pods| {
        let waits = |pod| {
            let waiting = status_of(pod, "a").and_then(|a| a.state.as_ref()?.waiting.clone());
            waiting.is_some_and(|waiting| waiting.reason.is_some_and(|reason| reason.contains("ImagePull")))
        };
        pods.iter().all(|pod| image_of(pod, "a") == bad && waits(pod))
    })
    .await;
    Ok(demo)
}

/// INPLACE-11: as long as the first batch fails, the second container keeps what it has.
async fn a_batch_that_fails_holds_up_the_next(stage: &mut Stage) -> Outcome {
    let demo = stuck_in_the_first_batch(stage, "stuck").await?;
    // Two minutes cost nothing in virtual time.
    let during = if stage.cluster.backend() == Backend::Embedded { 120 } else { 15 };
    let old = demo.image("app:v1");
    demo.always("the second container waits", Duration::from_secs(during), |set, pods| {
        let status = set.status.clone().unwrap_or_default();
        status.available_replicas == 0
            && status.updated_replicas == 1
            && pods.len() == 1
            && pods.iter().all(|pod| image_of(pod, "b") == old && restarts(pod, "b") == 0 && !is_ready(pod))
    })
    .await;
    let pod = only_pod(&demo).await;
    assert_eq!(state(&pod)["nextContainerImages"], json!({"b": demo.image("app:v2")}));
    assert_eq!(state(&pod)["preCheckBeforeNext"], json!({"containersRequiredReady": ["a"]}));
    assert_eq!(batches(&pod), [json!(["a"])]);
    Ok(())
}
managed!(a_batch_that_fails_holds_up_the_next, []);

/// INPLACE-12: a newer revision mends the first container, and the second one still gets what it waited for.
async fn what_waits_is_not_forgotten_by_the_next_update(stage: &mut Stage) -> Outcome {
    let demo = stuck_in_the_first_batch(stage, "middle").await?;
    let before = demo.uids().await;
    demo.change(with_images(&demo, &["app:v3", "app:v2"]).await).await;
    demo.rolled_out().await;
    let pod = only_pod(&demo).await;
    assert_eq!(demo.uids().await, before);
    assert_eq!(image_of(&pod, "a"), demo.image("app:v3"));
    assert_eq!(image_of(&pod, "b"), demo.image("app:v2"));
    assert!(status_of(&pod, "b").unwrap().image.ends_with("app:v2"));
    assert_eq!(restarts(&pod, "b"), 1);
    Ok(())
}
managed!(what_waits_is_not_forgotten_by_the_next_update, []);

/// INPLACE-13: containers that read the same annotation cannot be told apart, so they change together.
///
/// Not on a real node, which has no node daemon yet.
async fn containers_that_read_the_same_annotation_change_together(stage: &mut Stage) -> Outcome {
    stage.cluster.require_nodes(REAL_NODES).await?;
    let reads = json!({"name": "CFG", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations['cfg']"}}});
    let image = stage.cluster.image("app:v1");
    let containers: Vec<Value> = [container("a", &image, 8080, 10), container("b", &image, 8081, 0)]
        .into_iter()
        .map(|mut container| {
            container["env"].as_array_mut().unwrap().push(reads.clone());
            container
        })
        .collect();
    let template = json!({"metadata": {"annotations": {"cfg": "one"}}, "spec": {"containers": containers}});
    let demo = two_priorities(stage, "shared", template).await?;
    let before = demo.uids().await;
    let daemon = NodeDaemon::new(stage, &demo);
    let pod = daemon
        .during(async {
            demo.change(json!({"spec": {"template": {"metadata": {"annotations": {"cfg": "two"}}}}})).await;
            demo.rolled_out().await;
            only_pod(&demo).await
        })
        .await;
    assert_eq!(demo.uids().await, before);
    assert_eq!(batches(&pod), [json!(["a", "b"])]);
    assert_eq!(annotation(&pod, "cfg"), "two");
    for container in ["a", "b"] {
        assert_eq!(restarts(&pod, container), 1);
        let environment = daemon.environment(status_of(&pod, container).unwrap());
        assert_eq!(environment.get("CFG").map(String::as_str), Some("two"));
    }
    Ok(())
}
embedded_only!(containers_that_read_the_same_annotation_change_together, []);
