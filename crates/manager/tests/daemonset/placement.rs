//! Where pods run. Scenarios that change nodes run alone on a real cluster.

use std::time::Duration;

use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{
    agent::{Agent, all},
    kit::label,
    stage::{Stage, embedded_only, managed},
};

/// DAEMONSET-1: one pod on each node, and a status that says so.
async fn every_node_gets_a_pod(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "every-node", json!({})).await;
    let nodes = agent.nodes().await;
    assert_eq!(agent.images().await, all(&nodes, "app:v1"));
    let status = agent.set().await.status.unwrap();
    let count = i32::try_from(nodes.len()).unwrap();
    assert_eq!(
        [status.desired_number_scheduled, status.current_number_scheduled, status.number_ready],
        [count; 3]
    );
    let hash = status.update_revision.unwrap();
    for pod in agent.demo.pods().await {
        assert_eq!(label(&pod, "controller-revision-hash"), hash);
        let owner = pod.metadata.owner_references.clone().unwrap_or_default().remove(0);
        assert_eq!(
            (owner.api_version.as_str(), owner.kind.as_str()),
            ("apps.kruise.io/v1beta1", "DaemonSet")
        );
    }
    assert_eq!(agent.demo.events("SuccessfulCreate").await.len(), nodes.len());
    Ok(())
}
managed!(every_node_gets_a_pod, []);

/// DAEMONSET-2: pods follow the labels of nodes.
async fn pods_follow_labels_of_nodes(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "labels").await;
    let key = format!("{}-color", agent.sandbox().namespace());
    agent.create(json!({"spec": {"template": {"spec": {"nodeSelector": {&key: "blue"}}}}})).await;
    agent
        .until("no node fits", |set, pods| {
            pods.is_empty() && set.status.as_ref().is_some_and(|status| status.observed_generation.is_some())
        })
        .await;
    let node = agent.nodes().await.remove(0);
    agent.label_node(&node, &key, Some("blue")).await;
    agent.at_rest(&all(std::slice::from_ref(&node), "app:v1")).await;
    agent.label_node(&node, &key, Some("green")).await;
    agent.until("the pod is gone", |_, pods| pods.is_empty()).await;
    agent.label_node(&node, &key, None).await;
    Ok(())
}
managed!(pods_follow_labels_of_nodes, []);

/// DAEMONSET-3: one of two terms is enough, and a pod is bound to its node alone.
async fn affinity_chooses_nodes_and_binds_pods(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "affinity").await;
    let nodes = agent.nodes().await;
    let key = format!("{}-zone", agent.sandbox().namespace());
    agent.label_node(&nodes[0], &key, Some("a")).await;
    agent.label_node(&nodes[1], &key, Some("b")).await;
    agent.label_node(&nodes[2], &key, Some("c")).await;
    let term = |zone: &str| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [zone]}]});
    let required = json!({"nodeSelectorTerms": [term("a"), term("b")]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    agent.create(json!({"spec": {"template": {"spec": {"affinity": affinity}}}})).await;
    agent.at_rest(&all(&nodes[..2], "app:v1")).await;
    let pods = agent.by_node().await;
    let pod = serde_json::to_value(&pods[&nodes[0]][0]).unwrap();
    let bound = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let name = json!({"key": "metadata.name", "operator": "In", "values": [nodes[0]]});
    assert_eq!(*bound, json!({"nodeSelectorTerms": [{"matchFields": [name]}]}));
    for node in &nodes[..3] {
        agent.label_node(node, &key, None).await;
    }
    Ok(())
}
managed!(affinity_chooses_nodes_and_binds_pods, []);

/// DAEMONSET-4: a cordoned node keeps its pod and gets a new one.
async fn a_cordon_changes_nothing(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "cordon", json!({})).await;
    let nodes = agent.nodes().await;
    agent.patch_node(&nodes[1], json!({"spec": {"unschedulable": true}})).await;
    let before = agent.uid_on(&nodes[1]).await;
    let count = i32::try_from(nodes.len()).unwrap();
    agent
        .always("the pod stays", Duration::from_secs(5), |set, pods| {
            pods.iter().any(|pod| pod.metadata.uid.as_deref() == Some(&*before))
                && set.status.as_ref().is_some_and(|status| status.desired_number_scheduled == count)
        })
        .await;
    let pod = agent.pod_on(&nodes[1]).await;
    agent.sandbox().delete::<k8s_openapi::api::core::v1::Pod>(&pod).await;
    agent
        .until("it is replaced there", |set, pods| {
            crate::agent::is_settled(set, pods)
                && pods.iter().all(|pod| pod.metadata.uid.as_deref() != Some(&*before))
        })
        .await;
    agent.patch_node(&nodes[1], json!({"spec": {"unschedulable": null}})).await;
    Ok(())
}
managed!(a_cordon_changes_nothing, [], alone);

