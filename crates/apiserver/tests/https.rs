//! A webhook behind a real socket and a real certificate.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kruise_apiserver::ApiServer;
use kruise_apiserver::webhook::https::Https;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

/// A certificate for 127.0.0.1, as a server's configuration and as PEM.
fn certificate() -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

/// Answers one review with a refusal that quotes the request line.
async fn answer_once(listener: &TcpListener, tls: &TlsAcceptor) {
    let (socket, _) = listener.accept().await.unwrap();
    let Ok(mut stream) = tls.accept(socket).await else { return };
    let mut bytes = Vec::new();
    let review: Value = loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(review) = serde_json::from_str(body)
        {
            break review;
        }
    };
    let line = String::from_utf8_lossy(&bytes).lines().next().unwrap().to_owned();
    let body = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "response": {"uid": review["request"]["uid"], "allowed": false, "status": {"message": line}},
    })
    .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

async fn configured(port: u16, ca: &str) -> Api<ConfigMap> {
    let server = ApiServer::builder().build();
    server.set_webhook_caller(Arc::new(Https));
    let client = kube::Client::new(server.clone(), "default");
    let configurations =
        server.local().resource("admissionregistration.k8s.io", "validatingwebhookconfigurations").unwrap();
    let configuration = json!({
        "metadata": {"name": "far"},
        "webhooks": [{
            "name": "far.example.com",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/check"), "caBundle": base64(ca.as_bytes())},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5,
        }],
    });
    server.local().create(&configurations, "", configuration).await.unwrap();
    Api::default_namespaced(client)
}

async fn refusal(maps: &Api<ConfigMap>) -> String {
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "m"}})).unwrap();
    match maps.create(&PostParams::default(), &map).await {
        Err(kube::Error::Api(status)) => status.message.clone(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn a_webhook_is_called_over_https_when_its_certificate_is_trusted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tls, ca) = certificate();
    let maps = configured(port, &ca).await;
    let (message, ()) = futures::join!(refusal(&maps), answer_once(&listener, &tls));
    assert_eq!(
        message,
        "admission webhook \"far.example.com\" denied the request: POST /check?timeout=5s HTTP/1.1"
    );
}

#[tokio::test]
async fn a_webhook_with_another_certificate_or_without_a_listener_is_not_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tls, _) = certificate();
    let (_, other) = certificate();
    let maps = configured(port, &other).await;
    let (message, ()) = futures::join!(refusal(&maps), answer_once(&listener, &tls));
    assert!(message.contains("tls: failed to verify certificate"), "{message}");
    drop(listener);
    let message = refusal(&maps).await;
    assert!(
        message.ends_with(&format!("dial tcp 127.0.0.1:{port}: connect: connection refused")),
        "{message}"
    );
}

fn base64(bytes: &[u8]) -> String {
    let letters: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0_u8; 4];
        word[1..=chunk.len()].copy_from_slice(chunk);
        let word = u32::from_be_bytes(word);
        for i in 0..4_usize {
            let letter = letters[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { letter } else { '=' });
        }
    }
    out
}
