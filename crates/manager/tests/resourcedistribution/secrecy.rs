//! What is in a Secret appears in its copies only.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::core::v1::Event;
use kruise_testkit::Outcome;
use kube::{Api, api::ListParams};
use serde_json::json;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::{Layer as _, SubscriberExt as _},
};

use crate::{
    scene::{OPEN, Scene, included},
    stage::{Stage, embedded},
};

const WORD: &str = "hunter2hunter2";

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn tell_everything(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-secrecy").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    let name = scene.name("x");
    let secret = |kind: &str, key: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind,
            "stringData": {key: WORD}, "data": {"b": "aHVudGVyMmh1bnRlcjI="}})
    };
    // Refused, in all ways.
    let mut foreign = secret("Opaque", "a");
    foreign["apiVersion"] = json!("example.com/v1");
    for resource in [secret("Opaque", "bad key"), foreign] {
        let said = scene.create("bad", resource, json!({})).await.unwrap_err();
        assert!(!said.contains(WORD), "{said}");
    }
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"count/secrets": "0"}}});
    scene.put("ResourceQuota", &two, quota).await;
    stage.sim().advance(Duration::from_secs(5)).await;
    // Failing, in many ways: a quota, a conflict, a missing namespace, a type that may not change.
    let three = scene.space(json!({})).await;
    scene.put("Secret", &three, json!({"metadata": {"name": name}, "stringData": {"a": WORD}})).await;
    let missing = scene.name("missing");
    let targets = included(&[&one, &two, &three, &missing]);
    scene.create(&name, secret("example.com/a", "a"), targets).await.unwrap();
    scene.until(&name, "4/1/3").await;
    scene.change(&name, json!({"spec": {"resource": {"type": "example.com/b"}}})).await.unwrap();
    scene.until_failing(&name, "UpdateResourceFailed", &[&one]).await;
    scene.edit("Secret", &one, &name, json!({"stringData": {"c": WORD}})).await;
    stage.sim().advance(Duration::from_secs(400)).await;
    // Stored past the rules: the spec cannot be carried out.
    stage.remove_webhooks().await;
    let broken = json!({"spec": {"resource": {"apiVersion": "example.com/v1"}}});
    scene.change(&name, broken).await.unwrap();
    stage.sim().advance(Duration::from_secs(60)).await;
    let object = scene.get(&name).await;
    let status = object["status"].to_string();
    assert!(status.contains("SpecInvalid"), "{status}");
    let events: Api<Event> = Api::all(scene.cluster.client());
    let events = format!("{:?}", events.list(&ListParams::default()).await.unwrap().items);
    assert!(events.contains("UpdateResourceFailed") && events.contains("CreateResourceFailed"), "{events}");
    let metrics = stage.metrics().await;
    assert!(metrics.contains("kruise_waiting{kind=\"ResourceDistribution\""), "{metrics}");
    for (what, text) in [("status", &status), ("events", &events), ("metrics", &metrics)] {
        for word in [WORD, "aHVudGVyMmh1bnRlcjI="] {
            assert!(!text.contains(word), "{what} contain {word}");
        }
    }
    Ok(())
}

/// Nothing of a Secret is in logs of any level, events, conditions, metrics or refusals.
#[test]
fn secrets_appear_in_their_copies_only() {
    let lines = Lines::default();
    let writer = lines.clone();
    // The manager's own lines of all levels; the embedded server is no part of it.
    let own = ["kruise_core", "kruise_manager", "kruise_runtime", "kruise_webhook"];
    let filter = Targets::new().with_targets(own.map(|target| (target, LevelFilter::TRACE)));
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    tracing::subscriber::with_default(subscriber, || embedded(&OPEN, tell_everything));
    let log = String::from_utf8_lossy(&lines.0.lock().unwrap()).into_owned();
    assert!(log.contains("resourcedistribution-controller") && log.contains("next step"), "the log is there");
    for line in log.lines() {
        for word in [WORD, "aHVudGVyMmh1bnRlcjI="] {
            assert!(!line.contains(word), "{line}");
        }
    }
}
