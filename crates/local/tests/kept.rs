//! `--data-dir`: what was answered is there after the process was killed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

const ROUNDS: usize = 50;
const WRITERS: usize = 4;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The program, running.
struct Program {
    child: Child,
    kubeconfig: Value,
}

impl Program {
    /// Starts it and waits until it says where it is.
    fn start(folder: &Path, more: &[&str]) -> Self {
        let path = folder.join("kubeconfig");
        let mut command = Command::new(env!("CARGO_BIN_EXE_kruise-local"));
        command.args(["--nodes", "1", "--no-manager", "--kubeconfig"]).arg(&path);
        command.arg("--data-dir").arg(folder.join("data")).args(more);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("it is kept in"), "{first}");
        let text = std::fs::read_to_string(path).unwrap();
        Self { child, kubeconfig: serde_saphyr::from_str(&text).unwrap() }
    }

    /// As `kill -9` does.
    fn kill(self) {
        drop(self);
    }

    async fn connect(&self) -> Connection {
        let cluster = &self.kubeconfig["clusters"][0]["cluster"];
        let data = cluster["certificate-authority-data"].as_str().unwrap();
        let pem = format!("-----BEGIN CERTIFICATE-----\n{data}\n-----END CERTIFICATE-----\n");
        let authority = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let server = cluster["server"].as_str().unwrap();
        let address: SocketAddr = server.strip_prefix("https://").unwrap().parse().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move { drop(connection.await) });
        let token = self.kubeconfig["users"][1]["user"]["token"].as_str().unwrap().to_owned();
        Connection { sender, token, _task: task }
    }
}

impl Drop for Program {
    /// Also when the test fails: nothing is left behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    token: String,
    _task: JoinSet<()>,
}

impl Connection {
    /// The answer; `None` when the server died before it gave one.
    async fn ask(&mut self, method: Method, path: &str, body: &Value) -> Option<(StatusCode, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(Full::from(body))
            .unwrap();
        self.sender.ready().await.ok()?;
        let response = self.sender.send_request(request).await.ok()?;
        let code = response.status();
        let bytes = response.into_body().collect().await.ok()?.to_bytes();
        Some((code, serde_json::from_slice(&bytes).ok()?))
    }
}

/// What the cluster must have: a value, or `None` for a map that was deleted.
type Acknowledged = BTreeMap<String, Option<u64>>;

/// Writes until the server is gone. Each map is made, changed, and every third deleted. Returns what was answered,
/// and the map whose last write was not.
async fn write(mut connection: Connection, prefix: String, told: Arc<Told>) -> (Acknowledged, String) {
    let mut known = Acknowledged::new();
    for n in 0.. {
        let name = format!("{prefix}-{n}");
        let path = format!("{MAPS}/{name}");
        let map = |value: u64| json!({"metadata": {"name": name}, "data": {"value": value.to_string()}});
        let steps = [(Method::POST, Some(1)), (Method::PUT, Some(2)), (Method::DELETE, None)];
        for (method, value) in steps.into_iter().take(if n % 3 == 0 { 3 } else { 2 }) {
            let path = if method == Method::POST { MAPS } else { &path };
            let body = value.map_or(Value::Null, map);
            let Some((code, answer)) = connection.ask(method, path, &body).await else {
                return (known, name);
            };
            assert!(code.is_success(), "{answer}");
            known.insert(name.clone(), value);
            told.tell();
        }
    }
    unreachable!("a writer ends with the server");
}

/// Counts answers and rings when there were enough.
struct Told {
    left: AtomicUsize,
    bell: Notify,
}

