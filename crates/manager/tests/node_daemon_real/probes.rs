//! Probes ask real containers.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kruise_api::podprobemarker::v1alpha1::PodProbeMarker;
use kruise_testkit::Outcome;
use serde_json::{Value, json};

use crate::{node::on_a_node, stage::Stage, words::Room};

fn probe(name: &str, question: Value) -> Value {
    let mut probe = question;
    probe["periodSeconds"] = json!(1);
    json!({"name": name, "containerName": "app", "probe": probe, "podConditionType": format!("game.io/{name}")})
}

fn marker(probes: &[Value]) -> Value {
    json!({"metadata": {"name": "m"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "probes": probes}})
}

/// Status and message of the condition of a probe.
fn told(pod: &Pod, name: &str) -> (String, String) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let kind = format!("game.io/{name}");
    let found = conditions.into_iter().flatten().find(|condition: &&PodCondition| condition.type_ == kind);
    found.map(|one| (one.status.clone(), one.message.clone().unwrap_or_default())).unwrap_or_default()
}

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// DAEMON-2, DAEMON-5, DAEMON-8, DAEMON-9, DAEMON-10, DAEMON-11: commands, pages and ports, well and not, all in one container
/// and each with its own result. DAEMON-3: another question, another result.
async fn commands_pages_and_ports_are_asked(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "probes").await?;
    room.pod("web", room.two(&json!({}), &json!({})), json!({})).await;
    let mut command = probe("command", json!({"exec": {"command": ["echo", "data"]}}));
    command["markerPolicy"] = json!([
        {"state": "Succeeded", "labels": {"state": "good"}}, {"state": "Failed", "labels": {"state": "bad"}},
    ]);
    let probes = [
        command,
        probe("late", json!({"exec": {"command": ["sleep", "5"]}, "timeoutSeconds": 1})),
        probe("page", json!({"httpGet": {"path": "/healthz", "port": "web"}})),
        probe("no-page", json!({"httpGet": {"path": "/nope", "port": 8080}})),
        probe("port", json!({"tcpSocket": {"port": "web"}})),
        probe("no-port", json!({"tcpSocket": {"port": 9}})),
    ];
    let _: PodProbeMarker = room.sandbox.create(marker(&probes)).await;
    let is = |status: &str, message: &str| (status.to_owned(), message.to_owned());
    let expected = [
        ("command", is("True", "data\n")),
        ("late", is("False", "command timed out: \"sleep 5\" timed out after 1s")),
        ("page", is("True", "ok\n")),
        ("no-page", is("False", "HTTP probe failed with statuscode: 404")),
        ("port", is("True", "")),
    ];
    // A probe that was not asked yet is told too, as unknown and without a message.
    let is_told = |pod: &Pod| {
        let refused = told(pod, "no-port");
        let others = expected.iter().all(|(name, wanted)| told(pod, name) == *wanted);
        others && refused.0 == "False" && refused.1.contains("connection refused")
    };
    room.until_told("web", "every answer is told", is_told).await;
    room.until("web", "the pod is marked", |pod| label(pod, "state") == Some("good")).await;

    let mut changed = probe("command", json!({"exec": {"command": ["sh", "-c", "echo gone >&2; exit 1"]}}));
    changed["markerPolicy"] = probes[0]["markerPolicy"].clone();
    let _: PodProbeMarker = room.sandbox.merge("m", json!({"spec": {"probes": [changed]}})).await;
    let is_bad = |pod: &Pod| told(pod, "command").0 == "False" && label(pod, "state") == Some("bad");
    let is_gone = |pod: &Pod| is_bad(pod) && told(pod, "command").1 == "gone\n";
    room.until_told("web", "the answer has changed", is_gone).await;
    Ok(())
}
on_a_node!(commands_pages_and_ports_are_asked);

/// DAEMON-13: a container that is recreated is asked anew. DAEMON-22: the readiness of a pod can follow a probe.
async fn readiness_follows_a_probe_across_a_recreation(stage: &mut Stage) -> Outcome {
    let room = Room::prepare(stage, "readiness").await?;
    let gates = json!({"readinessGates": [{"conditionType": "game.io/ok"}]});
    let probes = [probe("ok", json!({"httpGet": {"path": "/healthz", "port": "web"}}))];
    let _: PodProbeMarker = room.sandbox.create(marker(&probes)).await;
    room.pod("web", room.two(&json!({}), &json!({})), gates.clone()).await;
    room.ask("again", "web", &["app"], &json!({})).await;
    assert_eq!(crate::words::states(&room.ended("again").await), ["app Succeeded killed"]);
    // The new container is asked anew: nothing is known of it at first.
    let answer = ("True".to_owned(), "ok\n".to_owned());
    let is_back = |pod: &Pod| kruise_testkit::pod::is_ready(pod) && told(pod, "ok") == answer;
    let pod = room.until_told("web", "the pod is ready again", is_back).await;
    assert_eq!(crate::words::status(&pod, "app").restart_count, 1);
    Ok(())
}
on_a_node!(readiness_follows_a_probe_across_a_recreation);
