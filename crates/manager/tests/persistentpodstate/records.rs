//! What is noted, when it is forgotten, and where pods return to.

use std::time::Duration;

use kruise_testkit::{Outcome, wait::seen};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    home::{AUTO, HOST, Home, INJECTED, NATIVE, OWN, RACK, REQUIRED, ZONE, is_ready, preferred, term},
    stage::{Stage, embedded_only, managed},
};

/// PPS-4: what a template selects stays, unless it is required otherwise.
async fn a_template_keeps_its_own_selector(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "selector", OWN).await;
    home.create(stage, home.state_of("place", &json!({}))).await;
    home.start(stage, json!({"spec": {"replicas": 1}})).await;
    let noted = home.until_noted("place", &["web-0"]).await;
    let zone = &noted["web-0"]["nodeTopologyLabels"][ZONE];
    // Only a deletion brings a pod of the new template.
    let other = json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null},
        "template": {"spec": {"nodeSelector": {ZONE: "nowhere"}}}}});
    home.change(stage, other).await;
    let pod = home.replace("web-0").await;
    assert_eq!(pod["spec"]["nodeSelector"], json!({RACK: "hollow", ZONE: zone}));
    assert_eq!(*preferred(&pod), json!([term(30, HOST, &noted["web-0"]["nodeName"])]));
    assert_eq!(pod["metadata"]["annotations"][INJECTED], "place");
    Ok(())
}
managed!(a_template_keeps_its_own_selector, []);

/// PPS-5: scaling in forgets, unless records live as long as the workload.
async fn scaling_in_forgets_pods_unless_told_otherwise(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "scaled", OWN).await;
    home.create(stage, home.state_of("place", &json!({}))).await;
    home.start(stage, json!({})).await;
    home.until_noted("place", &["web-0", "web-1", "web-2"]).await;
    home.change(stage, json!({"spec": {"replicas": 1}})).await;
    home.ready(1).await;
    home.until_noted("place", &["web-0"]).await;
    let keep = json!({"spec": {"persistentPodStateRetentionPolicy": "WhenDeleted"}});
    home.change_state("place", keep).await;
    home.change(stage, json!({"spec": {"replicas": 3}})).await;
    home.ready(3).await;
    for pod in home.pods().await {
        assert_eq!(pod["metadata"]["annotations"].get(INJECTED), None);
    }
    let noted = home.until_noted("place", &["web-0", "web-1", "web-2"]).await;
    home.change(stage, json!({"spec": {"replicas": 1}})).await;
    home.ready(1).await;
    home.sandbox
        .always("nothing is forgotten", Duration::from_secs(10), async || {
            let state = home.state("place").await.unwrap_or_default();
            seen(state["status"]["podStates"] == noted, state.to_string())
        })
        .await;
    home.change(stage, json!({"spec": {"replicas": 3}})).await;
    home.ready(3).await;
    for name in ["web-1", "web-2"] {
        let pod = home.pod(name).await;
        assert_eq!(pod["metadata"]["annotations"][INJECTED], "place");
        assert_eq!(pod["spec"]["nodeSelector"][ZONE], noted[name]["nodeTopologyLabels"][ZONE]);
    }
    Ok(())
}
managed!(scaling_in_forgets_pods_unless_told_otherwise, []);

/// PPS-6
async fn reserved_ordinals_are_no_places(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "reserved", OWN).await;
    home.create(stage, home.state_of("place", &json!({}))).await;
    home.start(stage, json!({})).await;
    home.until_noted("place", &["web-0", "web-1", "web-2"]).await;
    home.change(stage, json!({"spec": {"reserveOrdinals": [1]}})).await;
    home.until_noted("place", &["web-0", "web-2", "web-3"]).await;
    Ok(())
}
managed!(reserved_ordinals_are_no_places, []);

/// PPS-7: the original forgets a pod at the moment at which it is needed.
async fn a_start_ordinal_is_no_reason_to_forget(stage: &mut Stage) -> Outcome {
    for api_version in [NATIVE, OWN] {
        let home = Home::prepare(stage, "start", api_version).await;
        home.create(stage, home.state_of("place", &json!({}))).await;
        home.start(stage, json!({"spec": {"replicas": 2, "ordinals": {"start": 10}}})).await;
        let noted = home.until_noted("place", &["web-10", "web-11"]).await;
        let pod = home.replace("web-10").await;
        assert_eq!(pod["spec"]["nodeSelector"][ZONE], noted["web-10"]["nodeTopologyLabels"][ZONE]);
        assert_eq!(home.until_noted("place", &["web-10", "web-11"]).await, noted);
    }
    Ok(())
}
managed!(a_start_ordinal_is_no_reason_to_forget, ["--feature-gates=StatefulSetStartOrdinal=true"]);

