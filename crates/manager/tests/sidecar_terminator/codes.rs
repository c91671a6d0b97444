//! Whose exit codes decide how a pod ends.

use kruise_api::{
    conditions::SIDECAR_TERMINATED,
    env::{TERMINATE_SIDECAR, TERMINATE_SIDECAR_IGNORE_EXIT_CODE},
};
use kruise_testkit::Outcome;
use serde_json::json;

use crate::{
    daemon::NodeDaemon,
    film::Film,
    kit::has_condition,
    stage::{Stage, embedded_only, managed},
    words::{Room, exit_code, named, phase, runs},
};

/// TERMINATOR-3: the work failed, and so did the pod; its sidecar ends all the same.
///
/// The test plays the node daemon.
async fn a_pod_whose_work_failed_ends_too(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "failed").await?;
    let daemon = NodeDaemon::new(stage, &room);
    let story = async {
        room.job("Never", &[room.main("main", 3, 1), room.normal("sc")], &json!({})).await;
        let ended = room.until("the pod has failed", |pod| phase(pod) == "Failed").await;
        assert_eq!((exit_code(&ended, "main"), exit_code(&ended, "sc")), (Some(1), Some(0)));
        room.job_is("Failed").await;
    };
    daemon.during(story).await;
    Ok(())
}
embedded_only!(a_pod_whose_work_failed_ends_too, crate::words::ON);

/// TERMINATOR-7: the code of a sidecar that must not count does not: the pod is ended by us, and its node stops what is
/// left. Kubelets before 1.22 do not tell.
async fn codes_of_sidecars_can_be_left_out(stage: &mut Stage) -> Outcome {
    for (code, wanted, job) in [(0, "Succeeded", "Complete"), (2, "Failed", "Failed")] {
        let room = Room::prepare(stage, "ignored").await?;
        room.job("Never", &[room.main("main", 3, code), room.ignored("sc2")], &json!({})).await;
        let ended =
            room.until("the pod has ended", |pod| phase(pod) != "Pending" && phase(pod) != "Running").await;
        assert_eq!(phase(&ended), wanted);
        let conditions = ended.status.as_ref().unwrap().conditions.as_ref().unwrap();
        let condition = conditions.iter().find(|one| one.type_ == SIDECAR_TERMINATED).unwrap();
        assert_eq!(condition.status, "True");
        assert_eq!(condition.message.as_deref(), Some("Terminated by Sidecar Terminator"));
        assert!(condition.last_transition_time.is_some());
        room.job_is(job).await;
        if stage.cluster.is_at_least(1, 22) {
            let left = room.until("the node has stopped the sidecar", |pod| !runs(pod, "sc2")).await;
            assert_eq!(phase(&left), wanted, "what is said stays said");
        }
    }
    Ok(())
}
managed!(codes_of_sidecars_can_be_left_out, crate::words::ON);

/// TERMINATOR-8: sidecars whose codes count end first, then the pod, then the others.
///
/// The test plays the node daemon. The first request names the sidecars whose codes count; the others are left to the node.
async fn sidecars_whose_codes_count_end_before_the_pod(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "mixed").await?;
    let daemon = NodeDaemon::new(stage, &room);
    let film = Film::of(room.sandbox.api()).await;
    let story = async {
        room.job("Never", &[room.main("main", 3, 0), room.normal("sc"), room.ignored("sc2")], &json!({}))
            .await;
        room.until("the pod has succeeded", |pod| phase(pod) == "Succeeded").await;
        room.job_is("Complete").await;
    };
    daemon.during(story).await;
    let mut sc_ran_after_the_work = false;
    for frame in film.frames() {
        for pod in frame.pods.values().filter(|pod| exit_code(pod, "main").is_some()) {
            let is_finished = phase(pod) == "Succeeded";
            assert_eq!(is_finished, has_condition(pod, SIDECAR_TERMINATED));
            assert!(!is_finished || exit_code(pod, "sc") == Some(0), "the pod ended before its sidecar");
            sc_ran_after_the_work |= runs(pod, "sc");
        }
    }
    assert!(sc_ran_after_the_work);
    assert_eq!(named(&room.request().await), ["sc"]);
    Ok(())
}
embedded_only!(sidecars_whose_codes_count_end_before_the_pod, crate::words::ON);

/// TERMINATOR-9: without the variable, or with another value, the code of a sidecar counts.
///
/// The test plays the node daemon.
async fn codes_of_sidecars_count_by_default(stage: &mut Stage) -> Outcome {
    let variables: [&[(&str, &str)]; 2] = [
        &[(TERMINATE_SIDECAR, "true")],
        &[(TERMINATE_SIDECAR, "true"), (TERMINATE_SIDECAR_IGNORE_EXIT_CODE, "false")],
    ];
    for variables in variables {
        let room = Room::prepare(stage, "counts").await?;
        let daemon = NodeDaemon::new(stage, &room);
        let sidecar = room.sidecar("sc", "stubborn:v1", variables);
        let story = async {
            room.job("Never", &[room.main("main", 3, 0), sidecar], &json!({})).await;
            let ended = room.until("the pod has failed", |pod| phase(pod) == "Failed").await;
            assert_eq!((exit_code(&ended, "main"), exit_code(&ended, "sc")), (Some(0), Some(137)));
            assert!(!has_condition(&ended, SIDECAR_TERMINATED));
        };
        daemon.during(story).await;
    }
    Ok(())
}
embedded_only!(codes_of_sidecars_count_by_default, crate::words::ON);
