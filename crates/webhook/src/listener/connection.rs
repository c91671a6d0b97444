//! One connection, from its handshake to its end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderValue, Request, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::{Answers, Limits, Phase};

pub(super) struct Connection<S> {
    pub(super) stream: TcpStream,
    pub(super) tls: TlsAcceptor,
    pub(super) service: S,
    pub(super) limits: Limits,
    pub(super) phase: watch::Receiver<Phase>,
}

impl<S: Answers> Connection<S> {
    pub(super) async fn serve(self) {
        let Self { stream, tls, service, limits, mut phase } = self;
        // Answers are small, and a server waits for each.
        let _ = stream.set_nodelay(true);
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
        let activity = Activity::default();
        let answers = {
            let (activity, phase) = (activity.clone(), phase.clone());
            service_fn(move |request: Request<Incoming>| {
                let (service, busy, phase) = (service.clone(), activity.begin(), phase.clone());
                async move {
                    let version = request.version();
                    let answer = service.oneshot(request).await;
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
        builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.idle);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(limits.streams);
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), answers));
        let outcome = tokio::select! {
            outcome = served.as_mut() => outcome,
            () = reached(&mut phase, if is_second { Phase::Lingering } else { Phase::Ending }) => {
                served.as_mut().graceful_shutdown();
                served.await
            }
            () = activity.rested(limits.idle) => {
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

/// Since when nothing happens on a connection.
#[derive(Clone)]
struct Activity(Arc<Mutex<State>>);

struct State {
    open: usize,
    last: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { open: 0, last: Instant::now() })))
    }
}

/// A request under way.
struct Busy(Activity);

impl Activity {
    fn change(&self, change: impl Fn(usize) -> usize) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { open: change(state.open), last: Instant::now() };
    }

    fn begin(&self) -> Busy {
        self.change(|open| open + 1);
        Busy(self.clone())
    }

    /// Waits until nothing happened for so long.
    async fn rested(&self, idle: Duration) {
        loop {
            let (open, until) = {
                let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                (state.open, state.last + idle)
            };
            if open == 0 && until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until.max(Instant::now() + Duration::from_millis(100))).await;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|open| open.saturating_sub(1));
    }
}
