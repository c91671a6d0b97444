//! Where pods go, and which go first.

use kruise_api::annotations::MATCHED_WORKLOADSPREAD;
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    scene::{NO_FLAGS, Scene, annotation, name, node_of, places, subset, subset_of},
    stage::{Stage, embedded_only, managed},
};

fn two(a: impl Into<Value>, b: impl Into<Value>) -> Value {
    json!([subset("a", a.into()), subset("b", b.into())])
}

/// SPREAD-1: both subsets are filled; each pod runs in its zone, and the accounts are settled.
async fn pods_are_spread_over_two_zones(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "ws-two", 6, two(3, 3)).await;
    scene.until_places("a3 b3").await;
    scene.until_costs("a200 a200 a200 b100 b100 b100").await;
    scene.until_account("a 3/0, b 3/0").await;
    for pod in scene.pods().await {
        let text = serde_json::to_value(&pod).unwrap().to_string();
        let zone = format!("zone-{}", subset_of(&pod));
        assert!(text.contains(&zone), "{text}");
        // Pods of CloneSets have a name when they are admitted, so there is no key.
        let mark = format!(r#"{{"name":"w","subset":"{}"}}"#, subset_of(&pod));
        assert_eq!(annotation(&pod, MATCHED_WORKLOADSPREAD), Some(mark.as_str()));
    }
    Ok(())
}
managed!(pods_are_spread_over_two_zones, super::NO_FLAGS);

/// SPREAD-2: what is too much in a subset goes first, and people can lower the limits before they scale in.
async fn lowered_limits_choose_who_goes(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "ws-lower", 6, two(3, 3)).await;
    scene.until_places("a3 b3").await;
    scene.change_spread(json!({"spec": {"subsets": two(2, 2)}})).await;
    scene.until_costs("a-100 a200 a200 b-200 b100 b100").await;
    scene.scale_set(4).await;
    scene.until_places("a2 b2").await;
    scene.until_account("a 2/0, b 2/0").await;
    Ok(())
}
managed!(lowered_limits_choose_who_goes, super::NO_FLAGS);

/// SPREAD-3: the elastic subset takes the rest and gives it back first.
async fn the_elastic_subset_goes_first(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "ws-elastic", 5, two(2, Value::Null)).await;
    scene.until_places("a2 b3").await;
    scene.until_account("a 2/0, b 3/-1").await;
    scene.until_costs("a200 a200 b100 b100 b100").await;
    let fixed: Vec<String> =
        scene.pods().await.iter().filter(|pod| subset_of(pod) == "a").map(name).collect();
    scene.scale_set(2).await;
    scene.until_places("a2").await;
    assert_eq!(scene.pods().await.iter().map(name).collect::<Vec<_>>(), fixed);
    scene.scale_set(4).await;
    scene.until_places("a2 b2").await;
    scene.until_account("a 2/0, b 2/-1").await;
    Ok(())
}
managed!(the_elastic_subset_goes_first, super::NO_FLAGS);

/// SPREAD-4, SPREAD-35: shares follow the number of wanted pods at once, whatever version the target is written in.
async fn shares_follow_the_number_of_pods(stage: &mut Stage) -> Outcome {
    for version in ["v1beta1", "v1alpha1"] {
        let scene = Scene::prepare(stage, "ws-share").await;
        scene.spread(&format!("apps.kruise.io/{version}"), "CloneSet", two("30%", "70%")).await;
        scene.create_set(4).await;
        scene.until_places("a2 b2").await;
        scene.until_account("a 2/0, b 2/1").await;
        scene.scale_set(10).await;
        scene.until_places("a3 b7").await;
        scene.until_account("a 3/0, b 7/0").await;
    }
    Ok(())
}
managed!(shares_follow_the_number_of_pods, super::NO_FLAGS);

