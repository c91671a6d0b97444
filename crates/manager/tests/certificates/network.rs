//! The way from the API server to the Service: real sockets, the certificate checked for the name of the Service.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use kruise_apiserver::webhook::{Address, Caller};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// The ready replicas behind the Service; each call takes the next.
#[derive(Clone, Default)]
pub(crate) struct Network {
    pub(crate) ports: Arc<Mutex<Vec<u16>>>,
    calls: Arc<AtomicUsize>,
}

impl Caller for Network {
    fn call(
        &self,
        address: &Address,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, String>> {
        let ports = self.ports.lock().unwrap().clone();
        let nth = self.calls.fetch_add(1, Ordering::Relaxed);
        let address = address.clone();
        async move {
            let Some(port) = ports.get(nth % ports.len().max(1)) else {
                return Err("no endpoints available for service".to_owned());
            };
            send(*port, &address, request).await
        }
        .boxed()
    }
}

async fn send(
    port: u16,
    address: &Address,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&address.ca_bundle) {
        roots.add(certificate.map_err(|error| text(&error))?).map_err(|error| text(&error))?;
    }
    if roots.is_empty() {
        return Err(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority".to_owned()
        );
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (namespace, name) = address.service.clone().ok_or("not a Service")?;
    let name = ServerName::try_from(format!("{name}.{namespace}.svc")).map_err(|error| text(&error))?;
    let socket = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| text(&error))?;
    let stream =
        TlsConnector::from(Arc::new(config)).connect(name, socket).await.map_err(|error| text(&error))?;
    let path = request.uri().path_and_query().unwrap().as_str().to_owned();
    *request.uri_mut() = path.parse().unwrap();
    request.headers_mut().insert("host", "webhook".parse().unwrap());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
    let mut driver = JoinSet::new();
    driver.spawn(async move { _ = connection.await });
    let (head, body) = sender.send_request(request).await.map_err(|error| text(&error))?.into_parts();
    let body = body.collect().await.map_err(|error| text(&error))?.to_bytes();
    Ok(Response::from_parts(head, body))
}
