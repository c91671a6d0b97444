//! Hooks in the life of pods.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    kit::merged,
    stage::{Stage, managed},
    web::{Web, is_in},
};

fn held(spec: Value) -> Value {
    merged(json!({"replicas": 2, "template": {"metadata": {"labels": {"hold": "yes"}}}}), &spec)
}

/// STATEFULSET-36
async fn a_pre_delete_hook_holds_an_update(stage: &mut Stage) -> Outcome {
    for policy in ["OrderedReady", "Parallel"] {
        let hook = json!({"preDelete": {"labelsHandler": {"hold": "yes"}}});
        let web =
            Web::start(stage, "predelete", held(json!({"podManagementPolicy": policy, "lifecycle": hook})))
                .await;
        web.set_image("app:v2").await;
        for ordinal in [1, 0] {
            let pod = format!("web-{ordinal}");
            web.until("it waits", |_, pods| {
                pods.iter().any(|one| crate::kit::name(one) == pod && is_in(one, "PreparingDelete"))
            })
            .await;
            web.change_pod(ordinal, json!({"metadata": {"labels": {"hold": null}}})).await;
        }
        web.rests_at("0:v2 1:v2").await;
    }
    Ok(())
}
managed!(a_pre_delete_hook_holds_an_update, []);

/// STATEFULSET-38
async fn a_deletion_is_taken_back(stage: &mut Stage) -> Outcome {
    let hook = json!({"preDelete": {"labelsHandler": {"hold": "yes"}}});
    let web = Web::start(stage, "cancel", held(json!({"lifecycle": hook}))).await;
    web.change(json!({"replicas": 1})).await;
    web.until("it waits", |_, pods| pods.iter().any(|pod| is_in(pod, "PreparingDelete"))).await;
    web.change(json!({"replicas": 2})).await;
    web.rests_at("0:v1 1:v1").await;
    Ok(())
}
managed!(a_deletion_is_taken_back, []);

/// STATEFULSET-40
async fn a_pre_normal_hook_holds_the_next_pod(stage: &mut Stage) -> Outcome {
    let hook = json!({"preNormal": {"labelsHandler": {"go": "yes"}}});
    let web = Web::prepare(stage, "prenormal").await;
    web.create(json!({"replicas": 2, "podManagementPolicy": "OrderedReady", "lifecycle": hook})).await;
    for ordinal in [0, 1] {
        web.until("it waits", |set, pods| {
            let ready = set.status.as_ref().map_or(0, |status| status.ready_replicas);
            pods.len() == ordinal + 1
                && is_in(&pods[ordinal], "PreparingNormal")
                && ready == i32::try_from(ordinal).unwrap() + 1
        })
        .await;
        web.change_pod(i64::try_from(ordinal).unwrap(), json!({"metadata": {"labels": {"go": "yes"}}})).await;
    }
    web.rests_at("0:v1 1:v1").await;
    Ok(())
}
managed!(a_pre_normal_hook_holds_the_next_pod, []);
