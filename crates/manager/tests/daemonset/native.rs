//! The same spec as a native DaemonSet and as ours gives the same pods on the same nodes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::{apps::v1::DaemonSet as Native, core::v1::Pod};
use kruise_testkit::{Outcome, wait::seen};
use serde_json::{Value, json};

use crate::{
    agent::{Agent, node_of},
    kit::{is_active, label},
    stage::{Stage, embedded_only},
};

/// The numbers that both statuses have.
const NUMBERS: [&str; 5] = [
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberMisscheduled",
    "numberReady",
    "updatedNumberScheduled",
];

/// How many pods each of the two has on each node.
fn counted(pods: &[Pod], app: &str) -> BTreeMap<String, usize> {
    let mut nodes = BTreeMap::new();
    for pod in pods.iter().filter(|pod| is_active(pod) && label(pod, "app") == app) {
        *nodes.entry(node_of(pod)).or_default() += 1;
    }
    nodes
}

fn numbers(status: &Value) -> Vec<i64> {
    NUMBERS.iter().map(|field| status[field].as_i64().unwrap_or(0)).collect()
}

/// Waits until both have the same pods on the same nodes, and the same numbers; which ones is the answer.
async fn agree(agent: &Agent, what: &str) -> (BTreeMap<String, usize>, Vec<i64>) {
    // Both need a moment to hear of a change, so they must agree for a while.
    let look = async || {
        let pods = agent.demo.all_pods().await;
        let native: Native = agent.sandbox().get("native").await;
        let ours = serde_json::to_value(agent.set().await).unwrap();
        let native = serde_json::to_value(native).unwrap();
        let (left, right) = (counted(&pods, "native"), counted(&pods, "agent"));
        let same = left == right && numbers(&native["status"]) == numbers(&ours["status"]);
        let state = format!("native {left:?} {}, ours {right:?} {}", native["status"], ours["status"]);
        // Nodes whose pod is still ending count too.
        let held: BTreeSet<String> =
            pods.iter().filter(|pod| label(pod, "app") == "agent").map(node_of).collect();
        let numbers = numbers(&ours["status"]);
        seen(same && numbers[1] + numbers[2] == i64::try_from(held.len()).unwrap(), state)
    };
    agent.sandbox().eventually(what, look).await;
    agent.always("a minute passes", std::time::Duration::from_secs(60), |_, _| true).await;
    agent.sandbox().eventually(what, look).await;
    let status = serde_json::to_value(agent.set().await).unwrap()["status"].clone();
    (counted(&agent.demo.all_pods().await, "agent"), numbers(&status))
}

/// With taints, a cordon, a node that is not ready, labels, and an update.
async fn native_and_ours_agree(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "native", json!({})).await;
    let nodes = agent.nodes().await;
    let native = agent.object(&json!({
        "apiVersion": "apps/v1", "metadata": {"name": "native"},
        "spec": {"selector": {"matchLabels": {"app": "native"}}, "template": {"metadata": {"labels": {"app": "native"}}}},
    }));
    stage.create(native.clone()).await.unwrap();
    let (pods, status) = agree(&agent, "every node has both").await;
    assert_eq!((pods.len(), status), (4, vec![4, 4, 0, 4, 4]));
    agent.taint(&nodes[0], "k", "NoSchedule").await;
    let (pods, status) = agree(&agent, "a node with NoSchedule keeps both").await;
    assert_eq!((pods.len(), status), (4, vec![3, 3, 1, 3, 3]));
    agent.taint(&nodes[1], "k", "NoExecute").await;
    let (pods, status) = agree(&agent, "a node with NoExecute has none").await;
    assert_eq!((pods.len(), status), (3, vec![2, 2, 1, 2, 2]));
    agent.patch_node(&nodes[2], json!({"spec": {"unschedulable": true}})).await;
    agree(&agent, "a cordoned node keeps both").await;
    stage.sim().stop_node(&nodes[3]);
    let (pods, _) = agree(&agent, "a node that is not ready keeps both").await;
    assert_eq!(pods.len(), 3);
    for object in [&native, &agent.object(&json!({}))] {
        let containers = json!([{"name": "main", "image": agent.demo.image("app:v2")}]);
        stage
            .patch(object, &json!({"spec": {"template": {"spec": {"containers": containers}}}}))
            .await
            .unwrap();
    }
    agree(&agent, "both are updated as far as they can be").await;
    stage.sim().return_node(&nodes[3]);
    agent.untaint(&nodes[0], "k").await;
    agent.untaint(&nodes[1], "k").await;
    agent.patch_node(&nodes[2], json!({"spec": {"unschedulable": null}})).await;
    let (pods, status) = agree(&agent, "every node has both again").await;
    assert_eq!((pods.len(), status), (4, vec![4, 4, 0, 4, 4]));
    Ok(())
}
// A real node cannot be stopped by a test.
embedded_only!(native_and_ours_agree, []);
