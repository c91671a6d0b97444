//! A fault that does not heal by itself: people hear of it, pods go on, and it is made good when the fault is lifted.

use std::time::Duration;

use kruise_runtime::random::Random;
use serde_json::{Value, json};

use crate::{
    process::Process,
    world::{self, api, change, create, install, is_ready, make, name, pods, state},
};

/// Somebody's webhook for the status of the objects is down for two hours.
#[tokio::test(start_paused = true)]
async fn a_dead_webhook_is_reported_and_keeps_no_pod_away() {
    let sim = world::start(1);
    install(&sim).await;
    let mut process = Process::start(&sim, &Random::seeded(1), "--sync-period=0s");
    sim.advance(Duration::from_secs(5)).await;
    create(&sim).await;
    sim.advance(Duration::from_secs(60)).await;
    let before = state(&sim, "kept").await.unwrap()["status"].clone();
    assert_eq!(before["podStates"].as_object().unwrap().len(), 3, "{before}");

    let hook = json!({"name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "timeoutSeconds": 5,
        "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/"}},
        "rules": [{"apiGroups": ["apps.kruise.io"], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": ["persistentpodstates/status"]}]});
    let kind = "ValidatingWebhookConfiguration";
    let hooks = || api(&sim, "admissionregistration.k8s.io", "v1", kind, false);
    make(
        hooks(),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "hook"}, "webhooks": [hook]}),
    )
    .await;
    sim.advance(Duration::from_secs(1)).await;

    // A pod that is new cannot be noted, and runs all the same.
    world::scale(&sim, "kept", 4).await;
    change(&sim, "made", json!({"metadata": {"annotations": {world::NOTED: "ip,other"}}})).await;
    sim.advance(Duration::from_secs(120)).await;
    assert!(pods(&sim).await.iter().all(is_ready) && pods(&sim).await.len() == 7);
    assert_eq!(state(&sim, "kept").await.unwrap()["status"], before);
    let events = api(&sim, "", "v1", "Event", true).list(&Default::default()).await.unwrap().items;
    let said: Vec<&Value> = events
        .iter()
        .filter(|event| event.data["reason"] == "Waiting" && event.data["involvedObject"]["name"] == "kept")
        .map(|event| &event.data["message"])
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].as_str().unwrap().starts_with("WebhookUnavailable: webhook hook.example.com"),
        "{said:?}"
    );

    // It is tried again, but not again and again.
    sim.advance(Duration::from_secs(3600)).await;
    let tries = sim.faults().writes();
    sim.advance(Duration::from_secs(3600)).await;
    assert!(sim.faults().writes() - tries < 60, "{} writes in an hour", sim.faults().writes() - tries);

    // What is known is used meanwhile.
    let zone = before["podStates"]["kept-1"]["nodeTopologyLabels"][world::ZONE].clone();
    world::delete(&sim, "kept-1", false).await.unwrap();
    sim.advance(Duration::from_secs(60)).await;
    let all = pods(&sim).await;
    let again = all.iter().find(|pod| name(pod) == "kept-1").unwrap();
    assert_eq!(again["spec"]["nodeSelector"][world::ZONE], zone);

    hooks().delete("hook", &Default::default()).await.unwrap();
    sim.advance(Duration::from_secs(1100)).await;
    let after = state(&sim, "kept").await.unwrap()["status"].clone();
    assert_eq!(after["podStates"].as_object().unwrap().len(), 4, "{after}");
    process.is_well().unwrap();
}
