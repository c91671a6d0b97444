//! Containers are recreated, and everything around them stays.

use k8s_openapi::api::core::v1::Pod;
use kruise_api::containerrecreaterequest::v1beta1::{ContainerRecreateRequest, Phase};
use kruise_testkit::{Outcome, pod, wait::seen};
use serde_json::json;

use crate::{
    node::on_a_node,
    stage::Stage,
    words::{Room, ended_at, message, started_at, states, status},
};

/// CRR-1: one container of two, in place. CRR-2: the request goes after its time.
async fn one_container_of_two_is_recreated(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "one-of-two").await?;
    let before = room.pod("web", room.two(&json!({}), &json!({})), json!({})).await;
    let made = room.ask("again", "web", &["app"], &json!({"ttlSecondsAfterFinished": 3})).await;
    let labels = made.metadata.labels.as_ref().unwrap();
    assert_eq!(labels.get("crr.apps.kruise.io/pod-uid"), before.metadata.uid.as_ref());
    assert_eq!(labels.get("crr.apps.kruise.io/node-name"), before.spec.as_ref().unwrap().node_name.as_ref());
    assert_eq!(labels["crr.apps.kruise.io/active"], "true");
    let context = made.spec.containers[0].status_context.as_ref().unwrap();
    assert_eq!(Some(&context.container_id), status(&before, "app").container_id.as_ref());
    assert_eq!(made.spec.strategy.as_ref().unwrap().termination_grace_period_seconds, Some(30));

    let done = room.ended("again").await;
    assert_eq!(states(&done), ["app Succeeded killed"]);
    assert_eq!(message(&done), "");
    let after = room.until("web", "the pod is ready", pod::is_ready).await;
    assert_eq!(after.metadata.uid, before.metadata.uid);
    let ip = |pod: &Pod| pod.status.as_ref().unwrap().pod_ip.clone();
    assert_eq!(ip(&after), ip(&before));
    assert_ne!(status(&after, "app").container_id, status(&before, "app").container_id);
    assert_eq!(status(&after, "app").restart_count, 1);
    assert_eq!(status(&after, "sidecar").container_id, status(&before, "sidecar").container_id);
    assert_eq!(status(&after, "sidecar").restart_count, 0);

    let told = room.sandbox.events().await.into_iter().find(|event| event.component == "kruise-daemon-crr");
    let told = told.expect("the daemon tells what it does");
    assert_eq!(
        (told.kind.as_str(), told.reason.as_str(), told.about.as_str()),
        ("Normal", "Killing", "Pod/web")
    );
    assert_eq!(told.message, "Stopping container app by ContainerRecreateRequest again");
    let gone = async || {
        let left: Vec<ContainerRecreateRequest> = room.sandbox.list().await;
        seen(left.is_empty(), format!("{left:?}"))
    };
    room.sandbox.eventually("the request is gone", gone).await;
    Ok(())
}
on_a_node!(one_container_of_two_is_recreated);

/// CRR-3: a container counts when it has lasted.
async fn a_new_container_must_last(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "lasts").await?;
    room.pod("steady", room.two(&json!({}), &json!({})), json!({})).await;
    room.ask("again", "steady", &["app"], &json!({"strategy": {"minStartedSeconds": 5}})).await;
    let done = room.ended("again").await;
    assert_eq!(states(&done), ["app Succeeded killed"]);
    let completed = done.status.as_ref().unwrap().completion_time.as_ref().unwrap().0;
    let pod = room.after_stop("steady", &["app"]).await;
    let lasted = completed.duration_since(started_at(&pod, "app").unwrap());
    // Times of the API have whole seconds.
    assert!(lasted.as_secs() >= 4, "{lasted:?}");
    Ok(())
}
on_a_node!(a_new_container_must_last);

/// CRR-12, CRR-15: a pod with the gate is not ready before its container is stopped, and ready again afterwards; another one is
/// only waited for.
async fn a_pod_is_taken_out_of_service_first(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "unready").await?;
    let gates = json!({"readinessGates": [{"conditionType": "KruisePodReady"}]});
    let (held, free) = tokio::join!(
        room.pod("held", room.two(&json!({}), &json!({})), gates.clone()),
        room.pod("free", room.two(&json!({}), &json!({})), json!({})),
    );
    assert!(pod::is_ready(&held) && pod::is_ready(&free));
    let wait = json!({"strategy": {"unreadyGracePeriodSeconds": 5}});
    room.ask("of-held", "held", &["app"], &wait).await;
    room.ask("of-free", "free", &["app"], &wait).await;
    let unready = room.until("held", "the pod is not ready", |pod| !pod::is_ready(pod)).await;
    assert_eq!(pod::condition(&unready, "KruisePodReady"), Some("False"));
    assert_eq!(status(&unready, "app").restart_count, 0, "not ready before it is stopped");
    for (request, name) in [("of-held", "held"), ("of-free", "free")] {
        let done = room.ended(request).await;
        assert_eq!(states(&done), ["app Succeeded killed"], "{request}");
        let since = done.status.as_ref().unwrap().conditions[0].last_transition_time.0;
        room.until(name, "the pod is ready", pod::is_ready).await;
        let pod = room.after_stop(name, &["app"]).await;
        let waited = ended_at(&pod, "app").duration_since(since);
        assert!(waited.as_secs() >= 5, "{request}: {waited:?}");
    }
    Ok(())
}
on_a_node!(a_pod_is_taken_out_of_service_first);