/// SPREAD-6: nothing is booked in a single open subset; its patch still comes.
async fn an_open_subset_books_nothing(stage: &mut Stage) -> Outcome {
    let env = json!([{"name": "SUBSET", "value": "a"}]);
    let mut only = subset("a", Value::Null);
    only["patch"] = json!({"metadata": {"labels": {"subset": "a"}}, "spec": {"containers": [{"name": "main", "env": env}]}});
    let scene = Scene::start(stage, "ws-open", 3, json!([only])).await;
    for _ in 0..30 {
        assert!(scene.has_no_records().await);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    scene.until_places("a3").await;
    scene.until_costs("a100 a100 a100").await;
    for pod in scene.pods().await {
        let pod = serde_json::to_value(&pod).unwrap();
        assert_eq!(pod["metadata"]["labels"]["subset"], "a");
        assert_eq!(pod["spec"]["containers"][0]["env"], env);
    }
    Ok(())
}
managed!(an_open_subset_books_nothing, super::NO_FLAGS);

/// SPREAD-7: pods without a subset are as the workload made them, and go first.
async fn pods_without_a_subset_are_plain(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-plain").await;
    scene.spread("apps.kruise.io/v1beta1", "CloneSet", json!([subset("a", 2.into())])).await;
    // The plain pods run elsewhere: one that came to zone a by chance would be adopted.
    let even = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let change = json!({"spec": {"template": {"spec": {"topologySpreadConstraints": even}}}});
    scene.create("apps.kruise.io/v1beta1", "CloneSet", 4, change).await;
    scene.until_places("a2 -2").await;
    scene.until_costs("--200 --200 a100 a100").await;
    for pod in scene.pods().await.iter().filter(|pod| subset_of(pod) == "-") {
        assert_eq!(annotation(pod, MATCHED_WORKLOADSPREAD), None);
        assert!(pod.spec.as_ref().unwrap().affinity.is_none());
    }
    // WAITING-22
    assert_eq!(
        scene.until_event("Waiting").await,
        "SubsetFull: all subsets are full (a 2/2); 2 pods are without a subset"
    );
    Ok(())
}
managed!(pods_without_a_subset_are_plain, super::NO_FLAGS);

/// SPREAD-8, SPREAD-9: the pods of a new revision are counted apart, so they fill the first subset again.
async fn a_rollout_fills_the_subsets_again(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-rollout").await;
    scene.spread("apps/v1", "Deployment", two(2, Value::Null)).await;
    let slow = json!({"spec": {"minReadySeconds": 5, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}});
    scene.create("apps/v1", "Deployment", 4, slow).await;
    scene.until_places("a2 b2").await;
    scene.until_account("a 2/0, b 2/-1").await;
    scene.until_costs("a200 a200 b100 b100").await;
    let change = json!({"spec": {"template": {"metadata": {"annotations": {"roll": "1"}}}}});
    scene.sandbox.merge::<k8s_openapi::api::apps::v1::Deployment>("web", change).await;
    scene
        .until_status("two versions are counted", |status| {
            status["versionedSubsetStatuses"].as_object().is_some_and(|versions| versions.len() == 2)
        })
        .await;
    let look = async || {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for pod in scene.pods().await {
            let cost = annotation(&pod, kruise_api::annotations::POD_DELETION_COST).unwrap_or("?");
            let told = format!("{}{cost}", subset_of(&pod));
            let is_new = annotation(&pod, "roll").is_some();
            if is_new { new.push(told) } else { old.push(told) }
        }
        let turned = old.iter().all(|told| ["a100", "b200"].contains(&told.as_str()));
        let filled = new.iter().all(|told| ["a200", "b100"].contains(&told.as_str()));
        kruise_testkit::wait::seen(
            !old.is_empty() && !new.is_empty() && turned && filled,
            format!("{old:?} {new:?}"),
        )
    };
    scene.sandbox.eventually("old pods of the first subset are cheaper", look).await;
    let look = async || {
        let pods = scene.pods().await;
        let is_new = pods.iter().all(|pod| annotation(pod, "roll").is_some());
        kruise_testkit::wait::seen(is_new && places(&pods) == "a2 b2", places(&pods))
    };
    scene.sandbox.eventually("the new pods are spread as the old ones were", look).await;
    scene
        .until_status("one version is left", |status| {
            status["versionedSubsetStatuses"].as_object().is_some_and(|versions| versions.len() == 1)
        })
        .await;
    Ok(())
}
managed!(a_rollout_fills_the_subsets_again, super::NO_FLAGS);

/// SPREAD-16, SPREAD-18: patches and terms come together with what the template says itself.
async fn patches_and_terms_are_added_to_the_template(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "ws-patch").await;
    let env = |value: &str| json!([{"name": "ZONE", "value": value}]);
    let patched = |name: &str| {
        let mut one = subset(name, if name == "a" { json!(1) } else { Value::Null });
        one["patch"] = json!({"metadata": {"labels": {"zone": name}}, "spec": {"containers": [{"name": "main", "env": env(name)}]}});
        one["tolerations"] = json!([{"key": "burst", "operator": "Exists"}]);
        one
    };
    scene.spread("apps.kruise.io/v1beta1", "CloneSet", json!([patched("a"), patched("b")])).await;
    let term = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    let terms = json!([term("kubernetes.io/hostname"), term("topology.kubernetes.io/zone")]);
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let change = json!({"spec": {"template": {"spec": {"affinity": {"nodeAffinity": required}}}}});
    scene.create("apps.kruise.io/v1beta1", "CloneSet", 2, change).await;
    scene.until_places("a1 b1").await;
    for pod in scene.pods().await {
        let zone = subset_of(&pod);
        let pod = serde_json::to_value(&pod).unwrap();
        assert_eq!(pod["metadata"]["labels"]["zone"], zone.as_str());
        assert_eq!(pod["spec"]["containers"][0]["env"], env(&zone));
        assert!(pod["spec"]["tolerations"].to_string().contains("burst"));
        let path =
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let terms = pod.pointer(path).and_then(Value::as_array).unwrap();
        assert_eq!(terms.len(), 2);
        assert!(terms.iter().all(|term| term.to_string().contains(&format!("zone-{zone}"))), "{terms:?}");
    }
    Ok(())
}
managed!(patches_and_terms_are_added_to_the_template, super::NO_FLAGS);

