//! Probes in virtual time, against a runtime in memory and real sockets.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::probe::{Probe, State};
use serde_json::{Value, json};

use super::*;
use crate::cri::{self, Output, simulated::Simulated};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn probe(value: Value) -> Probe {
    serde_json::from_value(value).unwrap()
}

fn running(id: &str, started: i64) -> Instance {
    Instance { id: id.to_owned(), state: cri::State::Running, started_at: Some(at(started)) }
}

fn yes() -> Answer {
    Answer::Yes("data\n".to_owned())
}

fn no() -> Answer {
    Answer::No("bad".to_owned())
}

/// DAEMON-6: results count only when they repeat.
#[test]
fn an_answer_counts_when_it_came_often_enough() {
    let mut prober = Prober::new(probe(json!({"failureThreshold": 3, "successThreshold": 2})), None);
    let states: Vec<Option<State>> = [yes(), yes(), no(), no(), yes(), no(), no(), no(), no()]
        .iter()
        .map(|answer| prober.answered(answer).map(|record| record.state))
        .collect();
    let (good, bad) = (Some(State::Succeeded), Some(State::Failed));
    assert_eq!(states, [None, good, None, None, None, None, None, bad.clone(), bad]);
    assert_eq!(prober.answered(&Answer::Unclear("gone".to_owned())), None);
    assert!(prober.answered(&no()).is_some(), "an unclear answer breaks no row");
}

/// DAEMON-7: nobody is asked right after the start.
#[test]
fn a_container_is_not_asked_before_its_delay_is_over() {
    let mut prober = Prober::new(probe(json!({"initialDelaySeconds": 20})), None);
    let unknown = Record { state: State::Unknown, message: String::new() };
    assert_eq!(prober.turn("c", Some(&running("a", 0)), at(1)), Turn::Tell(unknown));
    assert_eq!(prober.turn("c", Some(&running("a", 0)), at(19)), Turn::Wait);
    assert_eq!(prober.turn("c", Some(&running("a", 0)), at(20)), Turn::Ask(None));
    assert_eq!(prober.turn("c", None, at(30)), Turn::Wait);
}

/// A start in the future tells nothing about the container but that the clock was set back.
#[test]
fn a_clock_that_is_set_back_silences_no_probe() {
    let mut prober = Prober::new(probe(json!({"initialDelaySeconds": 20})), None);
    assert_eq!(prober.turn("c", Some(&running("a", 3600)), at(3620)), Turn::Ask(Some(unknown())));
    assert_eq!(prober.turn("c", Some(&running("a", 3600)), at(10)), Turn::Ask(None));
    assert_eq!(prober.turn("c", Some(&running("a", 3600)), at(3590)), Turn::Wait, "it may just differ a bit");
}

fn unknown() -> Record {
    Record { state: State::Unknown, message: String::new() }
}

/// DAEMON-13: a container that ended, and its successor.
#[test]
fn a_container_that_does_not_run_has_failed_and_a_new_one_is_unknown() {
    let mut prober = Prober::new(probe(json!({})), None);
    assert!(matches!(prober.turn("x", Some(&running("a", 0)), at(5)), Turn::Ask(Some(_))));
    let mut ended = running("a", 0);
    ended.state = cri::State::Exited;
    let failed = Record { state: State::Failed, message: "Container(x) is Non-running".to_owned() };
    assert_eq!(prober.turn("x", Some(&ended), at(6)), Turn::Tell(failed));
    let unknown = Record { state: State::Unknown, message: String::new() };
    assert_eq!(prober.turn("x", Some(&running("b", 7)), at(9)), Turn::Ask(Some(unknown)));
}

