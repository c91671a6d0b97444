//! Plain HTTP for machines that watch over a program: health, readiness, metrics.
//!
//! Anyone in the cluster can reach these ports, and a kubelet that gets no answer restarts the program. So everything is
//! bounded: the number of connections (a new one always gets in, the idlest is closed for it), the head of a request, the
//! body of a request (none is read), an answer, and the time in which a client must take it. Each address has bounds of
//! its own, so health never waits behind metrics.

pub mod health;
pub mod numbers;
pub mod process;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kruise_sockets::{
    paced::Paced,
    places::{Places, Visitor},
};
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{sleep, timeout},
};

/// Enough for every prober and scraper of a cluster, and a bound for everyone else.
const MOST_CONNECTIONS: usize = 64;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may take: probers give up much earlier.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to read the next part of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest head of a request, and how much of an answer waits for the client beside the answer itself.
const BUFFER: usize = 16 << 10;

/// What is answered to a GET: the path and the query come in.
pub type Handler = Arc<dyn Fn(String, String) -> BoxFuture<'static, Answer> + Send + Sync>;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// A text with a status.
    pub fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: Bytes::from(body.into()) }
    }

    /// Numbers in the text format of Prometheus.
    pub fn metrics(body: Bytes) -> Self {
        Self { status: StatusCode::OK, content_type: "text/plain; version=0.0.4; charset=utf-8", body }
    }

    /// What is said about a path that nobody serves.
    pub fn not_found() -> Self {
        Self::text(StatusCode::NOT_FOUND, "404 page not found\n")
    }
}

/// Binds an address as flags write it: `:8080` is that port on all addresses. `0` and nothing mean: do not listen.
pub async fn bind(address: &str) -> io::Result<Option<TcpListener>> {
    if address.is_empty() || address == "0" {
        return Ok(None);
    }
    let Some(port) = address.strip_prefix(':') else {
        return TcpListener::bind(address).await.map(Some);
    };
    let port: u16 = port.parse().map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{address:?} is no address; write it like :8080 or 127.0.0.1:8080"),
        )
    })?;
    // One socket for both families where the machine has IPv6, as Go does it.
    match TcpListener::bind(SocketAddr::from(([0_u16; 8], port))).await {
        Ok(listener) => Ok(Some(listener)),
        Err(_) => TcpListener::bind(SocketAddr::from(([0_u8; 4], port))).await.map(Some),
    }
}

/// Answers until `stop`, then cuts off who is still there.
pub async fn serve(listener: TcpListener, handler: Handler, stop: impl Future<Output = ()>) {
    let places = Places::new(MOST_CONNECTIONS);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
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
        let place = tokio::select! {
            () = &mut stop => break,
            place = places.take() => place,
        };
        let handler = handler.clone();
        connections.spawn(async move {
            let visitor = place.visitor();
            let service = service_fn(move |request| answer(handler.clone(), visitor.clone(), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                // One request each: who sends many at once and reads nothing would keep us at work.
                .keep_alive(false)
                .max_buf_size(BUFFER)
                .serve_connection(TokioIo::new(Paced::new(stream, WRITE_TIMEOUT)), service);
            tokio::select! {
                // A client that goes away is its own business.
                _ = connection => {}
                () = place.is_needed() => {}
            }
        });
    }
    connections.abort_all();
    while connections.join_next().await.is_some() {}
}

async fn answer(
    handler: Handler,
    visitor: Visitor,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let began = visitor.begin();
    let answer = if request.method() == Method::GET || request.method() == Method::HEAD {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let late = Answer::text(StatusCode::GATEWAY_TIMEOUT, "the answer took too long\n");
        timeout(ANSWER_TIMEOUT, handler(path, query)).await.unwrap_or(late)
    } else {
        Answer::text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n")
    };
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = answer.status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(answer.content_type));
    began.answered();
    Ok(response)
}
