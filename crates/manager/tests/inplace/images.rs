//! Changes of images, and changes that only a new pod can take.

use kruise_api::conditions::IN_PLACE_UPDATE_READY;
use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    kit::{image_of, is_ready, name},
    stage::{Stage, embedded_only, managed},
    words::{condition, image_id, is_false, lifecycle, restarts, revision, start, state, status_of},
};

/// INPLACE-1: pods keep everything but the image; one restart each, and the annotation tells what was before.
async fn a_new_image_keeps_the_pods(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "image", 3, json!({})).await?;
    let before = demo.pods().await;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    let wanted = demo.set().await.status.unwrap().update_revision.unwrap();
    let after = demo.pods().await;
    assert_eq!(after.len(), 3);
    for (old, new) in before.iter().zip(&after) {
        let kept = |pod: &k8s_openapi::api::core::v1::Pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            (name(pod), pod.metadata.uid.clone(), pod.status.as_ref().unwrap().pod_ip.clone(), node)
        };
        assert_eq!(kept(old), kept(new));
        assert_eq!(restarts(new, "main"), 1);
        assert_eq!(image_of(new, "main"), demo.image("app:v2"));
        assert_eq!(revision(new), wanted);
        assert_ne!(image_id(new, "main"), image_id(old, "main"));
        let state = state(new);
        assert_eq!(state["updateImages"], true, "{state}");
        assert_eq!(state["revision"], wanted.as_str());
        assert_eq!(state["lastContainerStatuses"]["main"]["imageID"], image_id(old, "main"), "{state}");
        let gate = condition(new, IN_PLACE_UPDATE_READY).unwrap();
        assert_eq!((gate.status.as_str(), gate.reason.as_deref()), ("True", None));
    }
    let paused = film.order(|pod| {
        let gate = condition(pod, IN_PLACE_UPDATE_READY);
        gate.is_some_and(|gate| {
            gate.status == "False" && gate.reason.as_deref() == Some("StartInPlaceUpdate")
        })
    });
    assert_eq!(paused.len(), 3);
    let told = demo.events("SuccessfulUpdatePodInPlace").await;
    let mut texts: Vec<String> = told.into_iter().map(|event| event.message).collect();
    texts.sort();
    let expected: Vec<String> = after
        .iter()
        .map(|pod| format!("successfully update pod {} in-place(revision {wanted})", name(pod)))
        .collect();
    assert_eq!(texts, expected);
    Ok(())
}
managed!(a_new_image_keeps_the_pods, []);

/// INPLACE-2: whoever watches sees the pod not ready strictly before its image changes.
async fn a_pod_is_not_ready_before_its_image_changes(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "unready", 1, json!({})).await?;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    let image = demo.image("app:v2");
    let frames = film.frames();
    let changes = frames
        .iter()
        .position(|frame| frame.pods.values().any(|pod| image_of(pod, "main") == image))
        .unwrap();
    let unready = frames.iter().position(|frame| {
        frame.pods.values().any(|pod| {
            let ready = condition(pod, "Ready");
            ready.is_some_and(|ready| {
                ready.status == "False" && ready.reason.as_deref() == Some("ReadinessGatesNotReady")
            })
        })
    });
    assert!(
        unready.is_some_and(|unready| unready < changes),
        "not ready at {unready:?}, changed at {changes}"
    );
    let message =
        frames[unready.unwrap()].pods.values().next().and_then(|pod| condition(pod, "Ready")).unwrap();
    assert_eq!(
        message.message.as_deref(),
        Some("the status of pod readiness gate \"InPlaceUpdateReady\" is not \"True\", but False")
    );
    Ok(())
}
managed!(a_pod_is_not_ready_before_its_image_changes, []);

/// INPLACE-5: a plain environment value cannot be changed in place, so pods are made anew.
async fn a_plain_environment_value_needs_new_pods(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "environment", 2, json!({})).await?;
    let before = demo.uids().await;
    let mut template = demo.template().await;
    template["spec"]["containers"][0]["env"] = json!([{"name": "MODE", "value": "fast"}]);
    demo.change(json!({"spec": {"template": template}})).await;
    demo.rolled_out().await;
    let after = demo.uids().await;
    assert!(before.values().all(|uid| !after.values().any(|other| other == uid)), "{before:?} {after:?}");
    assert_eq!(demo.events("SuccessfulUpdatePodInPlace").await, []);
    assert_eq!(demo.events("SuccessfulUpdatePodReCreate").await.len(), 2);
    Ok(())
}
managed!(a_plain_environment_value_needs_new_pods, []);

/// INPLACE-6: so does another image of an init container.
async fn another_image_of_an_init_container_needs_new_pods(stage: &mut Stage) -> Outcome {
    let init = |image: String| {
        // The node ends the first one by its command, wherever the image comes from.
        json!([{"name": "first", "image": image, "command": ["/bin/sh", "-c", "exit 0"]}])
    };
    let app = stage.cluster.image("app:v1");
    let change = json!({"spec": {"template": {"spec": {"initContainers": init(app)}}}});
    let demo = start(stage, "init", 1, change).await?;
    let before = demo.uids().await;
    let change = json!({"spec": {"template": {"spec": {"initContainers": init(demo.image("app:v2"))}}}});
    demo.change(change).await;
    demo.rolled_out().await;
    let after = demo.uids().await;
    assert!(before.values().all(|uid| !after.values().any(|other| other == uid)), "{before:?} {after:?}");
    Ok(())
}
managed!(another_image_of_an_init_container_needs_new_pods, []);

/// INPLACE-7: two names of one image. The container is another one, its image is not, and the update still ends.
///
/// Not on a real node: a runtime there tells any of the names, and only a node daemon knows better.
async fn another_name_of_the_same_image_completes(stage: &mut Stage) -> Outcome {
    let (again, first) = (stage.cluster.image("app:again"), stage.cluster.image("app:v1"));
    stage.sim().alias_image(&again, &first);
    let demo = start(stage, "alias", 1, json!({})).await?;
    let before = crate::words::only_pod(&demo).await;
    let film = demo.film().await;
    demo.set_image("app:again").await;
    demo.rolled_out().await;
    demo.until("the pod is in its normal state", |_, pods| pods.iter().all(|pod| lifecycle(pod) == "Normal"))
        .await;
    let after = crate::words::only_pod(&demo).await;
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(image_id(&after, "main"), image_id(&before, "main"));
    let id = |pod| status_of(pod, "main").and_then(|status| status.container_id.clone());
    assert_ne!(id(&after), id(&before));
    assert!(film.frames().iter().any(|frame| frame.pods.values().any(|pod| is_false(pod, "Ready"))));
    assert!(is_ready(&after));
    Ok(())
}
embedded_only!(another_name_of_the_same_image_completes, []);
