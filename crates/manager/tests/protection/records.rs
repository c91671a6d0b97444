//! The records of what was admitted, and how they end.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod, policy::v1::PodDisruptionBudget};
use kruise_testkit::{
    Outcome,
    wait::{Look, seen},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    scene::{NO_FLAGS, Scene, is_ready, refused},
    stage::{Stage, embedded_only, managed},
};

fn records(budget: &Value) -> usize {
    ["disruptedPods", "unavailablePods"]
        .iter()
        .filter_map(|map| budget["status"][map].as_object())
        .map(serde_json::Map::len)
        .sum()
}

/// PROTECTION-12
async fn a_pod_that_ends_stops_counting_and_its_record_goes(stage: &mut Stage) -> Outcome {
    let held = json!({"spec": {"template": {"metadata": {"finalizers": ["kruise-rs.io/test"]}}}});
    let scene = Scene::prepare(stage, "finalizer").await;
    scene.create_set(3, held).await;
    scene.ready(3).await;
    scene
        .create_budget("web", crate::scene::merged(crate::scene::target(), &json!({"maxUnavailable": 1})))
        .await;
    let pod = scene.serving().await.remove(0);
    scene.delete(&pod).await.unwrap();
    assert_eq!(records(&scene.budget("web").await), 1);
    scene.ready(3).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    let began = Instant::now();
    scene.until("web", "the record is gone", |budget| records(budget) == 0).await;
    assert!(began.elapsed() < Duration::from_secs(25));
    for pod in scene.sandbox.list::<Pod>().await {
        let name = crate::scene::name(&pod);
        let _ = scene.patch_pod(&name, json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["kruise-rs.io/test"], "finalizers": null}})).await;
    }
    Ok(())
}
managed!(a_pod_that_ends_stops_counting_and_its_record_goes, super::NO_FLAGS);

/// PROTECTION-13: another webhook, which is asked after ours, refuses. (A real server calls validating webhooks in no fixed
/// order and all of them, so the test writes the record itself there: it plays on the embedded cluster only.)
async fn a_deletion_that_never_comes_gives_its_share_back(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "lost", 3, json!({"maxUnavailable": 1})).await;
    let pod = scene.serving().await.remove(0);
    let sim = stage.sim();
    sim.server().register_webhook_host("no.invalid", deny());
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "zz-no"},
        "webhooks": [{"name": "zz.no.invalid", "clientConfig": {"url": "https://no.invalid/"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"]}]}],
    });
    stage.put(hook.clone()).await;
    let refusal = scene.delete(&pod).await.unwrap_err();
    assert!(refusal.contains("zz.no.invalid"), "{refusal}");
    stage.api(&hook).delete("zz-no", &kube::api::DeleteParams::default()).await.unwrap();
    let began = Instant::now();
    let taken = scene.budget("web").await;
    assert_eq!((records(&taken), taken["status"]["unavailableAllowed"].as_i64()), (1, Some(0)));
    let other = scene.serving().await.into_iter().find(|name| *name != pod).unwrap();
    refused(scene.delete(&other).await, 403);
    scene.until("web", "the record ran out", |budget| records(budget) == 0).await;
    let took = began.elapsed();
    assert!((Duration::from_secs(19)..Duration::from_secs(25)).contains(&took), "{took:?}");
    scene.until_event(&format!("Pod/{pod}"), "NotDeleted").await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    Ok(())
}
embedded_only!(a_deletion_that_never_comes_gives_its_share_back, super::NO_FLAGS);

fn deny() -> impl tower::Service<
    http::Request<http_body_util::Full<bytes::Bytes>>,
    Response = http::Response<http_body_util::Full<bytes::Bytes>>,
    Error = String,
    Future = impl Send,
