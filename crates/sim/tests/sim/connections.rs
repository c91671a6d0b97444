//! Commands, terminals and ports of simulated pods.

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use http_body_util::{BodyExt as _, Empty};
use kruise_apiserver::connect::{Connection, Output, Wish};
use kruise_apiserver::status::Status;
use kruise_sim::Sim;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tower::ServiceExt as _;

async fn with_pod() -> Sim {
    let sim = Sim::builder().nodes(1).start();
    let local = sim.server().local();
    let pods = local.resource("", "pods").unwrap();
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [{
        "name": "c", "image": "nginx", "env": [{"name": "COLOUR", "value": "green"}],
        "ports": [{"containerPort": 8080}],
    }]}});
    local.create(&pods, "default", pod).await.unwrap();
    sim.advance(Duration::from_secs(30)).await;
    sim
}

fn head(path: &str) -> Parts {
    Request::get(format!("/api/v1/namespaces/default/pods/{path}")).body(()).unwrap().into_parts().0
}

async fn connect(sim: &Sim, path: &str) -> Result<Connection, Status> {
    sim.server().connect(&mut head(path)).await
}

/// Runs words with what is typed: the output, the errors, and the code.
async fn exec(sim: &Sim, words: &[&str], typed: &str) -> (String, String, i32) {
    // What is no letter or number is written by its code.
    let coded = |word: &str| -> String {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        word.bytes().map(byte).collect()
    };
    let words: String = words.iter().map(|word| format!("&command={}", coded(word))).collect();
    let connection = connect(sim, &format!("web/exec?stdin=1&stdout=1&stderr=1{words}")).await.unwrap();
    let Wish::Exec(run) = connection.wish else { panic!("no command") };
    let (input, reads) = mpsc::channel(8);
    let (output, mut said) = mpsc::channel(8);
    input.send(Bytes::from(typed.to_owned())).await.unwrap();
    drop(input);
    let running = connection.end.exec(connection.pod, run, reads, output);
    let hearing = async {
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        while let Some(piece) = said.recv().await {
            match piece {
                Output::Out(bytes) => out.extend(bytes),
                Output::Error(bytes) => errors.extend(bytes),
            }
        }
        (String::from_utf8(out).unwrap(), String::from_utf8(errors).unwrap())
    };
    let (code, (out, errors)) = tokio::join!(running, hearing);
    (out, errors, code.unwrap())
}

fn said(out: &str, errors: &str, code: i32) -> (String, String, i32) {
    (out.to_owned(), errors.to_owned(), code)
}

#[tokio::test(start_paused = true)]
async fn a_command_runs_in_its_container() {
    let sim = with_pod().await;
    assert_eq!(exec(&sim, &["echo", "hello"], "").await, said("hello\n", "", 0));
    assert_eq!(exec(&sim, &["printenv", "COLOUR"], "").await, said("green\n", "", 0));
    assert_eq!(exec(&sim, &["sh", "-c", "hostname; exit 3"], "").await, said("web\n", "", 3));
    assert_eq!(exec(&sim, &["sh"], "echo one\nfalse || echo two").await, said("one\ntwo\n", "", 0));
    assert_eq!(exec(&sim, &["sh", "-c", "cat > /tmp/a"], "kept").await, said("", "", 0));
    assert_eq!(exec(&sim, &["cat", "/tmp/a"], "").await, said("kept", "", 0));
    // A new life of the container begins without the files of the old one.
    sim.kill_container("default", "web", "c");
    sim.advance(Duration::from_secs(60)).await;
    assert_eq!(exec(&sim, &["cat", "/tmp/a"], "").await.2, 1);
}

/// The terminal of whoever types is in raw mode, so nothing but these keys ends what runs.
#[tokio::test(start_paused = true)]
async fn a_person_ends_what_runs_by_a_key() {
    let sim = with_pod().await;
    let types = async |command: &str, pieces: &[&'static [u8]]| {
        let path = format!("web/exec?stdin=1&stdout=1&tty=1&command={command}");
        let connection = connect(&sim, &path).await.unwrap();
        let Wish::Exec(run) = connection.wish else { panic!("no command") };
        let (input, reads) = mpsc::channel(8);
        let (output, mut said) = mpsc::channel(64);
        let running = connection.end.exec(connection.pod, run, reads, output);
        let typing = async {
            for piece in pieces {
                tokio::time::sleep(Duration::from_secs(1)).await;
                input.send(Bytes::from_static(piece)).await.unwrap();
            }
        };
        let hearing = async {
            let mut out = String::new();
            while let Some(Output::Out(bytes)) = said.recv().await {
                out.push_str(std::str::from_utf8(&bytes).unwrap());
            }
            out
        };
        let most = Duration::from_secs(600);
        let all = tokio::time::timeout(most, async { tokio::join!(running, typing, hearing) }).await;
        all.map(|(code, (), out)| (out, code.unwrap())).map_err(|_| "it did not end")
    };
    assert_eq!(types("sleep&command=3600", &[b"x", b"\x03"]).await, Ok((String::new(), 130)));
    assert_eq!(types("cat", &[b"one\r", b"two\r", b"\x04"]).await, Ok(("one\r\ntwo\r\n".to_owned(), 0)));
    assert_eq!(types("cat", &[b"one\r\x03"]).await, Ok((String::new(), 130)));
    // In a shell only the command ends. What is typed while it runs is read behind it.
    let (out, code) = types("sh", &[b"sleep 3600\r", b"lost\x03", b"sleep 60\r", b"exit 4\r"]).await.unwrap();
    assert_eq!(code, 4);
    assert_eq!(out, "/ # sleep 3600\r\n^C\r\n/ # sleep 60\r\n/ # exit 4\r\n");
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_listed_answers_and_others_do_not() {
    let sim = with_pod().await;
    let connection = connect(&sim, "web/portforward").await.unwrap();
    let mut stream = connection.end.port(connection.pod.clone(), 8080).await.ok().unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("ok"), "{page}");
    let problem = connection.end.port(connection.pod, 9090).await.err().unwrap();
    assert!(problem.contains("connection refused"), "{problem}");
}

