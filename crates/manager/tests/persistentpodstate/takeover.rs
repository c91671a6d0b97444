//! What the original has left behind.

use std::time::Duration;

use kruise_sim::Node;
use kruise_testkit::Outcome;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{home::Home, stage::Stage};

/// Objects, workloads and pods as they were recorded are taken over: nothing is written to an object, and a pod that is
/// deleted returns to where the original had noted it.
async fn what_the_original_left_is_taken_over(stage: &mut Stage) -> Outcome {
    stage.remove_webhooks().await;
    // The nodes of the recordings.
    stage.sim().add_node(Node::named("hollow-3"));
    stage.sim().advance(Duration::from_secs(5)).await;
    for (number, zone) in [(1, "a"), (2, "b"), (3, "c")] {
        let node =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("hollow-{number}")}});
        let labels = json!({"cap-b.example/zone": zone});
        stage.patch(&node, &json!({"metadata": {"labels": labels}})).await.unwrap();
    }
    let mut homes = Vec::new();
    for line in include_str!("../../../core/tests/recorded/persistentpodstates.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["case"].as_str().unwrap().to_owned();
        if !["auto-generated", "native-v1alpha1", "ordinals-start"].contains(&name.as_str()) {
            continue;
        }
        let home = Home::prepare(stage, "takeover", "apps/v1").await;
        let within = |object: &Value| {
            let mut object = object.clone();
            let known = object["metadata"].clone();
            object["metadata"] = json!({"name": known["name"], "namespace": home.sandbox.namespace(),
                "labels": known["labels"], "annotations": known["annotations"]});
            object
        };
        for pod in case["pods"].as_array().unwrap() {
            home.create(stage, within(pod)).await;
        }
        home.ready(case["pods"].as_array().unwrap().len()).await;
        // Pods of an older revision stay.
        let mut set = within(&case["set"]);
        set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        set.as_object_mut().unwrap().remove("status");
        let set = home.create(stage, set).await;
        let mut state = within(&case["state"]);
        if case["state"]["metadata"].get("ownerReferences").is_some() {
            let owner = json!({"apiVersion": set["apiVersion"], "kind": "StatefulSet", "name": set["metadata"]["name"],
                "uid": set["metadata"]["uid"], "controller": true});
            state["metadata"]["ownerReferences"] = json!([owner]);
        }
        let status = state.as_object_mut().unwrap().remove("status").unwrap();
        let made = home.create(stage, state).await;
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        let write = Patch::Merge(json!({"status": merged_generation(status, &made)}));
        home.states().patch_status(&name, &PatchParams::default(), &write).await.unwrap();
        let before = home.state(&name).await.unwrap();
        homes.push((home, name, before));
    }
    assert_eq!(homes.len(), 3);
    stage.put_webhooks().await;
    stage.start_manager().await;
    stage.sim().advance(Duration::from_secs(120)).await;
    for (home, name, before) in &homes {
        assert_eq!(home.state(name).await.unwrap(), *before, "{name}");
    }
    for (home, name, before) in &homes {
        let (pod, record) = before["status"]["podStates"].as_object().unwrap().iter().next().unwrap();
        let made = home.replace(pod).await;
        assert_eq!(made["spec"]["nodeName"], record["nodeName"], "{name}");
        assert_eq!(made["metadata"]["annotations"]["kruise.io/injected-persistent-pod-state"], name.as_str());
    }
    Ok(())
}

/// The recorded status for an object that is new here.
fn merged_generation(mut status: Value, made: &Value) -> Value {
    status["observedGeneration"] = made["metadata"]["generation"].clone();
    status
}

mod what_the_original_left_is_taken_over {
    #[test]
    fn embedded() {
        crate::stage::embedded_prepared(&[], super::what_the_original_left_is_taken_over);
    }
}
