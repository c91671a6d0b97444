//! The listener as a client sees it: who is let in, in which protocol, and how it ends.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kruise_local::certificates::Certificates;
use kruise_local::cluster::{self, Cluster, Error, Settings};
use kruise_local::daemons::When;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

fn settings(kubeconfig: PathBuf) -> Settings {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let nodes = 1;
    Settings {
        port: Some(0),
        kubeconfig,
        data_dir: None,
        nodes,
        speed: 1.0,
        seed: 1,
        now,
        with_manager: true,
        daemons: When::ThereIsWork,
        feature_gates: String::new(),
    }
}

async fn start(folder: &Path) -> (Cluster, Value) {
    let path = folder.join("kubeconfig");
    let cluster = cluster::start(&settings(path.clone())).await.unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    (cluster, serde_saphyr::from_str(&text).unwrap())
}

/// The bytes behind base64, which a PEM's body is too.
fn decoded(data: &Value) -> Vec<u8> {
    let data = data.as_str().unwrap();
    let pem = format!("-----BEGIN CERTIFICATE-----\n{data}\n-----END CERTIFICATE-----\n");
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
}

/// What a client shows.
enum Shows {
    Nothing,
    ItsCertificate,
    AnotherCertificate,
}

async fn connect(
    address: SocketAddr,
    kubeconfig: &Value,
    shows: Shows,
    protocol: &str,
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = decoded(&kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]);
    roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let with = |certificate: &[u8], key: &[u8]| {
        let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
        builder
            .clone()
            .with_client_auth_cert(vec![certificate], PrivateKeyDer::from_pem_slice(key).unwrap())
            .unwrap()
    };
    let user = &kubeconfig["users"][0]["user"];
    let mut config = match shows {
        Shows::Nothing => builder.clone().with_no_client_auth(),
        Shows::ItsCertificate => {
            with(&decoded(&user["client-certificate-data"]), &decoded(&user["client-key-data"]))
        }
        Shows::AnotherCertificate => {
            let other = Certificates::make("kubernetes-admin", "system:masters").unwrap();
            with(other.client_pem.as_bytes(), other.client_key.as_bytes())
        }
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
    stream
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(path).header("host", "localhost").body(Empty::new()).unwrap()
}

async fn value(body: Incoming) -> Value {
    serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap()
}

/// Sends one request over HTTP/1.1.
async fn ask(stream: TlsStream<TcpStream>, request: Request<Empty<Bytes>>) -> (StatusCode, Value) {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let response = sender.send_request(request).await.unwrap();
    (response.status(), value(response.into_body()).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_a_status_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, kubeconfig) = start(folder.path()).await;
    let address = cluster.address();
    for shows in [Shows::Nothing, Shows::AnotherCertificate] {
        let stream = connect(address, &kubeconfig, shows, "http/1.1").await;
        let (code, status) = ask(stream, get("/api/v1/nodes")).await;
        assert_eq!(code, 401);
        assert_eq!((&status["kind"], &status["reason"]), (&"Status".into(), &"Unauthorized".into()));
    }
    cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_and_the_token_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, kubeconfig) = start(folder.path()).await;
    let address = cluster.address();
    let stream = connect(address, &kubeconfig, Shows::ItsCertificate, "http/1.1").await;
    assert_eq!(ask(stream, get("/version")).await.0, 200);
    let stream = connect(address, &kubeconfig, Shows::Nothing, "http/1.1").await;
    let token = kubeconfig["users"][1]["user"]["token"].as_str().unwrap();
    let mut request = get("/version");
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    assert_eq!(ask(stream, request).await.0, 200);
    cluster.stop().await.unwrap();
}

