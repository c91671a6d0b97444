//! Updates with a surge: a new pod beside the old one.

use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    agent::{Agent, all, node_of, rolling},
    film::Frame,
    kit::is_ready,
    stage::{Stage, embedded_only, managed},
};

/// How many nodes have two pods that do not end.
fn doubled(frame: &Frame) -> usize {
    let mut nodes: Vec<String> = frame.active().map(node_of).collect();
    let all = nodes.len();
    nodes.sort();
    nodes.dedup();
    all - nodes.len()
}

/// DAEMONSET-26: the old pod stays until the new one is available, on one node at a time.
async fn the_old_pod_stays_until_the_new_one_is_available(stage: &mut Stage) -> Outcome {
    let mut surge = rolling(json!({"maxUnavailable": 0, "maxSurge": 1}));
    surge["spec"]["minReadySeconds"] = json!(10);
    let agent = Agent::start(stage, "surge", surge).await;
    let nodes = agent.nodes().await;
    let film = agent.film().await;
    agent.set_image("app:v2").await;
    agent.rolled_out().await;
    assert_eq!(agent.images().await, all(&nodes, "app:v2"));
    for frame in film.frames() {
        assert!(doubled(&frame) <= 1);
        let mut up: Vec<String> = frame.active().filter(|pod| is_ready(pod)).map(node_of).collect();
        up.sort();
        up.dedup();
        assert_eq!(up, nodes, "every node has a ready pod at every moment");
    }
    Ok(())
}
managed!(the_old_pod_stays_until_the_new_one_is_available, []);

/// DAEMONSET-27: the old name of the type in v1alpha1 means a surge of one.
async fn surging_means_a_surge_of_one(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "surging").await;
    let mut object = agent.object(&rolling(json!({"rollingUpdateType": "Surging"})));
    let refused = stage.create(object.clone()).await.unwrap_err();
    assert!(refused.starts_with("422 "), "{refused}");
    object["apiVersion"] = json!("apps.kruise.io/v1alpha1");
    stage.create(object).await.unwrap();
    agent.settled().await;
    let set = serde_json::to_value(agent.set().await).unwrap();
    let rolling = &set["spec"]["updateStrategy"]["rollingUpdate"];
    assert_eq!(
        [&rolling["rollingUpdateType"], &rolling["maxSurge"], &rolling["maxUnavailable"]],
        [&json!("Standard"), &json!(1), &json!(0)]
    );
    Ok(())
}
managed!(surging_means_a_surge_of_one, []);

/// DAEMONSET-28: with an image that cannot run the old pods stay, and a revert deletes the new ones. Hollow nodes of a real
/// cluster run any image.
async fn a_broken_image_leaves_the_old_pods(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "broken", rolling(json!({"maxUnavailable": 0, "maxSurge": 2}))).await;
    let nodes = agent.nodes().await;
    let film = agent.film().await;
    agent.set_image("nosuch:v1-fail").await;
    agent.until("new pods are beside the old ones", |_, pods| pods.len() == nodes.len() + 2).await;
    agent
        .always("no more than that", std::time::Duration::from_secs(20), |_, pods| {
            pods.len() == nodes.len() + 2 && pods.iter().filter(|pod| is_ready(pod)).count() == nodes.len()
        })
        .await;
    agent.set_image("app:v1").await;
    agent.rolled_out().await;
    assert_eq!(agent.images().await, all(&nodes, "app:v1"));
    assert!(film.frames().iter().all(|frame| doubled(frame) <= 2));
    Ok(())
}
embedded_only!(a_broken_image_leaves_the_old_pods, []);
