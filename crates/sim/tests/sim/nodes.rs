//! What nodes do with pods.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use kruise_apiserver::admission::{Admission, Attributes};
use kruise_apiserver::rest::DeleteOptions;
use kruise_apiserver::status::Status;
use kruise_sim::Sim;
use serde_json::{Value, json};

use super::{condition, create, create_pod, delete, events, get, list, patch, pod, seconds};

fn container(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]
}

#[tokio::test(start_paused = true)]
async fn nodes_register_and_renew_their_leases() {
    let sim = Sim::builder().nodes(3).start();
    seconds(&sim, 65).await;
    let nodes = list(&sim, "nodes");
    assert_eq!(nodes.len(), 3);
    assert_eq!(nodes[1]["metadata"]["labels"]["topology.kubernetes.io/zone"], "zone-b");
    assert_eq!(condition(&nodes[0], "Ready"), "True KubeletReady");
    assert_eq!(nodes[0]["status"]["allocatable"]["pods"], "110");
    let local = sim.server().local();
    let leases = local.resource("coordination.k8s.io", "leases").unwrap();
    let lease = local.get(&leases, "kube-node-lease", "node-2").unwrap().value();
    let renewed = lease["spec"]["renewTime"].as_str().unwrap();
    assert!(renewed > "2026-01-01T00:00:50", "{renewed}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_pulled_created_started_and_ready_with_the_events_of_a_kubelet() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "nginx:1.25", |_| {}).await;
    seconds(&sim, 10).await;
    let pod = get(&sim, "pods", "web");
    assert_eq!(pod["status"]["phase"], "Running", "{pod:#}");
    for kind in ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"] {
        assert_eq!(condition(&pod, kind), "True", "{kind}");
    }
    let status = container(&pod);
    assert_eq!(status["image"], "docker.io/library/nginx:1.25");
    assert!(status["imageID"].as_str().unwrap().starts_with("docker.io/library/nginx@sha256:"));
    assert_eq!(status["containerID"].as_str().unwrap().len(), "containerd://".len() + 64);
    assert_eq!(
        (&status["ready"], &status["started"], &status["restartCount"]),
        (&json!(true), &json!(true), &json!(0))
    );
    assert_eq!(status["lastState"], json!({}));
    assert!(pod["status"]["podIP"].as_str().unwrap().starts_with("10."));
    let node = pod["spec"]["nodeName"].as_str().unwrap();
    let said = events(&sim, "web");
    let begins = [
        format!("Scheduled: Successfully assigned default/web to {node}"),
        "Pulling: Pulling image \"nginx:1.25\"".to_owned(),
        "Pulled: Successfully pulled image \"nginx:1.25\" in ".to_owned(),
        "Created: Created container: app".to_owned(),
        "Started: Started container app".to_owned(),
    ];
    assert_eq!(said.len(), begins.len(), "{said:#?}");
    for (said, begin) in said.iter().zip(&begins) {
        assert!(said.starts_with(begin), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_change_restarts_only_that_container_and_keeps_the_pod() {
    let sim = Sim::builder().start();
    sim.alias_image("app:v3", "app:v2");
    create_pod(&sim, "web", "app:v1", |pod| {
        pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "side", "image": "side:v1"}));
    })
    .await;
    seconds(&sim, 20).await;
    let before = get(&sim, "pods", "web");
    patch(&sim, "pods", "web", None, json!({"spec": {"containers": [{"name": "app", "image": "app:v2"}]}}))
        .await;
    seconds(&sim, 20).await;
    let after = get(&sim, "pods", "web");
    let (old, new) = (container(&before), container(&after));
    assert_ne!(old["containerID"], new["containerID"]);
    assert_ne!(old["imageID"], new["imageID"]);
    assert_eq!((&new["restartCount"], &new["ready"]), (&json!(1), &json!(true)));
    assert_eq!(new["lastState"]["terminated"]["containerID"], old["containerID"]);
    assert_eq!(before["status"]["containerStatuses"][1], after["status"]["containerStatuses"][1]);
    assert_eq!(before["status"]["podIP"], after["status"]["podIP"]);
    let said = events(&sim, "web");
    assert!(
        said.contains(&"Killing: Container app definition changed, will be restarted".to_owned()),
        "{said:#?}"
    );
    // Another name of the same image: a new container, the same imageID.
    patch(&sim, "pods", "web", None, json!({"spec": {"containers": [{"name": "app", "image": "app:v3"}]}}))
        .await;
    seconds(&sim, 20).await;
    let again = get(&sim, "pods", "web");
    assert_eq!(container(&again)["imageID"], new["imageID"]);
    assert_ne!(container(&again)["containerID"], new["containerID"]);
    assert_eq!(container(&again)["restartCount"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_is_restarted_with_growing_pauses() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "crash:1", |_| {}).await;
    seconds(&sim, 30).await;
    let pod = get(&sim, "pods", "web");
    let status = container(&pod);
    assert_eq!(status["state"]["waiting"]["reason"], "CrashLoopBackOff", "{status:#}");
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(condition(&pod, "Ready"), "False ContainersNotReady");
    assert_eq!(pod["status"]["phase"], "Running");
    seconds(&sim, 3600).await;
    let restarts = container(&get(&sim, "pods", "web"))["restartCount"].as_u64().unwrap();
    // 10, 20, 40, 80, 160, then every 300 seconds.
    assert!((14..=18).contains(&restarts), "{restarts}");
    let said = events(&sim, "web");
    assert!(
        said.iter().any(|text| text.starts_with("BackOff: Back-off restarting failed container app")),
        "{said:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_waits_and_a_good_one_heals_it() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "fail:1", |_| {}).await;
    seconds(&sim, 3).await;
    assert_eq!(container(&get(&sim, "pods", "web"))["state"]["waiting"]["reason"], "ErrImagePull");
    seconds(&sim, 5).await;
    let pod = get(&sim, "pods", "web");
    assert_eq!(container(&pod)["state"]["waiting"]["reason"], "ImagePullBackOff");
    assert_eq!(pod["status"]["phase"], "Pending");
    patch(&sim, "pods", "web", None, json!({"spec": {"containers": [{"name": "app", "image": "good:1"}]}}))
        .await;
    seconds(&sim, 5).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "Ready"), "True");
}

