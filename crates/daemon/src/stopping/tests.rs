//! Containers stop in time, with and without hooks, in virtual time.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_core::object::{ObjectKey, POD};
use kruise_runtime::{
    clock::Clock,
    events::Events,
    metrics::{Framework, Registry},
    random::Random,
};
use kruise_sim::Sim;
use serde_json::{Value, json};

use super::*;
use crate::cri::{Kind, Output, simulated::Simulated};

struct Play {
    node: Simulated,
    took: Duration,
    events: Vec<String>,
    result: Result<(), cri::Error>,
}

/// Stops a container with this hook and tells how it went.
async fn stop(node: Simulated, hook: Value, grace_seconds: i64) -> Play {
    let sim = Sim::builder().start();
    let registry = Registry::default();
    let clock = Clock::fixed(Timestamp::UNIX_EPOCH);
    let events = Events::new(clock, Random::seeded(1), Framework::new(&registry)).on_host("n1");
    node.run("u", "app", "0a1b", Timestamp::UNIX_EPOCH);
    let pod = ObjectRef { resource: POD, key: ObjectKey::new("default", "p"), uid: "u".into() };
    let stopping = Stopping {
        pod,
        container: "app".to_owned(),
        id: "0a1b".to_owned(),
        sandbox: "box-u".to_owned(),
        address: None,
        hook: serde_json::from_value(hook).unwrap(),
        ports: serde_json::from_value(json!([{"name": "web", "containerPort": 8080}])).unwrap(),
        grace_seconds,
        message: "Stopping container 0a1b by ContainerRecreateRequest r".to_owned(),
    };
    let recorder = events.recorder("kruise-daemon-crr");
    let began = Instant::now();
    let result = stopping.carry_out(&node, &recorder).await;
    let took = began.elapsed();
    let client = sim.client();
    tokio::select! {
        () = events.run(client.clone()) => {}
        () = tokio::time::sleep(Duration::from_secs(5)) => {}
    }
    let list = client
        .request::<Value>(http::Request::get("/api/v1/events").body(Vec::new()).unwrap())
        .await
        .unwrap();
    let line = |event: &Value| {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (reason, part) = (text("/reason"), text("/involvedObject/fieldPath"));
        format!(
            "{reason} {part} {} {}: {}",
            text("/source/component"),
            text("/source/host"),
            text("/message")
        )
    };
    let mut events: Vec<String> = list["items"].as_array().unwrap().iter().map(line).collect();
    events.sort();
    Play { node, took, events, result }
}

const KILLING: &str =
    "Killing spec.containers{app} kruise-daemon-crr n1: Stopping container app by ContainerRecreateRequest r";

fn with_command(word: &str, seconds: u64, output: Output) -> Simulated {
    let node = Simulated::default();
    node.world().commands.insert(word.to_owned(), (Duration::from_secs(seconds), output));
    node
}

/// CRR-6: the hook runs first, and its time is taken from the grace period.
#[tokio::test(start_paused = true)]
async fn a_container_stops_after_its_hook() {
    let node = with_command("sleep", 8, Output::default());
    let play = stop(node, json!({"exec": {"command": ["sleep", "8"]}}), 30).await;
    assert!(play.took >= Duration::from_secs(8), "{:?}", play.took);
    assert_eq!(play.node.world().stops, [("0a1b".to_owned(), 22)]);
    assert_eq!(play.events, [KILLING]);
    play.result.unwrap();
}

/// CRR-7: a hook has no more time than the grace period.
#[tokio::test(start_paused = true)]
async fn a_hook_that_takes_longer_than_the_grace_period_is_left_behind() {
    let node = with_command("sleep", 8, Output::default());
    let play = stop(node, json!({"exec": {"command": ["sleep", "8"]}}), 3).await;
    assert!(play.took < Duration::from_secs(4), "{:?}", play.took);
    assert_eq!(play.node.world().stops, [("0a1b".to_owned(), 2)]);
}

/// CRR-9: a hook that fails is told, and the container stops.
#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_is_told_and_does_not_keep_the_container() {
    let output = Output { exit_code: 1, ..Output::default() };
    let node = with_command("/bin/false", 0, output);
    let play = stop(node, json!({"exec": {"command": ["/bin/false"]}}), 30).await;
    let expected = "FailedPreStopHook spec.containers{app} kruise-daemon-crr n1: Exec lifecycle hook ([/bin/false]) for \
        Container \"app\" in Pod \"p_default(u)\" failed - error: command '/bin/false' exited with 1: , message: \"\"";
    assert_eq!(play.events, [expected, KILLING]);
    assert_eq!(play.node.world().stops.len(), 1);
}

