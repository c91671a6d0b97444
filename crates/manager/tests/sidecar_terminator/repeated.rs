//! Sidecars that come back after they were killed.

use std::{collections::BTreeMap, time::Duration};

use kruise_api::{conditions::SIDECAR_TERMINATED, env::TERMINATE_SIDECAR};
use kruise_testkit::{Outcome, pod::container as status_of};
use serde_json::json;

use crate::{
    daemon::NodeDaemon,
    kit::has_condition,
    stage::{Stage, embedded_only},
    words::{Room, named, phase, runs},
};

/// TERMINATOR-16: a sidecar that fails when it is stopped is started again by its node, and killed again, at most once a
/// minute.
///
/// The test plays the node daemon.
async fn a_sidecar_that_comes_back_is_killed_again(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "back").await?;
    let daemon = NodeDaemon::new(stage, &room);
    // It ends with 137 each time.
    let sidecar = room.sidecar("sc", "stubborn:v1", &[(TERMINATE_SIDECAR, "true")]);
    let mut made = BTreeMap::new();
    let story = async {
        // Restarts inside a pod count for the job.
        let patient = json!({"spec": {"backoffLimit": 100}});
        room.job("OnFailure", &[room.main("main", 3, 0), sidecar], &patient).await;
        room.main_has_ended().await;
        for _ in 0..2 * 60 * 5 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let requests = room.requests().await;
            assert!(requests.len() <= 1);
            for request in requests {
                assert_eq!(named(&request), ["sc"]);
                let time = request.metadata.creation_timestamp.clone().unwrap().0;
                made.insert(time, request.metadata.uid);
            }
        }
    };
    daemon.during(story).await;
    let times: Vec<_> = made.keys().collect();
    assert!((4..=5).contains(&times.len()), "five minutes, one request each: {times:?}");
    for pair in times.windows(2) {
        assert!(pair[1].duration_since(*pair[0]).as_secs() >= 60, "{times:?}");
    }
    let left = room.pods().await.remove(0);
    assert!(runs(&left, "sc") && phase(&left) == "Running");
    let restarts = status_of(&left, "sc").unwrap().restart_count;
    assert_eq!(usize::try_from(restarts).unwrap(), times.len());
    Ok(())
}
embedded_only!(a_sidecar_that_comes_back_is_killed_again, crate::words::ON);

/// TERMINATOR-16: where its code must not count, the pod has succeeded after the first attempt.
async fn a_sidecar_whose_code_does_not_count_does_not_come_back(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "once").await?;
    room.job("OnFailure", &[room.main("main", 3, 0), room.ignored("sc")], &json!({})).await;
    let ended = room.until("the pod has succeeded", |pod| phase(pod) == "Succeeded").await;
    assert!(has_condition(&ended, SIDECAR_TERMINATED));
    room.job_is("Complete").await;
    let first = room.request().await;
    tokio::time::sleep(Duration::from_secs(150)).await;
    assert_eq!(room.request().await.metadata.uid, first.metadata.uid);
    Ok(())
}
embedded_only!(a_sidecar_whose_code_does_not_count_does_not_come_back, crate::words::ON);