#[tokio::test(start_paused = true)]
async fn readiness_gates_are_weighed_as_a_kubelet_does() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "app:1", |pod| {
        pod["spec"]["readinessGates"] = json!([{"conditionType": "InPlaceUpdateReady"}]);
    })
    .await;
    seconds(&sim, 10).await;
    let pod = get(&sim, "pods", "web");
    assert_eq!(condition(&pod, "ContainersReady"), "True");
    assert_eq!(condition(&pod, "Ready"), "False ReadinessGatesNotReady");
    let gate =
        |status: &str| json!({"status": {"conditions": [{"type": "InPlaceUpdateReady", "status": status}]}});
    patch(&sim, "pods", "web", Some("status"), gate("True")).await;
    seconds(&sim, 1).await;
    let pod = get(&sim, "pods", "web");
    assert_eq!(condition(&pod, "Ready"), "True");
    assert!(
        pod["status"]["conditions"].as_array().unwrap().iter().all(|c| c["message"].is_null()),
        "{pod:#}"
    );
    patch(&sim, "pods", "web", Some("status"), gate("False")).await;
    seconds(&sim, 1).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "Ready"), "False ReadinessGatesNotReady");
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_in_order_and_sidecars_stay() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "app:1", |pod| {
        pod["spec"]["initContainers"] = json!([
            {"name": "first", "image": "exit0:1"},
            {"name": "side", "image": "side:1", "restartPolicy": "Always"},
            {"name": "second", "image": "exit0-after20:1"},
        ]);
    })
    .await;
    seconds(&sim, 15).await;
    let pod = get(&sim, "pods", "web");
    assert_eq!(condition(&pod, "Initialized"), "False ContainersNotInitialized");
    assert_eq!(container(&pod)["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["reason"], "Completed");
    assert!(pod["status"]["initContainerStatuses"][1]["state"]["running"].is_object());
    assert_eq!(pod["status"]["phase"], "Pending");
    seconds(&sim, 30).await;
    let pod = get(&sim, "pods", "web");
    assert_eq!(condition(&pod, "Ready"), "True", "{pod:#}");
    assert!(pod["status"]["initContainerStatuses"][1]["state"]["running"].is_object());
}

#[tokio::test(start_paused = true)]
async fn pods_end_as_their_restart_policy_says() {
    let sim = Sim::builder().start();
    for (name, image, policy) in
        [("good", "exit0:1", "Never"), ("bad", "exit3:1", "Never"), ("retry", "exit0:1", "OnFailure")]
    {
        create_pod(&sim, name, image, |pod| pod["spec"]["restartPolicy"] = json!(policy)).await;
    }
    seconds(&sim, 30).await;
    let phase = |name: &str| get(&sim, "pods", name)["status"]["phase"].clone();
    assert_eq!(
        (phase("good"), phase("bad"), phase("retry")),
        (json!("Succeeded"), json!("Failed"), json!("Succeeded"))
    );
    assert_eq!(condition(&get(&sim, "pods", "good"), "Ready"), "False PodCompleted");
    assert_eq!(container(&get(&sim, "pods", "bad"))["state"]["terminated"]["exitCode"], 3);
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_for_the_process_but_not_beyond_the_grace_period() {
    let sim = Sim::builder().start();
    create_pod(&sim, "polite", "app:1", |_| {}).await;
    create_pod(&sim, "stubborn", "stubborn:1", |_| {}).await;
    create_pod(&sim, "hooked", "app:1", |pod| {
        pod["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 10}}});
    })
    .await;
    seconds(&sim, 10).await;
    for name in ["polite", "stubborn", "hooked"] {
        delete(&sim, "pods", name).await;
    }
    seconds(&sim, 3).await;
    assert!(get(&sim, "pods", "polite").is_null(), "{:#}", get(&sim, "pods", "polite"));
    assert_eq!(get(&sim, "pods", "hooked")["status"]["phase"], "Running");
    seconds(&sim, 10).await;
    assert!(get(&sim, "pods", "hooked").is_null());
    seconds(&sim, 15).await;
    assert!(get(&sim, "pods", "stubborn")["metadata"]["deletionTimestamp"].is_string());
    seconds(&sim, 5).await;
    assert!(get(&sim, "pods", "stubborn").is_null());
    assert!(events(&sim, "polite").contains(&"Killing: Stopping container app".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn probes_decide_readiness_restarts_and_starts() {
    let sim = Sim::builder().start();
    let probe = json!({"httpGet": {"port": 80}, "periodSeconds": 5});
    create_pod(&sim, "late", "unready30:1", |pod| {
        pod["spec"]["containers"][0]["readinessProbe"] = probe.clone();
    })
    .await;
    create_pod(&sim, "sick", "unhealthy20:1", |pod| {
        pod["spec"]["containers"][0]["livenessProbe"] = probe.clone();
    })
    .await;
    create_pod(&sim, "warm", "warmup12:1", |pod| {
        pod["spec"]["containers"][0]["startupProbe"] = probe.clone();
    })
    .await;
    seconds(&sim, 15).await;
    assert_eq!(condition(&get(&sim, "pods", "late"), "Ready"), "False ContainersNotReady");
    assert_eq!(container(&get(&sim, "pods", "warm"))["started"], false);
    seconds(&sim, 30).await;
    assert_eq!(condition(&get(&sim, "pods", "late"), "Ready"), "True");
    // Three failures, five seconds apart, are what the default allows: 12 seconds of warming up is too slow.
    assert!(container(&get(&sim, "pods", "warm"))["restartCount"].as_u64().unwrap() > 0);
    assert_eq!(container(&get(&sim, "pods", "sick"))["restartCount"], 1);
    let said = events(&sim, "sick");
    assert!(
        said.contains(&"Killing: Container app failed liveness probe, will be restarted".to_owned()),
        "{said:#?}"
    );
    sim.set_ready("default", "late", "app", false);
    seconds(&sim, 5).await;
    assert_eq!(condition(&get(&sim, "pods", "late"), "Ready"), "False ContainersNotReady");
}

#[tokio::test(start_paused = true)]
async fn a_resize_comes_into_force_with_or_without_a_restart() {
    let sim = Sim::builder().start();
    for (name, policy) in [("soft", "NotRequired"), ("hard", "RestartContainer")] {
        create_pod(&sim, name, "app:1", |pod| {
            pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}});
            pod["spec"]["containers"][0]["resizePolicy"] = json!([
                {"resourceName": "cpu", "restartPolicy": policy}, {"resourceName": "memory", "restartPolicy": "NotRequired"}]);
        })
        .await;
    }
    seconds(&sim, 10).await;
    let bigger = |cpu: &str| json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "20"}}}]}});
    for name in ["soft", "hard"] {
        patch(&sim, "pods", name, Some("resize"), bigger("200m")).await;
    }
    seconds(&sim, 10).await;
    let (soft, hard) = (get(&sim, "pods", "soft"), get(&sim, "pods", "hard"));
    for pod in [&soft, &hard] {
        assert_eq!(container(pod)["resources"]["requests"]["cpu"], "200m", "{pod:#}");
        assert_eq!(container(pod)["allocatedResources"]["cpu"], "200m");
        assert_eq!(condition(pod, "PodResizeInProgress"), "");
    }
    assert_eq!(
        (&container(&soft)["restartCount"], &container(&hard)["restartCount"]),
        (&json!(0), &json!(1))
    );
    patch(&sim, "pods", "soft", Some("resize"), bigger("17")).await;
    seconds(&sim, 5).await;
    let soft = get(&sim, "pods", "soft");
    assert_eq!(condition(&soft, "PodResizePending"), "True Infeasible");
    assert_eq!(container(&soft)["resources"]["requests"]["cpu"], "200m");
    patch(&sim, "pods", "soft", Some("resize"), bigger("300m")).await;
    seconds(&sim, 5).await;
    let soft = get(&sim, "pods", "soft");
    assert_eq!(condition(&soft, "PodResizePending"), "");
    assert_eq!(container(&soft)["resources"]["requests"]["cpu"], "300m");
}

