//! A renewal while calls come in, over real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kruise_core::admission::Answer;
use kruise_webhook::certificates::Pair;
use kruise_webhook::listener::{self, Current};
use kruise_webhook::service::Webhooks;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::world::{NAME, Replica, World};

/// A replica of the manager: its decisions and its socket.
pub(crate) struct Served {
    pub(crate) port: u16,
    pub(crate) certificate: Current,
    pub(crate) stop: Arc<Notify>,
}

pub(crate) async fn serve(webhooks: Webhooks, tasks: &mut JoinSet<()>, limits: listener::Limits) -> Served {
    serve_to(None, webhooks, tasks, limits).await
}

pub(crate) async fn serve_to(
    clients: Option<listener::Clients>,
    webhooks: Webhooks,
    tasks: &mut JoinSet<()>,
    limits: listener::Limits,
) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (certificate, stop) = (Current::default(), Arc::new(Notify::new()));
    let (shown, stopped) = (certificate.clone(), stop.clone());
    tasks.spawn(async move {
        let stop = async move { stopped.notified().await };
        listener::serve(listener, shown, clients, webhooks, limits, stop).await.unwrap();
    });
    Served { port, certificate, stop }
}

pub(crate) fn webhooks() -> Webhooks {
    Webhooks::builder().admission("/validate-pod", |_| async { Answer::allowed() }).build()
}

pub(crate) fn connector(bundle: &[u8], protocol: &[u8]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsConnector::from(Arc::new(config))
}

pub(crate) fn request() -> http::Request<Full<Bytes>> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": { "uid": "u", "operation": "CREATE", "resource": { "version": "v1", "resource": "pods" } },
    });
    http::Request::post(format!("https://{NAME}/validate-pod?timeout=10s"))
        .header("content-type", "application/json")
        .header("host", NAME)
        .body(Full::new(Bytes::from(review.to_string())))
        .unwrap()
}

/// One call as an API server makes it: a connection that trusts the bundle, a review, an answer.
pub(crate) async fn call(port: u16, bundle: &[u8], http2: bool) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let socket = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| text(&error))?;
    let protocol: &[u8] = if http2 { b"h2" } else { b"http/1.1" };
    let name = ServerName::try_from(NAME).unwrap();
    let stream = connector(bundle, protocol).connect(name, socket).await.map_err(|error| text(&error))?;
    let request = request();
    let mut driver = JoinSet::new();
    let response = if http2 {
        let made = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (mut sender, connection) = made.map_err(|error| text(&error))?;
        driver.spawn(async move { _ = connection.await });
        sender.send_request(request).await
    } else {
        let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = made.map_err(|error| text(&error))?;
        driver.spawn(async move { _ = connection.await });
        sender.send_request(request).await
    };
    let body =
        response.map_err(|error| text(&error))?.into_body().collect().await.map_err(|e| text(&e))?.to_bytes();
    let answer: serde_json::Value = serde_json::from_slice(&body).map_err(|error| text(&error))?;
    if answer["response"]["allowed"] == true { Ok(()) } else { Err(answer.to_string()) }
}

/// Two replicas, 200 calls a second to both in turn, each with the bundle of some object at that moment; meanwhile
/// the certificate is renewed, the Secret is deleted, and the certificate is renewed again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_one_of_200_calls_a_second_is_refused_while_certificates_are_renewed() {
    let mut tasks = JoinSet::new();
    let world = Arc::new(Mutex::new(World::lately()));
    let mut replicas = Vec::new();
    for _ in 0..2 {
        let served = serve(webhooks(), &mut tasks, listener::Limits::default()).await;
        let mut replica = Replica::new();
        replica.sync(&mut *world.lock().await);
        show(&served, replica.served.as_ref());
        replicas.push((served, replica));
    }
    let ports: Vec<u16> = replicas.iter().map(|(served, _)| served.port).collect();

    let (made, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
    let mut calls = JoinSet::new();
    let load = {
        let (world, made, failed) = (world.clone(), made.clone(), failed.clone());
        async move {
            let mut tick = tokio::time::interval(Duration::from_millis(5));
            for i in 0..1000usize {
                tick.tick().await;
                let bundles = world.lock().await.bundles();
                let bundle = base64::Engine::decode(
                    &base64::engine::general_purpose::STANDARD,
                    &bundles[i % bundles.len()],
                );
                let (port, made, failed) = (ports[i % 2], made.clone(), failed.clone());
                calls.spawn(async move {
                    match call(port, &bundle.unwrap(), i % 3 == 0).await {
                        Ok(()) => _ = made.fetch_add(1, Ordering::Relaxed),
                        Err(why) => failed.lock().unwrap().push(why),
                    }
                });
            }
            while calls.join_next().await.is_some() {}
        }
    };
    let renewals = {
        let world = world.clone();
        async move {
            let mut certificates = std::collections::BTreeSet::new();
            for round in 0..240usize {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let mut world = world.lock().await;
                match round {
                    40 => {
                        world.pass(60 * crate::world::DAY);
                        world.environment.renew_before = 3600 * crate::world::DAY;
                    }
                    120 => world.set_secret(None),
                    _ => {}
                }
                // One second of the cluster's time, so that nobody waits for settling in real time.
                world.pass(Duration::from_secs(1));
                // The second replica is slow: it acts every seventh time.
                let (served, replica) = &mut replicas[usize::from(round % 7 == 0)];
                replica.step(&mut world);
                show(served, replica.served.as_ref());
                certificates.extend(replica.served.as_ref().map(|pair| pair.certificate.clone()));
            }
            (certificates.len(), replicas)
        }
    };
    let ((), (certificates, replicas)) = tokio::join!(load, renewals);
    assert_eq!(*failed.lock().unwrap(), [] as [String; 0]);
    assert_eq!(made.load(Ordering::Relaxed), 1000);
    assert!(certificates >= 3, "{certificates} certificates were served");
    for (served, _) in &replicas {
        served.stop.notify_one();
    }
    while tasks.join_next().await.is_some() {}
}

