//! Budgets as people write them.

use kruise_testkit::{
    Outcome,
    wait::{Look, seen},
};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, merged, refused, target},
    stage::{Stage, managed},
};

#[track_caller]
fn check(answer: Result<Value, String>, expected: &str) {
    let text = answer.unwrap_err();
    assert!(text.starts_with("422 ") && text.contains(expected), "{text}");
}

/// PROTECTION-28, PROTECTION-29: every rule with its path and text.
async fn bad_input_is_refused_with_the_text_that_users_know(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "bad").await;
    let labels = json!({"matchLabels": {"app": "web"}});
    let of = |spec: Value| scene.try_create_budget("web", spec);
    let both = merged(target(), &json!({"selector": labels, "maxUnavailable": 1}));
    check(
        of(both).await,
        "spec.selector, targetRef: Required value: selector and targetRef are mutually exclusive",
    );
    check(
        of(json!({"maxUnavailable": 1})).await,
        "spec.selector, targetRef: Required value: no selector or targetRef defined in PodUnavailableBudget",
    );
    check(
        of(json!({"selector": {}, "maxUnavailable": 1})).await,
        "empty selector is not valid for PodUnavailableBudget.",
    );
    let with = |more: Value| of(merged(json!({"selector": labels}), &more));
    let percent = "a valid percent string must be a numeric string followed by an ending '%'";
    check(with(json!({"maxUnavailable": "5"})).await, percent);
    check(with(json!({"maxUnavailable": "2.5%"})).await, percent);
    check(with(json!({"maxUnavailable": "150%"})).await, "must not be greater than 100%");
    check(with(json!({"maxUnavailable": -1})).await, "must be greater than or equal to 0");
    check(
        with(json!({})).await,
        "spec.maxUnavailable, minAvailable: Required value: no maxUnavailable or minAvailable defined in PodUnavailableBudget",
    );
    check(
        with(json!({"maxUnavailable": 1, "minAvailable": 1})).await,
        "maxUnavailable and minAvailable are mutually exclusive",
    );
    check(
        with(json!({"maxUnavailable": 1, "ignoredPodSelector": {}})).await,
        "empty ignoredPodSelector is not valid for PodUnavailableBudget",
    );
    let target = |change: Value| {
        of(merged(merged(target(), &json!({"maxUnavailable": 1})), &json!({"targetRef": change})))
    };
    check(target(json!({"name": ""})).await, "empty targetRef is not valid for PodUnavailableBudget");
    check(target(json!({"apiVersion": "a/b/c"})).await, "spec.targetRef: Invalid value");
    of(merged(crate::scene::target(), &json!({"maxUnavailable": 1}))).await.unwrap();
    let moved = scene.change_budget("web", json!({"spec": {"targetRef": {"name": "other"}}})).await;
    let text = moved.unwrap_err();
    assert!(
        text.contains("spec.selector, targetRef: Required value: selector and targetRef cannot be modified"),
        "{text}"
    );
    Ok(())
}
managed!(bad_input_is_refused_with_the_text_that_users_know, super::NO_FLAGS);

/// PROTECTION-27
async fn budgets_of_one_namespace_do_not_overlap(stage: &mut Stage) -> Outcome {
    let (scene, elsewhere) = (Scene::prepare(stage, "one").await, Scene::prepare(stage, "two").await);
    let labels =
        |key: &str, value: &str| json!({"selector": {"matchLabels": {key: value}}, "maxUnavailable": 1});
    scene.create_budget("a", labels("app", "web")).await;
    let either = json!({"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, "maxUnavailable": 1});
    check(
        scene.try_create_budget("b", either.clone()).await,
        "pub.spec.selector is in conflict with other PodUnavailableBudget a",
    );
    elsewhere.create_budget("b", either).await;
    scene.create_budget("c", labels("tier", "front")).await;
    scene.create_budget("d", merged(target(), &json!({"maxUnavailable": 1}))).await;
    let older = json!({"targetRef": {"apiVersion": "apps.kruise.io/v1alpha1"}, "maxUnavailable": 1});
    check(
        scene.try_create_budget("e", merged(target(), &older)).await,
        "spec.targetReference: Invalid value",
    );
    Ok(())
}
managed!(budgets_of_one_namespace_do_not_overlap, super::NO_FLAGS);

/// PROTECTION-26: pods of a budget that is gone belong to the next one.
async fn a_budget_that_replaces_another_takes_over_its_pods(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "replaced", 2, json!({"maxUnavailable": 2})).await;
    scene.budgets().delete("web", &DeleteParams::default()).await.unwrap();
    scene.create_budget("next", merged(target(), &json!({"maxUnavailable": 0}))).await;
    until_named(&scene, "next").await;
    // The other way round there is no moment without a budget.
    let labels = json!({"matchLabels": {"app": "web"}});
    scene.create_budget("third", json!({"selector": labels, "maxUnavailable": 0})).await;
    scene.budgets().delete("next", &DeleteParams::default()).await.unwrap();
    let began = tokio::time::Instant::now();
    until_named(&scene, "third").await;
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    refused(scene.delete(&scene.serving().await[0]).await, 403);
    Ok(())
}
managed!(a_budget_that_replaces_another_takes_over_its_pods, super::NO_FLAGS);

/// A pod whose labels change from those of one budget to those of another.
async fn a_pod_with_other_labels_belongs_to_another_budget(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "labels").await;
    for name in ["web", "db"] {
        let labels = json!({"matchLabels": {"app": name}});
        scene.create_budget(name, json!({"selector": labels, "maxUnavailable": 0})).await;
    }
    scene.create_pod("a", json!({})).await;
    until_named(&scene, "web").await;
    scene.patch_pod("a", json!({"metadata": {"labels": {"app": "db"}}})).await.unwrap();
    until_named(&scene, "db").await;
    Ok(())
}
managed!(a_pod_with_other_labels_belongs_to_another_budget, super::NO_FLAGS);

