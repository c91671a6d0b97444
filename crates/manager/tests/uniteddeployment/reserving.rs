//! Pods that cannot be scheduled stay, and others run in their place until they can.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kruise_api::uniteddeployment::v1beta1::UnitedDeployment;
use kruise_testkit::{
    Outcome,
    wait::{Look, seen},
};
use kube::{Api, api::ListParams};
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, is_ready, subset},
    stage::{Stage, embedded_only, managed},
};

fn spec(replicas: i64, critical: i64, duration: i64, zones: [&str; 3]) -> Value {
    let [a, b, c] = zones;
    json!({"replicas": replicas, "topology": {
        "subsets": [subset("a", a, json!({})), subset("b", b, json!({})), subset("c", c, json!({}))],
        "scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": critical,
            "unschedulableDuration": duration, "reserveUnschedulablePods": true}}}})
}

/// UNITED-24
async fn pods_that_hang_get_stand_ins(stage: &mut Stage) -> Outcome {
    for field in ["cloneSetTemplate", "deploymentTemplate"] {
        let fleet = Fleet::prepare(stage, &format!("ud-reserve-{}", field.to_lowercase()), field).await;
        fleet.create(spec(2, 20, 1, ["nowhere-1", "nowhere-2", "zone-c"])).await;
        fleet.divided("2/2/2").await;
        fleet
            .until("two pods are ready", |web| {
                let status = &web["status"];
                [&status["readyReplicas"], &status["replicas"], &status["reservedPods"]]
                    == [&json!(2), &json!(2), &json!(4)]
            })
            .await;
        assert_eq!(
            (fleet.reserved("a").await, fleet.reserved("b").await, fleet.reserved("c").await),
            (2, 2, 0)
        );
        let selector = "app=web,apps.kruise.io/united-deployment-reserved-pod=false";
        assert_eq!(fleet.status().await["labelSelector"], selector);
        let condition = fleet.entry("a").await["conditions"][0].clone();
        assert_eq!(
            [&condition["status"], &condition["reason"], &condition["message"]],
            [&json!("False"), &json!("reschedule"), &json!("reserved pods found")]
        );
        assert_eq!(fleet.condition("Waiting").await["reason"], "SubsetUnschedulable");
        fleet.stays("2/2/2", Duration::from_secs(120)).await;
    }
    Ok(())
}
embedded_only!(pods_that_hang_get_stand_ins, []);

/// UNITED-25
async fn stand_ins_go_when_the_pods_run(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-stand-ins", "cloneSetTemplate").await;
    fleet.cordon("hollow-0", true).await;
    fleet.cordon("hollow-1", true).await;
    fleet.create(spec(2, 20, 1, ["zone-a", "zone-b", "zone-c"])).await;
    fleet.divided("2/2/2").await;
    fleet.scale(4).await;
    fleet.divided("2/2/4").await;
    fleet.until("four pods are ready", |web| web["status"]["readyReplicas"] == 4).await;
    fleet.set_image("app:v2").await;
    let image = fleet.image("app:v2");
    let look = async || {
        let pods = fleet.pods().await;
        let all = pods.iter().all(|pod| pod["spec"]["containers"][0]["image"] == image);
        seen(all && pods.len() == 8, format!("{} pods, {}", pods.len(), fleet.status().await))
    };
    fleet.sandbox.eventually("all pods are updated, also those that wait", look).await;
    fleet.until("four pods are ready", |web| web["status"]["readyReplicas"] == 4).await;
    fleet.cordon("hollow-0", false).await;
    let look = async || {
        let ready = fleet.pods().await.iter().filter(|pod| is_ready(pod)).count();
        seen(ready >= 4, format!("{ready} pods are ready"))
    };
    fleet.sandbox.always("four pods are ready", Duration::from_secs(120), look).await;
    fleet.divided("4/0/0").await;
    fleet.settled().await;
    assert_eq!((fleet.reserved("a").await, fleet.pods().await.len()), (0, 4));
    fleet.cordon("hollow-1", false).await;
    Ok(())
}
embedded_only!(stand_ins_go_when_the_pods_run, []);

/// What an autoscaler does: it counts the pods that the selector of the scale finds, compares how much they use with what they
/// should use, and writes the number that would be right. Returns how many it counted.
async fn autoscale(fleet: &Fleet, used: i32, wanted: i32) -> i32 {
    let api: Api<UnitedDeployment> = fleet.sandbox.api();
    let pods: Api<Pod> = fleet.sandbox.api();
    let count = async || {
        let status = api.get_scale("web").await.unwrap().status.unwrap();
        let chosen = ListParams::default().labels(&status.selector.unwrap());
        let found = pods.list(&chosen).await.unwrap().items;
        let found = found.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count();
        match i32::try_from(found).unwrap() {
            found if found == status.replicas => Look::Yes(found),
            found => Look::No(format!("{found} pods, {} replicas", status.replicas)),
        }
    };
    let what = "the pods that the selector finds are those that the scale reports";
    let counted = fleet.sandbox.eventually(what, count).await;
    fleet.scale((counted * used + wanted - 1) / wanted).await;
    counted
}