> + Clone
+ Send
+ 'static {
    tower::service_fn(|request: http::Request<http_body_util::Full<bytes::Bytes>>| async move {
        let body =
            http_body_util::BodyExt::collect(request.into_body()).await.map_err(|error| error.to_string())?;
        let review: Value = serde_json::from_slice(&body.to_bytes()).map_err(|error| error.to_string())?;
        let answer = json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], "allowed": false, "status": {"message": "not today"}}});
        Ok(http::Response::new(http_body_util::Full::new(bytes::Bytes::from(answer.to_string()))))
    })
}

/// PROTECTION-14
async fn a_pod_of_the_same_name_pays_again(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "namesake").await;
    let object = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}}, "template": scene.template()}});
    let _: StatefulSet = scene.sandbox.create(object).await;
    scene.ready(2).await;
    let reference = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"});
    scene.create_budget("web", json!({"targetRef": reference, "maxUnavailable": 1})).await;
    scene.until_numbers("web", [1, 2, 1, 2]).await;
    for _ in 0..2 {
        let old: Pod = scene.sandbox.get("web-0").await;
        scene.delete("web-0").await.unwrap();
        refused(scene.delete("web-1").await, 403);
        let look = async || match scene.sandbox.api::<Pod>().get_opt("web-0").await.unwrap() {
            Some(pod) => {
                seen(pod.metadata.uid != old.metadata.uid && is_ready(&pod), "not the new one, or not ready")
            }
            None => Look::No("it is not there".to_owned()),
        };
        scene.sandbox.eventually("the new pod serves", look).await;
        scene.until("web", "it counts", |budget| crate::scene::numbers(budget) == [1, 2, 1, 2]).await;
    }
    Ok(())
}
managed!(a_pod_of_the_same_name_pays_again, super::NO_FLAGS);

/// PROTECTION-32
async fn a_record_survives_the_manager_that_wrote_it(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "killed").await;
    scene
        .create_set(3, json!({"spec": {"template": {"metadata": {"finalizers": ["kruise-rs.io/test"]}}}}))
        .await;
    scene.ready(3).await;
    scene
        .create_budget("web", crate::scene::merged(crate::scene::target(), &json!({"maxUnavailable": 1})))
        .await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    // What a manager leaves behind that dies between its write and the deletion.
    let pods = scene.serving().await;
    stage.kill_manager();
    let at = stage.sim().clock().now();
    let status = json!({"status": {"disruptedPods": {&pods[0]: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}, "unavailableAllowed": 0}});
    let patch = kube::api::Patch::Merge(status);
    scene.budgets().patch_status("web", &kube::api::PatchParams::default(), &patch).await.unwrap();
    let began = Instant::now();
    stage.start_manager().await;
    let look = async || match scene.delete(&pods[1]).await {
        Err(text) if text.contains(crate::scene::USED_UP) => Look::Yes(()),
        other => Look::No(format!("{other:?}")),
    };
    scene.sandbox.eventually("the record is honoured", look).await;
    scene.until_numbers("web", [1, 3, 2, 3]).await;
    let took = began.elapsed();
    assert!((Duration::from_secs(18)..Duration::from_secs(26)).contains(&took), "{took:?}");
    for pod in pods {
        let _ = scene.patch_pod(&pod, json!({"metadata": {"finalizers": null}})).await;
    }
    Ok(())
}
embedded_only!(a_record_survives_the_manager_that_wrote_it, super::NO_FLAGS);

/// A drain of the first pod that a PodDisruptionBudget holds up.
struct Stuck {
    scene: Scene,
    pod: String,
}

impl Stuck {
    async fn start(stage: &Stage, purpose: &str) -> Self {
        let scene = Scene::start(stage, purpose, 3, json!({"maxUnavailable": 1})).await;
        scene.until_numbers("web", [1, 3, 2, 3]).await;
        let pod = scene.serving().await.remove(0);
        let native = json!({"metadata": {"name": "one"}, "spec": {"minAvailable": 1,
            "selector": {"matchLabels": {"drained": "yes"}}}});
        scene.patch_pod(&pod, json!({"metadata": {"labels": {"drained": "yes"}}})).await.unwrap();
        let _: PodDisruptionBudget = scene.sandbox.create(native).await;
        let look = async || {
            let status = scene.sandbox.get::<PodDisruptionBudget>("one").await.status;
            seen(status.as_ref().is_some_and(|status| status.current_healthy == 1), format!("{status:?}"))
        };
        scene.sandbox.eventually("the other budget counts", look).await;
        Self { scene, pod }
    }

