//! What a client wrote: the proof that a converged controller is silent and that a rollout costs what it must.

use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use http::{Method, Request};
use tower::{Layer, Service};

/// One request that may have changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
}

/// The writes of every client that was built with this layer.
#[derive(Clone, Debug, Default)]
pub struct Writes {
    log: Arc<Mutex<Vec<Write>>>,
}

impl Writes {
    /// All writes so far, oldest first.
    pub fn all(&self) -> Vec<Write> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All writes since the last call.
    pub fn take(&self) -> Vec<Write> {
        std::mem::take(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn record<B>(&self, request: &Request<B>) {
        if request.method() == Method::GET || request.method() == Method::HEAD {
            return;
        }
        let write = Write { method: request.method().clone(), path: request.uri().path().to_owned() };
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(write);
    }
}

impl<S> Layer<S> for Writes {
    type Service = Recorded<S>;

    fn layer(&self, inner: S) -> Recorded<S> {
        Recorded { inner, writes: self.clone() }
    }
}

/// A service whose writes are recorded.
#[derive(Clone, Debug)]
pub struct Recorded<S> {
    inner: S,
    writes: Writes,
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Recorded<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        self.writes.record(&request);
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test]
    async fn only_requests_that_may_change_something_are_recorded() {
        let writes = Writes::default();
        let service = writes.layer(service_fn(async |_: Request<()>| Ok::<_, Infallible>(())));
        for (method, uri) in
            [("GET", "/api/v1/pods"), ("PATCH", "/api/v1/pods/a?force=true"), ("DELETE", "/b")]
        {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            service.clone().oneshot(request).await.unwrap();
        }
        let seen: Vec<String> =
            writes.take().iter().map(|write| format!("{} {}", write.method, write.path)).collect();
        assert_eq!(seen, ["PATCH /api/v1/pods/a", "DELETE /b"]);
        assert!(writes.all().is_empty());
    }
}
