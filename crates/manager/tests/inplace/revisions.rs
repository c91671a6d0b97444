//! Revisions: names, numbers, collisions, history.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kruise_testkit::Outcome;
use kube::ResourceExt as _;
use serde_json::json;

use crate::{
    kit::Demo,
    stage::{Stage, managed},
    words::{in_place_on_hollow_nodes, revisions},
};

/// INPLACE-33: the first template again is the first revision again, with a new number.
async fn a_template_that_comes_back_brings_its_revision_back(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(stage, "revisions", in_place_on_hollow_nodes(1, &json!({}))).await;
    let first = demo.set().await.status.unwrap().update_revision.unwrap();
    demo.set_image("app:v2").await;
    demo.rolled_out().await;
    let second = demo.set().await.status.unwrap().update_revision.unwrap();
    assert_ne!(first, second);
    demo.set_image("app:v1").await;
    demo.rolled_out().await;
    let all: Vec<(String, i64)> =
        revisions(&demo).await.iter().map(|one| (one.name_any(), one.revision)).collect();
    assert_eq!(all, [(second, 2), (first.clone(), 3)]);
    assert_eq!(demo.set().await.status.unwrap().update_revision, Some(first));
    Ok(())
}
managed!(a_template_that_comes_back_brings_its_revision_back, []);

/// INPLACE-34: somebody else's revision has the name already. It is counted, and another name is found.
async fn a_name_that_is_taken_is_counted_and_another_is_found(stage: &mut Stage) -> Outcome {
    let free = Demo::start(stage, "free", json!({"spec": {"replicas": 1}})).await;
    let name = free.set().await.status.unwrap().update_revision.unwrap();
    let demo = Demo::prepare(stage, "taken").await;
    let foreign = json!({"metadata": {"name": name}, "revision": 7, "data": {"not": "ours"}});
    let _: ControllerRevision = demo.sandbox.create(foreign).await;
    demo.create(json!({"spec": {"replicas": 1}})).await;
    demo.settled().await;
    let status = demo.set().await.status.unwrap();
    assert_eq!(status.collision_count, Some(1));
    let other = status.update_revision.unwrap();
    assert_ne!(other, name);
    assert_eq!(
        other.split_at(other.len() - 1).0,
        name.split_at(name.len() - 1).0,
        "only the last letter differs"
    );
    let kept: ControllerRevision = demo.sandbox.get(&name).await;
    assert_eq!((kept.revision, kept.data.unwrap().0), (7, json!({"not": "ours"})));
    Ok(())
}
managed!(a_name_that_is_taken_is_counted_and_another_is_found, []);

/// INPLACE-35: as many old revisions stay as wanted, the newest.
async fn old_revisions_go(stage: &mut Stage) -> Outcome {
    let demo = Demo::start(
        stage,
        "history",
        in_place_on_hollow_nodes(1, &json!({"spec": {"revisionHistoryLimit": 2}})),
    )
    .await;
    for round in 1..=6 {
        let note = json!({"note": round.to_string()});
        demo.change(json!({"spec": {"template": {"metadata": {"annotations": note}}}})).await;
        demo.rolled_out().await;
    }
    let numbers = async |wanted: &[i64]| {
        let look = async || {
            let have: Vec<i64> = revisions(&demo).await.iter().map(|one| one.revision).collect();
            kruise_testkit::wait::seen(have == wanted, format!("{have:?}"))
        };
        demo.sandbox.eventually(&format!("the revisions {wanted:?} are left"), look).await;
    };
    // The one in use, and two before it.
    numbers(&[5, 6, 7]).await;
    demo.change(json!({"spec": {"revisionHistoryLimit": 0}})).await;
    numbers(&[7]).await;
    Ok(())
}
managed!(old_revisions_go, []);
