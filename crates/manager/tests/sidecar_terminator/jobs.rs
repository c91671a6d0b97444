//! Jobs that end although a sidecar runs.

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kruise_api::{containerrecreaterequest::v1beta1::ContainerRecreateRequest, env::TERMINATE_SIDECAR};
use kruise_testkit::{Backend, Outcome, pod::container as status_of, wait::seen};
use kube::api::DeleteParams;
use serde_json::json;

use crate::{
    daemon::NodeDaemon,
    stage::{Stage, embedded_only, managed},
    words::{Room, exit_code, named, phase, runs},
};

/// What a request must say about a pod, and what was told about it.
async fn is_asked_for(
    room: &Room,
    pod: &k8s_openapi::api::core::v1::Pod,
    request: &ContainerRecreateRequest,
) {
    let uid = pod.metadata.uid.as_deref().unwrap();
    let name = pod.metadata.name.as_deref().unwrap();
    assert_eq!(request.metadata.name, Some(format!("sidecar-termination-{uid}")));
    let written = serde_json::to_value(request).unwrap();
    assert_eq!(
        written["metadata"]["ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(written["spec"]["podName"], name);
    assert_eq!(named(request), ["sc"]);
    assert_eq!(written["spec"]["strategy"]["forceRecreate"], true);
    assert_eq!(written["spec"]["strategy"]["failurePolicy"], "Ignore");
    let events = room.events().await;
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((event.kind.as_str(), event.about.as_str()), ("Normal", format!("Pod/{name}").as_str()));
    assert_eq!(event.message, "Kruise SidecarTerminator is trying to terminate sidecar [sc] using crr");
    assert_eq!(event.component, "sidecarterminator-controller");
}

/// TERMINATOR-1: when the main container has ended, its sidecar is killed, and the job is complete.
///
/// The test plays the node daemon.
async fn a_job_with_a_sidecar_completes(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "job").await?;
    let daemon = NodeDaemon::new(stage, &room);
    let story = async {
        room.job("Never", &[room.main("main", 5, 0), room.normal("sc")], &json!({})).await;
        let running = room.until("both run", |pod| runs(pod, "main") && runs(pod, "sc")).await;
        let request = room.request().await;
        is_asked_for(&room, &running, &request).await;
        let ended = room.until("the pod has succeeded", |pod| phase(pod) == "Succeeded").await;
        assert_eq!((exit_code(&ended, "main"), exit_code(&ended, "sc")), (Some(0), Some(0)));
        room.job_is("Complete").await;
    };
    daemon.during(story).await;
    Ok(())
}
embedded_only!(a_job_with_a_sidecar_completes, crate::words::ON);

/// TERMINATOR-1: what a daemon is asked, also where nobody carries it out.
async fn a_sidecar_is_to_be_killed_when_the_work_is_done(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "asked").await?;
    room.job("Never", &[room.main("main", 5, 0), room.normal("sc")], &json!({})).await;
    let running = room.until("both run", |pod| runs(pod, "main") && runs(pod, "sc")).await;
    assert_eq!(room.requests().await, []);
    let request = room.request().await;
    is_asked_for(&room, &running, &request).await;
    Ok(())
}
managed!(a_sidecar_is_to_be_killed_when_the_work_is_done, crate::words::ON);

/// TERMINATOR-5: the same for pods that are started again when they fail.
///
/// The test plays the node daemon.
async fn a_job_that_retries_completes_with_its_main_container(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "retries").await?;
    let daemon = NodeDaemon::new(stage, &room);
    let story = async {
        room.job("OnFailure", &[room.main("main", 5, 0), room.normal("sc")], &json!({})).await;
        room.until("the pod has succeeded", |pod| phase(pod) == "Succeeded").await;
        room.job_is("Complete").await;
        assert_eq!(named(&room.request().await), ["sc"]);
    };
    daemon.during(story).await;
    Ok(())
}
embedded_only!(a_job_that_retries_completes_with_its_main_container, crate::words::ON);