    /// Evicts the pod again and again until somebody else, who starts a little later, has deleted another one. Returns how long
    /// that took.
    async fn lets_others_through(&self, every: Duration, other: Duration) -> Duration {
        let scene = &self.scene;
        let began = Instant::now();
        let evicting = async {
            loop {
                let answer = scene.evict(&self.pod).await;
                assert!(answer.as_ref().is_err_and(|text| text.starts_with("429 ")), "{answer:?}");
                tokio::time::sleep(every).await;
            }
        };
        let deleting = async {
            // The first eviction has the share.
            tokio::time::sleep(Duration::from_millis(2500)).await;
            let pod = scene.serving().await.into_iter().find(|name| *name != self.pod).unwrap();
            while scene.delete(&pod).await.is_err() {
                assert!(began.elapsed() < Duration::from_secs(120), "the share never goes back: {every:?}");
                tokio::time::sleep(other).await;
            }
        };
        tokio::select! {
            () = evicting => {}
            () = deleting => {}
        }
        began.elapsed()
    }

    /// Evicts the pod until that succeeds.
    async fn ends(&self, every: Duration) {
        let began = Instant::now();
        while let Err(text) = self.scene.evict(&self.pod).await {
            assert!(text.starts_with("429 ") && began.elapsed() < Duration::from_secs(60), "{text}");
            tokio::time::sleep(every).await;
        }
    }
}

/// PROTECTION-13: a drain that something else holds up asks again and again, at the interval of kubectl. Its share goes back
/// all the same, to somebody else; when nothing holds it up any more it ends.
async fn a_drain_that_others_hold_up_keeps_no_share(stage: &mut Stage) -> Outcome {
    let stuck = Stuck::start(stage, "stuck").await;
    let every = Duration::from_secs(5);
    let took = stuck.lets_others_through(every, Duration::from_secs(1)).await;
    assert!(took < Duration::from_secs(45), "{took:?}");
    stuck.scene.until_event(&format!("Pod/{}", stuck.pod), "NotDeleted").await;
    stuck.scene.sandbox.delete::<PodDisruptionBudget>("one").await;
    stuck.ends(every).await;
    Ok(())
}
managed!(a_drain_that_others_hold_up_keeps_no_share, super::NO_FLAGS);

/// PROTECTION-13: the same at every interval: a client in step with the end of its own record once got the share each time.
async fn a_drain_lets_others_through_at_every_interval(stage: &mut Stage) -> Outcome {
    let stuck = Stuck::start(stage, "intervals").await;
    let slow = [(5, 5), (5, 10), (10, 5), (10, 10), (4, 10)];
    for (every, other) in (1..=10).map(|every| (every, 11 - every)).chain(slow) {
        let took = stuck.lets_others_through(Duration::from_secs(every), Duration::from_secs(other)).await;
        assert!(
            took < Duration::from_secs(35),
            "evictions every {every} s, deletions every {other} s: {took:?}"
        );
        stuck.scene.ready(3).await;
        stuck.scene.until_numbers("web", [1, 3, 2, 3]).await;
        stuck.scene.until("web", "the records are gone", |budget| records(budget) == 0).await;
    }
    stuck.scene.sandbox.delete::<PodDisruptionBudget>("one").await;
    stuck.ends(Duration::from_secs(5)).await;
    Ok(())
}
embedded_only!(a_drain_lets_others_through_at_every_interval, super::NO_FLAGS);
