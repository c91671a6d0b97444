//! Who starts first.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kruise_api::{env::CONTAINER_PRIORITY, names};
use kruise_testkit::{
    Backend, Outcome,
    wait::{Look, seen},
};
use kube::api::DeleteParams;
use serde_json::json;

use crate::{
    film::Film,
    kit::{Demo, is_ready, merged, name},
    stage::{Stage, managed},
    words::{Room, assert_order, has_succeeded, ordered, pod, started_at, waits_for, workload},
};

/// LAUNCH-1: in the template of a CloneSet the container with the higher priority starts first.
async fn the_higher_priority_starts_first(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "priorities").await?;
    let demo = Demo::prepare(stage, "priorities").await;
    let film = demo.film().await;
    let template = pod("", &[room.container("main"), room.prior("c2", "10")]);
    demo.create(json!({"spec": {"replicas": 1, "template": {"spec": template["spec"]}}})).await;
    demo.settled().await;
    let found = demo.pods().await.remove(0);
    assert_eq!(waits_for(&found), "main:p_0 c2:p_10");
    let names: Vec<Vec<&str>> = found.spec.as_ref().unwrap().containers.iter().map(variables).collect();
    assert_eq!(
        names,
        [
            vec!["PORT", "KRUISE_CONTAINER_BARRIER"],
            vec!["PORT", CONTAINER_PRIORITY, "KRUISE_CONTAINER_BARRIER"]
        ]
    );
    assert_order(&film, &found, &[&["c2"], &["main"]]);
    assert!(started_at(&found, "c2") < started_at(&found, "main"));
    Ok(())
}
managed!(the_higher_priority_starts_first, []);

fn variables(container: &k8s_openapi::api::core::v1::Container) -> Vec<&str> {
    container.env.iter().flatten().map(|variable| variable.name.as_str()).collect()
}

/// LAUNCH-2: a pod of a Deployment has its name early enough for its barrier to be named after it.
async fn a_pod_without_a_name_gets_one_for_its_barrier(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "deployment").await?;
    let film = Film::of(room.sandbox.api()).await;
    let template = pod("", &[room.container("main"), room.prior("c2", "10")]);
    let _: Deployment = room.sandbox.create(workload("Deployment", "web", &template)).await;
    let found: Pod = room
        .sandbox
        .eventually("the pod is ready", async || {
            let pods: Vec<Pod> = room.sandbox.list().await;
            match pods.into_iter().find(is_ready) {
                Some(pod) => Look::Yes(pod),
                None => Look::No("no pod is ready".to_owned()),
            }
        })
        .await;
    let prefix = found.metadata.generate_name.clone().unwrap();
    let own = name(&found);
    let suffix = own.strip_prefix(&prefix).unwrap();
    assert!(suffix.len() == 5 && suffix.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)));
    assert_eq!(waits_for(&found), "main:p_0 c2:p_10", "the barrier is called {own}-barrier");
    assert!(room.barrier(&own).await.is_some());
    assert_order(&film, &found, &[&["c2"], &["main"]]);
    Ok(())
}
managed!(a_pod_without_a_name_gets_one_for_its_barrier, []);

/// LAUNCH-3: with the annotation, containers start in the order of the list, each when the one before is ready.
async fn containers_start_in_the_order_of_the_list(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "ordered").await?;
    let hook = json!({"lifecycle": {"postStart": {"exec": {"command": ["sleep", "1"]}}}});
    let containers =
        [merged(room.container("c1"), &hook), merged(room.container("c2"), &hook), room.container("c3")];
    let (_, film) = room.start(ordered(pod("list", &containers))).await;
    let found = room.completed("list").await;
    assert_eq!(waits_for(&found), "c1:p_0 c2:p_-1 c3:p_-2");
    assert_order(&film, &found, &[&["c1"], &["c2"], &["c3"]]);
    let times = ["c1", "c2", "c3"].map(|container| started_at(&found, container));
    assert!(times.is_sorted(), "{times:?}");
    Ok(())
}
managed!(containers_start_in_the_order_of_the_list, []);

/// LAUNCH-4: the annotation wins over priorities.
async fn with_the_annotation_priorities_mean_nothing(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "both").await?;
    let containers = [room.prior("first", "1"), room.prior("second", "5"), room.prior("third", "10")];
    let (_, film) = room.start(ordered(pod("both", &containers))).await;
    let found = room.completed("both").await;
    assert_eq!(waits_for(&found), "first:p_0 second:p_-1 third:p_-2");
    assert_order(&film, &found, &[&["first"], &["second"], &["third"]]);
    Ok(())
}
managed!(with_the_annotation_priorities_mean_nothing, []);

