//! Plain HTTP for machines that watch over the daemon: health and metrics.

mod process;

use std::{convert::Infallible, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kruise_runtime::metrics::Registry;
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet, time::sleep};

/// Enough for the kubelet and every scraper, and a bound for everyone else.
const MOST_CONNECTIONS: usize = 32;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A question whose answer must be yes for the daemon to be healthy.
pub type Check = (&'static str, Arc<dyn Fn() -> bool + Send + Sync>);

/// What is served on an address.
#[derive(Clone)]
pub enum Pages {
    /// `/healthz` and `/metrics`.
    Daemon {
        /// What must hold.
        checks: Vec<Check>,
        /// The numbers.
        registry: Registry,
    },
    /// Where people look for profiles.
    Profiles,
}

impl Pages {
    /// The page at a path.
    pub fn at(&self, path: &str) -> (StatusCode, String) {
        match (self, path) {
            (Self::Daemon { checks, .. }, "/healthz") => match checks.iter().find(|(_, holds)| !holds()) {
                None => (StatusCode::OK, "ok".to_owned()),
                Some((name, _)) => {
                    (StatusCode::INTERNAL_SERVER_ERROR, format!("check {name} failed, err: not synced"))
                }
            },
            (Self::Daemon { registry, .. }, "/metrics") => {
                (StatusCode::OK, format!("{}{}", registry.text(), process::text()))
            }
            (Self::Daemon { .. }, _) => (StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
            (Self::Profiles, _) => {
                let text = "This program has no Go profiles. CPU and memory are in /metrics; `perf` shows the rest.\n";
                (StatusCode::NOT_FOUND, text.to_owned())
            }
        }
    }
}

/// Binds an address as flags write it: `:10221` is that port on all addresses.
pub async fn bind(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else { return TcpListener::bind(address).await };
    let port: u16 = port.parse().map_err(|_| {
        let problem = format!("{address:?} is no address; write it like :10221 or 127.0.0.1:10221");
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    })?;
    // One socket for both families where the machine has IPv6, as Go does it.
    match TcpListener::bind(SocketAddr::from(([0_u16; 8], port))).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(SocketAddr::from(([0_u8; 4], port))).await,
    }
}

/// Answers until `stop`, then cuts off who is still there.
pub async fn serve(listener: TcpListener, pages: Pages, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        while connections.try_join_next().is_some() {}
        let accepting = async {
            let place = places.clone().acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => break,
            accepted = accepting => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Mostly too many open files: it passes, and a tight loop would not help.
                tracing::warn!(%error, "failed to accept a connection");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let pages = pages.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| answer(pages.clone(), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away is its own business.
            let _ = connection.await;
            drop(place);
        });
    }
    connections.shutdown().await;
}

async fn answer(pages: Pages, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = pages.at(request.uri().path());
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
