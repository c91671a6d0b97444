//! Hooks around an update in place, and before a new pod counts.

use k8s_openapi::api::core::v1::Pod;
use kruise_api::conditions::KRUISE_POD_READY;
use kruise_testkit::{Outcome, Skip};
use serde_json::{Value, json};

use crate::{
    kit::{Demo, has_condition, image_of, is_ready, label, name},
    stage::{Stage, managed},
    words::{MOMENT, condition, is_false, lifecycle, only_pod, restarts, revision, start},
};

/// One pod whose update waits for whoever handles the label `h`.
async fn hooked(stage: &Stage, purpose: &str, hook: Value) -> Result<Demo, Skip> {
    let spec = json!({
        "lifecycle": {"inPlaceUpdate": hook},
        "template": {"metadata": {"labels": {"h": "true"}}},
    });
    start(stage, purpose, 1, json!({"spec": spec})).await
}

/// Waits until the pod has come to a state.
async fn comes_to(demo: &Demo, state: &str) {
    demo.until(&format!("the pod is in state {state}"), |_, pods| {
        pods.iter().all(|pod| lifecycle(pod) == state)
    })
    .await;
}

async fn set_label(demo: &Demo, value: &str) {
    let pod = name(&only_pod(demo).await);
    demo.change_pod(&pod, json!({"metadata": {"labels": {"h": value}}})).await;
}

/// INPLACE-26: the whole way through the hook, once before the update and once after it.
async fn an_update_waits_for_its_hook_before_and_after(stage: &mut Stage) -> Outcome {
    let demo = hooked(stage, "hook", json!({"labelsHandler": {"h": "true"}})).await?;
    let before = only_pod(&demo).await;
    let (old, new) = (demo.image("app:v1"), demo.image("app:v2"));
    demo.set_image("app:v2").await;
    comes_to(&demo, "PreparingUpdate").await;
    demo.always("nothing changes before the hook", MOMENT, |_, pods| {
        pods.iter().all(|pod| {
            lifecycle(pod) == "PreparingUpdate"
                && image_of(pod, "main") == old
                && revision(pod) == revision(&before)
                && is_ready(pod)
        })
    })
    .await;
    assert_eq!(demo.set().await.status.unwrap().available_replicas, 0);
    let film = demo.film().await;
    set_label(&demo, "false").await;
    comes_to(&demo, "Updated").await;
    assert_eq!(film.order(|pod| lifecycle(pod) == "Updating").len(), 1);
    demo.until("the updated pod is ready", |_, pods| pods.iter().all(is_ready)).await;
    demo.always("the pod is not available after the update", MOMENT, |set, pods| {
        let available = set.status.as_ref().map_or(0, |status| status.available_replicas);
        available == 0 && pods.iter().all(|pod| lifecycle(pod) == "Updated" && image_of(pod, "main") == new)
    })
    .await;
    set_label(&demo, "true").await;
    comes_to(&demo, "Normal").await;
    demo.rolled_out().await;
    let after = only_pod(&demo).await;
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(restarts(&after, "main"), 1);
    Ok(())
}
managed!(an_update_waits_for_its_hook_before_and_after, []);

