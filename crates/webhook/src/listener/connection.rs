//! One connection, from its handshake to its end.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::{Answers, Limits};

pub(super) struct Connection<S> {
    pub(super) stream: TcpStream,
    pub(super) tls: TlsAcceptor,
    pub(super) service: S,
    pub(super) limits: Limits,
    pub(super) ending: watch::Receiver<bool>,
}

impl<S: Answers> Connection<S> {
    pub(super) async fn serve(self) {
        let Self { stream, tls, service, limits, mut ending } = self;
        // Answers are small, and a server waits for each.
        let _ = stream.set_nodelay(true);
        let handshake = tokio::time::timeout(limits.handshake, tls.accept(stream));
        let stream = tokio::select! {
            () = over(&mut ending) => return,
            shaken = handshake => match shaken {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return tracing::debug!(%error, "a handshake failed"),
                Err(_) => return tracing::debug!("a handshake took too long"),
            },
        };
        let activity = Activity::default();
        let answers = {
            let activity = activity.clone();
            service_fn(move |request: Request<Incoming>| {
                let (service, busy) = (service.clone(), activity.begin());
                async move {
                    let answer = service.oneshot(request).await;
                    drop(busy);
                    Ok::<_, Infallible>(match answer {
                        Ok(answer) => answer,
                        Err(never) => match never {},
                    })
                }
            })
        };
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.idle);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(limits.streams);
        let mut served = pin!(builder.serve_connection(TokioIo::new(stream), answers));
        let outcome = tokio::select! {
            outcome = served.as_mut() => outcome,
            () = over(&mut ending) => {
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

/// Waits until everything ends. Nobody left to say so means the same.
async fn over(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
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
