//! Which nodes a BroadcastJob runs on, also when nodes change. Nodes of real clusters are not changed by tests.

use std::time::Duration;

use kruise_sim::Node;
use kruise_testkit::{Outcome, cluster::HOLLOW_NODES};
use serde_json::{Value, json};

use crate::{
    room::{Room, node_of},
    stage::{Stage, embedded_only},
};

const NEVER: &str = "Never";

fn of_type(kind: &str) -> Value {
    json!({"spec": {"completionPolicy": {"type": kind}}})
}

fn with_spec(spec: Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

/// JOBS-6, JOBS-7, JOBS-12: nodes that get a label later, and nodes that join.
async fn nodes_that_come_to_fit_get_a_pod(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-label").await;
    let mut spec = with_spec(json!({"nodeSelector": {"disk": "ssd"}}));
    spec["spec"]["completionPolicy"] = json!({"type": NEVER});
    room.broadcast("exit 0", spec).await;
    room.until("running 0/0/0/0").await;
    assert_eq!(room.condition("Waiting").await.unwrap()[..2], ["True", "NodeNotEligible"]);
    room.change_node("hollow-1", json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
    room.until("running 1/0/1/0").await;
    assert_eq!(room.pods().await.iter().map(node_of).collect::<Vec<_>>(), ["hollow-1"]);
    let mut node = Node::named("late");
    node.labels.insert("disk".to_owned(), "ssd".to_owned());
    node.labels.insert(HOLLOW_NODES.0.to_owned(), HOLLOW_NODES.1.to_owned());
    stage.sim().add_node(node);
    room.until("running 2/0/2/0").await;
    assert!(room.job().await["status"]["completionTime"].is_null());
    assert!(room.condition("Complete").await.is_none());
    Ok(())
}
embedded_only!(nodes_that_come_to_fit_get_a_pod, []);

/// JOBS-7: a job that ends does so after the first node that fits.
async fn a_job_without_nodes_runs_when_there_is_one(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-none").await;
    room.broadcast("exit 0", with_spec(json!({"nodeSelector": {"disk": "ssd"}}))).await;
    room.until("running 0/0/0/0").await;
    stage.sim().advance(Duration::from_secs(60)).await;
    assert_eq!(room.told().await, "running 0/0/0/0");
    room.change_node("hollow-0", json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
    room.until("completed 1/0/1/0").await;
    Ok(())
}
embedded_only!(a_job_without_nodes_runs_when_there_is_one, []);

/// JOBS-8, JOBS-9, JOBS-10, JOBS-11: taints, cordons and size.
async fn taints_cordons_and_size_keep_pods_away(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-taints").await;
    let desired = async |spec: Value, expected: i64| {
        room.broadcast("exit 0", with_spec(spec)).await;
        room.until(&format!("completed {expected}/0/{expected}/0")).await;
        room.sandbox.delete::<kruise_api::broadcastjob::v1beta1::BroadcastJob>("job").await;
        stage.sim().advance(Duration::from_secs(10)).await;
    };
    let tolerate = |key: &str| json!({"tolerations": [{"key": key, "operator": "Exists"}]});
    let taint = |effect: &str| json!([{"key": "x", "value": "y", "effect": effect}]);
    room.taint("hollow-0", taint("NoSchedule")).await;
    desired(json!({}), 2).await;
    desired(tolerate("x"), 3).await;
    room.taint("hollow-0", taint("PreferNoSchedule")).await;
    desired(json!({}), 3).await;
    room.taint("hollow-0", Value::Null).await;
    room.cordon("hollow-0", true).await;
    stage.sim().advance(Duration::from_secs(2)).await;
    desired(json!({}), 2).await;
    desired(tolerate("node.kubernetes.io/unschedulable"), 3).await;
    room.cordon("hollow-0", false).await;
    stage.sim().advance(Duration::from_secs(2)).await;
    let large = |cpu: &str| {
        let mut containers = room.template("exit 0")["spec"]["containers"].clone();
        containers[0]["resources"] = json!({"requests": {"cpu": cpu}});
        json!({"containers": containers})
    };
    desired(large("1"), 3).await;
    room.broadcast("exit 0", with_spec(large("1000000"))).await;
    room.until("running 0/0/0/0").await;
    let [_, reason, message] = room.condition("Waiting").await.unwrap();
    assert_eq!(reason, "NodeNotEligible");
    assert!(message.ends_with("3 are too small"), "{message}");
    Ok(())
}
embedded_only!(taints_cordons_and_size_keep_pods_away, []);

/// JOBS-13: a cordon after the end deletes nothing and repeats nothing (BJ-D4).
async fn finished_pods_survive_a_cordon(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-cordon").await;
    room.broadcast("exit 0", of_type(NEVER)).await;
    room.until("running 3/0/3/0").await;
    room.cordon("hollow-2", true).await;
    room.until("running 2/0/3/0").await;
    room.cordon("hollow-2", false).await;
    room.until("running 3/0/3/0").await;
    stage.sim().advance(Duration::from_secs(30)).await;
    assert_eq!(room.pods().await.len(), 3);
    assert_eq!(room.events("BroadcastJob", "SuccessfulCreate").await.len(), 3);
    Ok(())
}
embedded_only!(finished_pods_survive_a_cordon, []);

/// JOBS-28: of the template's node affinity only the node's name is left in pods.
async fn affinity_chooses_nodes_and_is_replaced(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-zone").await;
    let zone =
        json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-b", "zone-c"]});
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [zone]}]});
    let affinity =
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}});
    room.broadcast("exit 0", with_spec(affinity)).await;
    room.until("completed 2/0/2/0").await;
    for pod in room.pods().await {
        let written = serde_json::to_value(&pod).unwrap();
        let terms =
            &written["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let name = json!({"key": "metadata.name", "operator": "In", "values": [node_of(&pod)]});
        assert_eq!(terms, &json!({"nodeSelectorTerms": [{"matchFields": [name]}]}));
    }
    Ok(())
}
embedded_only!(affinity_chooses_nodes_and_is_replaced, []);

/// A node that is lost for good does not hold the job up: its pod is given up (BJ-D7).
async fn a_lost_node_does_not_hold_the_job_up(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "bcj-lost").await;
    room.broadcast("sleep 20", json!({"spec": {"parallelism": 1, "failurePolicy": {"type": "Continue"}}}))
        .await;
    room.until("running 3/1/0/0").await;
    stage.sim().stop_node("hollow-0");
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(stage.cluster.client());
    nodes.delete("hollow-0", &kube::api::DeleteParams::default()).await.unwrap();
    room.within("the other nodes are done", async || {
        let told = room.told().await;
        kruise_testkit::wait::seen(told.starts_with("completed 2/0/2/"), told)
    })
    .await;
    Ok(())
}
embedded_only!(a_lost_node_does_not_hold_the_job_up, []);
