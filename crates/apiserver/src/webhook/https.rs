//! Webhooks over HTTPS: one connection for each call, trusted by the `caBundle` alone.
//!
//! Only addresses with a URL are reached this way: there is no network of Services behind this server.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, Either, select};
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::{Address, Caller};
use crate::field::quote;

/// Calls webhooks over the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Https;

impl Caller for Https {
    fn call(
        &self,
        address: &Address,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, String>> {
        let address = address.clone();
        Box::pin(async move { send(&address, request).await })
    }
}

async fn send(address: &Address, mut request: Request<Full<Bytes>>) -> Result<Response<Bytes>, String> {
    if let Some((_, name)) = &address.service {
        return Err(format!("no endpoints available for service {}", quote(name)));
    }
    let authority = address.authority();
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "443"));
    let port: u16 =
        port.parse().map_err(|_| format!("invalid port {} after host", quote(&format!(":{port}"))))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let tls = connector(&address.ca_bundle)?;
    let socket = TcpStream::connect((bare.as_str(), port))
        .await
        .map_err(|error| format!("dial tcp {host}:{port}: connect: {}", error.kind()))?;
    let name = ServerName::try_from(bare).map_err(|error| error.to_string())?;
    let stream = tls
        .connect(name, socket)
        .await
        .map_err(|error| format!("tls: failed to verify certificate: {error}"))?;

    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let value = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
    request.headers_mut().insert(header::HOST, value);
    *request.uri_mut() = path.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;

    let connected = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|error| error.to_string())?;
    let exchange = Box::pin(async move {
        let response = sender.send_request(request).await.map_err(|error| causes(&error))?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok(Response::from_parts(head, body.to_bytes()))
    });
    // The connection is driven here, beside the exchange, so that no task outlives the call.
    match select(exchange, Box::pin(connection)).await {
        Either::Left((answer, _)) => answer,
        // The answer may be complete although the connection broke behind it.
        Either::Right((ended, exchange)) => exchange.await.map_err(|error| match ended {
            Ok(()) => error,
            Err(cause) => causes(&cause),
        }),
    }
}

/// An error with what is behind it: hyper's own words leave out the reason.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn connector(ca_bundle: &[u8]) -> Result<TlsConnector, String> {
    let unknown =
        || "tls: failed to verify certificate: x509: certificate signed by unknown authority".to_owned();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_bundle) {
        let certificate = certificate.map_err(|_| unknown())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err(unknown());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