/// TERMINATOR-4: a main container that fails is started again, and its sidecar lives on. The job gives up in the end; that of
/// the embedded cluster does not count restarts, and goes on.
async fn sidecars_live_as_long_as_the_work_is_tried_again(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "failing").await?;
    let more = json!({"spec": {"backoffLimit": 3}});
    room.job("OnFailure", &[room.main("main", 1, 1), room.normal("sc")], &more).await;
    let gives_up = stage.cluster.backend() == Backend::Real;
    let look = async || {
        assert_eq!(room.requests().await, [], "nobody may ask for the end of a sidecar");
        let job: Job = room.sandbox.get("work").await;
        let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
        let failed = conditions.iter().any(|one| one.type_ == "Failed" && one.status == "True");
        let restarts = |pod: &Pod| status_of(pod, "main").map_or(0, |main| main.restart_count);
        let tried = room.pods().await.iter().map(restarts).max().unwrap_or(0);
        seen(failed || (!gives_up && tried > 3), format!("tried {tried} times, {conditions:?}"))
    };
    room.sandbox.eventually("it was tried often enough", look).await;
    room.nothing_happens(10).await;
    Ok(())
}
managed!(sidecars_live_as_long_as_the_work_is_tried_again, crate::words::ON);

/// TERMINATOR-6: all main containers must have ended, and only sidecars that still run are named.
async fn all_main_containers_count(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "two").await?;
    let ended = {
        let mut container = room.main("sc0", 1, 0);
        container["env"] = json!([{"name": TERMINATE_SIDECAR, "value": "true"}]);
        container
    };
    let containers =
        [room.normal("sc2"), room.main("main", 2, 0), room.main("other", 15, 0), ended, room.normal("sc1")];
    room.job("Never", &containers, &json!({})).await;
    room.main_has_ended().await;
    let look = async || {
        let requests = room.requests().await;
        let found = room.pods().await.remove(0);
        // The order of the looks matters: what runs now has run then.
        assert!(requests.is_empty() || exit_code(&found, "other").is_some(), "asked too early");
        seen(exit_code(&found, "other").is_some(), "the other main container runs")
    };
    room.sandbox.eventually("the other main container has ended", look).await;
    let request = room.request().await;
    assert_eq!(named(&request), ["sc1", "sc2"]);
    let events = room.events().await;
    let message = "Kruise SidecarTerminator is trying to terminate sidecar [sc1 sc2] using crr";
    assert_eq!(events.iter().map(|event| event.message.as_str()).collect::<Vec<_>>(), [message]);
    Ok(())
}
managed!(all_main_containers_count, crate::words::ON);

/// TERMINATOR-13: a manager that comes when the main container has ended already asks once.
async fn the_next_manager_asks_once(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "killed").await?;
    room.job("Never", &[room.main("main", 5, 0), room.normal("sc")], &json!({})).await;
    room.until("both run", |pod| runs(pod, "main") && runs(pod, "sc")).await;
    stage.kill_manager();
    let pod = room.main_has_ended().await;
    assert_eq!(room.requests().await, []);
    stage.start_manager().await;
    let request = room.request().await;
    is_asked_for(&room, &pod, &request).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let requests = room.requests().await;
    let uids: Vec<_> = requests.iter().map(|request| &request.metadata.uid).collect();
    assert_eq!(uids, [&request.metadata.uid], "the one there was is left alone");
    Ok(())
}
managed!(the_next_manager_asks_once, crate::words::ON, alone);

/// TERMINATOR-17: the variable may come from a SidecarSet.
///
/// The test plays the node daemon.
async fn a_sidecar_that_a_set_injected_ends_with_its_job(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "injected").await?;
    let label = room.sandbox.namespace().to_owned();
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "SidecarSet",
        "metadata": {"name": label},
        "spec": {"selector": {"matchLabels": {"app": label}}, "containers": [room.normal("sc")]},
    });
    stage.create(set.clone()).await.unwrap();
    let known = async || {
        let found = stage.api(&set).get(&label).await.unwrap();
        seen(found.data.pointer("/status/observedGeneration").is_some(), found.data.to_string())
    };
    room.sandbox.eventually("the manager knows the set", known).await;
    let daemon = NodeDaemon::new(stage, &room);
    let story = async {
        let labelled = json!({"spec": {"template": {"metadata": {"labels": {"app": label}}}}});
        room.job("Never", &[room.main("main", 5, 0)], &labelled).await;
        let running = room.until("both run", |pod| runs(pod, "main") && runs(pod, "sc")).await;
        let request = room.request().await;
        is_asked_for(&room, &running, &request).await;
        room.until("the pod has succeeded", |pod| phase(pod) == "Succeeded").await;
        room.job_is("Complete").await;
    };
    daemon.during(story).await;
    stage.api(&set).delete(&label, &DeleteParams::default()).await.unwrap();
    Ok(())
}
embedded_only!(a_sidecar_that_a_set_injected_ends_with_its_job, crate::words::ON);