/// CRR-11: the hook that sleeps.
#[tokio::test(start_paused = true)]
async fn a_hook_may_just_wait() {
    let play = stop(Simulated::default(), json!({"sleep": {"seconds": 5}}), 30).await;
    assert!(play.took >= Duration::from_secs(5), "{:?}", play.took);
    assert_eq!(play.events, [KILLING]);
}

/// A grace period that never ends is still a number that a runtime and the connection to it can count.
#[tokio::test(start_paused = true)]
async fn a_grace_period_is_at_most_what_a_runtime_can_count() {
    let play = stop(Simulated::default(), json!({"sleep": {"seconds": 5}}), i64::MAX).await;
    play.result.unwrap();
    assert_eq!(play.node.world().stops, [("0a1b".to_owned(), 99_999_995)]);
}

#[tokio::test(start_paused = true)]
async fn without_a_grace_period_no_hook_runs() {
    let play = stop(Simulated::default(), json!({"sleep": {"seconds": 5}}), 0).await;
    assert!(play.took < Duration::from_secs(1), "{:?}", play.took);
    assert_eq!(play.node.world().stops, [("0a1b".to_owned(), 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_connects_is_told_as_unsupported() {
    let play = stop(Simulated::default(), json!({"tcpSocket": {"port": 80}}), 30).await;
    assert!(
        play.events.first().unwrap().contains("Cannot run handler: invalid handler"),
        "{:?}",
        play.events
    );
    assert_eq!(play.node.world().stops, [("0a1b".to_owned(), 30)]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_fails_is_an_error() {
    let node = Simulated::default();
    node.world().stop_error = Some("boom".to_owned());
    let play = stop(node, Value::Null, 30).await;
    assert_eq!(play.result.unwrap_err(), cri::Error::new(Kind::Other, "boom"));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_restarts_is_waited_for_and_the_hook_runs_once() {
    let node = with_command("bye", 1, Output::default());
    let later = node.clone();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        later.world().unreachable = true;
        tokio::time::sleep(Duration::from_secs(10)).await;
        later.world().unreachable = false;
    });
    let play = stop(node, json!({"exec": {"command": ["bye"]}}), 30).await;
    play.result.unwrap();
    assert_eq!(play.events, [KILLING]);
    assert_eq!(play.node.world().stops.len(), 1);
}

/// CRR-10: a request to a named port of the pod, without a host.
#[tokio::test]
async fn a_hook_asks_the_pod_by_its_own_address() {
    asks_at("127.0.0.1", &["127.0.0.1"], None).await;
}

/// CRR-10: of a pod in the network of the node the runtime knows no address, and the pod listens at that of the node only.
#[tokio::test]
async fn a_hook_asks_a_pod_in_the_network_of_the_node_by_the_address_of_its_status() {
    asks_at("127.0.0.2", &[], Some("127.0.0.2")).await;
}

/// A pod that listens at one address is asked there, given what the runtime and the status of the pod say.
async fn asks_at(listens: &str, of_sandbox: &[&str], of_status: Option<&str>) {
    let listener = tokio::net::TcpListener::bind((listens, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = [0; 1024];
        let read = stream.read(&mut text).await.unwrap();
        stream.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&text[..read]).into_owned()
    });
    let node = Arc::new(Simulated::default());
    node.world().addresses = of_sandbox.iter().map(|address| (*address).to_owned()).collect();
    let stopping = Stopping {
        pod: ObjectRef { resource: POD, key: ObjectKey::new("default", "p"), uid: "u".into() },
        container: "app".to_owned(),
        id: "0a1b".to_owned(),
        sandbox: "box".to_owned(),
        address: of_status.map(ToOwned::to_owned),
        hook: None,
        ports: serde_json::from_value(json!([{"name": "web", "containerPort": port}])).unwrap(),
        grace_seconds: 5,
        message: String::new(),
    };
    let hook: Hook = serde_json::from_value(json!({"httpGet": {"path": "/bye", "port": "web"}})).unwrap();
    hook::run(&stopping, &hook, &*node).await.unwrap();
    let asked = tasks.join_next().await.unwrap().unwrap();
    assert!(asked.starts_with("GET /bye HTTP/1.1"), "{asked}");
    let hook: Hook = serde_json::from_value(json!({"httpGet": {"path": "/bye", "port": "nope"}})).unwrap();
    let problem = hook::run(&stopping, &hook, &*node).await.unwrap_err();
    assert!(problem.ends_with("failed - error: couldn't find port: nope"), "{problem}");
}