/// PPS-8: without its workload an object has no records; one that was generated is deleted with it.
async fn a_deleted_workload_leaves_no_records(stage: &mut Stage) -> Outcome {
    for api_version in [NATIVE, OWN] {
        let home = Home::prepare(stage, "deleted", api_version).await;
        let change = json!({"spec": {"persistentPodStateRetentionPolicy": "WhenDeleted"}});
        home.create(stage, home.state_of("place", &change)).await;
        home.start(stage, json!({"spec": {"replicas": 2}})).await;
        home.until_noted("place", &["web-0", "web-1"]).await;
        stage.api(&home.set(&json!({}))).delete("web", &DeleteParams::background()).await.unwrap();
        home.until_noted("place", &[]).await;
        home.ready(0).await;
        assert!(home.state("place").await.is_some());

        let home = Home::prepare(stage, "collected", api_version).await;
        home.start(stage, json!({"metadata": {"annotations": {AUTO: "true", REQUIRED: ZONE}}})).await;
        home.until_noted("web", &["web-0", "web-1", "web-2"]).await;
        stage.api(&home.set(&json!({}))).delete("web", &DeleteParams::background()).await.unwrap();
        home.until_gone("web").await;
    }
    Ok(())
}
managed!(a_deleted_workload_leaves_no_records, []);

/// A workload that is deleted without its pods and made again adopts them: where they are is noted, although none of them became
/// ready meanwhile.
async fn adopted_pods_are_noted(stage: &mut Stage) -> Outcome {
    for api_version in [NATIVE, OWN] {
        let home = Home::prepare(stage, "adopted", api_version).await;
        home.create(stage, home.state_of("place", &json!({}))).await;
        home.start(stage, json!({"spec": {"replicas": 2}})).await;
        let noted = home.until_noted("place", &["web-0", "web-1"]).await;
        let orphan = DeleteParams {
            propagation_policy: Some(kube::api::PropagationPolicy::Orphan),
            ..DeleteParams::default()
        };
        stage.api(&home.set(&json!({}))).delete("web", &orphan).await.unwrap();
        home.until_noted("place", &[]).await;
        home.start(stage, json!({"spec": {"replicas": 2}})).await;
        assert_eq!(home.until_noted("place", &["web-0", "web-1"]).await, noted);
    }
    Ok(())
}
managed!(adopted_pods_are_noted, []);

/// PPS-14: labels that a node lacks are neither noted nor asked for.
async fn labels_that_are_not_there_are_left_out(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "lacking", NATIVE).await;
    let spec = json!({"requiredPersistentTopology": {"keys": [ZONE, "example.com/none"]},
        "preferredPersistentTopology": [
            {"weight": 5, "preference": {"keys": ["example.com/none"]}},
            {"weight": 6, "preference": {"keys": [HOST, "example.com/none"]}}]});
    home.create(stage, home.state_of("place", &json!({"spec": spec}))).await;
    home.start(stage, json!({"spec": {"replicas": 1}})).await;
    let noted = home.until_noted("place", &["web-0"]).await;
    let labels = noted["web-0"]["nodeTopologyLabels"].as_object().unwrap();
    assert_eq!(labels.keys().collect::<Vec<_>>(), [HOST, ZONE]);
    let pod = home.replace("web-0").await;
    assert_eq!(pod["spec"]["nodeSelector"], json!({RACK: "hollow", ZONE: labels[ZONE]}));
    assert_eq!(*preferred(&pod), json!([term(6, HOST, &labels[HOST])]));
    Ok(())
}
managed!(labels_that_are_not_there_are_left_out, []);

