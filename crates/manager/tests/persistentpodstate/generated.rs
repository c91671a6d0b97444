//! Objects that annotations ask for.

use std::time::Duration;

use kruise_testkit::{Backend, Outcome, wait::seen};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    home::{
        AUTO, HOST, Home, INJECTED, NATIVE, NOTED, OWN, PREFERRED, RACK, REQUIRED, ZONE, preferred, term,
    },
    stage::{Stage, managed},
};

fn asking() -> Value {
    json!({"metadata": {"annotations": {AUTO: "true", REQUIRED: ZONE, PREFERRED: HOST}}})
}

const ALL: [&str; 3] = ["web-0", "web-1", "web-2"];

/// PPS-1, PPS-2, PPS-3: an object is made, pods are noted, and a pod that is deleted comes back to its place.
async fn an_annotated_set_gets_an_object_and_its_pods_return(stage: &mut Stage) -> Outcome {
    for api_version in [OWN, NATIVE] {
        let home = Home::prepare(stage, "generated", api_version).await;
        home.start(stage, asking()).await;
        let noted = home.until_noted("web", &ALL).await;
        let state = home.state("web").await.unwrap();
        assert_eq!(
            state["spec"],
            json!({
                "targetRef": {"apiVersion": api_version, "kind": "StatefulSet", "name": "web"},
                "requiredPersistentTopology": {"keys": [ZONE]},
                "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": [HOST]}}],
            })
        );
        let owner = &state["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["kind"], &owner["controller"]), (&json!("StatefulSet"), &json!(true)));
        assert_eq!(owner.get("blockOwnerDeletion"), None);
        for pod in home.pods().await {
            let record = &noted[pod["metadata"]["name"].as_str().unwrap()];
            assert_eq!(record["nodeName"], pod["spec"]["nodeName"]);
            assert_eq!(record["nodeTopologyLabels"].as_object().unwrap().len(), 2);
            assert_eq!(pod["metadata"]["annotations"].get(INJECTED), None);
            assert_eq!(pod["spec"]["nodeSelector"].get(ZONE), None);
        }
        let pod = home.replace("web-1").await;
        let labels = &noted["web-1"]["nodeTopologyLabels"];
        assert_eq!(pod["spec"]["nodeSelector"][ZONE], labels[ZONE]);
        assert_eq!(*preferred(&pod), json!([term(100, HOST, &labels[HOST])]));
        assert_eq!(pod["metadata"]["annotations"][INJECTED], "web");
        assert_eq!(pod["spec"]["nodeName"], noted["web-1"]["nodeName"]);
        assert_eq!(home.until_noted("web", &ALL).await, noted);
    }
    Ok(())
}
managed!(an_annotated_set_gets_an_object_and_its_pods_return, []);

/// PPS-9: what was generated is deleted with its annotation.
async fn without_the_annotation_the_object_is_deleted(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "disabled", OWN).await;
    home.start(stage, asking()).await;
    home.until_noted("web", &ALL).await;
    home.change(stage, json!({"metadata": {"annotations": {AUTO: "false"}}})).await;
    home.until_gone("web").await;
    home.change(stage, json!({"metadata": {"annotations": {AUTO: "true"}}})).await;
    home.until_noted("web", &ALL).await;
    home.change(stage, json!({"metadata": {"annotations": {AUTO: null}}})).await;
    home.until_gone("web").await;
    Ok(())
}
managed!(without_the_annotation_the_object_is_deleted, []);

