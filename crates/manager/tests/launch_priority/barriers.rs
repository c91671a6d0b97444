//! The barrier and its keys: when they come, and whose they are.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Namespace, Pod},
};
use kruise_api::{
    env::CONTAINER_BARRIER,
    labels::{CONTROL_PLANE, CONTROL_PLANE_VALUE},
};
use kruise_testkit::{
    Outcome,
    wait::{Look, seen},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    film::Film,
    kit::{is_ready, merged},
    stage::{Stage, embedded_only, managed},
    words::{Room, assert_order, is_completed, ordered, pod, waiting, waits_for, workload},
};

/// LAUNCH-9: keys come one by one as containers become ready, and the last one ends it.
///
/// Readiness of each container is turned on by hand, which only simulated nodes allow. The pod of the example has a container
/// without a barrier, which no admitted pod has; so it is made where pods are not admitted by us.
async fn keys_follow_the_readiness_of_containers(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "example").await?;
    let exempt = json!({"metadata": {"labels": {CONTROL_PLANE: CONTROL_PLANE_VALUE}}});
    let namespaces: Api<Namespace> = Api::all(stage.cluster.client());
    let namespace = room.sandbox.namespace();
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(&exempt)).await.unwrap();
    let container = |name: &str, priority: Option<i32>| {
        let mut container =
            merged(room.container(name), &json!({"image": stage.cluster.image("app:v1-unready")}));
        if let Some(priority) = priority {
            let key = json!({"configMapKeyRef": {"name": "example-barrier", "key": format!("p_{priority}")}});
            container["env"] = json!([{"name": CONTAINER_BARRIER, "valueFrom": key}]);
        }
        container
    };
    let containers =
        [("a", Some(3)), ("b", Some(5)), ("c", Some(0)), ("d", None), ("e", Some(-1)), ("f", Some(3))]
            .map(|(name, priority)| container(name, priority));
    let made: Pod = room.sandbox.create(pod("example", &containers)).await;
    assert_eq!(waits_for(&made), "a:p_3 b:p_5 c:p_0 d:- e:p_-1 f:p_3");

    let steps: [(&[&str], &[&str], bool); 5] = [
        (&[], &["p_5"], false),
        (&["b"], &["p_5", "p_3"], false),
        (&["f"], &["p_5", "p_3"], false),
        (&["a"], &["p_5", "p_3", "p_0"], false),
        (&["c"], &["p_5", "p_3", "p_0", "p_-1"], true),
    ];
    for (ready, keys, completed) in steps {
        for container in ready {
            let runs = |pod: &Pod| crate::words::has_started(pod, container);
            room.until("the container runs", "example", runs).await;
            stage.sim().set_ready(namespace, "example", container, true);
            let is_ready =
                |pod: &Pod| kruise_testkit::pod::container(pod, container).is_some_and(|status| status.ready);
            room.until("the container is ready", "example", is_ready).await;
        }
        room.has_keys("example", keys).await;
        // Nothing more comes by itself.
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        room.has_keys("example", keys).await;
        let found: Pod = room.sandbox.get("example").await;
        assert_eq!(is_completed(&found), completed, "with {keys:?}");
    }
    Ok(())
}
embedded_only!(keys_follow_the_readiness_of_containers, []);

/// LAUNCH-10: behind a container that cannot start all others wait, until it is mended.
async fn others_wait_behind_a_container_that_cannot_start(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "blocked").await?;
    let bad = json!({"image": stage.cluster.image("app:v2-fail")});
    let containers = [merged(room.container("c1"), &bad), room.container("c2"), room.container("c3")];
    let (_, film) = room.start(ordered(pod("blocked", &containers))).await;
    let blocked = |pod: &Pod| {
        waiting(pod, "c1").contains("ImagePull")
            && ["c2", "c3"].into_iter().all(|one| waiting(pod, one) == "CreateContainerConfigError")
    };
    room.until("the others wait", "blocked", blocked).await;
    let keys = async || room.keys("blocked").await.unwrap_or_default().into_iter().collect::<Vec<String>>();
    let first = async || match keys().await {
        keys if keys.is_empty() => Look::No("there is no key yet".to_owned()),
        _ => Look::Yes(()),
    };
    room.sandbox.eventually("the first key comes", first).await;
    let look = async || {
        let (found, keys): (Pod, _) = (room.sandbox.get("blocked").await, keys().await);
        let pulling = ["ContainerCreating", ""].contains(&waiting(&found, "c1"));
        seen(keys == ["p_0"] && !is_completed(&found) && (pulling || blocked(&found)), format!("{keys:?}"))
    };
    let during = std::time::Duration::from_secs(20);
    room.sandbox.always("no further key comes", during, look).await;

    let good = json!({"spec": {"containers": [{"name": "c1", "image": stage.cluster.image("app:v2")}]}});
    let _: Pod = room.sandbox.strategic("blocked", good).await;
    let found = room.completed("blocked").await;
    assert_order(&film, &found, &[&["c1"], &["c2"], &["c3"]]);
    Ok(())
}
managed!(others_wait_behind_a_container_that_cannot_start, []);

