//! The socket: TLS, HTTP/1.1 and HTTP/2, bounded and with a clean end.
//!
//! The certificate is looked up at every handshake, so it changes between two connections and never within one. While
//! there is none, handshakes fail and nothing else happens.
//!
//! Anyone in the cluster can connect. So there is a fixed number of connections, a new one always gets in, and the one that
//! deserves its place least is closed for it: handshakes that do not end, connections that are silent or send slowly.

mod clients;
mod connection;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use kruise_sockets::places::Places;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub use clients::{Clients, Error as ClientsError};

use crate::service::Reply;

/// The certificate that the next handshake shows. Clones share it.
#[derive(Clone, Default)]
pub struct Current(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl Current {
    /// Shows this one from now on. Connections that exist live on.
    pub fn set(&self, certificate: Arc<CertifiedKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(certificate);
    }

    /// What is shown now.
    pub fn get(&self) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Current").field("is_set", &self.get().is_some()).finish()
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.get()
    }
}

/// The bounds of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. For the next one the idlest is closed.
    pub connections: usize,
    /// Requests at once on one connection.
    pub streams: u32,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a connection may do nothing.
    pub idle: Duration,
    /// How long a client may take to read the next part of an answer.
    pub write: Duration,
    /// How long everybody is still served when everything ends: others must learn first that nobody is here. API servers
    /// keep connections open, and cannot tell a request that was lost with one from a request that was refused.
    pub linger: Duration,
    /// How long open requests get after that.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            streams: 250,
            handshake: Duration::from_secs(5),
            idle: Duration::from_secs(90),
            write: Duration::from_secs(10),
            linger: Duration::from_secs(2),
            farewell: Duration::from_secs(10),
        }
    }
}

/// How long to rest when the system has no more sockets to give.
const NO_SOCKETS: Duration = Duration::from_millis(100);

/// What a listener needs of a service.
pub trait Answers:
    tower::Service<Request<Incoming>, Response = Response<Reply>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
{
}

impl<S> Answers for S where
    S: tower::Service<Request<Incoming>, Response = Response<Reply>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// How far the end of a listener is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// Every answer asks for another connection.
    Lingering,
    /// What is open ends.
    Ending,
}

/// Serves until `stop` is ready, and a little longer while it asks clients to go elsewhere. Then lets what is open end.
/// With `clients`, requests whose client has shown a certificate of theirs are [`Verified`](crate::service::Verified).
pub async fn serve<S: Answers>(
    listener: TcpListener,
    certificate: Current,
    clients: Option<Clients>,
    service: S,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<(), rustls::Error> {
    let tls = TlsAcceptor::from(Arc::new(config(certificate, clients)?));
    let places = Places::new(limits.connections);
    let (tell, phase) = watch::channel(Phase::Serving);
    let mut connections = JoinSet::new();
    let mut stop = pin!(async {
        stop.await;
        // The channel only fails when no connection is left to hear it.
        let _ = tell.send(Phase::Lingering);
        tokio::time::sleep(limits.linger).await;
    });
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let place = tokio::select! {
                        () = &mut stop => break,
                        place = places.take() => place,
                    };
                    let one = connection::Connection {
                        stream, tls: tls.clone(), service: service.clone(), limits: limits.clone(),
                        phase: phase.clone(), visitor: place.visitor(),
                    };
                    connections.spawn(async move {
                        tokio::select! {
                            () = one.serve() => {}
                            () = place.is_needed() => tracing::debug!("closed a connection for another one"),
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(NO_SOCKETS).await;
                }
            },
            Some(over) = connections.join_next() => {
                if let Err(error) = over {
                    tracing::error!(%error, "a connection ended badly");
                }
            }
        }
    }
    drop(listener);
    let _ = tell.send(Phase::Ending);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.farewell, all).await.is_err() {
        tracing::warn!(open = connections.len(), "cut connections that did not end in time");
        connections.shutdown().await;
    }
    Ok(())
}

fn config(certificate: Current, clients: Option<Clients>) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients.0),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_cert_resolver(Arc::new(certificate));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
