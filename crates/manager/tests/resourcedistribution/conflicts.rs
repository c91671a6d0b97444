//! What belongs to somebody else is never written.

use std::time::Duration;

use kruise_testkit::{Outcome, wait::seen};
use serde_json::json;

use crate::{
    scene::{CONDITIONS, FROM, MOMENT, OPEN, Scene, condition, config, included, types},
    stage::{Stage, managed},
};

/// DISTRIBUTION-8, WAITING-23: a foreign object stays as it is, which is reported; when it goes, the copy comes.
async fn a_foreign_object_is_left_alone(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-foreign").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    let name = scene.name("x");
    let foreign =
        scene.put("ConfigMap", &one, json!({"metadata": {"name": name}, "data": {"mine": "yes"}})).await;
    scene.distribute(config(&name, json!({"a": "1"})), included(&[&one, &two])).await;
    let object = scene.until(&name, "2/1/1").await;
    let text =
        "conflict with existing resources because of the same namespace, group, version, kind and name";
    assert_eq!(scene.until_failing(&name, "ConflictOccurred", &[&one]).await, text);
    assert_eq!(types(&object).len(), 7);
    let waiting = condition(&object, "Waiting").unwrap();
    assert_eq!((&waiting["status"], &waiting["reason"]), (&json!("True"), &json!("NameTaken")));
    assert_eq!(waiting["failedNamespaces"], json!([one]));
    scene
        .home
        .eventually("it is reported", async || {
            let told = scene.events(&name, "ConflictOccurred").await;
            seen(told == [format!("1 of 2 namespaces ({one}): {text}")], format!("{told:?}"))
        })
        .await;
    scene
        .home
        .eventually("the wait is reported", async || {
            let told = scene.events(&name, "Waiting").await;
            let sentence = format!("NameTaken: 1 of 2 namespaces has a foreign ConfigMap {name} ({one})");
            seen(told == [sentence], format!("{told:?}"))
        })
        .await;
    let found = scene.copy(&one, &name).await.unwrap();
    assert_eq!(found["metadata"]["resourceVersion"], foreign["metadata"]["resourceVersion"]);
    scene.remove("ConfigMap", &one, &name).await;
    let object = scene.until(&name, "2/2/0").await;
    assert_eq!(types(&object), CONDITIONS);
    assert_eq!(scene.copy(&one, &name).await.unwrap()["data"], json!({"a": "1"}));
    assert_eq!(scene.events(&name, "ConflictOccurred").await.len(), 1);
    Ok(())
}
managed!(a_foreign_object_is_left_alone, super::OPEN);

/// DISTRIBUTION-9
async fn the_first_of_two_owners_keeps_the_copies(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-two").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    let name = scene.name("x");
    scene.distribute(config(&name, json!({"a": "1"})), included(&[&one])).await;
    scene.until(&name, "1/1/0").await;
    let other = scene.name("other");
    scene.create(&other, config(&name, json!({"a": "2"})), included(&[&one, &two])).await.unwrap();
    scene.until(&other, "2/1/1").await;
    scene.until_failing(&other, "ConflictOccurred", &[&one]).await;
    assert_eq!(scene.copy(&one, &name).await.unwrap()["data"], json!({"a": "1"}));
    assert_eq!(scene.copy(&two, &name).await.unwrap()["metadata"]["annotations"][FROM], json!(other));
    // The copy of the first is free when the first wants it no more.
    scene.change(&name, json!({"spec": {"targets": {"includedNamespaces": null}}})).await.unwrap();
    scene.until(&other, "2/2/0").await;
    assert_eq!(scene.copy(&one, &name).await.unwrap()["data"], json!({"a": "2"}));
    Ok(())
}
managed!(the_first_of_two_owners_keeps_the_copies, super::OPEN);

