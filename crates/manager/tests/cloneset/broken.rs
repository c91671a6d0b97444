//! Pods whose image cannot be pulled. On a real cluster this needs a node that pulls images.

use k8s_openapi::api::core::v1::Pod;
use kruise_testkit::{Outcome, cluster::REAL_NODES};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, image_of, is_available, merged, name, revision, rolling},
    stage::{Stage, managed},
};

/// No registry has it; simulated nodes go by its name.
const BROKEN: &str = "nosuch:v1-fail";

fn pulling(members: Value) -> Value {
    let node = json!({"spec": {"template": {"spec": {"nodeSelector": {REAL_NODES.0: REAL_NODES.1}}}}});
    merged(rolling(members), &node)
}

/// CLONESET-27
async fn a_broken_image_stops_after_one_pod_and_that_one_is_mended_first(stage: &mut Stage) -> Outcome {
    stage.cluster.require_nodes(REAL_NODES).await?;
    for policy in ["ReCreate", "InPlaceIfPossible"] {
        let change = pulling(json!({"maxUnavailable": 1, "podUpdatePolicy": policy}));
        let demo = Demo::start(stage, "broken", change).await;
        let film = demo.film().await;
        demo.set_image(BROKEN).await;
        let is_broken = |pod: &Pod| image_of(pod, "main") == demo.image(BROKEN);
        demo.until("one pod is broken", |_, pods| {
            pods.len() == 5 && pods.iter().filter(|pod| is_broken(pod) && !is_available(pod)).count() == 1
        })
        .await;
        demo.always("the others serve", std::time::Duration::from_secs(10), |_, pods| {
            pods.iter().filter(|pod| is_available(pod)).count() == 4
                && pods.iter().filter(|pod| is_broken(pod)).count() == 1
        })
        .await;
        let broken: Vec<String> = demo.pods().await.iter().filter(|pod| is_broken(pod)).map(name).collect();
        demo.set_image("app:v2").await;
        demo.rolled_out().await;
        assert_eq!(film.fewest_available(), 4, "{policy}");
        let mended = film.order(|pod| image_of(pod, "main") == demo.image("app:v2"));
        if policy == "ReCreate" {
            assert!(!demo.uids().await.contains_key(&broken[0]));
            // The first new pod comes when the broken one has gone and all others are as they were.
            let first = film.frames().into_iter().find(|frame| frame.pods.contains_key(&mended[0])).unwrap();
            assert!(!first.active().any(|pod| name(pod) == broken[0]));
            assert_eq!(first.active().filter(|pod| image_of(pod, "main") == demo.image("app:v1")).count(), 4);
        } else {
            assert_eq!(mended[0], broken[0]);
        }
    }
    Ok(())
}
managed!(a_broken_image_stops_after_one_pod_and_that_one_is_mended_first, []);

/// CLONESET-28
async fn even_broken_pods_are_updated_by_and_by(stage: &mut Stage) -> Outcome {
    stage.cluster.require_nodes(REAL_NODES).await?;
    for policy in ["ReCreate", "InPlaceIfPossible"] {
        let demo = Demo::prepare(stage, "allbroken").await;
        let mut change = pulling(json!({"maxUnavailable": 2, "podUpdatePolicy": policy}));
        let mut containers = demo.object(&json!({}))["spec"]["template"]["spec"]["containers"].clone();
        containers[0]["image"] = demo.image(BROKEN).into();
        change["spec"]["template"]["spec"]["containers"] = containers;
        demo.create(change).await;
        demo.until("five pods cannot run", |set, pods| {
            pods.len() == 5
                && pods.iter().all(|pod| !is_available(pod) && pod.spec.clone().unwrap().node_name.is_some())
                && set.status.as_ref().is_some_and(|status| status.replicas == 5)
        })
        .await;
        let film = demo.film().await;
        demo.set_image("app:v2").await;
        demo.rolled_out().await;
        let new = demo.set().await.status.unwrap().update_revision.unwrap();
        let mut most = 0;
        for frame in film.frames() {
            let begun = frame.active().filter(|pod| revision(pod) == new && !is_available(pod)).count();
            // What was taken away and not yet replaced is on its way too.
            most = most.max(begun + 5_usize.saturating_sub(frame.active().count()));
        }
        assert_eq!(most, 2, "{policy}");
    }
    Ok(())
}
managed!(even_broken_pods_are_updated_by_and_by, []);