/// A token of a service account, and what it lets do.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_is_itself_and_may_do_what_roles_say() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, kubeconfig) = start(folder.path()).await;
    let address = cluster.address();
    let mut admin = connect(address, &kubeconfig, Shows::ItsCertificate, "http/1.1").await;
    let head = "POST /api/v1/namespaces/default/serviceaccounts HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 31\r\n\r\n";
    let answer = say(&mut admin, head, br#"{"metadata": {"name": "robot"}}"#).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let head = "POST /api/v1/namespaces/default/serviceaccounts/robot/token HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 2\r\n\r\n";
    let answer = say(&mut admin, head, b"{}").await;
    let request: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let token = request["status"]["token"].as_str().unwrap().to_owned();
    let ask = async |token: &str| {
        let stream = connect(address, &kubeconfig, Shows::Nothing, "http/1.1").await;
        let mut request = get("/api/v1/namespaces/default/pods");
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        self::ask(stream, request).await
    };
    let (code, status) = ask(&token).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "pods is forbidden: User \"system:serviceaccount:default:robot\" cannot list resource \"pods\" in API group \"\" \
         in the namespace \"default\""
    );
    let (code, status) = ask(&format!("{token}x")).await;
    assert_eq!((code.as_u16(), &status["reason"]), (401, &"Unauthorized".into()));
    cluster.stop().await.unwrap();
}

/// A frame of a client, with a mask that changes nothing.
fn frame(payload: &[u8]) -> Vec<u8> {
    [&[0x82, 0x80 | u8::try_from(payload.len()).unwrap(), 0, 0, 0, 0][..], payload].concat()
}

/// The messages of the server until it closes, each with its channel.
async fn messages(stream: &mut TlsStream<TcpStream>) -> Vec<(u8, String)> {
    let mut all = Vec::new();
    loop {
        let (kind, length) = (stream.read_u8().await.unwrap(), stream.read_u8().await.unwrap());
        let length = match length {
            126 => stream.read_u16().await.unwrap(),
            length => u16::from(length),
        };
        let mut payload = vec![0; usize::from(length)];
        stream.read_exact(&mut payload).await.unwrap();
        if kind == 0x88 {
            return all;
        }
        all.push((payload.remove(0), String::from_utf8(payload).unwrap()));
    }
}

/// Leaves HTTP for a WebSocket, and gives the head of the answer.
async fn upgrade(stream: &mut TlsStream<TcpStream>, path: &str, protocol: &str) -> String {
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-protocol: {protocol}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_reads_and_speaks_over_a_websocket() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, kubeconfig) = start(folder.path()).await;
    let local = cluster.server().local();
    let pods = local.resource("", "pods").unwrap();
    let container = json!({"name": "c", "image": "app:1", "ports": [{"containerPort": 8080}]});
    let pod = json!({"metadata": {"name": "web"}, "spec": {"containers": [container]}});
    local.create(&pods, "default", pod).await.unwrap();
    while local.get(&pods, "default", "web").unwrap().field("status.phase") != "Running" {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let pod = "/api/v1/namespaces/default/pods/web";
    let open = async || connect(cluster.address(), &kubeconfig, Shows::ItsCertificate, "http/1.1").await;

    let mut stream = open().await;
    let path = format!("{pod}/exec?stdin=1&stdout=1&stderr=1&command=sh");
    let head = upgrade(&mut stream, &path, "v5.channel.k8s.io").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains("sec-websocket-protocol: v5.channel.k8s.io"), "{head}");
    stream.write_all(&frame(b"\0cat /none; exit 3\n")).await.unwrap();
    let told = messages(&mut stream).await;
    assert_eq!(told[0], (1, String::new()), "it says that it is connected");
    assert_eq!(told[1], (2, "cat: can't open '/none': No such file or directory\n".to_owned()));
    let status: Value = serde_json::from_str(&told[2].1).unwrap();
    assert_eq!((told[2].0, &status["reason"]), (3, &"NonZeroExitCode".into()));

    // What is read ends when the client says so, and not before.
    let mut stream = open().await;
    let path = format!("{pod}/exec?stdin=1&stdout=1&command=cat");
    upgrade(&mut stream, &path, "v5.channel.k8s.io").await;
    stream.write_all(&frame(b"\0one ")).await.unwrap();
    stream.write_all(&frame(b"\0two")).await.unwrap();
    stream.write_all(&frame(b"\xff\0")).await.unwrap();
    let told = messages(&mut stream).await;
    assert_eq!(told[1], (1, "one two".to_owned()));
    assert!(told[2].1.contains("Success"), "{told:?}");

    // Ports, as clients know them that do not tunnel: two channels, which begin with the number of the port.
    let mut stream = open().await;
    upgrade(&mut stream, &format!("{pod}/portforward?ports=8080"), "v4.channel.k8s.io").await;
    stream.write_all(&frame(b"\0GET / HTTP/1.1\r\n\r\n")).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"ok") {
        seen.push(stream.read_u8().await.unwrap());
    }
    let text = String::from_utf8_lossy(&seen);
    assert!(text.starts_with("\u{fffd}\u{3}\0\u{fffd}\u{1f}"), "{text:?}");

    let mut stream = open().await;
    let head = upgrade(&mut stream, &format!("{pod}/exec?stdout=1&command=ls"), "v9.channel.k8s.io").await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    let (code, status) = ask(open().await, get(&format!("{pod}/exec?stdout=1&command=ls"))).await;
    assert_eq!((code.as_u16(), &status["message"]), (400, &"Upgrade request required".into()));
    cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_over_http2_ends_cleanly_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, kubeconfig) = start(folder.path()).await;
    let stream = connect(cluster.address(), &kubeconfig, Shows::ItsCertificate, "h2").await;
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let path = "https://localhost/api/v1/namespaces?watch=true";
    let request = Request::get(path).body(Empty::<Bytes>::new()).unwrap();
    let mut body = sender.send_request(request).await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"{\"type\":\"ADDED\""), "{first:?}");
    let stopping = cluster.stop();
    let reading = async {
        while let Some(frame) = body.frame().await {
            frame.unwrap();
        }
    };
    let (stopped, ()) =
        tokio::time::timeout(Duration::from_secs(10), async { tokio::join!(stopping, reading) })
            .await
            .unwrap();
    stopped.unwrap();
}