#[tokio::test(start_paused = true)]
async fn a_container_waits_for_the_config_map_its_environment_needs() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "app:1", |pod| {
        pod["spec"]["containers"][0]["env"] =
            json!([{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "barrier", "key": "p_1"}}}]);
    })
    .await;
    seconds(&sim, 10).await;
    let status = get(&sim, "pods", "web");
    let waiting = &container(&status)["state"]["waiting"];
    assert_eq!(waiting["reason"], "CreateContainerConfigError");
    assert_eq!(waiting["message"], "configmap \"barrier\" not found");
    create(&sim, "configmaps", json!({"metadata": {"name": "barrier"}, "data": {"p_1": "true"}})).await;
    seconds(&sim, 15).await;
    assert_eq!(condition(&get(&sim, "pods", "web"), "Ready"), "True");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_node_is_silent_and_a_rebooted_one_starts_everything_anew() {
    let sim = Sim::builder().nodes(1).start();
    create_pod(&sim, "web", "app:1", |_| {}).await;
    seconds(&sim, 10).await;
    let before = get(&sim, "pods", "web");
    sim.stop_node("node-1");
    patch(&sim, "pods", "web", None, json!({"spec": {"containers": [{"name": "app", "image": "app:2"}]}}))
        .await;
    seconds(&sim, 60).await;
    assert_eq!(container(&get(&sim, "pods", "web"))["containerID"], container(&before)["containerID"]);
    sim.return_node("node-1");
    seconds(&sim, 10).await;
    let returned = get(&sim, "pods", "web");
    assert_eq!(container(&returned)["image"], "docker.io/library/app:2");
    sim.stop_node("node-1");
    seconds(&sim, 5).await;
    sim.reboot_node("node-1");
    seconds(&sim, 10).await;
    let rebooted = get(&sim, "pods", "web");
    assert_eq!(container(&rebooted)["restartCount"], 2, "{rebooted:#}");
    assert_eq!(container(&rebooted)["lastState"]["terminated"]["exitCode"], 255);
    assert_ne!(rebooted["status"]["podIP"], before["status"]["podIP"]);
}