/// SPREAD-17: a patch may give pods another priority class, whose number comes with it. A class is an object of the whole
/// cluster, which tests on a real one leave alone.
async fn a_patch_may_change_the_priority_class(stage: &mut Stage) -> Outcome {
    for (class, value) in [("low", 10), ("high", 1000)] {
        let object = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": class}, "value": value});
        stage.put(object).await;
    }
    let scene = Scene::prepare(stage, "ws-class").await;
    let mut first = subset("a", 1.into());
    first["patch"] = json!({"spec": {"priorityClassName": "high"}});
    scene.spread("apps.kruise.io/v1beta1", "CloneSet", json!([first, subset("b", Value::Null)])).await;
    let change = json!({"spec": {"template": {"spec": {"priorityClassName": "low"}}}});
    scene.create("apps.kruise.io/v1beta1", "CloneSet", 2, change).await;
    scene.until_places("a1 b1").await;
    for pod in scene.pods().await {
        let expected = if subset_of(&pod) == "a" { ("high", 1000) } else { ("low", 10) };
        let spec = pod.spec.as_ref().unwrap();
        let told = (spec.priority_class_name.as_deref().unwrap(), spec.priority.unwrap());
        assert_eq!(told, expected);
    }
    Ok(())
}
embedded_only!(a_patch_may_change_the_priority_class, super::NO_FLAGS);

/// SPREAD-22: swapped subsets swap their costs, and no pod moves.
async fn swapped_subsets_swap_their_costs(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "ws-swap", 4, two(2, 2)).await;
    scene.until_places("a2 b2").await;
    scene.until_costs("a200 a200 b100 b100").await;
    let before: Vec<(String, String)> =
        scene.pods().await.iter().map(|pod| (name(pod), node_of(pod).to_owned())).collect();
    scene.change_spread(json!({"spec": {"subsets": [subset("b", 2.into()), subset("a", 2.into())]}})).await;
    scene.until_costs("a100 a100 b200 b200").await;
    scene.until_account("b 2/0, a 2/0").await;
    let after: Vec<(String, String)> =
        scene.pods().await.iter().map(|pod| (name(pod), node_of(pod).to_owned())).collect();
    assert_eq!(before, after);
    Ok(())
}
managed!(swapped_subsets_swap_their_costs, super::NO_FLAGS);

/// SPREAD-21: pods of a subset that is removed go first.
async fn pods_of_a_removed_subset_go_first(stage: &mut Stage) -> Outcome {
    let scene = Scene::start(stage, "ws-removed", 4, two(2, 2)).await;
    scene.until_places("a2 b2").await;
    scene.change_spread(json!({"spec": {"subsets": [subset("a", 2.into())]}})).await;
    scene.until_costs("a100 a100 b-200 b-200").await;
    scene.scale_set(2).await;
    scene.until_places("a2").await;
    Ok(())
}
managed!(pods_of_a_removed_subset_go_first, super::NO_FLAGS);
