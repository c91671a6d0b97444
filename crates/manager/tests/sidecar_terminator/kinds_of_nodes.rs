//! Virtual nodes have no daemon: there, the image of a sidecar is replaced.

use k8s_openapi::api::core::v1::Node;
use kruise_api::env::{TERMINATE_SIDECAR, TERMINATE_SIDECAR_WITH_IMAGE};
use kruise_testkit::{Outcome, cluster::NODE_TYPE};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    kit::image_of,
    stage::{Stage, embedded_only, managed},
    words::{Room, phase, runs},
};

/// TERMINATOR-11: on a virtual node a sidecar gets an image that ends at once.
///
/// A real node that is called virtual would disturb other tests.
async fn on_a_virtual_node_the_image_is_replaced(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "virtual").await?;
    let nodes: Api<Node> = Api::all(stage.cluster.client());
    let label = json!({"metadata": {"labels": {"type": "virtual-kubelet"}}});
    nodes.patch("hollow-0", &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    let quick = (TERMINATE_SIDECAR_WITH_IMAGE, "quick-exit:v1");
    let containers = [
        room.main("main", 3, 0),
        room.sidecar("sc", "app:v1", &[quick]),
        room.sidecar("both", "app:v1", &[quick, (TERMINATE_SIDECAR, "true")]),
    ];
    let there = json!({"spec": {"template": {"spec": {"nodeSelector": {"type": "virtual-kubelet", NODE_TYPE: null}}}}});
    room.job("Never", &containers, &there).await;
    let found = room.until("the pod has succeeded", |pod| phase(pod) == "Succeeded").await;
    assert_eq!([image_of(&found, "sc"), image_of(&found, "both")], ["quick-exit:v1"; 2]);
    assert_eq!(image_of(&found, "main"), room.image("app:v1"));
    room.job_is("Complete").await;
    assert_eq!(room.requests().await, []);
    let events = room.events().await;
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(event.kind, "Normal");
    let message = "Kruise SidecarTerminator is trying to terminate sidecar [both sc] using in-place update";
    assert_eq!(event.message, message);
    Ok(())
}
embedded_only!(on_a_virtual_node_the_image_is_replaced, crate::words::ON);

/// TERMINATOR-12: on a node with a daemon the image is left alone, and people are told why the pod does not end.
async fn on_other_nodes_an_image_is_not_replaced(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "ordinary").await?;
    let sidecar = room.sidecar("sc", "app:v1", &[(TERMINATE_SIDECAR_WITH_IMAGE, "quick-exit:v1")]);
    room.job("Never", &[room.main("main", 2, 0), sidecar], &json!({})).await;
    room.main_has_ended().await;
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    let left = room.pods().await.remove(0);
    assert!(phase(&left) == "Running" && runs(&left, "sc"));
    assert_eq!(image_of(&left, "sc"), room.image("app:v1"));
    assert_eq!(room.requests().await, []);
    let events = room.events().await;
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(event.kind, "Warning");
    assert!(event.message.contains("[sc]") && event.message.contains(TERMINATE_SIDECAR), "{}", event.message);
    Ok(())
}
managed!(on_other_nodes_an_image_is_not_replaced, crate::words::ON);