#[tokio::test(start_paused = true)]
async fn deadlines_and_evictions_by_the_node_fail_a_pod() {
    let sim = Sim::builder().start();
    create_pod(&sim, "slow", "app:1", |pod| pod["spec"]["activeDeadlineSeconds"] = json!(30)).await;
    create_pod(&sim, "big", "app:1", |_| {}).await;
    seconds(&sim, 10).await;
    sim.evict_by_node("default", "big", "The node was low on resource: memory.");
    seconds(&sim, 30).await;
    let (slow, big) = (get(&sim, "pods", "slow"), get(&sim, "pods", "big"));
    assert_eq!(
        (&slow["status"]["phase"], &slow["status"]["reason"]),
        (&json!("Failed"), &json!("DeadlineExceeded"))
    );
    assert_eq!((&big["status"]["phase"], &big["status"]["reason"]), (&json!("Failed"), &json!("Evicted")));
    assert_eq!(condition(&big, "DisruptionTarget"), "True TerminationByKubelet");
}

#[tokio::test(start_paused = true)]
async fn events_are_forgotten_after_an_hour_and_a_running_pod_is_silent() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "app:1", |_| {}).await;
    assert!(sim.settle().await);
    let version = get(&sim, "pods", "web")["metadata"]["resourceVersion"].clone();
    seconds(&sim, 4000).await;
    assert_eq!(get(&sim, "pods", "web")["metadata"]["resourceVersion"], version);
    assert_eq!(list(&sim, "events"), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn logs_tell_the_start_the_image_and_the_time_that_passes() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "app:1", |_| {}).await;
    create_pod(&sim, "waits", "fail:1", |_| {}).await;
    seconds(&sim, 25).await;
    let api: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::namespaced(sim.client(), "default");
    let text = api.logs("web", &kube::api::LogParams::default()).await.unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[0], "app: starting");
    assert!(lines[1].starts_with("app: image docker.io/library/app:1 container "));
    assert_eq!(lines[3], "app: tick 2");
    let tail = kube::api::LogParams { tail_lines: Some(1), ..kube::api::LogParams::default() };
    assert_eq!(api.logs("web", &tail).await.unwrap(), "app: tick 2\n");
    let refused = api.logs("waits", &kube::api::LogParams::default()).await.unwrap_err().to_string();
    assert!(refused.contains("container \"app\" in pod \"waits\" is waiting to start: "), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_container_joins_a_running_pod() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "app:1", |_| {}).await;
    seconds(&sim, 10).await;
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "exit0:1"}]}});
    patch(&sim, "pods", "web", Some("ephemeralcontainers"), debug).await;
    seconds(&sim, 5).await;
    let pod = get(&sim, "pods", "web");
    assert!(pod["status"]["ephemeralContainerStatuses"][0]["state"]["running"].is_object(), "{pod:#}");
    seconds(&sim, 10).await;
    let pod = get(&sim, "pods", "web");
    assert_eq!(pod["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
    assert_eq!(condition(&pod, "Ready"), "True");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_stopped_on_its_node_is_started_again_at_once() {
    let sim = Sim::builder().start();
    create_pod(&sim, "web", "app:1", |_| {}).await;
    seconds(&sim, 10).await;
    let before = get(&sim, "pods", "web");
    sim.kill_container("default", "web", "app");
    seconds(&sim, 5).await;
    let after = get(&sim, "pods", "web");
    assert_eq!(container(&after)["restartCount"], 1, "{after:#}");
    assert_ne!(container(&after)["containerID"], container(&before)["containerID"]);
    assert_eq!(after["status"]["podIP"], before["status"]["podIP"]);
    assert_eq!(condition(&after, "Ready"), "True");
}

/// Deletes a pod while its node reports that it runs.
#[derive(Default)]
struct DeletedMeanwhile(AtomicBool);

impl Admission for DeletedMeanwhile {
    fn mutate<'a>(&'a self, _: &'a Attributes<'a>, _: &'a mut Value) -> BoxFuture<'a, Result<bool, Status>> {
        Box::pin(async { Ok(false) })
    }

    fn validate<'a>(
        &'a self,
        asked: &'a Attributes<'a>,
        object: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let is_running = object.is_some_and(|pod| pod["status"]["phase"] == "Running");
            if asked.subresource == Some("status") && is_running && !self.0.swap(true, Ordering::Relaxed) {
                let local = asked.server.local();
                local.delete(asked.resource, asked.namespace, asked.name, &DeleteOptions::default()).await?;
            }
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_right_before_a_report_of_the_node_is_not_missed() {
    let sim = Sim::builder().start();
    let deleted = Arc::new(DeletedMeanwhile::default());
    sim.server().add_admission(deleted.clone());
    create(&sim, "pods", pod("a", "registry.example/app:v1")).await;
    seconds(&sim, 90).await;
    assert!(deleted.0.load(Ordering::Relaxed), "the pod never ran");
    assert_eq!(get(&sim, "pods", "a"), Value::Null);
}
