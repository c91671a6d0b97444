//! Which namespaces get a copy.

use kruise_testkit::{Outcome, wait::seen};
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::{
    scene::{CONDITIONS, FROM, HASH, OPEN, Scene, condition, config, included, named, types},
    stage::{Stage, managed},
};

/// DISTRIBUTION-1
async fn named_namespaces_get_a_copy(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-named").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), included(&[&one, &two])).await;
    let object = scene.until(&name, "2/2/0").await;
    for namespace in [&one, &two] {
        let copy = scene.copy(namespace, &name).await.unwrap();
        assert_eq!(copy["data"], json!({"a": "1"}));
        let owner = &copy["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], object["metadata"]["uid"]);
        assert_eq!((&owner["controller"], &owner["blockOwnerDeletion"]), (&json!(true), &json!(true)));
        assert_eq!(copy["metadata"]["annotations"][FROM], json!(name));
        assert_eq!(copy["metadata"]["annotations"][HASH].as_str().unwrap().len(), 64);
    }
    assert_eq!(types(&object), CONDITIONS);
    for kind in CONDITIONS {
        let one = condition(&object, kind).unwrap();
        assert_eq!((&one["status"], &one["reason"]), (&json!("False"), &json!("Succeeded")));
        assert!(one["failedNamespaces"].is_null() && one["lastTransitionTime"].is_string(), "{one}");
    }
    Ok(())
}
managed!(named_namespaces_get_a_copy, super::OPEN);

/// DISTRIBUTION-2
async fn namespaces_are_chosen_by_their_labels(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-labels").await;
    let team = scene.home.namespace().to_owned();
    let labels = json!({"team": team});
    let (one, two) = (scene.space(labels.clone()).await, scene.space(json!({})).await);
    let selector = json!({"namespaceSelector": {"matchLabels": labels}});
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), selector).await;
    scene.until_held(&name, &[&one]).await;
    let three = scene.name("later");
    let namespace = json!({"metadata": {"name": three, "labels": labels}});
    let namespace = serde_json::from_value(namespace).unwrap();
    scene.namespaces().create(&PostParams::default(), &namespace).await.unwrap();
    scene.until_held(&name, &[&one, &three]).await;
    scene.label(&two, labels.clone()).await;
    scene.until_held(&name, &[&one, &two, &three]).await;
    scene.until(&name, "3/3/0").await;
    scene.label(&one, json!({"team": null})).await;
    scene.until_held(&name, &[&two, &three]).await;
    scene.until(&name, "2/2/0").await;
    // DISTRIBUTION-16: a namespace that goes drops out, without a failure.
    scene.namespaces().delete(&three, &DeleteParams::default()).await.unwrap();
    let object = scene.until(&name, "1/1/0").await;
    assert_eq!(types(&object), CONDITIONS);
    Ok(())
}
managed!(namespaces_are_chosen_by_their_labels, super::OPEN);

/// DISTRIBUTION-3
async fn all_namespaces_are_all_but_those_of_the_system(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-all").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    let targets = json!({"allNamespaces": true, "excludedNamespaces": {"list": named(&[&two])},
        "includedNamespaces": {"list": named(&["nowhere"])}});
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), targets).await;
    scene
        .home
        .eventually("all others have it", async || {
            let all = scene.namespaces().list(&kube::api::ListParams::default()).await.unwrap();
            let alive = all.items.iter().filter(|one| one.metadata.deletion_timestamp.is_none());
            let mut expected: Vec<&str> = alive.filter_map(|one| one.metadata.name.as_deref()).collect();
            expected.retain(|name| !["kube-system", "kube-public", &two].contains(name));
            let found = scene.holders(&name).await;
            let is_so = expected.iter().all(|name| found.iter().any(|one| one == name));
            let leaves = ["kube-system", "kube-public", &two];
            let is_so = is_so && !found.iter().any(|name| leaves.contains(&name.as_str()));
            let object = scene.get(&name).await;
            let counts = object["status"]["desired"] == json!(expected.len());
            seen(is_so && counts, format!("{found:?} of {expected:?}, {}", object["status"]))
        })
        .await;
    assert!(scene.holders(&name).await.contains(&one));
    scene.all().delete(&name, &DeleteParams::default()).await.unwrap();
    scene.until_held(&name, &[]).await;
    Ok(())
}
managed!(all_namespaces_are_all_but_those_of_the_system, super::OPEN);

/// DISTRIBUTION-4, DISTRIBUTION-5, DISTRIBUTION-6
async fn what_is_left_out_counts_for_nothing(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-less").await;
    let labels = json!({"team": scene.home.namespace()});
    let (one, two) = (scene.space(json!({})).await, scene.space(labels.clone()).await);
    let three = scene.space(labels.clone()).await;
    let targets = json!({
        "includedNamespaces": {"list": named(&["kube-system", &one])},
        "namespaceSelector": {"matchLabels": labels},
        "excludedNamespaces": {"list": named(&[&two])},
    });
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), targets).await;
    scene.until(&name, "2/2/0").await;
    scene.until_held(&name, &[&one, &three]).await;
    // No rule and a selector that says nothing choose nothing, and copies are removed.
    for targets in [json!({"namespaceSelector": {}}), json!({})] {
        let name = scene.name(if targets == json!({}) { "none" } else { "empty" });
        let name = scene.distribute(config(&name, json!({"a": "1"})), targets).await;
        scene.until(&name, "0/0/0").await;
        assert_eq!(scene.holders(&name).await, [""; 0]);
    }
    let nothing = json!({"spec": {"targets": {"includedNamespaces": null, "namespaceSelector": null}}});
    scene.change(&name, nothing).await.unwrap();
    scene.until(&name, "0/0/0").await;
    scene.until_held(&name, &[]).await;
    Ok(())
}
managed!(what_is_left_out_counts_for_nothing, super::OPEN);

/// DISTRIBUTION-14: where targets shrink, copies go, and what belongs to others stays.
async fn copies_go_where_targets_shrink(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-shrink").await;
    let [one, two, three] = [(); 3].map(|()| scene.space(json!({})));
    let (one, two, three) = (one.await, two.await, three.await);
    let name = scene.name("x");
    scene.put("ConfigMap", &three, json!({"metadata": {"name": name}, "data": {"mine": "yes"}})).await;
    scene.distribute(config(&name, json!({"a": "1"})), included(&[&one, &two, &three])).await;
    scene.until(&name, "3/2/1").await;
    scene.change(&name, json!({"spec": {"targets": included(&[&two])}})).await.unwrap();
    scene.until_held(&name, &[&two, &three]).await;
    assert_eq!(scene.copy(&three, &name).await.unwrap()["data"], json!({"mine": "yes"}));
    let object = scene.until(&name, "1/1/0").await;
    assert_eq!(types(&object), CONDITIONS);
    Ok(())
}
managed!(copies_go_where_targets_shrink, super::OPEN);
