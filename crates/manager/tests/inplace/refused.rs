//! Updates in place that the server refuses: reported, not counted, and paid for with no more than a moment of service.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kruise_api::cloneset::v1beta1::CloneSet;
use kruise_testkit::{Backend, Outcome};
use serde_json::{Value, json};

use crate::{
    film::Film,
    kit::{Demo, condition, image_of, is_available, is_ready, label, name, revision, rolling, updated},
    policy::{Policy, WORDS},
    stage::{Stage, embedded_only, managed},
    words::{in_place, is_false, lifecycle, restarts, start, state, with_images},
};

const RESIZE: [&str; 1] = ["--feature-gates=InPlaceWorkloadVerticalScaling=true"];

/// How long refusals are watched.
fn a_while(stage: &Stage) -> Duration {
    Duration::from_secs(if stage.cluster.backend() == Backend::Embedded { 120 } else { 20 })
}

async fn until_told(demo: &Demo) {
    demo.until("people are told of the refusal", |set, pods| is_told(set) && pods.iter().all(is_available))
        .await;
}

fn is_told(set: &CloneSet) -> bool {
    condition(set, "FailedUpdate")
        .is_some_and(|[status, _, message]| status == "True" && message.contains(WORDS))
}

/// How often a pod of the film went from ready to not ready.
fn interruptions(film: &Film) -> usize {
    let frames = film.frames();
    let pairs = frames.windows(2);
    let lost = pairs.map(|pair| {
        let was_ready = |pod: &&Pod| pair[0].pods.get(&name(pod)).is_some_and(is_ready);
        pair[1].active().filter(was_ready).filter(|pod| !is_ready(pod)).count()
    });
    lost.sum()
}

/// Nobody counts a refused update, and every pod says truly what it is.
async fn nothing_was_updated(demo: &Demo, before: &str) {
    let set = demo.set().await;
    assert_eq!(set.status.as_ref().unwrap().updated_replicas, 0);
    for pod in demo.pods().await {
        assert_eq!(revision(&pod), before);
        assert_eq!(lifecycle(&pod), "Normal");
        assert_eq!(state(&pod), Value::Null, "nothing is left of the try");
        assert!(is_ready(&pod) && !is_false(&pod, "InPlaceUpdateReady"));
    }
    assert_eq!(demo.events("SuccessfulUpdatePodInPlace").await, []);
    let failed = demo.events("FailedUpdatePodInPlace").await;
    assert!(!failed.is_empty());
    for event in failed {
        assert_eq!((event.kind.as_str(), event.about.as_str()), ("Warning", "CloneSet/demo"));
        assert!(event.message.contains(WORDS), "{}", event.message);
    }
}

/// An image that a policy refuses: one pod is not ready for a moment, once. What is allowed later goes on by itself.
async fn a_refused_image_costs_one_pod_one_moment(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "refused", 3, json!({})).await?;
    let (before, uids) = (revision(&demo.pods().await[0]), demo.uids().await);
    let expression = "object.spec.containers.all(c, !c.image.endsWith('v2'))";
    let policy = Policy::begins(stage, demo.sandbox.namespace(), "pods", expression).await;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    until_told(&demo).await;
    demo.always("it is told and everything serves", a_while(stage), |set, pods| {
        is_told(set) && updated(pods, set) == 0 && pods.iter().all(is_available)
    })
    .await;
    assert_eq!(interruptions(&film), 1);
    assert!(film.fewest_available() >= 2);
    nothing_was_updated(&demo, &before).await;
    let [_, _, message] = condition(&demo.set().await, "FailedUpdate").unwrap();
    assert!(message.ends_with("a new pod may be refused as well"), "{message}");
    assert!(
        stage.cluster.backend() == Backend::Real || demo.events("FailedUpdatePodInPlace").await.len() < 12
    );
    policy.ends().await;
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, uids);
    assert_eq!(condition(&demo.set().await, "FailedUpdate"), None);
    assert_eq!(demo.events("SuccessfulUpdatePodInPlace").await.len(), 3);
    assert!(film.fewest_available() >= 2);
    Ok(())
}
managed!(a_refused_image_costs_one_pod_one_moment, []);