impl Told {
    fn tell(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.bell.notify_one();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_cluster_has_lost_nothing_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::new();
    let (mut last_version, mut identity) = (0, Value::Null);
    let mut luck = 0x9e37_79b9_u32;
    for round in 0..ROUNDS {
        let more: &[&str] = if round == 0 { &["--port", "0"] } else { &[] };
        let program = Program::start(folder.path(), more);
        let shown = json!([
            program.kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"],
            program.kubeconfig["users"]
        ]);
        assert!(round == 0 || shown == identity, "a kubeconfig of before is still valid");
        identity = shown;

        let (code, list) = program.connect().await.ask(Method::GET, MAPS, &Value::Null).await.unwrap();
        assert_eq!(code, 200);
        let version: u64 = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        assert!(version > last_version, "{version} after {last_version}");
        last_version = version;
        let found: BTreeMap<String, u64> = (list["items"].as_array().unwrap().iter())
            .filter_map(|map| {
                let value = map["data"]["value"].as_str()?.parse().unwrap();
                Some((map["metadata"]["name"].as_str().unwrap().to_owned(), value))
            })
            .collect();
        for (name, value) in &acknowledged {
            assert_eq!(found.get(name), value.as_ref(), "{name} in round {round}");
        }
        for name in found.keys() {
            assert!(acknowledged.contains_key(name), "{name} came from nowhere in round {round}");
        }

        luck = luck.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let enough = 1 + (luck >> 16) as usize % 60;
        let told = Arc::new(Told { left: AtomicUsize::new(enough), bell: Notify::new() });
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let connection = program.connect().await;
            writers.spawn(write(connection, format!("r{round}-w{writer}"), told.clone()));
        }
        told.bell.notified().await;
        program.kill();
        let mut unclear = Vec::new();
        for (known, last) in writers.join_all().await {
            acknowledged.extend(known);
            unclear.push(last);
        }
        // What was asked and never answered may have happened or not: after a look it is known too.
        let program = Program::start(folder.path(), &[]);
        let mut connection = program.connect().await;
        for name in unclear {
            let (code, map) =
                connection.ask(Method::GET, &format!("{MAPS}/{name}"), &Value::Null).await.unwrap();
            let now = (code == 200).then(|| map["data"]["value"].as_str().unwrap().parse().unwrap());
            let before = acknowledged.get(&name).copied().flatten();
            assert!(now.is_none() || now >= before, "{name} went back from {before:?} to {now:?}");
            assert!(now.is_some() || before != Some(1), "{name} was lost");
            acknowledged.insert(name, now);
        }
        program.kill();
    }
    assert!(acknowledged.len() > ROUNDS, "the writers wrote");
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let pods = "/api/v1/namespaces/default/pods";
    let program = Program::start(folder.path(), &["--port", "0", "--speed", "20"]);
    let mut connection = program.connect().await;
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}});
    let (code, answer) = connection.ask(Method::POST, pods, &pod).await.unwrap();
    assert_eq!(code, 201, "{answer}");
    let running = until_running(&mut connection).await;
    let (code, answer) = connection.ask(Method::GET, "/api/v1/nodes", &Value::Null).await.unwrap();
    assert_eq!(code, 200, "{answer}");
    let node = answer["items"][0].clone();
    program.kill();

    let program = Program::start(folder.path(), &["--speed", "20"]);
    let mut connection = program.connect().await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-1";
    let (_, first) = connection.ask(Method::GET, lease, &Value::Null).await.unwrap();
    // The lease is renewed every ten seconds: when it was, the node has looked at its pods.
    loop {
        let (_, now) = connection.ask(Method::GET, lease, &Value::Null).await.unwrap();
        if now["spec"]["renewTime"] != first["spec"]["renewTime"] {
            break;
        }
    }
    let after = until_running(&mut connection).await;
    assert_eq!(after["metadata"]["uid"], running["metadata"]["uid"]);
    assert_eq!(after["status"], running["status"], "nothing happened to it");
    let (_, answer) = connection.ask(Method::GET, "/api/v1/nodes", &Value::Null).await.unwrap();
    let since = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array().unwrap().clone();
        conditions
            .into_iter()
            .map(|c| (c["type"].clone(), c["status"].clone(), c["lastTransitionTime"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(since(&answer["items"][0]), since(&node));
    program.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_service_accounts_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), &["--port", "0"]);
    let mut connection = program.connect().await;
    let path = "/api/v1/namespaces/default/serviceaccounts";
    let robot = json!({"metadata": {"name": "robot"}});
    assert_eq!(connection.ask(Method::POST, path, &robot).await.unwrap().0, 201);
    let path = format!("{path}/robot/token");
    let (code, answer) = connection.ask(Method::POST, &path, &json!({})).await.unwrap();
    assert_eq!(code, 201, "{answer}");
    let token = answer["status"]["token"].as_str().unwrap().to_owned();
    program.kill();

    let program = Program::start(folder.path(), &[]);
    let mut connection = Connection { token, ..program.connect().await };
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (code, answer) = connection.ask(Method::POST, path, &review).await.unwrap();
    assert_eq!(code, 201, "{answer}");
    assert_eq!(answer["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    program.kill();
}

/// Asks until the pod runs and is ready.
async fn until_running(connection: &mut Connection) -> Value {
    loop {
        let path = "/api/v1/namespaces/default/pods/a";
        let (code, pod) = connection.ask(Method::GET, path, &Value::Null).await.unwrap();
        assert_eq!(code, 200, "{pod}");
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True") {
            return pod;
        }
    }
}