/// The uids that own a barrier.
fn owners(barrier: &ConfigMap) -> Vec<String> {
    barrier.metadata.owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect()
}

/// LAUNCH-12: a pod that comes back under its name has a barrier of its own.
async fn a_pod_of_the_same_name_starts_in_order_again(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "again").await?;
    let film = Film::of(room.sandbox.api()).await;
    let template = ordered(pod("", &[room.container("c1"), room.container("c2")]));
    let set = merged(workload("StatefulSet", "web", &template), &json!({"spec": {"serviceName": "web"}}));
    let _: StatefulSet = room.sandbox.create(set).await;
    let came = async |before: &Option<String>| {
        let look = async || {
            let pods: Vec<Pod> = room.sandbox.list().await;
            let found = pods.into_iter().find(|pod| pod.metadata.uid != *before);
            match found.filter(|pod| is_ready(pod) && is_completed(pod)) {
                Some(pod) => Look::Yes(pod),
                None => Look::No("it is not there, or not ready".to_owned()),
            }
        };
        room.sandbox.eventually("web-0 is ready", look).await
    };
    let first = came(&None).await;
    let pods: Api<Pod> = room.sandbox.api();
    pods.delete("web-0", &DeleteParams::default().grace_period(0)).await.unwrap();
    let second = came(&first.metadata.uid).await;
    for pod in [&first, &second] {
        assert_order(&film, pod, &[&["c1"], &["c2"]]);
    }
    let barrier = room.barrier("web-0").await.unwrap();
    assert_eq!(owners(&barrier), [second.metadata.uid.clone().unwrap()]);
    Ok(())
}
managed!(a_pod_of_the_same_name_starts_in_order_again, []);

/// LAUNCH-12: keys that are left from an earlier pod let nothing start.
///
/// Only where the node takes a known time to pull: a kubelet that is faster than the manager reads the old keys.
async fn keys_of_an_earlier_pod_are_not_used(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "left").await?;
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "11111111-2222-3333-4444-555555555555"}]);
    for owners in [Value::Null, owner] {
        let old = json!({
            "metadata": {"name": "web-0-barrier", "ownerReferences": owners},
            "data": {"p_0": "true", "p_-1": "true"},
        });
        let old: ConfigMap = room.sandbox.create(old).await;
        let containers = [room.container("c1"), room.container("c2")];
        let (_, film) = room.start(ordered(pod("web-0", &containers))).await;
        let found = room.completed("web-0").await;
        assert_order(&film, &found, &[&["c1"], &["c2"]]);
        let barrier = room.barrier("web-0").await.unwrap();
        assert_ne!(barrier.metadata.uid, old.metadata.uid);
        assert_eq!(self::owners(&barrier), [found.metadata.uid.unwrap()]);
        gone(&room, "web-0").await;
    }
    Ok(())
}
embedded_only!(keys_of_an_earlier_pod_are_not_used, []);

/// Deletes a pod and waits until its barrier is gone too.
async fn gone(room: &Room, pod: &str) {
    room.sandbox.delete::<Pod>(pod).await;
    let look = async || {
        let pods: Vec<Pod> = room.sandbox.list().await;
        let barrier = room.barrier(pod).await;
        seen(pods.is_empty() && barrier.is_none(), format!("{} pods, barrier {barrier:?}", pods.len()))
    };
    room.sandbox.eventually("pod and barrier are gone", look).await;
}

/// LAUNCH-14: the barrier goes with its pod.
async fn a_barrier_goes_with_its_pod(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "gone").await?;
    let _: Pod =
        room.sandbox.create(ordered(pod("one", &[room.container("c1"), room.container("c2")]))).await;
    let found = room.completed("one").await;
    let barrier = room.barrier("one").await.unwrap();
    let references = serde_json::to_value(&barrier.metadata.owner_references).unwrap();
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": found.metadata.uid}]);
    assert_eq!(references, owner, "neither a controller nor one that holds its owner");
    gone(&room, "one").await;
    Ok(())
}
managed!(a_barrier_goes_with_its_pod, []);
