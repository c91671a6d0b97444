//! Sets that are refused, with the words that people know.
//!
//! The original prints some values as structs of its language; ours are what people wrote.

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    scene::{Scene, strategy},
    stage::{Stage, managed},
    words::containers,
};

/// What a server puts before the words of our webhook.
const DENIED: &str = "422 admission webhook \"vsidecarset.kb.io\" denied the request: ";

/// SIDECARSET-37: containers do not come and do not change their kind of update, but they may go.
async fn containers_cannot_be_added_or_renamed(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "containers").await;
    let sidecar = |name: &str| scene.sidecar(name, "app:v1", json!({}));
    let list = |containers: Value| json!({"spec": {"containers": containers}});
    scene.create_set("s", list(json!([sidecar("one"), sidecar("two")]))).await;
    scene.create_pods(1).await;
    scene.until_counts("s", [1; 4]).await;
    let hot = json!({"upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:v1"}});
    let cases = [
        (
            json!([sidecar("one"), sidecar("two"), sidecar("three")]),
            "spec.containers.name: Invalid value: \"three\": container three is not found",
        ),
        (
            json!([sidecar("one"), sidecar("renamed")]),
            "spec.containers.name: Invalid value: \"renamed\": container renamed is not found",
        ),
        (
            json!([scene.sidecar("one", "app:v1", hot), sidecar("two")]),
            "spec.containers.upgradeStrategy.upgradeType: Invalid value: \"one\": container one upgradeType is immutable",
        ),
    ];
    for (containers, words) in cases {
        let refused = scene.try_change_set("s", list(containers)).await.unwrap_err();
        assert_eq!(refused, format!("{DENIED}{words}"));
    }
    scene.publish("s", list(json!([sidecar("two")]))).await;
    let pod = scene.create_pod("new", json!({})).await;
    assert_eq!(containers(&pod), ["two", "main"]);
    assert_eq!(containers(&scene.pod("pod-0").await), ["one", "two", "main"]);
    scene.rests_at("s", [2, 1, 2, 1]).await;
    Ok(())
}
managed!(containers_cannot_be_added_or_renamed, []);

/// SIDECARSET-43
async fn a_wrong_set_is_refused_and_not_stored(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "wrong").await;
    let weight = json!({"weightPriority": [{"weight": 101, "matchSelector": {"matchLabels": {"a": "b"}}}]});
    let hot = json!({"upgradeStrategy": {"upgradeType": "HotUpgrade"}});
    let cases = [
        (
            json!({"spec": {"selector": null}}),
            "spec.selector: Required value: no selector defined for SidecarSet",
        ),
        (
            json!({"spec": {"selector": {"matchLabels": null}}}),
            "spec.selector: Invalid value: {}: empty selector is not valid for sidecarset.",
        ),
        (
            json!({"spec": {"containers": null}}),
            "spec: Required value: no initContainer or container defined for SidecarSet",
        ),
        (
            json!({"metadata": {"name": "a.b"}}),
            "metadata.name: Invalid value: \"a.b\": sidecarset name must consist of alphanumeric characters or '-' (e.g. \
             'example-com', regex used for validation is '^[a-zA-Z0-9\\-]+$')",
        ),
        (strategy(json!({"partition": "5"})), "spec.updateStrategy.partition: Invalid value: \"5\": "),
        (
            strategy(json!({"priorityStrategy": weight})),
            "spec.updateStrategy.priorityStrategy: Required value: weight must be valid number in the range 1-100",
        ),
        (
            json!({"spec": {"containers": [scene.sidecar("sc", "app:v1", hot)]}}),
            "spec.containers[0].upgradeStrategy.hotUpgradeEmptyImage: Required value",
        ),
    ];
    for (change, words) in cases {
        let refused = scene.try_create_set("s", change).await.unwrap_err();
        assert!(refused.starts_with(&format!("{DENIED}{words}")), "{words}: {refused}");
    }
    for name in ["a.b".to_owned(), scene.named("s")] {
        assert!(scene.sets("v1beta1").get_opt(&name).await.unwrap().is_none(), "{name} is stored");
    }
    Ok(())
}
managed!(a_wrong_set_is_refused_and_not_stored, []);
