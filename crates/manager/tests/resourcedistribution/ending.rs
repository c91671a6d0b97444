//! The end of ResourceDistributions, of the gate and of the manager.

use std::time::Duration;

use kruise_testkit::{Outcome, wait::seen};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::json;

use crate::{
    scene::{CONDITIONS, MOMENT, OPEN, Scene, config, included, types},
    stage::{Stage, embedded_only, managed},
};

/// DISTRIBUTION-15
async fn copies_go_with_their_owner_unless_they_are_orphaned(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-end").await;
    let (one, two) = (scene.space(json!({})).await, scene.space(json!({})).await);
    for (policy, left) in [
        (PropagationPolicy::Background, vec![]),
        (PropagationPolicy::Foreground, vec![]),
        (PropagationPolicy::Orphan, vec![one.as_str(), two.as_str()]),
    ] {
        let name = scene.name(&format!("{policy:?}").to_lowercase());
        scene.distribute(config(&name, json!({"a": "1"})), included(&[&one, &two])).await;
        scene.until(&name, "2/2/0").await;
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        scene.all().delete(&name, &params).await.unwrap();
        scene
            .home
            .eventually("it is gone", async || {
                let found = scene.all().get_opt(&name).await.unwrap();
                seen(found.is_none(), format!("{:?}", found.map(|found| found.metadata)))
            })
            .await;
        scene.until_held(&name, &left).await;
        let mut expected = left.clone();
        expected.sort_unstable();
        let look = async || {
            let found = scene.holders(&name).await;
            seen(found == expected, format!("{found:?}"))
        };
        scene.home.always("it stays so", MOMENT, look).await;
    }
    Ok(())
}
managed!(copies_go_with_their_owner_unless_they_are_orphaned, super::OPEN);

/// DISTRIBUTION-19: with the gate closed nothing is accepted, and what is there is not reconciled.
async fn nothing_happens_while_the_gate_is_closed(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-gate").await;
    let one = scene.space(json!({})).await;
    let said = scene.create("x", config("x", json!({"a": "1"})), included(&[&one])).await.unwrap_err();
    assert!(said.starts_with("403 "), "{said}");
    assert!(said.contains("feature-gate ResourceDistributionGate is not enabled"), "{said}");
    stage.set_flags(&OPEN);
    stage.start_manager().await;
    let name = scene.distribute(config(&scene.name("x"), json!({"a": "1"})), included(&[&one])).await;
    scene.until(&name, "1/1/0").await;
    stage.set_flags(&[]);
    stage.start_manager().await;
    scene.edit("ConfigMap", &one, &name, json!({"data": {"a": "2"}})).await;
    stage.sim().advance(Duration::from_secs(120)).await;
    assert_eq!(scene.copy(&one, &name).await.unwrap()["data"], json!({"a": "2"}));
    assert_eq!(stage.metrics().await.matches("resourcedistribution-controller").count(), 0);
    Ok(())
}
// A manager that is started again with other flags: virtual time shows that nothing happens.
embedded_only!(nothing_happens_while_the_gate_is_closed, []);

/// DISTRIBUTION-20: a manager that dies half-way is followed by one that completes the work.
async fn a_manager_that_dies_leaves_no_namespace_behind(stage: &mut Stage) -> Outcome {
    let scene = Scene::prepare(stage, "rd-crash").await;
    let mut spaces = Vec::new();
    for number in 0..100 {
        let name = scene.name(&format!("{number:03}"));
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        scene.namespaces().create(&kube::api::PostParams::default(), &namespace).await.unwrap();
        spaces.push(name);
    }
    let all: Vec<&str> = spaces.iter().map(String::as_str).collect();
    let name = scene.name("x");
    stage.sim().faults().crash_after_write(40);
    scene.distribute(config(&name, json!({"a": "1"})), included(&all)).await;
    stage.sim().faults().crashed().await;
    let before = scene.holders(&name).await.len();
    assert!((1..100).contains(&before), "{before} copies");
    stage.kill_manager();
    stage.sim().faults().revive();
    stage.start_manager().await;
    let object = scene.until(&name, "100/100/0").await;
    assert_eq!(types(&object), CONDITIONS);
    assert_eq!(scene.holders(&name).await.len(), 100);
    assert_eq!(scene.events(&name, "ConflictOccurred").await, [""; 0]);
    Ok(())
}
// Only the embedded cluster kills the manager after a certain write.
embedded_only!(a_manager_that_dies_leaves_no_namespace_behind, super::OPEN);