/// DAEMON-18: results outlive the daemon unless the container is a new one.
#[test]
fn a_restart_of_the_daemon_changes_no_result() {
    let status =
        serde_json::from_value(json!({"podProbeStatuses": [{"name": "p", "namespace": "ns", "uid": "u",
        "probeStates": [{"name": "m#x", "state": "Succeeded", "lastProbeTime": at(50).to_string()}]}]}))
        .unwrap();
    let results = Results::read(Some(&status));
    let mut old = Prober::new(probe(json!({})), results.of(&id()));
    assert_eq!(old.turn("c", Some(&running("a", 0)), at(100)), Turn::Ask(None));
    let mut new = Prober::new(probe(json!({})), results.of(&id()));
    assert!(matches!(new.turn("c", Some(&running("b", 60)), at(100)), Turn::Ask(Some(_))));
}

/// DAEMON-3: another question makes the old answer worthless.
#[test]
fn a_probe_that_asks_something_else_begins_anew() {
    let mut prober = Prober::new(probe(json!({"exec": {"command": ["true"]}, "periodSeconds": 60})), None);
    assert_eq!(prober.edit(probe(json!({"exec": {"command": ["true"]}, "periodSeconds": 2}))), None);
    assert_eq!(period(prober.probe()), Duration::from_secs(2));
    assert!(prober.edit(probe(json!({"exec": {"command": ["false"]}}))).is_some());
    assert_eq!(period(&probe(json!({"periodSeconds": 0}))), Duration::from_secs(1));
}

fn id() -> Id {
    let text = |text: &str| text.to_owned();
    Id {
        namespace: text("ns"),
        pod: text("p"),
        uid: text("u"),
        ip: text("127.0.0.1"),
        container: text("c"),
        probe: text("m#x"),
    }
}

/// DAEMON-11: two probes of one container keep their own results; nothing is written without a change.
#[test]
fn results_are_kept_by_probe_and_written_on_change() {
    let other = Id { probe: "m#y".to_owned(), ..id() };
    let record = |state: State, message: &str| Record { state, message: message.to_owned() };
    let mut results = Results::default();
    assert_eq!(results.record(&id(), &record(State::Succeeded, "a"), at(0)), Written::Changed);
    assert_eq!(results.record(&other, &record(State::Failed, ""), at(0)), Written::Changed);
    assert_eq!(results.record(&id(), &record(State::Succeeded, "a"), at(599)), Written::Unchanged);
    assert_eq!(results.record(&id(), &record(State::Succeeded, "a"), at(600)), Written::Confirmed);
    assert_eq!(results.record(&id(), &record(State::Succeeded, "b"), at(601)), Written::Changed);
    let spec = serde_json::from_value(json!({"podProbes": [{"name": "p", "namespace": "ns", "uid": "u", "IP": "1",
        "probes": [{"name": "m#y", "containerName": "c", "probe": {}}, {"name": "m#x", "containerName": "c", "probe": {}}]}]}))
    .unwrap();
    let status = serde_json::to_value(results.status(&spec)).unwrap();
    assert_eq!(
        status,
        json!({"podProbeStatuses": [{"name": "p", "namespace": "ns", "uid": "u", "probeStates": [
            {"name": "m#y", "state": "Failed", "lastProbeTime": "2027-01-15T08:00:00Z", "lastTransitionTime": "2027-01-15T08:00:00Z"},
            {"name": "m#x", "state": "Succeeded", "message": "b", "lastProbeTime": "2027-01-15T08:10:01Z",
                "lastTransitionTime": "2027-01-15T08:00:00Z"},
        ]}]})
    );
    results.keep(&Spec::default());
    assert!(results.of(&other).is_none(), "results of probes that nobody wants are forgotten");
}

async fn asked(node: &Simulated, id: &Id, value: Value) -> Answer {
    let container =
        cri::Container { id: "0a".to_owned(), sandbox: "box".to_owned(), ..cri::Container::default() };
    let probe = probe(value);
    let addresses = node.world().addresses.clone();
    ask(id, &probe, node, &container, &addresses).await
}