/// Sends bytes as they are; the answer's head and what has come of its body.
async fn say(stream: &mut TlsStream<TcpStream>, head: &str, body: &[u8]) -> String {
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream.flush().await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// Most clients read nothing before they have sent everything, and would see a broken connection otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_far_too_much_gets_its_answer_and_keeps_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, kubeconfig) = start(folder.path()).await;
    let mut stream = connect(cluster.address(), &kubeconfig, Shows::ItsCertificate, "http/1.1").await;
    let body = vec![b' '; 24 << 20];
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let answer = say(&mut stream, &head, &body).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("Request entity too large: limit is 3145728"), "{answer}");
    let answer = say(&mut stream, "GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n", b"").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    cluster.stop().await.unwrap();
}

/// A manager outside of the process is reached by the URL of its webhooks. Here the cluster itself stands there, and
/// does not let its own server in.
#[tokio::test(flavor = "multi_thread")]
async fn webhooks_on_this_machine_are_called() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, kubeconfig) = start(folder.path()).await;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "outside"},
        "webhooks": [{
            "name": "outside.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "url": format!("https://{}/outside", cluster.address()),
                "caBundle": kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"],
            },
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}],
        }],
    });
    let mut stream = connect(cluster.address(), &kubeconfig, Shows::ItsCertificate, "http/1.1").await;
    let mut post = async |path: &str, object: Value| {
        let body = object.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        say(&mut stream, &head, body.as_bytes()).await
    };
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let answer = post(path, configuration).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    let answer = post("/api/v1/namespaces/default/secrets", secret).await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.contains("Unauthorized"), "{answer}");
    cluster.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_port_and_an_unwritable_place_are_told_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let settings = Settings { port: Some(port), ..settings(folder.path().join("kubeconfig")) };
    let error = cluster::start(&settings).await.err().unwrap();
    assert!(matches!(error, Error::PortTaken { .. }));
    assert!(error.to_string().contains(&format!("port {port} of 127.0.0.1 is taken")), "{error}");

    std::fs::write(folder.path().join("file"), "").unwrap();
    let settings = Settings { port: Some(0), kubeconfig: folder.path().join("file/kubeconfig"), ..settings };
    let error = cluster::start(&settings).await.err().unwrap();
    assert!(error.to_string().starts_with("cannot write the kubeconfig"), "{error}");
}
