//! One connection, from its handshake to its end.

use std::convert::Infallible;
use std::pin::pin;

use http::{HeaderValue, Request, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use kruise_sockets::paced::Paced;
use kruise_sockets::places::Visitor;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::{Answers, Limits, Phase};
use crate::service::Verified;

/// The largest head of a request, and how much of a body waits to be read.
const BUFFER: usize = 64 << 10;
/// How much of the bodies of all requests of a connection waits to be read, with HTTP/2.
const WINDOW: u32 = 256 << 10;

pub(super) struct Connection<S> {
    pub(super) stream: TcpStream,
    pub(super) tls: TlsAcceptor,
    pub(super) service: S,
    pub(super) limits: Limits,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) visitor: Visitor,
}

impl<S: Answers> Connection<S> {
    pub(super) async fn serve(self) {
        let Self { stream, tls, service, limits, mut phase, visitor } = self;
        // Answers are small, and a server waits for each.
        let _ = stream.set_nodelay(true);
        let stream = Paced::new(stream, limits.write);
        let handshake = tokio::time::timeout(limits.handshake, tls.accept(stream));
        let stream = tokio::select! {
            () = reached(&mut phase, Phase::Ending) => return,
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return tracing::debug!(%error, "a handshake failed"),
                Err(_) => return tracing::debug!("a handshake took too long"),
            },
        };
        // Clients of the second version are told at once and lose nothing by it. Those of the first might be sending.
        let is_second = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        // Whoever shows a certificate of somebody else does not get here.
        let is_verified = stream.get_ref().1.peer_certificates().is_some();
        if is_verified {
            visitor.trust();
        }
        let answers = {
            let (visitor, phase) = (visitor.clone(), phase.clone());
            service_fn(move |mut request: Request<Incoming>| {
                let (service, busy, phase) = (service.clone(), visitor.begin(), phase.clone());
                request.extensions_mut().insert(visitor.clone());
                if is_verified {
                    request.extensions_mut().insert(Verified);
                }
                async move {
                    let version = request.version();
                    let answer = service.oneshot(request).await;
                    busy.answered();
                    drop(busy);
                    let mut answer = match answer {
                        Ok(answer) => answer,
                        Err(never) => match never {},
                    };
                    // The second version of HTTP says this by itself.
                    if version < Version::HTTP_2 && *phase.borrow() > Phase::Serving {
                        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                    }
                    Ok::<_, Infallible>(answer)
                }
            })
        };
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.idle).max_buf_size(BUFFER);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .initial_stream_window_size(BUFFER as u32)
            .initial_connection_window_size(WINDOW);
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), answers));
        let outcome = tokio::select! {
            outcome = served.as_mut() => outcome,
            () = reached(&mut phase, if is_second { Phase::Lingering } else { Phase::Ending }) => {
                served.as_mut().graceful_shutdown();
                served.await
            }
            () = visitor.is_idle(limits.idle) => {
                served.as_mut().graceful_shutdown();
                // Whoever says nothing for so long may not say goodbye either.
                match tokio::time::timeout(limits.handshake, served).await {
                    Ok(outcome) => outcome,
                    Err(_) => return tracing::debug!("cut an idle connection"),
                }
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(error, "a connection ended early");
        }
    }
}

/// Waits for a phase. Nobody left to tell of it means the end.
async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    let _ = phase.wait_for(|phase| *phase >= wanted).await;
}