/// Annotations, labels, owners that control nothing and references of the right name with another uid make nobody an owner.
async fn hostile_owners_do_not_get_their_objects_written(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-hostile").await;
    let name = scene.name("x");
    let elsewhere = scene.space(json!({})).await;
    scene.distribute(config(&name, json!({"a": "1"})), included(&[&elsewhere])).await;
    let object = scene.until(&name, "1/1/0").await;
    let real = scene.copy(&elsewhere, &name).await.unwrap();
    let reference = |change: serde_json::Value| {
        let mut owner = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "name": name,
            "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true});
        for (key, value) in change.as_object().unwrap() {
            owner[key] = value.clone();
        }
        owner
    };
    let disguises = [
        json!({"annotations": real["metadata"]["annotations"]}),
        json!({"annotations": real["metadata"]["annotations"], "ownerReferences": [reference(json!({"controller": false}))]}),
        json!({"ownerReferences": [reference(json!({"uid": "11111111-2222-3333-4444-555555555555", "kind": "Elsewhere", "apiVersion": "example.com/v1"}))]}),
        json!({"finalizers": ["example.com/never"], "annotations": real["metadata"]["annotations"]}),
    ];
    let mut spaces = Vec::new();
    for disguise in disguises {
        let space = scene.space(json!({})).await;
        let mut metadata = disguise;
        metadata["name"] = json!(name);
        // On real clusters the garbage collector may take the third away, whose owner does not exist: it needs no owner there.
        let made =
            scene.put("ConfigMap", &space, json!({"metadata": metadata, "data": {"mine": "yes"}})).await;
        spaces.push((space, made));
    }
    // One that is on its way out, and held by somebody's finalizer.
    let (held, _) = spaces.last().unwrap().clone();
    scene.remove("ConfigMap", &held, &name).await;
    let all: Vec<&str> = spaces.iter().map(|(space, _)| space.as_str()).chain([elsewhere.as_str()]).collect();
    scene.change(&name, json!({"spec": {"targets": included(&all)}})).await.unwrap();
    scene
        .home
        .eventually("each is a conflict", async || {
            let object = scene.get(&name).await;
            let conflict = condition(&object, "ConflictOccurred").cloned().unwrap_or_default();
            let held = conflict["failedNamespaces"].as_array().is_some_and(|all| all.contains(&json!(held)));
            seen(held, format!("{conflict}"))
        })
        .await;
    for (space, made) in &spaces {
        let Some(found) = scene.copy(space, &name).await else { continue };
        if found["metadata"]["uid"] == made["metadata"]["uid"] {
            assert_eq!(found["data"], json!({"mine": "yes"}), "{space}");
            assert_eq!(found["metadata"]["ownerReferences"], made["metadata"]["ownerReferences"]);
        }
    }
    // Nor are they deleted where they are no targets, nor with the ResourceDistribution.
    scene.change(&name, json!({"spec": {"targets": included(&[&elsewhere])}})).await.unwrap();
    scene.until(&name, "1/1/0").await;
    assert!(scene.copy(&spaces[0].0, &name).await.is_some());
    scene.edit("ConfigMap", &held, &name, json!({"metadata": {"finalizers": null}})).await;
    Ok(())
}
managed!(hostile_owners_do_not_get_their_objects_written, super::OPEN);

/// Somebody takes a copy over: it is his from then on.
async fn a_copy_that_is_taken_over_is_given_up(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-taken").await;
    let one = scene.space(json!({})).await;
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), included(&[&one])).await;
    scene.until(&name, "1/1/0").await;
    scene
        .edit("ConfigMap", &one, &name, json!({"metadata": {"ownerReferences": null}, "data": {"a": "2"}}))
        .await;
    scene.until_failing(&name, "ConflictOccurred", &[&one]).await;
    let look = async || {
        let copy = scene.copy(&one, &name).await.unwrap();
        seen(copy["data"] == json!({"a": "2"}), copy.to_string())
    };
    scene.home.always("it is left alone", MOMENT + Duration::from_secs(5), look).await;
    Ok(())
}
managed!(a_copy_that_is_taken_over_is_given_up, super::OPEN);
