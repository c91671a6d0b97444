//! What happens when something dies: the manager, a container, the barrier.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kruise_testkit::{Outcome, pod::container as status_of, wait::seen};
use serde_json::json;

use crate::{
    kit::merged,
    stage::{Stage, managed},
    words::{Room, assert_order, has_started, is_completed, ordered, pod, waiting},
};

/// LAUNCH-11: while no manager runs nothing more starts, and the next one goes on.
async fn the_order_goes_on_with_the_next_manager(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "manager").await?;
    // Time to end the manager before the first container is ready: kubelets tell of its start only when they have tried
    // the others again.
    let slow = json!({"readinessProbe": {"initialDelaySeconds": 40}});
    let containers = [merged(room.container("c1"), &slow), room.container("c2"), room.container("c3")];
    let (_, film) = room.start(ordered(pod("one", &containers))).await;
    room.until("the first container has started", "one", |pod| has_started(pod, "c1")).await;
    stage.kill_manager();
    let is_ready = |pod: &Pod| status_of(pod, "c1").is_some_and(|status| status.ready);
    room.until("the first container is ready", "one", is_ready).await;
    let look = async || {
        let found: Pod = room.sandbox.get("one").await;
        let keys: Vec<String> = room.keys("one").await.unwrap_or_default().into_iter().collect();
        let waits = ["c2", "c3"].into_iter().all(|one| waiting(&found, one) == "CreateContainerConfigError");
        seen(waits && keys == ["p_0"] && !is_completed(&found), format!("{keys:?}"))
    };
    room.sandbox.always("nothing more starts", Duration::from_secs(20), look).await;
    stage.start_manager().await;
    let found = room.completed("one").await;
    assert_order(&film, &found, &[&["c1"], &["c2"], &["c3"]]);
    Ok(())
}
managed!(the_order_goes_on_with_the_next_manager, [], alone);

/// LAUNCH-13: a container that crashes later starts again at once; a barrier that someone deleted comes back.
async fn a_container_that_crashes_starts_again(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "crash").await?;
    let crashes = json!({"command": ["sh", "-c", "sleep 20; exit 1"]});
    let containers = [merged(room.prior("main", "0"), &crashes), room.prior("sc", "10")];
    let (_, film) = room.start(pod("one", &containers)).await;
    room.completed("one").await;
    let runs_again = |times: i32| {
        move |pod: &Pod| {
            status_of(pod, "main").is_some_and(|status| {
                let runs = status.state.as_ref().is_some_and(|state| state.running.is_some());
                runs && status.restart_count >= times
            })
        }
    };
    room.until("it has started again", "one", runs_again(1)).await;
    let held_up = film.frames().iter().flat_map(|frame| frame.pods.values().cloned()).any(|pod| {
        let restarted = status_of(&pod, "main")
            .is_some_and(|status| status.last_state.as_ref().is_some_and(|last| last.terminated.is_some()));
        restarted && waiting(&pod, "main") == "CreateContainerConfigError"
    });
    assert!(!held_up, "it did not have to wait for a key");
    room.has_keys("one", &["p_0", "p_10"]).await;

    room.sandbox.delete::<ConfigMap>("one-barrier").await;
    room.until("it has started once more", "one", runs_again(2)).await;
    room.has_keys("one", &["p_0", "p_10"]).await;
    let barrier = room.barrier("one").await.unwrap();
    let found: Pod = room.sandbox.get("one").await;
    let owner = barrier.metadata.owner_references.unwrap().remove(0);
    assert_eq!(Some(owner.uid), found.metadata.uid);
    assert_eq!(status_of(&found, "sc").unwrap().restart_count, 0);
    Ok(())
}
managed!(a_container_that_crashes_starts_again, []);