/// PPS-9: an object that somebody has made under the name of the workload is left alone, and an event reports it.
async fn an_object_of_a_user_is_left_alone(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "foreign", OWN).await;
    let own = home.state_of("web", &json!({"spec": {"preferredPersistentTopology": null}}));
    home.create(stage, own).await;
    home.start(stage, asking()).await;
    let before = home.state("web").await.unwrap();
    let about = "PersistentPodStateConflict";
    let count = async |count: usize| {
        let look = async || {
            let found = home.events("StatefulSet/web", about).await;
            seen(found.len() == count, format!("{found:?}"))
        };
        home.sandbox.eventually("the event is there", look).await;
    };
    count(1).await;
    let namespace = home.sandbox.namespace();
    assert_eq!(
        home.events("StatefulSet/web", about).await[0],
        format!(
            "PersistentPodState {namespace}/web exists and is not controlled by this StatefulSet; it is left alone. \
             Delete or rename it, or remove the annotation {AUTO}"
        )
    );
    // Waiting is reported after ten seconds, and nothing of it is repeated.
    home.sandbox
        .always("it is left alone", Duration::from_secs(30), async || {
            let state = home.state("web").await.unwrap_or_default();
            seen(state["spec"] == before["spec"], state.to_string())
        })
        .await;
    count(1).await;
    let waits = home.events("PersistentPodState/web", "Waiting").await;
    let sentence = "NameTaken: persistentpodstates web exists and belongs to nobody; delete or rename it";
    assert_eq!(waits, [sentence]);
    home.change(stage, json!({"metadata": {"annotations": {AUTO: null}}})).await;
    home.sandbox
        .always("it is left alone", Duration::from_secs(5), async || {
            let state = home.state("web").await.unwrap_or_default();
            seen(state["spec"] == before["spec"], state.to_string())
        })
        .await;
    // Once it is out of the way, the workload gets its own.
    home.change(stage, json!({"metadata": {"annotations": {AUTO: "true"}}})).await;
    home.states().delete("web", &Default::default()).await.unwrap();
    home.until_state("web", "it is generated", |state| {
        state["metadata"]["ownerReferences"][0]["name"] == "web"
    })
    .await;
    Ok(())
}
managed!(an_object_of_a_user_is_left_alone, []);

/// PPS-11: an object of another name is about the workload. The wanted one is refused until the other one is gone, and made as
/// soon as it is, however long that lasts.
async fn an_object_about_the_same_workload_is_waited_for(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "rival", OWN).await;
    home.create(stage, home.state_of("rival", &json!({}))).await;
    home.start(stage, asking()).await;
    home.until_noted("rival", &ALL).await;
    if stage.cluster.backend() == Backend::Embedded {
        // By now the pauses between the tries are long.
        tokio::time::sleep(Duration::from_secs(20 * 60)).await;
    }
    assert_eq!(home.state("web").await, None);
    home.states().delete("rival", &Default::default()).await.unwrap();
    let began = Instant::now();
    home.until_noted("web", &ALL).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    Ok(())
}
managed!(an_object_about_the_same_workload_is_waited_for, []);

/// PPS-10: each annotation counts, blanks do not, and ready pods are noted anew.
async fn changed_annotations_change_the_object_and_the_records(stage: &mut Stage) -> Outcome {
    let home = Home::prepare(stage, "changed", OWN).await;
    home.start(stage, asking()).await;
    home.until_noted("web", &ALL).await;
    let lists = format!("{ZONE}, {RACK}");
    home.change(stage, json!({"metadata": {"annotations": {REQUIRED: lists}}})).await;
    let state = home
        .until_state("web", "the pods are noted anew", |state| {
            let records = state["status"]["podStates"].as_object().cloned().unwrap_or_default();
            records.len() == 3 && records.values().all(|one| one["nodeTopologyLabels"][RACK] == "hollow")
        })
        .await;
    assert_eq!(state["spec"]["requiredPersistentTopology"]["keys"], json!([ZONE, RACK]));
    // The original does not react to this annotation alone.
    home.change(stage, json!({"metadata": {"annotations": {NOTED: "ip,none"}}})).await;
    let state = home
        .until_state("web", "the annotation is noted", |state| {
            let records = state["status"]["podStates"].as_object().cloned().unwrap_or_default();
            records.len() == 3 && records.values().all(|one| one["annotations"] == json!({"ip": "1.2.3.4"}))
        })
        .await;
    assert_eq!(state["spec"]["persistentPodAnnotations"], json!([{"key": "ip"}, {"key": "none"}]));
    // Without any topology nothing is changed.
    home.change(stage, json!({"metadata": {"annotations": {REQUIRED: " ", PREFERRED: null}}})).await;
    home.sandbox
        .always("it stays", Duration::from_secs(5), async || {
            let now = home.state("web").await.unwrap_or_default();
            seen(now["spec"] == state["spec"], now.to_string())
        })
        .await;
    Ok(())
}
managed!(changed_annotations_change_the_object_and_the_records, []);