/// DAEMON-2, DAEMON-5 and DAEMON-8: commands.
#[tokio::test(start_paused = true)]
async fn commands_answer_with_what_they_print() {
    let node = Simulated::default();
    let output = |out: &str, err: &str, exit_code| Output {
        stdout: out.as_bytes().to_vec(),
        stderr: err.as_bytes().to_vec(),
        exit_code,
    };
    let long = "é".repeat(600);
    for (word, time, said) in [
        ("good", 0, output("data\n", "noise", 0)),
        ("bad", 0, output("noise", "bad\n", 1)),
        ("sleep", 5, output("", "", 0)),
        ("long", 0, output(&format!("x{long}"), "", 0)),
    ] {
        node.world().commands.insert(word.to_owned(), (Duration::from_secs(time), said));
    }
    let exec = |words: &[&str]| json!({"exec": {"command": words}});
    assert_eq!(asked(&node, &id(), exec(&["good"])).await, yes());
    assert_eq!(asked(&node, &id(), exec(&["bad"])).await, Answer::No("bad\n".to_owned()));
    let late = Answer::No("command timed out: \"sleep 5\" timed out after 1s".to_owned());
    assert_eq!(asked(&node, &id(), exec(&["sleep", "5"])).await, late);
    let Answer::Yes(cut) = asked(&node, &id(), exec(&["long"])).await else { panic!("expected yes") };
    assert_eq!(cut.len(), 1023, "cut between two letters");
    node.world().unreachable = true;
    assert!(matches!(asked(&node, &id(), exec(&["good"])).await, Answer::Unclear(_)));
}

/// DAEMON-9 and DAEMON-10: over the network.
#[tokio::test]
async fn pages_and_ports_of_the_pod_answer() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = [0; 1024];
            let read = stream.read(&mut text).await.unwrap_or(0);
            let asked = String::from_utf8_lossy(&text[..read]).into_owned();
            let code = asked.split_whitespace().nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
            let answer =
                format!("HTTP/1.1 {code} X\r\nLocation: http://192.0.2.9/\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let node = Simulated::default();
    node.world().addresses = vec!["127.0.0.1".to_owned()];
    let get = |path: &str| json!({"httpGet": {"path": path, "port": port}});
    assert_eq!(asked(&node, &id(), get("/204")).await, Answer::Yes(String::new()));
    assert_eq!(asked(&node, &id(), get("/302")).await, Answer::Yes(String::new()));
    let failed = Answer::No("HTTP probe failed with statuscode: 500".to_owned());
    assert_eq!(asked(&node, &id(), get("/500")).await, failed);
    assert_eq!(asked(&node, &id(), json!({"tcpSocket": {"port": port}})).await, Answer::Yes(String::new()));
    tasks.shutdown().await;
    let refused = Answer::No(format!("dial tcp 127.0.0.1:{port}: connect: connection refused"));
    assert_eq!(asked(&node, &id(), json!({"tcpSocket": {"port": port}})).await, refused);
}

/// A NodePodProbe must not make a node knock at doors of others.
#[tokio::test(start_paused = true)]
async fn nobody_but_the_pod_itself_is_asked() {
    let node = Simulated::default();
    node.world().addresses = vec!["10.0.0.7".to_owned()];
    let get = json!({"httpGet": {"path": "/", "port": 80}});
    let Answer::No(problem) = asked(&node, &id(), get.clone()).await else { panic!("expected no") };
    assert!(problem.contains("127.0.0.1 is not an address of the pod"), "{problem}");
    let named = json!({"tcpSocket": {"port": 80, "host": "192.0.2.1"}});
    assert_eq!(
        asked(&node, &id(), named).await,
        Answer::No("host field in probes is not allowed".to_owned())
    );
    // A pod in the network of the node: only addresses of the node.
    node.world().addresses.clear();
    let far = Id { ip: "192.0.2.1".to_owned(), ..id() };
    let Answer::No(problem) = asked(&node, &far, get).await else { panic!("expected no") };
    assert!(problem.contains("192.0.2.1 is not an address of the pod"), "{problem}");
}
