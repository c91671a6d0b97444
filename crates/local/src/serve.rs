//! The listener: TLS on loopback, HTTP/1.1 and HTTP/2, a name for whoever asks, and an end that is clean.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use kruise_apiserver::ApiServer;
use kruise_apiserver::admission::User;
use kruise_apiserver::body::ApiBody;
use kruise_apiserver::connect::is_connection;
use kruise_apiserver::status::Status;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::certificates::Certificates;
use crate::connections;
use crate::identity::{AnyCertificate, Known};

/// How long a client may take for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long open connections may take to end.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long to rest when the system has no more sockets to give.
const NO_SOCKETS: Duration = Duration::from_millis(100);
/// Most requests at once on one connection.
const MOST_STREAMS: u32 = 1000;

/// How the server speaks TLS.
pub fn tls(
    certificates: &Certificates,
    provider: Arc<CryptoProvider>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(AnyCertificate(provider)))
        .with_single_cert(vec![certificates.server.clone()], certificates.server_key.clone_key())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// What every connection needs.
#[derive(Clone)]
struct Shared {
    server: ApiServer,
    known: Arc<Known>,
    tls: TlsAcceptor,
    stop: Stop,
}

/// Becomes true once, when everything is to end.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A signal and the way to give it.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits for the signal. Nobody left to give it is one too.
    pub async fn given(mut self) {
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

/// Serves until `stop` is given and then ends what is open.
pub async fn serve(listener: TcpListener, tls: ServerConfig, known: Known, server: ApiServer, stop: Stop) {
    let shared = Shared { server, known: Arc::new(known), tls: Arc::new(tls).into(), stop: stop.clone() };
    let mut connections = JoinSet::new();
    let mut stopped = pin!(stop.given());
    loop {
        tokio::select! {
            () = &mut stopped => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(shared.clone(), stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(NO_SOCKETS).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection ended badly");
                }
            }
        }
    }
    drop(listener);
    // Connections have heard the signal too; what does not end in time is cut.
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, all).await.is_err() {
        tracing::debug!(open = connections.len(), "cutting connections");
        connections.shutdown().await;
    }
}

async fn connection(shared: Shared, stream: TcpStream) {
    // Answers are small, and a client waits for each.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, shared.tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a handshake failed"),
        Err(_) => return tracing::debug!("a handshake took too long"),
    };
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let certified = Arc::new(shared.known.certified(shown));
    let stop = shared.stop.clone();
    let (leaves, mut left) = mpsc::channel(1);
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, certified, leaves) = (shared.clone(), certified.clone(), leaves.clone());
        async move {
            let certified = certified.as_ref().as_ref();
            Ok::<_, Infallible>(answer(shared, certified, request, &leaves).await)
        }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MOST_STREAMS);
    let mut served = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let outcome = tokio::select! {
        outcome = served.as_mut() => outcome,
        () = stop.clone().given() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = outcome {
        return tracing::debug!(error, "a connection ended early");
    }
    // HTTP is over; what else was agreed on begins.
    if let Ok(carry) = left.try_recv() {
        tokio::select! {
            () = carry => {}
            () = stop.given() => {}
        }
    }
}

async fn answer(
    shared: Shared,
    certified: Option<&User>,
    mut request: Request<Incoming>,
    leaves: &mpsc::Sender<BoxFuture<'static, ()>>,
) -> Response<ApiBody> {
    let Some(user) = shared.known.user(certified, request.headers(), &shared.server) else {
        return connections::refused(&Status::unauthorized());
    };
    request.extensions_mut().insert(user);
    let (method, uri) = (request.method().clone(), request.uri().clone());
    if is_connection(uri.path()) && connections::wants_upgrade(request.headers()) {
        let (response, carry) = connections::open(&shared.server, request).await;
        tracing::debug!(%method, %uri, code = response.status().as_u16(), "answered");
        if let Some(carry) = carry {
            // There is room: a connection leaves HTTP once.
            let _ = leaves.try_send(carry);
        }
        return response;
    }
    let Ok(response) = shared.server.oneshot(request).await;
    tracing::debug!(%method, %uri, code = response.status().as_u16(), "answered");
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    // A watch has no end of its own; it ends with the server.
    response.map(|body| {
        let pieces = body.into_data_stream().map(|piece| -> Bytes {
            let Ok(bytes) = piece;
            bytes
        });
        ApiBody::stream(pieces.take_until(shared.stop.given()).boxed())
    })
}