/// Waits until all pods name a budget.
async fn until_named(scene: &Scene, budget: &str) {
    let look = async || {
        let pods = scene.pods().await;
        let noted = pods.iter().filter(|pod| {
            let annotations = pod.metadata.annotations.clone().unwrap_or_default();
            ["pub.kruise.io/related-pub", "kruise.io/related-pub"]
                .iter()
                .all(|key| annotations.get(*key).is_some_and(|name| name == budget))
        });
        let noted = noted.count();
        seen(noted == pods.len(), format!("{noted} of {} pods name it", pods.len()))
    };
    scene.sandbox.eventually("the pods name the budget", look).await;
}

/// PROTECTION-23, PROTECTION-34: the older version, with what it cannot say.
async fn the_older_version_loses_nothing(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "versions").await;
    let older = |name: &str, operations: &str| {
        json!({"apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget",
            "metadata": {"name": name, "namespace": scene.sandbox.namespace(),
                "annotations": {"kruise.io/pub-protect-operations": operations}},
            "spec": {"selector": {"matchLabels": {"app": name}}, "maxUnavailable": 1}})
    };
    stage.create(older("a", "EVICT, UPDATE")).await.unwrap();
    assert_eq!(scene.budget("a").await["spec"]["protectOperations"], json!(["EVICT", "UPDATE"]));
    let text = stage.create(older("b", "EVICT,FOO")).await.unwrap_err();
    assert!(text.starts_with("422 ") && text.contains("FOO"), "{text}");
    let ignored = json!({"matchLabels": {"force": "true"}});
    let change = json!({"spec": {"ignoredPodSelector": ignored}});
    scene.change_budget("a", change).await.unwrap();
    stage.patch(&older("a", ""), &json!({"metadata": {"labels": {"more": "x"}}})).await.unwrap();
    assert_eq!(scene.budget("a").await["spec"]["ignoredPodSelector"], ignored);
    Ok(())
}
managed!(the_older_version_loses_nothing, super::NO_FLAGS);

/// PLATFORM-26: name, sidecar, order of the containers and budget of a new pod come with one answer.
async fn a_new_pod_gets_its_name_its_sidecar_its_order_and_its_budget_at_once(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "all").await;
    let namespace = scene.sandbox.namespace();
    let set = format!("s-{namespace}");
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": set},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "namespaceSelector": here,
            "containers": [{"name": "sc", "image": scene.cluster.image("app:v1")}]},
    });
    stage.create(object.clone()).await.unwrap();
    let labels = json!({"matchLabels": {"app": "web"}});
    scene.create_budget("web", json!({"selector": labels, "maxUnavailable": 1})).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "web-", "namespace": namespace, "labels": {"app": "web"},
            "annotations": {"apps.kruise.io/container-launch-priority": "Ordered"}},
        "spec": scene.pod_spec(),
    });
    let look = async || {
        let made = stage.create(pod.clone()).await.unwrap();
        let has_sidecar = made["spec"]["containers"].as_array().unwrap().len() == 2;
        if has_sidecar { Look::Yes(made) } else { Look::No("the SidecarSet is not known yet".to_owned()) }
    };
    let made = scene.sandbox.eventually("the pod has its sidecar", look).await;
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.len() == 9 && name.starts_with("web-"), "{name}");
    for container in made["spec"]["containers"].as_array().unwrap() {
        let env = container["env"].as_array().unwrap();
        let barrier = env.iter().find(|one| one["name"] == "KRUISE_CONTAINER_BARRIER").unwrap();
        let place = barrier["valueFrom"]["configMapKeyRef"]["name"].as_str().unwrap();
        assert!(place.starts_with(name), "{place}");
    }
    for key in ["pub.kruise.io/related-pub", "kruise.io/related-pub"] {
        assert_eq!(made["metadata"]["annotations"][key], "web");
    }
    stage.api(&object).delete(&set, &DeleteParams::default()).await.unwrap();
    Ok(())
}
managed!(a_new_pod_gets_its_name_its_sidecar_its_order_and_its_budget_at_once, super::NO_FLAGS);
