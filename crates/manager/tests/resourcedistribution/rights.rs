//! What the manager may do, and that it needs no more.

use std::time::Duration;

use kruise_api::gates::{self, Gates};
use kruise_core::features::rbac;
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    scene::{OPEN, Scene, condition, config, included},
    stage::{Stage, embedded_prepared},
};

fn gates(text: &str) -> Gates {
    Gates::parse(text, &gates::Options::default()).unwrap().0
}

/// The rules of the roles of a resource, as `role: verbs`.
fn rules(gates: &Gates, resource: &str) -> Vec<String> {
    let mut found = Vec::new();
    for object in rbac::objects(gates) {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let names = |field: &str| rule[field].as_array().cloned().unwrap_or_default();
            if names("resources").contains(&json!(resource)) && names("apiGroups").contains(&json!("")) {
                let verbs: Vec<String> =
                    names("verbs").iter().filter_map(Value::as_str).map(str::to_owned).collect();
                found.push(format!("{} {}", object["metadata"]["name"].as_str().unwrap(), verbs.join(",")));
            }
        }
    }
    found
}

#[test]
fn the_right_to_write_secrets_everywhere_comes_with_the_gate() {
    let of_distributions = |gates: &Gates| {
        rules(gates, "secrets").into_iter().filter(|rule| rule.contains("distribution")).collect::<Vec<_>>()
    };
    assert_eq!(of_distributions(&gates("")), [""; 0]);
    let expected = ["kruise-resourcedistribution-role create,delete,get,list,patch,watch"];
    assert_eq!(of_distributions(&gates("ResourceDistributionGate=true")), expected);
    // Nobody else may write Secrets or ConfigMaps in all namespaces because of it.
    let (closed, open) = (gates(""), gates("ResourceDistributionGate=true"));
    for resource in ["secrets", "configmaps"] {
        let before = rules(&closed, resource);
        let added: Vec<String> =
            rules(&open, resource).into_iter().filter(|rule| !before.contains(rule)).collect();
        assert_eq!(added, expected, "{resource}");
    }
}

async fn install(stage: &Stage, gates: &Gates) {
    stage
        .put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kruise-daemon-config"}}))
        .await;
    for object in rbac::objects(gates) {
        stage.put(object).await;
    }
}

/// The generated roles are enough for everything that a ResourceDistribution asks for.
async fn the_roles_are_enough(stage: &mut Stage) -> Outcome {
    install(stage, &gates("ResourceDistributionGate=true")).await;
    stage.start_manager_as(rbac::MANAGER_ACCOUNT);
    let scene = Scene::prepare(stage, "rd-roles").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), included(&[&one, &two])).await;
    scene.until(&name, "2/2/0").await;
    scene.change(&name, json!({"spec": {"resource": {"data": {"a": "2"}}}})).await.unwrap();
    scene.until(&name, "2/2/0").await;
    scene.change(&name, json!({"spec": {"targets": included(&[&one])}})).await.unwrap();
    scene.until_held(&name, &[&one]).await;
    assert_eq!(scene.copy(&one, &name).await.unwrap()["data"], json!({"a": "2"}));
    Ok(())
}

#[test]
fn the_generated_roles_are_enough() {
    embedded_prepared(&OPEN, the_roles_are_enough);
}

/// WAITING-26: without its role the copies cannot be read, which is reported, and ends when the role is there.
async fn a_missing_role_is_reported(stage: &mut Stage) -> Outcome {
    install(stage, &gates("")).await;
    let own: Vec<Value> = rbac::objects(&gates("ResourceDistributionGate=true"));
    let is_of_copies = |object: &&Value| {
        object["metadata"]["name"].as_str().unwrap().starts_with("kruise-resourcedistribution-role")
    };
    for object in own.iter().filter(|object| !is_of_copies(object)) {
        stage.put(object.clone()).await;
    }
    stage.start_manager().await;
    let scene = Scene::prepare(stage, "rd-norole").await;
    let one = scene.space(json!({})).await;
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), included(&[&one])).await;
    scene.until(&name, "1/1/0").await;
    stage.kill_manager();
    stage.start_manager_as(rbac::MANAGER_ACCOUNT);
    let reason = scene.until_failing(&name, "GetResourceFailed", &[&one]).await;
    assert!(reason.contains("cannot list resource"), "{reason}");
    let object = scene.until(&name, "1/0/1").await;
    assert_eq!(condition(&object, "Waiting").unwrap()["reason"], "PermissionMissing");
    for object in own.iter().filter(is_of_copies) {
        stage.put(object.clone()).await;
    }
    stage.sim().advance(Duration::from_secs(60)).await;
    scene.until(&name, "1/1/0").await;
    Ok(())
}

#[test]
fn a_role_that_is_missing_is_reported() {
    embedded_prepared(&OPEN, a_missing_role_is_reported);
}