/// CRR-16: two requests for one pod take turns.
async fn requests_for_one_pod_take_turns(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "turns").await?;
    let hook = json!({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "3"]}}}});
    room.pod("web", room.two(&hook, &json!({})), json!({})).await;
    room.ask("first", "web", &["app"], &json!({})).await;
    room.until_request("first", "the first one began", |request| !states(request).is_empty()).await;
    room.ask("second", "web", &["sidecar"], &json!({})).await;
    let waits = |request: &ContainerRecreateRequest| {
        request.status.as_ref().is_some_and(|status| status.phase == Phase::Pending)
    };
    room.until_request("second", "the second one waits", waits).await;
    assert_eq!(states(&room.ended("first").await), ["app Succeeded killed"]);
    assert_eq!(states(&room.ended("second").await), ["sidecar Succeeded killed"]);
    let pod = room.after_stop("web", &["app", "sidecar"]).await;
    assert!(ended_at(&pod, "sidecar") >= started_at(&pod, "app").unwrap());
    Ok(())
}
on_a_node!(requests_for_one_pod_take_turns);

/// CRR-24: a native sidecar is recreated like any other container; a plain init container is none.
async fn a_native_sidecar_is_recreated(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "native").await?;
    if !stage.cluster.is_at_least(1, 29) {
        let server = stage.cluster.version().to_owned();
        return Err(kruise_testkit::Skip { needs: "init containers that are restarted".to_owned(), server });
    }
    let init = json!([
        {"name": "once", "image": room.image, "command": ["true"]},
        {"name": "proxy", "image": room.image, "restartPolicy": "Always", "env": [{"name": "PORT", "value": "8082"}]},
    ]);
    room.pod("web", room.two(&json!({}), &json!({})), json!({"initContainers": init})).await;
    room.ask("again", "web", &["proxy"], &json!({})).await;
    assert_eq!(states(&room.ended("again").await), ["proxy Succeeded killed"]);
    let pod: Pod = room.sandbox.get("web").await;
    let inits = pod.status.as_ref().unwrap().init_container_statuses.as_ref().unwrap();
    let restarts = |name: &str| inits.iter().find(|one| one.name == name).unwrap().restart_count;
    assert_eq!((restarts("proxy"), status(&pod, "app").restart_count), (1, 0));
    let spec = json!({"podName": "web", "containers": [{"name": "once"}]});
    let object = json!({"metadata": {"name": "bad"}, "spec": spec});
    let refusal = room.sandbox.refused::<ContainerRecreateRequest>(object).await;
    assert!(refusal.contains("container once not found in Pod"), "{refusal}");
    Ok(())
}
on_a_node!(a_native_sidecar_is_recreated);

/// CRR-20: a container that is down already is not stopped, only waited for.
async fn a_container_that_crashed_is_waited_for(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "crashed").await?;
    // Starts fail until the kubelet makes a pause of some seconds. Newer kubelets begin with a second, older ones with ten.
    let failures = if stage.cluster.is_at_least(1, 35) { 3 } else { 2 };
    let script = format!(
        "n=$(cat /m/n 2>/dev/null || echo 0); echo $((n+1)) > /m/n; [ $n -ge {failures} ] || exit 1; exec sh /run.sh"
    );
    let volume = json!([{"name": "memory", "emptyDir": {}}]);
    let mounts = json!([{"name": "memory", "mountPath": "/m"}]);
    let app = json!({"command": ["sh", "-c", script], "volumeMounts": mounts});
    let spec = json!({
        "nodeSelector": {kruise_testkit::cluster::REAL_NODES.0: kruise_testkit::cluster::REAL_NODES.1},
        "volumes": volume, "containers": room.two(&app, &json!({})), "terminationGracePeriodSeconds": 1,
    });
    let _: Pod = room.sandbox.create(json!({"metadata": {"name": "web"}, "spec": spec})).await;
    let is_down = |pod: &Pod| {
        let app = pod::container(pod, "app").filter(|app| app.restart_count == failures - 1);
        let waiting = app.and_then(|app| app.state.as_ref()?.waiting.as_ref()?.reason.clone());
        waiting.as_deref() == Some("CrashLoopBackOff")
    };
    room.until("web", "the container is down", is_down).await;
    room.ask("again", "web", &["app"], &json!({})).await;
    let done = room.ended("again").await;
    assert_eq!(states(&done), ["app Succeeded killed"], "a container that is down counts as stopped");
    let pod: Pod = room.sandbox.get("web").await;
    assert_eq!(status(&pod, "app").restart_count, failures, "nobody has stopped it once more");
    let events = room.sandbox.events().await;
    assert!(events.iter().all(|event| event.component != "kruise-daemon-crr"), "{events:?}");
    Ok(())
}
on_a_node!(a_container_that_crashed_is_waited_for);
