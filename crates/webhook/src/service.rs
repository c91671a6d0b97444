//! The web service behind the socket: finds the handler of a path and keeps every request within bounds.
//!
//! Nothing that a request holds ends the process or the requests after it. A body is bounded, so is the number of
//! requests at once and the memory that they take, which is counted as bytes arrive; a request waits for its turn and for
//! its answer only so long. Admission and conversion have separate bounds, and unknown paths are answered without reading
//! a body. A handler that panics costs its own request an answer with code 500.
//!
//! A refusal that is about the object is an `AdmissionReview` that says no. A failure that is about us (too busy, too
//! late) is an HTTP error instead, because then the failure policy of the webhook decides.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use kruise_core::admission::Answer;
//! use kruise_webhook::service::Webhooks;
//! use tower::ServiceExt as _;
//!
//! let webhooks = Webhooks::builder()
//!     .admission("/validate-nothing", |_request| async { Answer::allowed() })
//!     .build();
//! let request = http::Request::get("/healthz").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
//! assert_eq!(webhooks.oneshot(request).await.unwrap().status(), 200);
//! # });
//! ```

mod answer;
mod bounds;
mod memory;
mod reply;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kruise_core::admission;
use serde_json::Value;
use tokio::sync::Semaphore;

pub use bounds::Limits;
use memory::Memory;
pub use reply::{Gone, Reply};

/// The path of conversion, for all kinds.
pub const CONVERT: &str = "/convert";
/// The path that only says that we are here.
pub const HEALTH: &str = "/healthz";

/// In the extensions of a request: its client has shown a certificate that we trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified;

/// The code under which a request counts whose client did not wait.
const GONE: u16 = 499;

/// Answers what a server asks before it stores an object.
pub type Admit = Arc<dyn Fn(admission::Request) -> BoxFuture<'static, admission::Answer> + Send + Sync>;
/// Writes one object in the wanted version.
pub type Convert = Arc<dyn Fn(Value, &str) -> Result<Value, String> + Send + Sync>;

/// Who counts. `webhook` is the path of a handler, so there are only as many as there are handlers.
pub trait Metrics: Send + Sync {
    /// A request arrived.
    fn began(&self, webhook: &str) {
        let _ = webhook;
    }
    /// It was answered with this HTTP code.
    fn ended(&self, webhook: &str, code: u16, took: Duration) {
        let _ = (webhook, code, took);
    }
    /// A handler of admission panicked.
    fn admission_panicked(&self) {}
    /// A conversion panicked.
    fn conversion_panicked(&self) {}
}

/// Counts nothing.
impl Metrics for () {}

/// All webhooks, as a tower service. Clones share everything.
#[derive(Clone)]
pub struct Webhooks(Arc<Inner>);

struct Inner {
    routes: BTreeMap<String, Route>,
    admissions: Class,
    conversions: Class,
    limits: Limits,
    only_verified: bool,
    metrics: Arc<dyn Metrics>,
}

/// What the requests of one kind share.
struct Class {
    memory: Memory,
    turns: Semaphore,
}

impl Class {
    fn new(memory: u64, turns: usize, limits: &Limits) -> Self {
        Self { memory: Memory::new(memory, limits.grace), turns: Semaphore::new(turns) }
    }
}

#[derive(Clone)]
enum Route {
    Admission(Admit),
    Conversion(Convert),
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Webhooks").field("paths", &self.0.routes.keys()).finish_non_exhaustive()
    }
}

/// Collects handlers.
pub struct Builder {
    routes: BTreeMap<String, Route>,
    limits: Limits,
    only_verified: bool,
    metrics: Arc<dyn Metrics>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Builder").field("paths", &self.routes.keys()).finish_non_exhaustive()
    }
}

impl Builder {
    /// Answers admission at a path.
    #[must_use]
    pub fn admission<F, A>(self, path: &str, handler: F) -> Self
    where
        F: Fn(admission::Request) -> A + Send + Sync + 'static,
        A: Future<Output = admission::Answer> + Send + 'static,
    {
        self.admit(path, Arc::new(move |request| handler(request).boxed()))
    }

    /// Answers admission at a path with a handler that may serve other paths too.
    #[must_use]
    pub fn admit(mut self, path: &str, handler: Admit) -> Self {
        self.routes.insert(path.to_owned(), Route::Admission(handler));
        self
    }

    /// Answers conversion at [`CONVERT`].
    #[must_use]
    pub fn conversion<F>(mut self, handler: F) -> Self
    where
        F: Fn(Value, &str) -> Result<Value, String> + Send + Sync + 'static,
    {
        self.routes.insert(CONVERT.to_owned(), Route::Conversion(Arc::new(handler)));
        self
    }

    /// Sets the bounds.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Answers admission only to clients that are [`Verified`]. API servers have no certificate to show for conversion, so
    /// that is answered to everyone.
    #[must_use]
    pub fn only_verified(mut self, only: bool) -> Self {
        self.only_verified = only;
        self
    }

    /// Sets who counts.
    #[must_use]
    pub fn metrics(mut self, metrics: Arc<dyn Metrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// The service.
    pub fn build(self) -> Webhooks {
        let Self { routes, limits, only_verified, metrics } = self;
        let admissions = Class::new(limits.admission_memory, limits.requests, &limits);
        let conversions = Class::new(limits.conversion_memory, limits.conversions, &limits);
        Webhooks(Arc::new(Inner { routes, admissions, conversions, limits, only_verified, metrics }))
    }
}

impl Webhooks {
    /// Begins with no handlers.
    pub fn builder() -> Builder {
        Builder {
            routes: BTreeMap::new(),
            limits: Limits::default(),
            only_verified: false,
            metrics: Arc::new(()),
        }
    }

    /// The paths that have a handler.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.routes.keys().map(String::as_str)
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Reply>
    where
        B: http_body::Body + Send,
        B::Data: Send,
        B::Error: fmt::Display,
    {
        let path = request.uri().path();
        if path == HEALTH {
            return answer::text(StatusCode::OK, "");
        }
        let Some((path, route)) = self.0.routes.get_key_value(path) else {
            return answer::text(StatusCode::NOT_FOUND, "404 page not found");
        };
        let began = tokio::time::Instant::now();
        self.0.metrics.began(path);
        // The client may hang up, and then this future ends here without an answer.
        let mut ended = Ended { inner: &self.0, path, began, code: GONE };
        let response = answer::within(&self.0, path, route, request).await;
        ended.code = response.status().as_u16();
        response
    }
}

/// Tells the metrics how a request ended, also when nobody waited for it.
struct Ended<'a> {
    inner: &'a Inner,
    path: &'a str,
    began: tokio::time::Instant,
    code: u16,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.inner.metrics.ended(self.path, self.code, self.began.elapsed());
    }
}

impl<B> tower::Service<Request<B>> for Webhooks
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: fmt::Display,
{
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let webhooks = self.clone();
        async move { Ok(webhooks.answer(request).await) }.boxed()
    }
}