/// INPLACE-27: whoever puts the label back too early does not leave the pod out of service.
async fn a_label_put_back_early_leaves_no_pod_out_of_service(stage: &mut Stage) -> Outcome {
    let demo =
        hooked(stage, "early", json!({"labelsHandler": {"h": "true"}, "markPodNotReady": true})).await?;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    comes_to(&demo, "PreparingUpdate").await;
    let pod = only_pod(&demo).await;
    let held = condition(&pod, KRUISE_POD_READY).unwrap();
    assert_eq!(
        (held.status.as_str(), held.message.as_deref()),
        ("False", Some(r#"[{"userAgent":"Lifecycle","key":"preUpdateHook"}]"#))
    );
    assert!(is_false(&pod, "Ready"));
    set_label(&demo, "false").await;
    comes_to(&demo, "Updating").await;
    set_label(&demo, "true").await;
    demo.rolled_out().await;
    comes_to(&demo, "Normal").await;
    let early = |pod: &Pod| lifecycle(pod) == "Updating" && label(pod, "h") == "true";
    assert_eq!(film.order(early).len(), 1, "the label came back too late for this scenario");
    let pod = only_pod(&demo).await;
    assert!(has_condition(&pod, KRUISE_POD_READY) && is_ready(&pod));
    // The hold comes before the state, so that nobody sees a pod that waits and still serves.
    for frame in film.frames() {
        for pod in frame.pods.values().filter(|pod| lifecycle(pod) == "PreparingUpdate") {
            assert!(is_false(pod, KRUISE_POD_READY));
        }
    }
    Ok(())
}
managed!(a_label_put_back_early_leaves_no_pod_out_of_service, []);

/// INPLACE-28: a template that is taken back while the pod waits leaves the pod as it was.
async fn a_template_taken_back_before_the_hook_changes_nothing(stage: &mut Stage) -> Outcome {
    for mark in [false, true] {
        let purpose = format!("hook-back-{mark}");
        let hook = json!({"labelsHandler": {"h": "true"}, "markPodNotReady": mark});
        let demo = hooked(stage, &purpose, hook).await?;
        let before = only_pod(&demo).await;
        demo.set_image("app:v2").await;
        comes_to(&demo, "PreparingUpdate").await;
        demo.set_image("app:v1").await;
        comes_to(&demo, "Normal").await;
        demo.rolled_out().await;
        let after = only_pod(&demo).await;
        assert_eq!(after.metadata.uid, before.metadata.uid);
        assert_eq!(restarts(&after, "main"), 0);
        assert_eq!(revision(&after), revision(&before));
        assert!(has_condition(&after, KRUISE_POD_READY));
    }
    Ok(())
}
managed!(a_template_taken_back_before_the_hook_changes_nothing, []);

/// INPLACE-29: a new pod is ready, and still does not count before its hook.
async fn a_new_pod_counts_after_its_hook(stage: &mut Stage) -> Outcome {
    let demo = Demo::prepare(stage, "pre-normal").await;
    let hook = json!({"preNormal": {"labelsHandler": {"ok": "true"}}});
    demo.create(json!({"spec": {"replicas": 2, "lifecycle": hook}})).await;
    let ready = |available: i32| {
        move |set: &kruise_api::cloneset::v1beta1::CloneSet, pods: &[Pod]| {
            let status = set.status.clone().unwrap_or_default();
            pods.len() == 2
                && pods.iter().all(is_ready)
                && [status.ready_replicas, status.available_replicas] == [2, available]
        }
    };
    demo.until("both pods are ready", ready(0)).await;
    demo.always("neither counts", MOMENT, |set, pods| {
        ready(0)(set, pods) && pods.iter().all(|pod| lifecycle(pod) == "PreparingNormal")
    })
    .await;
    let first = name(&demo.pods().await[0]);
    demo.change_pod(&first, json!({"metadata": {"labels": {"ok": "true"}}})).await;
    demo.until("the first one counts", ready(1)).await;
    for pod in demo.pods().await {
        let expected = if name(&pod) == first { "Normal" } else { "PreparingNormal" };
        assert_eq!(lifecycle(&pod), expected);
    }
    Ok(())
}
managed!(a_new_pod_counts_after_its_hook, []);

/// INPLACE-30: a pod that no node takes is not in its normal state.
async fn a_pod_without_a_node_is_not_normal(stage: &mut Stage) -> Outcome {
    let demo = Demo::prepare(stage, "nowhere").await;
    let nowhere = json!({"nodeSelector": {"kruise-rs.io/node-type": "none"}});
    demo.create(json!({"spec": {"replicas": 1, "template": {"spec": nowhere}}})).await;
    demo.until("the pod is there", |_, pods| pods.len() == 1).await;
    demo.always("it waits", MOMENT, |set, pods| {
        let available = set.status.as_ref().map_or(0, |status| status.available_replicas);
        available == 0 && pods.iter().all(|pod| lifecycle(pod) == "PreparingNormal")
    })
    .await;
    Ok(())
}
managed!(a_pod_without_a_node_is_not_normal, []);