/// PPS-15: a pod that moves is noted where it has arrived.
async fn a_pod_that_moves_is_noted_when_it_is_ready(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "moves", NATIVE).await;
    home.create(stage, home.state_of("place", &json!({"spec": {"requiredPersistentTopology": null}}))).await;
    let container = json!({"name": "main", "image": home.cluster.image("app:v1"),
        "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1}});
    let template = json!({"spec": {"containers": [container]}});
    home.start(stage, json!({"spec": {"replicas": 1, "template": template}})).await;
    let noted = home.until_noted("place", &["web-0"]).await;
    let old = noted["web-0"]["nodeName"].as_str().unwrap().to_owned();
    stage.sim().set_ready(home.sandbox.namespace(), "web-0", "main", false);
    home.sandbox
        .eventually("the pod is not ready", async || {
            let pod = home.pod("web-0").await;
            seen(!is_ready(&pod), pod["status"].to_string())
        })
        .await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": old}});
    stage.patch(&node, &json!({"spec": {"unschedulable": true}})).await.unwrap();
    assert_eq!(home.until_noted("place", &["web-0"]).await, noted);
    let uid = home.pod("web-0").await["metadata"]["uid"].clone();
    home.delete("web-0").await;
    home.sandbox
        .always("the record is true", Duration::from_secs(20), async || {
            let state = home.state("place").await.unwrap_or_default();
            let record = state["status"]["podStates"]["web-0"].clone();
            let pods = home.pods().await;
            let arrived =
                pods.iter().any(|pod| is_ready(pod) && record["nodeName"] == pod["spec"]["nodeName"]);
            seen(record == noted["web-0"] || arrived, state.to_string())
        })
        .await;
    let pod = home.again("web-0", &uid).await;
    assert_ne!(pod["spec"]["nodeName"], old.as_str());
    home.until_state("place", "the record names the new node", |state| {
        state["status"]["podStates"]["web-0"]["nodeName"] == pod["spec"]["nodeName"]
    })
    .await;
    Ok(())
}
embedded_only!(a_pod_that_moves_is_noted_when_it_is_ready, []);

/// PPS-16: what is known is in the object.
async fn a_restart_of_the_manager_forgets_nothing(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "restart", NATIVE).await;
    home.create(stage, home.state_of("place", &json!({}))).await;
    home.start(stage, json!({})).await;
    let noted = home.until_noted("place", &["web-0", "web-1", "web-2"]).await;
    let uid = home.pod("web-1").await["metadata"]["uid"].clone();
    home.delete("web-1").await;
    stage.kill_manager();
    stage.sim().advance(Duration::from_secs(10)).await;
    assert!(home.pods().await.iter().all(|pod| pod["metadata"]["name"] != "web-1" || !is_ready(pod)));
    stage.start_manager().await;
    let pod = home.again("web-1", &uid).await;
    assert_eq!(pod["spec"]["nodeSelector"][ZONE], noted["web-1"]["nodeTopologyLabels"][ZONE]);
    assert_eq!(*preferred(&pod), json!([term(30, HOST, &noted["web-1"]["nodeName"])]));
    Ok(())
}
embedded_only!(a_restart_of_the_manager_forgets_nothing, []);

/// PPS-17: both versions show the same object.
async fn both_versions_show_the_same_object(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "versions", NATIVE).await;
    let new = home.state_of("new", &json!({}));
    let mut old = home.state_of(
        "old",
        &json!({"apiVersion": "apps.kruise.io/v1alpha1",
        "spec": {"targetRef": {"name": "other"}}}),
    );
    old["spec"]["requiredPersistentTopology"] = json!({"nodeTopologyKeys": [ZONE]});
    old["spec"]["preferredPersistentTopology"] =
        json!([{"weight": 30, "preference": {"nodeTopologyKeys": [HOST]}}]);
    home.create(stage, new.clone()).await;
    home.create(stage, old.clone()).await;
    let shown = async |version: &str, name: &str| -> Value {
        let mut object = new.clone();
        object["apiVersion"] = json!(format!("apps.kruise.io/{version}"));
        serde_json::to_value(stage.api(&object).get(name).await.unwrap()).unwrap()["spec"].clone()
    };
    for (name, target) in [("new", "web"), ("old", "other")] {
        let (alpha, beta) = (shown("v1alpha1", name).await, shown("v1beta1", name).await);
        assert_eq!(beta["requiredPersistentTopology"], json!({"keys": [ZONE]}));
        assert_eq!(alpha["requiredPersistentTopology"], json!({"nodeTopologyKeys": [ZONE]}));
        assert_eq!(beta["preferredPersistentTopology"][0]["preference"], json!({"keys": [HOST]}));
        assert_eq!(
            alpha["preferredPersistentTopology"][0]["preference"],
            json!({"nodeTopologyKeys": [HOST]})
        );
        assert_eq!((&alpha["targetRef"], &alpha["targetRef"]["name"]), (&beta["targetRef"], &json!(target)));
    }
    Ok(())
}
managed!(both_versions_show_the_same_object, []);

/// An object that was stored before the rules keeps no pod away, and says what is wrong with it.
async fn a_stored_object_with_a_weight_of_zero_keeps_no_pod_away(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "zero", NATIVE).await;
    stage.remove_webhooks().await;
    let wish = json!([{"weight": 0, "preference": {"keys": [ZONE]}}]);
    let spec = json!({"requiredPersistentTopology": null, "preferredPersistentTopology": wish});
    home.create(stage, home.state_of("place", &json!({"spec": spec}))).await;
    stage.put_webhooks().await;
    home.start(stage, json!({"spec": {"replicas": 1}})).await;
    home.until_noted("place", &["web-0"]).await;
    let pod = home.replace("web-0").await;
    assert_eq!((pod["spec"].get("affinity"), pod["metadata"]["annotations"].get(INJECTED)), (None, None));
    let look = async || {
        let found = home.events("PersistentPodState/place", "Waiting").await;
        seen(found.len() == 1 && found[0].contains("weight: Invalid value: 0"), format!("{found:?}"))
    };
    home.sandbox.eventually("it says so", look).await;
    Ok(())
}
embedded_only!(a_stored_object_with_a_weight_of_zero_keeps_no_pod_away, []);
