//! Faults that do not heal by themselves: they are reported, hold up nobody else, cost little, and end when somebody acts.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kruise_runtime::random::Random;
use kruise_sim::{Sim, faults::Webhook};
use serde_json::{Value, json};

use crate::{
    process::Process,
    world::{
        api, condition, counts, create, delete, distribution, distributions, get, install, merge, namespace,
        namespaces, objects,
    },
};

const HOST: &str = "hook.default.svc";
const HOUR: Duration = Duration::from_secs(3600);

fn settings() -> Value {
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}});
    distribution("settings", resource, json!({"namespaceSelector": {"matchLabels": {"team": "shop"}}}))
}

async fn stage(spaces: usize) -> Sim {
    let sim = Sim::builder().seed(7).nodes(0).without_events().start();
    install(&sim).await;
    for number in 0..spaces {
        namespace(&sim, &format!("n{number:02}"), json!({"team": "shop"})).await;
    }
    sim
}

async fn advance(sim: &Sim, seconds: u64) {
    sim.advance(Duration::from_secs(seconds)).await;
}

/// A quota stays full in half of the namespaces.
#[tokio::test(start_paused = true)]
async fn a_quota_that_stays_full_holds_up_no_other_namespace() {
    let sim = stage(40).await;
    for number in 0..20 {
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
            "spec": {"hard": {"count/configmaps": "0"}}});
        assert!(create(&sim, &format!("n{number:02}"), quota).await);
    }
    advance(&sim, 5).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    create(&sim, "", settings()).await;
    advance(&sim, 30).await;
    let object = get(&sim, "settings").await;
    assert_eq!(counts(&object), "40/20/20");
    let failed = condition(&object, "CreateResourceFailed");
    assert_eq!(failed["failedNamespaces"].as_array().unwrap().len(), 20);
    assert_eq!(condition(&object, "Waiting")["reason"], "QuotaExceeded");
    sim.advance(HOUR).await;
    let (writes, before) = (sim.faults().writes(), get(&sim, "settings").await);
    sim.advance(HOUR).await;
    // Twelve tries in an hour for each.
    assert!(sim.faults().writes() - writes <= 20 * 13, "{}", sim.faults().writes() - writes);
    assert_eq!(get(&sim, "settings").await["status"], before["status"]);
    // Meanwhile others are served as ever.
    merge(&distributions(&sim), "settings", json!({"spec": {"resource": {"data": {"a": "2"}}}})).await;
    namespace(&sim, "later", json!({"team": "shop"})).await;
    advance(&sim, 20).await;
    let found = objects(&sim, "ConfigMap", "settings").await;
    assert!(found.values().all(|one| one["data"]["a"] == "2") && found.len() == 21, "{}", found.len());
    for number in 0..20 {
        delete(&api(&sim, "v1", "ResourceQuota", &format!("n{number:02}")), "few").await;
    }
    advance(&sim, 330).await;
    let object = get(&sim, "settings").await;
    assert_eq!(counts(&object), "41/41/0");
    assert_eq!(object["status"]["conditions"].as_array().unwrap().len(), 6);
}

/// A namespace stays Terminating because of somebody's finalizer.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_stays_terminating_is_left_alone() {
    let sim = stage(3).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    create(&sim, "", settings()).await;
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/never"]}});
    create(&sim, "n01", held).await;
    advance(&sim, 5).await;
    assert_eq!(counts(&get(&sim, "settings").await), "3/3/0");
    delete(&namespaces(&sim), "n01").await;
    advance(&sim, 30).await;
    // Chosen by its labels it drops out; chosen by its name it is missed.
    assert_eq!(counts(&get(&sim, "settings").await), "2/2/0");
    let targets = json!({"includedNamespaces": {"list": [{"name": "n00"}, {"name": "n01"}]}, "namespaceSelector": null});
    merge(&distributions(&sim), "settings", json!({"spec": {"targets": targets}})).await;
    advance(&sim, 30).await;
    let object = get(&sim, "settings").await;
    assert_eq!(counts(&object), "2/1/1");
    assert_eq!(condition(&object, "NamespaceNotExists")["failedNamespaces"], json!(["n01"]));
    assert_eq!(condition(&object, "Waiting")["reason"], "NamespaceTerminating");
    let writes = sim.faults().writes();
    sim.advance(HOUR).await;
    assert_eq!(sim.faults().writes(), writes);
    merge(&api(&sim, "v1", "ConfigMap", "n01"), "held", json!({"metadata": {"finalizers": null}})).await;
    advance(&sim, 60).await;
    namespace(&sim, "n01", json!({})).await;
    advance(&sim, 30).await;
    assert_eq!(counts(&get(&sim, "settings").await), "2/2/0");
}

