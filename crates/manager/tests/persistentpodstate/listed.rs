//! Kinds of the white list.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::names;
use kruise_testkit::{Outcome, wait::seen};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    home::{AUTO, Home, INJECTED, NATIVE, REQUIRED, ZONE},
    stage::{Stage, embedded_only},
};

const KEY: &str = "PPS_Watch_Custom_Workload_WhiteList";
const GOOD: &str = r#"{"workloads":[{"group":"apps.example.com","Kind":"GameSet"}]}"#;
const BROKEN: &str = r#"{"workloads":["#;

async fn configure(stage: &Stage, text: &str) {
    stage
        .put(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {KEY: text},
            "metadata": {"name": names::CONFIGURATION, "namespace": names::NAMESPACE}}))
        .await;
}

/// Makes the kind known.
async fn install(stage: &Stage) {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gamesets.apps.example.com"},
        "spec": {"group": "apps.example.com", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "GameSet", "plural": "gamesets", "singular": "gameset", "listKind": "GameSetList"}},
    });
    stage.put(definition).await;
    stage.sim().advance(Duration::from_secs(2)).await;
}

/// The workload `game`, whose pods the test creates.
struct Game {
    home: Home,
    uid: Value,
}

impl Game {
    fn object(home: &Home, annotations: Value) -> Value {
        json!({"apiVersion": "apps.example.com/v1", "kind": "GameSet",
            "metadata": {"name": "game", "namespace": home.sandbox.namespace(), "annotations": annotations},
            "spec": {"replicas": 2}})
    }

    async fn start(stage: &Stage, purpose: &str, annotations: Value) -> Self {
        let home = Home::prepare(stage, purpose, NATIVE).await;
        let uid = home.create(stage, Self::object(&home, annotations)).await["metadata"]["uid"].clone();
        Self { home, uid }
    }

    fn state(&self) -> Value {
        let target = json!({"apiVersion": "apps.example.com/v1", "kind": "GameSet", "name": "game"});
        self.home.state_of("place", &json!({"spec": {"targetRef": target}}))
    }

    async fn create_pod(&self, name: &str) -> Value {
        let owner = json!({"apiVersion": "apps.example.com/v1", "kind": "GameSet", "name": "game", "uid": self.uid,
            "controller": true});
        let template = self.home.set(&json!({}))["spec"]["template"].clone();
        let pod = json!({"metadata": {"name": name, "ownerReferences": [owner]}, "spec": template["spec"]});
        let made: Pod = self.home.sandbox.create(pod).await;
        serde_json::to_value(made).unwrap()
    }

    async fn delete_pod(&self, name: &str) {
        self.home.delete(name).await;
        let look = async || {
            let pods = self.home.pods().await;
            seen(pods.iter().all(|pod| pod["metadata"]["name"] != name), format!("{} pods", pods.len()))
        };
        self.home.sandbox.eventually("the pod is gone", look).await;
    }
}

/// PPS-12: a listed kind is supported like a StatefulSet, from the moment at which it is listed and there.
async fn a_listed_kind_is_supported(stage: &mut Stage) -> Outcome {
    configure(stage, GOOD).await;
    stage.sim().advance(Duration::from_secs(30)).await;
    // The list may name it before the cluster has it.
    install(stage).await;
    let game = Game::start(stage, "listed", json!({})).await;
    game.home.create(stage, game.state()).await;
    for name in ["game-0", "game-1"] {
        let pod = game.create_pod(name).await;
        assert_eq!(pod["spec"]["nodeSelector"].get(ZONE), None);
    }
    let noted = game.home.until_noted("place", &["game-0", "game-1"]).await;
    game.delete_pod("game-1").await;
    let pod = game.create_pod("game-1").await;
    assert_eq!(pod["spec"]["nodeSelector"][ZONE], noted["game-1"]["nodeTopologyLabels"][ZONE]);
    // Scaling in is heard of without any pod that changes.
    game.delete_pod("game-1").await;
    let object = Game::object(&game.home, json!({}));
    stage.patch(&object, &json!({"spec": {"replicas": 1}})).await.unwrap();
    game.home.until_noted("place", &["game-0"]).await;
    // Annotations work as well.
    game.home.states().delete("place", &DeleteParams::default()).await.unwrap();
    let asks = json!({"metadata": {"annotations": {AUTO: "true", REQUIRED: ZONE}}});
    stage.patch(&object, &asks).await.unwrap();
    game.home.until_noted("game", &["game-0"]).await;
    stage.api(&object).delete("game", &DeleteParams::background()).await.unwrap();
    game.home.until_gone("game").await;
    Ok(())
}
embedded_only!(a_listed_kind_is_supported, []);

/// PPS-18, PLATFORM-42: a list that cannot be read keeps no pod away and is reported.
async fn a_broken_list_keeps_no_pod_away(stage: &mut Stage) -> Outcome {
    install(stage).await;
    configure(stage, GOOD).await;
    let game = Game::start(stage, "broken", json!({})).await;
    game.home.create(stage, game.state()).await;
    game.create_pod("game-0").await;
    let noted = game.home.until_noted("place", &["game-0"]).await;
    configure(stage, BROKEN).await;
    stage.sim().advance(Duration::from_secs(2)).await;
    let gauge = format!("kruise_configuration_errors{{key=\"{KEY}\"}}");
    assert!(stage.metrics().await.contains(&format!("{gauge} 1")));
    let listed =
        stage.api(&json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": names::NAMESPACE}}));
    let events = listed.list(&Default::default()).await.unwrap().items;
    let said: Vec<&str> = events
        .iter()
        .filter(|event| event.data["reason"] == "InvalidConfiguration")
        .filter_map(|event| event.data["message"].as_str())
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with(&format!("{KEY} is not readable and counts as empty: ")), "{said:?}");
    // Pods are created: of a kind that was listed without, of a StatefulSet with what is known.
    game.delete_pod("game-0").await;
    let pod = game.create_pod("game-0").await;
    assert_eq!(pod["metadata"].get("annotations"), None);
    let home = Home::prepare(stage, "beside", NATIVE).await;
    home.create(stage, home.state_of("place", &json!({}))).await;
    home.start(stage, json!({"spec": {"replicas": 1}})).await;
    home.until_noted("place", &["web-0"]).await;
    let pod = home.replace("web-0").await;
    assert_eq!(pod["metadata"]["annotations"][INJECTED], "place");
    let mut second = game.state();
    second["metadata"]["name"] = json!("second");
    second["spec"]["targetRef"]["name"] = json!("other");
    let said = stage.create(second.clone()).await.unwrap_err();
    assert!(said.contains("failed to get persistent pod state config white list"), "{said}");
    // What is known stays, and everything works as soon as the list can be read.
    assert_eq!(game.home.state("place").await.unwrap()["status"]["podStates"], noted);
    configure(stage, GOOD).await;
    stage.sim().advance(Duration::from_secs(2)).await;
    assert!(stage.metrics().await.contains(&format!("{gauge} 0")));
    game.home.create(stage, second).await;
    game.delete_pod("game-0").await;
    let pod = game.create_pod("game-0").await;
    assert_eq!(pod["spec"]["nodeSelector"][ZONE], noted["game-0"]["nodeTopologyLabels"][ZONE]);
    Ok(())
}
embedded_only!(a_broken_list_keeps_no_pod_away, []);