pub(crate) fn show(served: &Served, pair: Option<&Pair>) {
    if let Some(pair) = pair {
        served.certificate.set(pair.certified().unwrap());
    }
}

#[tokio::test]
async fn without_a_certificate_handshakes_fail_and_with_one_they_do_not() {
    let mut tasks = JoinSet::new();
    let served = serve(webhooks(), &mut tasks, listener::Limits::default()).await;
    let mut world = World::lately();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    let bundle = replica.served.as_ref().unwrap().authority.clone().into_bytes();
    assert!(call(served.port, &bundle, false).await.is_err());
    show(&served, replica.served.as_ref());
    for http2 in [false, true] {
        assert_eq!(call(served.port, &bundle, http2).await, Ok(()));
    }
    served.stop.notify_one();
    while tasks.join_next().await.is_some() {}
}

/// Whoever connects and says nothing loses the connection and gives up the place.
#[tokio::test]
async fn silent_clients_do_not_keep_others_out() {
    let limits = listener::Limits {
        connections: 2,
        handshake: Duration::from_millis(200),
        idle: Duration::from_millis(300),
        ..listener::Limits::default()
    };
    let mut tasks = JoinSet::new();
    let served = serve(webhooks(), &mut tasks, limits).await;
    let mut world = World::lately();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    show(&served, replica.served.as_ref());
    let bundle = replica.served.as_ref().unwrap().authority.clone().into_bytes();

    let silent = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    let socket = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    let idle = connector(&bundle, b"h2").connect(ServerName::try_from(NAME).unwrap(), socket).await.unwrap();
    let waited = tokio::time::timeout(Duration::from_secs(5), call(served.port, &bundle, false)).await;
    assert_eq!(waited, Ok(Ok(())));
    drop((silent, idle));
    served.stop.notify_one();
    while tasks.join_next().await.is_some() {}
}

/// A connection lives on with the certificate it began with, and what is under way ends before the server does.
#[tokio::test]
async fn a_request_under_way_is_answered_although_everything_ends() {
    let begun = Arc::new(Notify::new());
    let slow = {
        let begun = begun.clone();
        Webhooks::builder()
            .admission("/validate-pod", move |_| {
                let begun = begun.clone();
                async move {
                    begun.notify_one();
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    Answer::allowed()
                }
            })
            .build()
    };
    let mut tasks = JoinSet::new();
    let served = serve(slow, &mut tasks, listener::Limits::default()).await;
    let mut world = World::lately();
    let mut replica = Replica::new();
    replica.sync(&mut world);
    show(&served, replica.served.as_ref());
    let bundle = replica.served.as_ref().unwrap().authority.clone().into_bytes();
    let mut calls = JoinSet::new();
    let port = served.port;
    calls.spawn(async move { call(port, &bundle, true).await });
    begun.notified().await;
    let mut other = Replica::new();
    other.sync(&mut World::lately());
    show(&served, other.served.as_ref());
    served.stop.notify_one();
    assert_eq!(calls.join_next().await.unwrap().unwrap(), Ok(()));
    while tasks.join_next().await.is_some() {}
}

/// An API server keeps connections, and a call that it sends while one is closed is lost.
#[tokio::test]
async fn connections_that_rest_are_served_and_asked_to_end_before_they_are_closed() {
    let mut tasks = JoinSet::new();
    let served = serve(webhooks(), &mut tasks, listener::Limits::default()).await;
    let mut replica = Replica::new();
    replica.sync(&mut World::lately());
    show(&served, replica.served.as_ref());
    let bundle = replica.served.as_ref().unwrap().authority.clone().into_bytes();
    let socket = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let stream = connector(&bundle, b"http/1.1").connect(name, socket).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async move { _ = connection.await });
    let before = sender.send_request(request()).await.unwrap();
    assert_eq!(before.headers().get("connection"), None);
    before.into_body().collect().await.unwrap();

    served.stop.notify_one();
    tokio::time::sleep(Duration::from_millis(200)).await;
    sender.ready().await.unwrap();
    let last = sender.send_request(request()).await.unwrap();
    assert_eq!((last.status().as_u16(), last.headers()["connection"].to_str().unwrap()), (200, "close"));
    // Whoever has not heard yet that nobody is here is served too.
    assert_eq!(call(served.port, &bundle, false).await, Ok(()));
    while tasks.join_next().await.is_some() {}
    assert!(TcpStream::connect(("127.0.0.1", served.port)).await.is_err());
}