/// One pod that is refused does not use up what may be unavailable: the others are updated.
async fn one_refused_pod_does_not_hold_up_the_others(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "refused-one", 4, rolling(json!({"maxUnavailable": 1}))).await?;
    let refused = name(&demo.pods().await[1]);
    let expression = format!(
        "object.metadata.name != '{refused}' || object.spec.containers.all(c, !c.image.endsWith('v2'))"
    );
    let policy = Policy::begins(stage, demo.sandbox.namespace(), "pods", &expression).await;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    demo.until("all others are updated", |set, pods| {
        updated(pods, set) == 3 && pods.iter().all(is_available) && is_told(set)
    })
    .await;
    assert!(film.fewest_available() >= 3);
    // Three for the updates, one for the first refusal.
    assert!(interruptions(&film) <= 4, "{}", interruptions(&film));
    policy.ends().await;
    demo.rolled_out().await;
    Ok(())
}
managed!(one_refused_pod_does_not_hold_up_the_others, []);

/// The amounts are announced before they change, so a refusal takes the announcement back.
async fn a_refused_resize_is_taken_back(stage: &mut Stage) -> Outcome {
    stage.cluster.require("v1", "pods/resize").await?;
    let image = stage.cluster.image("app:v1");
    let containers = |cpu: &str| {
        json!([{"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}},
            "readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1}}])
    };
    let template = |cpu: &str, note: &str| {
        json!({"spec": {"template":
            {"metadata": {"annotations": {"note": note}}, "spec": {"containers": containers(cpu)}}}})
    };
    let demo = start(stage, "refused-resize", 3, template("100m", "old")).await?;
    let (before, uids) = (revision(&demo.pods().await[0]), demo.uids().await);
    let policy = Policy::begins(stage, demo.sandbox.namespace(), "pods/resize", "false").await;
    let film = demo.film().await;
    demo.change(template("200m", "new")).await;
    until_told(&demo).await;
    demo.always("it is told and everything serves", a_while(stage), |set, pods| {
        is_told(set) && updated(pods, set) == 0 && pods.iter().all(is_available)
    })
    .await;
    assert!(film.fewest_available() >= 2);
    // One pod was announced as updated, and no other.
    assert_eq!(film.order(|pod| revision(pod) != before).len(), 1);
    nothing_was_updated(&demo, &before).await;
    for pod in demo.pods().await {
        assert_eq!(crate::kit::annotation(&pod, "note"), "old");
    }
    let [_, _, message] = condition(&demo.set().await, "FailedUpdate").unwrap();
    assert!(message.contains("a new pod would get it: delete the pod"), "{message}");
    policy.ends().await;
    demo.rolled_out().await;
    assert_eq!(demo.uids().await, uids);
    for pod in demo.pods().await {
        assert_eq!(crate::kit::annotation(&pod, "note"), "new");
        assert_eq!(restarts(&pod, "main"), 0);
        assert_eq!(state(&pod)["previousRevision"], Value::Null);
    }
    Ok(())
}
managed!(a_refused_resize_is_taken_back, super::RESIZE);

/// A later batch that is refused takes back what the earlier ones changed.
async fn a_refused_second_batch_takes_the_first_one_back(stage: &mut Stage) -> Outcome {
    stage.cluster.require_nodes(kruise_testkit::cluster::REAL_NODES).await?;
    let demo = Demo::prepare(stage, "refused-batch").await;
    let map = json!({"metadata": {"name": "demo-barrier"}, "data": {"p_10": "true", "p_0": "true"}});
    let _: ConfigMap = demo.sandbox.create(map).await;
    let container = |name: &str, port: u16, priority: u32| {
        let barrier = json!({"configMapKeyRef": {"name": "demo-barrier", "key": format!("p_{priority}")}});
        json!({
            "name": name, "image": demo.image("app:v1"),
            "env": [{"name": "PORT", "value": port.to_string()},
                {"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": barrier}],
            "readinessProbe": {"httpGet": {"port": port}, "periodSeconds": 1},
        })
    };
    let containers = [container("a", 8080, 10), container("b", 8081, 0)];
    demo.create(in_place(2, &json!({"spec": {"template": {"spec": {"containers": containers}}}}))).await;
    demo.settled().await;
    let before = revision(&demo.pods().await[0]);
    let expression = "object.spec.containers.all(c, c.name != 'b' || !c.image.endsWith('v2'))";
    let policy = Policy::begins(stage, demo.sandbox.namespace(), "pods", expression).await;
    let film = demo.film().await;
    demo.change(with_images(&demo, &["app:v2", "app:v2"]).await).await;
    until_told(&demo).await;
    demo.always("it is told and everything serves", a_while(stage), |set, pods| {
        is_told(set) && pods.iter().all(is_available)
    })
    .await;
    let (old, new) = (demo.image("app:v1"), demo.image("app:v2"));
    assert_eq!(film.order(|pod| image_of(pod, "a") == new).len(), 1, "no other pod pays for it");
    for pod in demo.pods().await {
        assert_eq!([image_of(&pod, "a"), image_of(&pod, "b")], [old.clone(), old.clone()]);
        assert_eq!(revision(&pod), before);
    }
    policy.ends().await;
    demo.rolled_out().await;
    Ok(())
}
managed!(a_refused_second_batch_takes_the_first_one_back, []);

/// A refusal at the end of a grace period: the pod does not keep the label of the new revision.
async fn a_refusal_after_the_grace_period_is_taken_back(stage: &mut Stage) -> Outcome {
    let grace = rolling(json!({"inPlaceUpdateStrategy": {"gracePeriodSeconds": 5}}));
    let demo = start(stage, "refused-grace", 2, grace).await?;
    let before = revision(&demo.pods().await[0]);
    let expression = "object.spec.containers.all(c, !c.image.endsWith('v2'))";
    let policy = Policy::begins(stage, demo.sandbox.namespace(), "pods", expression).await;
    let film = demo.film().await;
    demo.set_image("app:v2").await;
    until_told(&demo).await;
    demo.always("it is told and everything serves", a_while(stage), |set, pods| {
        is_told(set) && pods.iter().all(is_available)
    })
    .await;
    assert_eq!(interruptions(&film), 1);
    nothing_was_updated(&demo, &before).await;
    for pod in demo.pods().await {
        assert_eq!(crate::kit::annotation(&pod, kruise_api::annotations::IN_PLACE_UPDATE_GRACE), "");
    }
    policy.ends().await;
    demo.rolled_out().await;
    Ok(())
}
managed!(a_refusal_after_the_grace_period_is_taken_back, []);

/// A hook that let the pod be updated gets it back, and is not asked again while the server refuses.
async fn a_refused_pod_is_given_back_to_its_hook(stage: &mut Stage) -> Outcome {
    let hooked = json!({"spec": {
        "lifecycle": {"inPlaceUpdate": {"labelsHandler": {"h": "true"}}},
        "template": {"metadata": {"labels": {"app": "demo", "h": "true"}}},
    }});
    let demo = start(stage, "refused-hook", 1, hooked).await?;
    let expression = "object.spec.containers.all(c, !c.image.endsWith('v2'))";
    let policy = Policy::begins(stage, demo.sandbox.namespace(), "pods", expression).await;
    demo.set_image("app:v2").await;
    demo.until("the hook is asked", |_, pods| pods.iter().all(|pod| lifecycle(pod) == "PreparingUpdate"))
        .await;
    let pod = name(&demo.pods().await[0]);
    demo.change_pod(&pod, json!({"metadata": {"labels": {"h": "false"}}})).await;
    demo.until("the hook gets it back", |set, pods| {
        is_told(set) && pods.iter().all(|pod| lifecycle(pod) == "Updated" && is_ready(pod))
    })
    .await;
    demo.change_pod(&pod, json!({"metadata": {"labels": {"h": "true"}}})).await;
    until_told(&demo).await;
    demo.always("the hook is left alone", a_while(stage), |_, pods| {
        pods.iter().all(|pod| is_available(pod) && label(pod, "h") == "true")
    })
    .await;
    policy.ends().await;
    demo.until("the hook is asked again", |_, pods| {
        pods.iter().all(|pod| lifecycle(pod) == "PreparingUpdate")
    })
    .await;
    Ok(())
}
managed!(a_refused_pod_is_given_back_to_its_hook, []);

/// A manager that starts anew knows of the refusal from the condition: no pod pays for it a second time.
///
/// Not on a real cluster, where other scenarios share the manager.
async fn a_new_manager_asks_before_a_pod_pays_again(stage: &mut Stage) -> Outcome {
    let demo = start(stage, "refused-restart", 3, json!({})).await?;
    let expression = "object.spec.containers.all(c, !c.image.endsWith('v2'))";
    let policy = Policy::begins(stage, demo.sandbox.namespace(), "pods", expression).await;
    demo.set_image("app:v2").await;
    until_told(&demo).await;
    let film = demo.film().await;
    for _ in 0..3 {
        stage.kill_manager();
        stage.start_manager().await;
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    until_told(&demo).await;
    assert_eq!(interruptions(&film), 0);
    policy.ends().await;
    demo.rolled_out().await;
    Ok(())
}
embedded_only!(a_new_manager_asks_before_a_pod_pays_again, []);