/// LAUNCH-7: equal priorities start together, and what is below them waits for both.
async fn equal_priorities_start_together(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "equal").await?;
    let containers = [room.prior("low", "1"), room.prior("one", "5"), room.prior("other", "5")];
    let (_, film) = room.start(pod("equal", &containers)).await;
    let found = room.completed("equal").await;
    assert_eq!(waits_for(&found), "low:p_1 one:p_5 other:p_5");
    assert_order(&film, &found, &[&["one", "other"], &["low"]]);
    let both_before_ready = film.frames().iter().flat_map(|frame| frame.pods.values()).any(|pod| {
        let of = |container| kruise_testkit::pod::container(pod, container).unwrap();
        let is_up = |container| of(container).state.as_ref().is_some_and(|state| state.running.is_some());
        pod.status.as_ref().is_some_and(|status| status.container_statuses.is_some())
            && ["one", "other"].into_iter().all(is_up)
            && !(of("one").ready && of("other").ready)
    });
    // A real node may start both, and find both ready, before it tells anything.
    let is_real = stage.cluster.backend() == Backend::Real;
    assert!(both_before_ready || is_real, "the second one of equals does not wait for the first");
    Ok(())
}
managed!(equal_priorities_start_together, []);

/// LAUNCH-17: a container that did its work counts as ready, where the pod does not start it again.
async fn a_container_that_has_done_its_work_lets_others_start(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "work").await?;
    let done = json!({
        "command": ["sh", "-c", "sleep 3; exit 0"],
        // It is never ready, so that only its end can let the other one start.
        "readinessProbe": {"initialDelaySeconds": 3600},
    });
    let containers = [room.prior("main", "0"), merged(room.prior("prep", "1"), &done)];
    let job = merged(pod("work", &containers), &json!({"spec": {"restartPolicy": "OnFailure"}}));
    let (_, film) = room.start(job).await;
    let found = room
        .until("the main container is ready", "work", |pod| {
            kruise_testkit::pod::container(pod, "main").is_some_and(|status| status.ready)
        })
        .await;
    assert!(has_succeeded(&found, "prep"));
    assert_order(&film, &found, &[&["prep"], &["main"]]);
    Ok(())
}
managed!(a_container_that_has_done_its_work_lets_others_start, []);

/// LAUNCH-15: a SidecarSet orders the containers of the pods that it is for, its own first.
///
/// The list of annotations that sets may write belongs to the whole cluster, so this one runs alone.
async fn a_sidecar_set_puts_its_containers_first(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "sidecar").await?;
    let allowed =
        json!({"rules": [{"allowedAnnotationKeyExprs": ["^apps.kruise.io/container-launch-priority$"]}]});
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": names::CONFIGURATION, "namespace": names::NAMESPACE},
        "data": {names::SIDECARSET_PATCH_WHITE_LIST: allowed.to_string()},
    });
    stage.put(list.clone()).await;
    let label = room.sandbox.namespace().to_owned();
    let set = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "SidecarSet",
        "metadata": {"name": label},
        "spec": {
            "selector": {"matchLabels": {"app": label}},
            "containers": [merged(room.container("sc"), &json!({"podInjectPolicy": "BeforeAppContainer"}))],
            "patchPodMetadata": [{
                "annotations": {"apps.kruise.io/container-launch-priority": "Ordered"},
                "patchPolicy": "Overwrite",
            }],
        },
    });
    // The list may be known a moment later than it is written, and so may the set.
    let accepted = async || match stage.create(set.clone()).await {
        Ok(_) => Look::Yes(()),
        Err(refusal) => Look::No(refusal),
    };
    room.sandbox.eventually("the set is accepted", accepted).await;
    let known = async || {
        let found = stage.api(&set).get(&label).await.unwrap();
        seen(found.data.pointer("/status/observedGeneration").is_some(), found.data.to_string())
    };
    room.sandbox.eventually("the manager knows the set", known).await;
    let labelled = json!({"metadata": {"labels": {"app": label}}});
    let (_, film) = room.start(merged(pod("one", &[room.container("app")]), &labelled)).await;
    let found = room.completed("one").await;
    assert_eq!(waits_for(&found), "sc:p_0 app:p_-1");
    assert_order(&film, &found, &[&["sc"], &["app"]]);
    for object in [set, list] {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        stage.api(&object).delete(&name, &DeleteParams::default()).await.unwrap();
    }
    Ok(())
}
managed!(a_sidecar_set_puts_its_containers_first, [], alone);
