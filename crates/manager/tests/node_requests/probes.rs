//! PodProbeMarkers and NodePodProbes.

use k8s_openapi::api::core::v1::{Node, Pod};
use kruise_api::{nodepodprobe::v1alpha1::NodePodProbe, podprobemarker::v1alpha1::PodProbeMarker};
use kruise_testkit::{Outcome, Sandbox, pod};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    stage::{Stage, embedded_only},
    words::{ready_pod, room, until, until_so},
};

fn lists(stage: &Stage) -> Api<NodePodProbe> {
    Api::all(stage.cluster.client())
}

fn node_of(pod: &Pod) -> String {
    pod.spec.as_ref().unwrap().node_name.clone().unwrap()
}

/// The probes that a node lists for a pod.
async fn listed(stage: &Stage, pod: &Pod) -> Vec<String> {
    let list = lists(stage).get_opt(&node_of(pod)).await.unwrap();
    let entries = list.map(|list| list.spec.pod_probes).unwrap_or_default();
    let own = entries.into_iter().filter(|entry| Some(&entry.uid) == pod.metadata.uid.as_ref());
    own.flat_map(|entry| entry.probes.into_iter().map(|probe| probe.name)).collect()
}

/// What a daemon would write about one pod.
async fn say(stage: &Stage, pod: &Pod, probe: &str, state: &str, message: &str) {
    let status = json!({"status": {"podProbeStatuses": [{
        "name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid,
        "probeStates": [{"name": probe, "state": state, "message": message,
            "lastProbeTime": "2026-01-01T00:00:02Z", "lastTransitionTime": "2026-01-01T00:00:01Z"}],
    }]}});
    lists(stage).patch_status(&node_of(pod), &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

async fn marker(sandbox: &Sandbox, name: &str) -> PodProbeMarker {
    let probe = json!({
        "name": "ok", "containerName": "app", "podConditionType": "game.io/ok",
        "probe": {"httpGet": {"path": "/", "port": "web"}},
        "markerPolicy": [{"state": "Succeeded", "labels": {"ok": "yes"}}, {"state": "Failed", "labels": {"ok": "no"}}],
    });
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "probes": [probe]});
    sandbox.create(json!({"metadata": {"name": name}, "spec": spec})).await
}

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// DAEMON-1: each ready node has one; DAEMON-2, DAEMON-3, DAEMON-15, DAEMON-16: from the marker to the pod and back to nothing.
async fn a_marker_reaches_its_pods_through_their_nodes(stage: &mut Stage) -> Outcome {
    let sandbox = room(stage, "probes").await;
    let nodes: Api<Node> = Api::all(stage.cluster.client());
    until_so(&sandbox, "each node has a list", async || {
        let wanted = nodes.list(&ListParams::default()).await.unwrap().items.len();
        let found = lists(stage).list(&ListParams::default()).await.unwrap().items.len();
        (wanted == found, format!("{found} of {wanted}"))
    })
    .await;
    let web = ready_pod(stage, &sandbox, "web", json!([])).await;
    marker(&sandbox, "b").await;
    marker(&sandbox, "a-b").await;
    until_so(&sandbox, "the pod is listed", async || {
        let mut names = listed(stage, &web).await;
        names.sort();
        (names == ["a-b#ok", "b#ok"], format!("{names:?}"))
    })
    .await;
    let entry = lists(stage).get(&node_of(&web)).await.unwrap().spec.pod_probes.remove(0);
    assert_eq!(Some(&entry.ip), web.status.as_ref().unwrap().pod_ip.as_ref());
    let port: Value = serde_json::to_value(&entry.probes[0].probe.http_get.as_ref().unwrap().port).unwrap();
    assert_eq!(port, 8080);

    say(stage, &web, "b#ok", "Succeeded", "data\n").await;
    let good = until(&sandbox, "web", "the pod is marked", |pod| label(pod, "ok") == Some("yes")).await;
    assert_eq!(pod::condition(&good, "game.io/ok"), Some("True"));
    say(stage, &web, "b#ok", "Failed", "").await;
    let bad = until(&sandbox, "web", "the mark changes", |pod| label(pod, "ok") == Some("no")).await;
    assert_eq!(pod::condition(&bad, "game.io/ok"), Some("False"));
    until_so(&sandbox, "the marker counts its pods", async || {
        let marker: PodProbeMarker = sandbox.get("b").await;
        let counted = marker.status.as_ref().and_then(|status| status.matched_pods);
        (counted == Some(1), format!("{marker:?}"))
    })
    .await;

    sandbox.delete::<PodProbeMarker>("b").await;
    until_so(&sandbox, "the marker is gone and its probe with it", async || {
        let left: Vec<PodProbeMarker> = sandbox.list().await;
        let names = listed(stage, &web).await;
        (left.len() == 1 && names == ["a-b#ok"], format!("{names:?} {left:?}"))
    })
    .await;
    let marked: Pod = sandbox.get("web").await;
    assert_eq!(label(&marked, "ok"), Some("no"), "what is written stays");
    let _: Pod = sandbox.merge("web", json!({"metadata": {"labels": {"app": "other"}}})).await;
    until_so(&sandbox, "the pod is not asked any more", async || {
        let names = listed(stage, &web).await;
        (names.is_empty(), format!("{names:?}"))
    })
    .await;
    Ok(())
}
embedded_only!(a_marker_reaches_its_pods_through_their_nodes, crate::words::PLAIN);

/// Nobody has nodes ask strangers.
async fn no_probe_leaves_its_pod(stage: &mut Stage) -> Outcome {
    let sandbox = room(stage, "hosts").await;
    let probe = json!({"name": "ok", "containerName": "app", "podConditionType": "game.io/ok",
        "probe": {"tcpSocket": {"port": 80, "host": "169.254.169.254"}}});
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "probes": [probe]});
    let text = sandbox.refused::<PodProbeMarker>(json!({"metadata": {"name": "bad"}, "spec": spec})).await;
    assert!(text.contains("host field in probes is not allowed"), "{text}");
    let web = ready_pod(stage, &sandbox, "web", json!([])).await;
    until_so(&sandbox, "the node has a list", async || {
        let list = lists(stage).get_opt(&node_of(&web)).await.unwrap();
        (list.is_some(), String::new())
    })
    .await;
    let entry = json!({"name": "web", "namespace": web.metadata.namespace, "uid": web.metadata.uid,
        "IP": "169.254.169.254", "probes": []});
    let patch = Patch::Merge(json!({"spec": {"podProbes": [entry]}}));
    let refusal = lists(stage).patch(&node_of(&web), &PatchParams::default(), &patch).await.unwrap_err();
    assert!(refusal.to_string().contains("must be the address of the pod"), "{refusal}");
    Ok(())
}
embedded_only!(no_probe_leaves_its_pod, crate::words::PLAIN);