/// Who leaves a shell by `exit 3` has ended the container with that code, and hears of no failure.
#[tokio::test(start_paused = true)]
async fn a_container_that_is_left_has_ended() {
    let sim = Sim::builder().nodes(1).start();
    let local = sim.server().local();
    let pods = local.resource("", "pods").unwrap();
    let pod = json!({"metadata": {"name": "web"}, "spec": {"restartPolicy": "Never", "containers": [
        {"name": "c", "image": "busybox", "stdin": true, "tty": true},
    ]}});
    local.create(&pods, "default", pod).await.unwrap();
    sim.advance(Duration::from_secs(30)).await;
    let connection = connect(&sim, "web/attach?stdin=1&stdout=1&tty=1").await.unwrap();
    let Wish::Attach(run) = connection.wish else { panic!("no terminal") };
    let (input, reads) = mpsc::channel(8);
    let (output, mut said) = mpsc::channel(64);
    input.send(Bytes::from_static(b"exit 3\r")).await.unwrap();
    let code = connection.end.attach(connection.pod, run, reads, output).await;
    assert_eq!(code, Ok(0));
    assert!(said.recv().await.is_some(), "what is typed is shown");
    sim.advance(Duration::from_secs(5)).await;
    let pod = local.get(&pods, "default", "web").unwrap().value();
    assert_eq!(pod["status"]["phase"], "Failed");
    assert_eq!(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    let connection = connect(&sim, "web/attach?stdin=1&stdout=1&tty=1").await.unwrap();
    let Wish::Attach(run) = connection.wish else { panic!("no terminal") };
    let (_, reads) = mpsc::channel(8);
    let (output, _said) = mpsc::channel(64);
    let code = connection.end.attach(connection.pod, run, reads, output).await;
    let why = "unable to upgrade connection: container c not found in pod web_default";
    assert_eq!(code, Err(why.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn who_follows_a_log_hears_its_last_line() {
    let sim = Sim::builder().nodes(1).start();
    let local = sim.server().local();
    let pods = local.resource("", "pods").unwrap();
    let pod = json!({"metadata": {"name": "web"}, "spec": {"restartPolicy": "Never", "containers": [
        {"name": "c", "image": "exit3-after25"},
    ]}});
    local.create(&pods, "default", pod).await.unwrap();
    sim.advance(Duration::from_secs(10)).await;
    let path = "/api/v1/namespaces/default/pods/web/log?follow=true";
    let response = sim.server().clone().oneshot(Request::get(path).body(Empty::<Bytes>::new()).unwrap());
    let body = response.await.unwrap().into_body();
    let (log, ()) = tokio::join!(body.collect(), sim.advance(Duration::from_secs(60)));
    let log = String::from_utf8(log.unwrap().to_bytes().to_vec()).unwrap();
    assert!(log.starts_with("c: starting\n") && log.ends_with("c: tick 2\nc: ended with code 3\n"), "{log}");
}

/// A WebSocket begins with a GET, which is no way around the right to create.
#[tokio::test(start_paused = true)]
async fn who_may_only_read_gets_no_connection() {
    let sim = with_pod().await;
    let local = sim.server().local();
    let may = async |verbs: serde_json::Value| {
        let group = "rbac.authorization.k8s.io";
        let rules = json!([{"apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs}]);
        let role = json!({"metadata": {"name": "r"}, "rules": rules});
        let roles = local.resource(group, "clusterroles").unwrap();
        match local.get(&roles, "", "r") {
            Err(_) => drop(local.create(&roles, "", role).await.unwrap()),
            Ok(_) => drop(local.update(&roles, None, role).await.unwrap()),
        }
        let bindings = local.resource(group, "clusterrolebindings").unwrap();
        let binding = json!({
            "metadata": {"name": "b"}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": group}],
            "roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": group},
        });
        let _ = local.create(&bindings, "", binding).await;
        let mut head = head("web/exec?stdout=1&command=ls");
        head.extensions.insert(kruise_apiserver::admission::User::named("jane", &[]));
        sim.server().connect(&mut head).await.map(drop).map_err(|status| (status.code, status.message))
    };
    assert_eq!(may(json!(["get"])).await, Err((403, "pods \"web\" is forbidden: ".to_owned())));
    assert_eq!(may(json!(["get", "create"])).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn connections_that_cannot_be_are_refused() {
    let sim = with_pod().await;
    let message = async |path: &str| {
        let status = connect(&sim, path).await.err().unwrap();
        (status.code, status.message)
    };
    assert_eq!(message("none/exec?stdout=1").await, (404, "pods \"none\" not found".to_owned()));
    assert_eq!(
        message("web/exec?stdout=1&container=x").await,
        (400, "container x is not valid for pod web".to_owned())
    );
    assert_eq!(
        message("web/exec?command=ls").await,
        (400, "you must specify at least 1 of stdin, stdout, stderr".to_owned())
    );
    let mut strange = head("web/exec?stdout=1&command=ls");
    strange.extensions.insert(kruise_apiserver::admission::User::named("jane", &[]));
    let status = sim.server().connect(&mut strange).await.err().unwrap();
    assert_eq!(
        status.message,
        "pods \"web\" is forbidden: User \"jane\" cannot get resource \"pods/exec\" in API group \"\" in the namespace \
         \"default\""
    );
}