/// A copy stays in deletion because of somebody's finalizer, in a target and outside.
#[tokio::test(start_paused = true)]
async fn a_copy_that_cannot_end_is_not_deleted_again_and_again() {
    let sim = stage(3).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    create(&sim, "", settings()).await;
    advance(&sim, 5).await;
    for place in ["n00", "n01"] {
        let finalizer = json!({"metadata": {"finalizers": ["example.com/never"]}});
        merge(&api(&sim, "v1", "ConfigMap", place), "settings", finalizer).await;
    }
    merge(&namespaces(&sim), "n00", json!({"metadata": {"labels": {"team": null}}})).await;
    delete(&api(&sim, "v1", "ConfigMap", "n01"), "settings").await;
    advance(&sim, 30).await;
    let found = objects(&sim, "ConfigMap", "settings").await;
    assert!(["n00", "n01"].iter().all(|place| !found[*place]["metadata"]["deletionTimestamp"].is_null()));
    let writes = sim.faults().writes();
    sim.advance(HOUR).await;
    assert_eq!(sim.faults().writes(), writes);
    for place in ["n00", "n01"] {
        let none = json!({"metadata": {"finalizers": null}});
        merge(&api(&sim, "v1", "ConfigMap", place), "settings", none).await;
    }
    advance(&sim, 10).await;
    let found = objects(&sim, "ConfigMap", "settings").await;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["n01", "n02"]);
    assert!(found["n01"]["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(counts(&get(&sim, "settings").await), "2/2/0");
}

/// Somebody's webhook for ConfigMaps is down for hours.
#[tokio::test(start_paused = true)]
async fn a_webhook_that_stays_down_is_reported_and_asked_seldom() {
    let sim = stage(30).await;
    let hook = sim.faults().around_webhook(HOST, tower::service_fn(allow));
    sim.server().register_webhook_host(HOST, hook);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 5,
            "clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}],
        }],
    });
    create(&sim, "", configuration).await;
    sim.faults().webhook(HOST, Webhook::Refused);
    advance(&sim, 5).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    create(&sim, "", settings()).await;
    advance(&sim, 60).await;
    let object = get(&sim, "settings").await;
    assert_eq!(counts(&object), "30/0/30");
    assert_eq!(condition(&object, "Waiting")["reason"], "WebhookUnavailable");
    assert_eq!(condition(&object, "CreateResourceFailed")["failedNamespaces"].as_array().unwrap().len(), 30);
    sim.advance(HOUR).await;
    let writes = sim.faults().writes();
    sim.advance(HOUR).await;
    assert!(sim.faults().writes() - writes <= 30 * 13, "{}", sim.faults().writes() - writes);
    sim.faults().webhook(HOST, Webhook::Slow(Duration::ZERO));
    advance(&sim, 330).await;
    let object = get(&sim, "settings").await;
    assert_eq!(counts(&object), "30/30/0");
    assert_eq!(object["status"]["conditions"].as_array().unwrap().len(), 6);
}

async fn allow(request: Request<Full<Bytes>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let answer = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    });
    Ok(Response::new(Full::new(answer.to_string().into())))
}

/// A token that somebody else rewrites whenever we write it, for an hour: the writes stay within bounds.
#[tokio::test(start_paused = true)]
async fn somebody_who_always_edits_a_copy_does_not_win_and_costs_little() {
    let sim = stage(20).await;
    let _process = Process::start(&sim, &Random::seeded(1), None);
    create(&sim, "", settings()).await;
    advance(&sim, 5).await;
    let before = sim.faults().writes();
    let rounds = 200;
    for round in 0..rounds {
        merge(
            &api(&sim, "v1", "ConfigMap", "n03"),
            "settings",
            json!({"data": {"a": format!("mine {round}")}}),
        )
        .await;
        advance(&sim, 2).await;
        let found = objects(&sim, "ConfigMap", "settings").await;
        assert_eq!(found["n03"]["data"]["a"], "1");
    }
    let writes = sim.faults().writes() - before;
    assert_eq!(writes, rounds, "one for each edit");
}