/// DAEMONSET-5: `NoSchedule` keeps new pods away, `NoExecute` sends pods away.
async fn taints_keep_pods_away(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "taints", json!({})).await;
    let nodes = agent.nodes().await;
    let count = i32::try_from(nodes.len()).unwrap();
    agent.taint(&nodes[2], "k", "NoSchedule").await;
    agent
        .until("the node is not wanted any more", |set, pods| {
            let status = set.status.clone().unwrap_or_default();
            status.desired_number_scheduled == count - 1
                && status.number_misscheduled == 1
                && pods.len() == nodes.len()
        })
        .await;
    let pod = agent.pod_on(&nodes[2]).await;
    agent.sandbox().delete::<k8s_openapi::api::core::v1::Pod>(&pod).await;
    let rest: Vec<String> = nodes.iter().filter(|node| **node != nodes[2]).cloned().collect();
    agent.at_rest(&all(&rest, "app:v1")).await;
    agent.untaint(&nodes[2], "k").await;
    agent.at_rest(&all(&nodes, "app:v1")).await;
    agent.taint(&nodes[2], "k", "NoExecute").await;
    agent.at_rest(&all(&rest, "app:v1")).await;
    agent.untaint(&nodes[2], "k").await;
    Ok(())
}
managed!(taints_keep_pods_away, [], alone);

/// DAEMONSET-6: six tolerations, seven with the network of the host, none twice.
async fn pods_tolerate_trouble_of_nodes(stage: &mut Stage) -> Outcome {
    let agent = Agent::prepare(stage, "tolerations").await;
    let own =
        json!([{"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"}]);
    let spec = json!({"hostNetwork": true, "tolerations": own});
    agent.create(json!({"spec": {"template": {"spec": spec}}})).await;
    agent.until("a pod is there", |_, pods| !pods.is_empty()).await;
    let pod = serde_json::to_value(&agent.demo.pods().await[0]).unwrap();
    let tolerations: &Vec<Value> = pod["spec"]["tolerations"].as_array().unwrap();
    let automatic = tolerations.iter().filter(|one| {
        one["key"].as_str().is_some_and(|key| key.starts_with("node.kubernetes.io/"))
            && one["operator"] == "Exists"
            && one["tolerationSeconds"].is_null()
    });
    assert_eq!(automatic.count(), 7, "{tolerations:?}");
    Ok(())
}
managed!(pods_tolerate_trouble_of_nodes, []);

/// DAEMONSET-7: a new node gets its pod, and pods for a node that is gone are deleted. Only simulated nodes come and go.
async fn nodes_come_and_go(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "nodes", json!({})).await;
    let mut nodes = agent.nodes().await;
    stage.sim().add_node(kruise_sim::Node::named("new-0"));
    nodes.push("new-0".to_owned());
    nodes.sort();
    agent.at_rest(&all(&nodes, "app:v1")).await;
    stage.sim().stop_node("new-0");
    agent.delete_node("new-0").await;
    nodes.retain(|node| node != "new-0");
    agent.at_rest(&all(&nodes, "app:v1")).await;
    let count = i32::try_from(nodes.len()).unwrap();
    assert_eq!(agent.set().await.status.unwrap().desired_number_scheduled, count);
    Ok(())
}
embedded_only!(nodes_come_and_go, []);

/// DAEMONSET-8: pods are bound by name where the scheduler is not to choose.
async fn pods_have_their_node_from_the_start(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "by-name", json!({})).await;
    for pod in agent.demo.pods().await {
        let pod = serde_json::to_value(pod).unwrap();
        assert_eq!(pod["spec"]["schedulerName"], "kubernetes.io/daemonset-controller");
        assert!(pod["spec"]["affinity"].is_null());
    }
    Ok(())
}
managed!(pods_have_their_node_from_the_start, ["--assign-pods-by-scheduler=false"], alone);

/// A heartbeat of a node costs nothing: no reconcile, and no write.
async fn heartbeats_wake_nobody(stage: &mut Stage) -> Outcome {
    let agent = Agent::start(stage, "heartbeats", json!({})).await;
    agent.always("it rests", Duration::from_secs(30), |_, _| true).await;
    let reconciles = |metrics: &str| -> f64 {
        let ours = metrics.lines().filter(|line| {
            line.starts_with("controller_runtime_reconcile_total") && line.contains("daemonset-controller")
        });
        ours.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    };
    let before = reconciles(&stage.metrics().await);
    assert!(before > 0.0, "the metric counts reconciles");
    agent.always("nodes report for ten minutes", Duration::from_secs(600), |_, _| true).await;
    assert_eq!(reconciles(&stage.metrics().await), before);
    Ok(())
}
embedded_only!(heartbeats_wake_nobody, []);
