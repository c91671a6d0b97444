//! Commands, terminals and ports of simulated pods.

use bytes::Bytes;
use http::Request;
use http::request::Parts;
use kruise_apiserver::connect::{Connection, Output, Wish};
use kruise_apiserver::status::Status;
use kruise_sim::Sim;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

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

fn connect(sim: &Sim, path: &str) -> Result<Connection, Status> {
    sim.server().connect(&mut head(path))
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
    let connection = connect(sim, &format!("web/exec?stdin=1&stdout=1&stderr=1{words}")).unwrap();
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

#[tokio::test(start_paused = true)]
async fn a_port_that_is_listed_answers_and_others_do_not() {
    let sim = with_pod().await;
    let connection = connect(&sim, "web/portforward").unwrap();
    let mut stream = connection.end.port(connection.pod.clone(), 8080).await.ok().unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("ok"), "{page}");
    let problem = connection.end.port(connection.pod, 9090).await.err().unwrap();
    assert!(problem.contains("connection refused"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn connections_that_cannot_be_are_refused() {
    let sim = with_pod().await;
    let message = |path: &str| {
        let status = connect(&sim, path).err().unwrap();
        (status.code, status.message)
    };
    assert_eq!(message("none/exec?stdout=1"), (404, "pods \"none\" not found".to_owned()));
    assert_eq!(
        message("web/exec?stdout=1&container=x"),
        (400, "container x is not valid for pod web".to_owned())
    );
    assert_eq!(
        message("web/exec?command=ls"),
        (400, "you must specify at least 1 of stdin, stdout, stderr".to_owned())
    );
    let mut strange = head("web/exec?stdout=1&command=ls");
    strange.extensions.insert(kruise_apiserver::admission::User::named("jane", &[]));
    let status = sim.server().connect(&mut strange).err().unwrap();
    assert_eq!(
        status.message,
        "pods \"web\" is forbidden: User \"jane\" cannot get resource \"pods/exec\" in API group \"\" in the namespace \
         \"default\""
    );
}
