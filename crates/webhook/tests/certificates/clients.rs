//! Clients that hold connections, and clients that must show who they are.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use kruise_core::admission::Answer;
use kruise_webhook::listener::{self, Clients};
use kruise_webhook::service::Webhooks;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::load::{Served, call, connector, request, serve, serve_to, show, webhooks};
use crate::world::{NAME, Replica, World};

fn certified(served: &Served) -> Vec<u8> {
    let mut replica = Replica::new();
    replica.sync(&mut World::lately());
    show(served, replica.served.as_ref());
    replica.served.as_ref().unwrap().authority.clone().into_bytes()
}

/// Issue 19: 512 idle TLS connections blocked every admission. Now a new connection always gets in.
#[tokio::test]
async fn connections_that_are_held_keep_nobody_out() {
    let limits = listener::Limits {
        connections: 6,
        farewell: Duration::from_millis(100),
        ..listener::Limits::default()
    };
    let mut tasks = JoinSet::new();
    let served = serve(webhooks(), &mut tasks, limits).await;
    let bundle = certified(&served);
    let mut held = Vec::new();
    let mut idle = Vec::new();
    for number in 0..30 {
        let mut socket = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
        match number % 3 {
            0 => held.push(socket),
            // The beginning of a handshake.
            1 => {
                socket.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
                held.push(socket);
            }
            _ => {
                let name = ServerName::try_from(NAME).unwrap();
                let mut stream = connector(&bundle, b"http/1.1").connect(name, socket).await.unwrap();
                let head =
                    b"POST /validate-pod HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{";
                stream.write_all(head).await.unwrap();
                idle.push(stream);
            }
        }
        // Only a guard against waiting for ever.
        let answered =
            tokio::time::timeout(Duration::from_secs(4), call(served.port, &bundle, number % 2 == 0));
        assert_eq!(answered.await, Ok(Ok(())));
    }
    served.stop.notify_one();
    while tasks.join_next().await.is_some() {}
}

/// An authority of clients, and a certificate with its key.
fn authority() -> (rcgen::Issuer<'static, rcgen::KeyPair>, String) {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (rcgen::Issuer::new(params, key), pem)
}

fn signed(
    issuer: &rcgen::Issuer<'static, rcgen::KeyPair>,
) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let mut params = rcgen::CertificateParams::new(["apiserver".to_owned()]).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    (certificate.der().clone(), PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap())
}

/// The status of an admission by a client that shows this certificate; nothing where it does not get that far.
async fn status(
    port: u16,
    bundle: &[u8],
    shown: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Option<u16> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => config.with_no_client_auth(),
    };
    let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    let mut driver = JoinSet::new();
    driver.spawn(async move { _ = connection.await });
    let response = sender.send_request(request()).await.ok()?;
    let status = response.status().as_u16();
    response.into_body().collect().await.ok()?;
    Some(status)
}

#[tokio::test]
async fn with_authorities_of_clients_only_their_clients_are_admitted() {
    let webhooks = Webhooks::builder()
        .admission("/validate-pod", |_| async { Answer::allowed() })
        .only_verified(true)
        .build();
    let (ours, pem) = authority();
    let (others, _) = authority();
    let clients = Clients::of(pem.as_bytes()).unwrap();
    let mut tasks = JoinSet::new();
    let served = serve_to(Some(clients), webhooks, &mut tasks, listener::Limits::default()).await;
    let bundle = certified(&served);
    assert_eq!(status(served.port, &bundle, Some(signed(&ours))).await, Some(200));
    assert_eq!(status(served.port, &bundle, None).await, Some(403));
    assert_eq!(status(served.port, &bundle, Some(signed(&others))).await, None);
    served.stop.notify_one();
    while tasks.join_next().await.is_some() {}
}

#[test]
fn a_file_without_authorities_is_named() {
    assert_eq!(
        Clients::of(b"").unwrap_err().to_string(),
        "there is no certificate among the authorities of clients"
    );
    assert!(Clients::of(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").is_err());
}
