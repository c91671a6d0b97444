//! Whether the webhooks are ready: a client that trusts only our own authority asks `/healthz` on this machine.
//!
//! One connection for each check, closed before the check returns, and no task behind it.

use std::error::Error as _;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use http::{Request, StatusCode, header};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::service::HEALTH;

/// The name by which the check calls.
const LOCALHOST: &str = "localhost";
/// How long a check may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the webhooks are not ready.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Certificates have never been complete since the start.
    #[error("webhook controller has not initialized")]
    NotInitialized,
    /// The authority is none.
    #[error("the authority of the webhooks cannot be used: {why}")]
    Authority {
        /// What is wrong with it.
        why: String,
    },
    /// Nobody listens.
    #[error("cannot connect to the webhooks at {host}:{port}: {source}")]
    Connect {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What the system says.
        source: std::io::Error,
    },
    /// The certificate is not one for this machine's own use. The source names what is missing.
    #[error("the webhooks' certificate does not hold for {LOCALHOST}: {source}")]
    Handshake {
        /// What TLS says.
        source: std::io::Error,
    },
    /// The answer never came.
    #[error("the webhooks did not answer: {why}")]
    Exchange {
        /// What HTTP says.
        why: String,
    },
    /// The answer was no success.
    #[error("the webhooks answered with status {code}, expected 200")]
    Status {
        /// The code.
        code: u16,
    },
    /// It took too long.
    #[error("the webhooks did not answer within {PATIENCE:?}")]
    Timeout,
}

/// Checks on demand. Clones share the authority to trust.
#[derive(Clone, Debug, Default)]
pub struct Check(Arc<RwLock<Option<Arc<str>>>>);

impl Check {
    /// Trusts only these certificates (PEM) from now on, and counts as initialized.
    pub fn trust(&self, authority: &str) {
        let mut trusted = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if trusted.as_deref() != Some(authority) {
            *trusted = Some(authority.into());
        }
    }

    /// Whether certificates have been complete once.
    pub fn is_initialized(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Asks once, on this machine.
    pub async fn ready(&self, port: u16) -> Result<(), Error> {
        self.ready_at(LOCALHOST, port).await
    }

    /// Asks once at a host, for webhooks that listen only there. The certificate is the one for this machine's own use.
    pub async fn ready_at(&self, host: &str, port: u16) -> Result<(), Error> {
        let authority = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        let authority = authority.ok_or(Error::NotInitialized)?;
        tokio::time::timeout(PATIENCE, ask(&authority, host, port)).await.map_err(|_| Error::Timeout)?
    }
}

async fn ask(authority: &str, host: &str, port: u16) -> Result<(), Error> {
    let tls = trusting(authority).map_err(|why| Error::Authority { why })?;
    let name =
        ServerName::try_from(LOCALHOST).map_err(|error| Error::Authority { why: error.to_string() })?;
    let socket = TcpStream::connect((host, port)).await.map_err(|source| Error::Connect {
        host: host.to_owned(),
        port,
        source,
    })?;
    let stream = tls.connect(name, socket).await.map_err(|source| Error::Handshake { source })?;
    let code = get(stream, port).await.map_err(|error| {
        let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        Error::Exchange { why: format!("{error}{cause}") }
    })?;
    if code == StatusCode::OK { Ok(()) } else { Err(Error::Status { code: code.as_u16() }) }
}

async fn get(
    stream: tokio_rustls::client::TlsStream<TcpStream>,
    port: u16,
) -> Result<StatusCode, hyper::Error> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = http::Uri::from_static(HEALTH);
    let host = http::HeaderValue::from_str(&format!("{LOCALHOST}:{port}"));
    request.headers_mut().insert(header::HOST, host.unwrap_or(http::HeaderValue::from_static(LOCALHOST)));
    let exchange = Box::pin(async move { sender.send_request(request).await.map(|answer| answer.status()) });
    // The connection is driven here, so that it is gone when the check is over.
    match select(exchange, Box::pin(connection)).await {
        Either::Left((code, _)) => code,
        Either::Right((_, exchange)) => exchange.await,
    }
}

fn trusting(authority: &str) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