/// UNITED-28: pods that are kept while they wait are not counted, although the workloads have them.
async fn an_autoscaler_counts_no_pod_that_waits(stage: &mut Stage) -> Outcome {
    for field in ["cloneSetTemplate", "deploymentTemplate"] {
        let fleet = Fleet::prepare(stage, &format!("ud-autoscaler-{}", field.to_lowercase()), field).await;
        fleet.create(spec(2, 5, 1, ["nowhere", "zone-b", "zone-c"])).await;
        let is_settled = async |running: i64| {
            fleet
                .until("the pods are counted", |web| {
                    let status = &web["status"];
                    [&status["readyReplicas"], &status["replicas"]] == [&json!(running), &json!(running)]
                })
                .await;
        };
        fleet.divided("2/2/0").await;
        is_settled(2).await;
        assert_eq!(fleet.pods().await.len(), 4);
        // They use twice as much as they should.
        assert_eq!(autoscale(&fleet, 100, 50).await, 2);
        fleet.divided("2/4/0").await;
        is_settled(4).await;
        // They use what they should: nothing changes.
        assert_eq!(autoscale(&fleet, 50, 50).await, 4);
        fleet.stays("2/4/0", Duration::from_secs(30)).await;
        assert_eq!(autoscale(&fleet, 25, 50).await, 4);
        fleet.divided("2/2/0").await;
        is_settled(2).await;
    }
    Ok(())
}
embedded_only!(an_autoscaler_counts_no_pod_that_waits, []);

/// UNITED-27: who has just recovered is not trusted with new pods until they run.
async fn new_pods_of_a_recovered_subset_are_tried_first(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-recovers", "cloneSetTemplate").await;
    fleet.cordon("hollow-0", true).await;
    fleet.create(spec(2, 5, 30, ["zone-a", "zone-b", "zone-c"])).await;
    fleet.divided("2/2/0").await;
    fleet.until("two pods are ready", |web| web["status"]["readyReplicas"] == 2).await;
    fleet.cordon("hollow-0", false).await;
    fleet.divided("2/0/0").await;
    fleet.settled().await;
    fleet.cordon("hollow-0", true).await;
    fleet.scale(4).await;
    fleet.divided("4/2/0").await;
    fleet.until("four pods are ready", |web| web["status"]["readyReplicas"] == 4).await;
    fleet.cordon("hollow-0", false).await;
    fleet.scale(5).await;
    let look = async || {
        let ready = fleet.pods().await.iter().filter(|pod| is_ready(pod)).count();
        seen(ready >= 4, format!("{ready} pods are ready, {}", fleet.numbers().await))
    };
    fleet.sandbox.always("four pods are ready", Duration::from_secs(90), look).await;
    fleet.divided("5/0/0").await;
    fleet.settled().await;
    Ok(())
}
embedded_only!(new_pods_of_a_recovered_subset_are_tried_first, []);

/// How many reconciles of UnitedDeployments there were.
async fn reconciles(stage: &Stage) -> u64 {
    let metrics = stage.metrics().await;
    let own = metrics.lines().filter(|line| {
        line.starts_with("controller_runtime_reconcile_total") && line.contains("uniteddeployment-controller")
    });
    own.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// Durations of zero keep nobody busy: not while pods wait, and not while a workload cannot be written.
async fn durations_of_zero_are_no_busy_loop(stage: &mut Stage) -> Outcome {
    for reserves in [true, false] {
        let fleet = Fleet::prepare(stage, &format!("ud-zero-{reserves}"), "cloneSetTemplate").await;
        let mut spec = spec(2, 0, 0, ["nowhere", "zone-b", "zone-c"]);
        spec["topology"]["scheduleStrategy"]["adaptive"]["reserveUnschedulablePods"] = json!(reserves);
        fleet.create(spec).await;
        fleet.until("two pods are ready", |web| web["status"]["readyReplicas"] == 2).await;
        let before = reconciles(stage).await;
        stage.sim().advance(Duration::from_secs(100)).await;
        let passes = reconciles(stage).await - before;
        assert!(passes < 1_500, "{passes} reconciles in 100 seconds");
        fleet.change(json!({"topology": {"scheduleStrategy": null}})).await;
    }
    Ok(())
}
embedded_only!(durations_of_zero_are_no_busy_loop, []);

/// UNITED-24: on a real cluster.
async fn a_pod_without_a_node_gets_a_stand_in(stage: &mut Stage) -> Outcome {
    let fleet = Fleet::prepare(stage, "ud-stand-in", "cloneSetTemplate").await;
    fleet.create(spec(1, 3, 2, ["nowhere", "zone-b", "zone-c"])).await;
    fleet.divided("1/1/0").await;
    fleet
        .until("a pod is ready", |web| {
            web["status"]["readyReplicas"] == 1 && web["status"]["reservedPods"] == 1
        })
        .await;
    Ok(())
}
managed!(a_pod_without_a_node_gets_a_stand_in, []);
