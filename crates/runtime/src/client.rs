//! A way to the cluster of somebody's own: with a name, a rate, a patience, and counted.
//!
//! The coat goes around any client, also one inside of this process. Calls are never repeated here: that is up to the
//! queue, which knows what else waits.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header::USER_AGENT};
use kube::client::Body;
use tokio::time::Instant;
use tower::Service;

use crate::{metrics::Framework, queue::Bucket, scope::BoxError};

/// A call that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer from the API server within {0:?}")]
pub struct TimedOut(pub Duration);

/// What the coat does.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name that the server sees, such as `kruise-manager/cloneset-controller`.
    pub user_agent: String,
    /// The host in the metrics.
    pub host: String,
    /// Calls per second and at once, of all kinds; no limit unless given.
    pub rate: Option<(f64, u32)>,
    /// How long to wait for an answer to begin.
    pub timeout: Duration,
    /// Where calls are counted.
    pub metrics: Framework,
}

/// The same way to the cluster in this coat.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), kube::Error> {
/// use kruise_runtime::{client, metrics::{Framework, Registry}};
///
/// let sim = kruise_sim::Sim::builder().start();
/// let registry = Registry::default();
/// let client = client::dressed(sim.client(), client::Options {
///     user_agent: "kruise-manager/example".to_owned(),
///     host: "in-process".to_owned(),
///     rate: None,
///     timeout: std::time::Duration::from_secs(30),
///     metrics: Framework::new(&registry),
/// });
/// client.apiserver_version().await?;
/// assert!(registry.text().contains(r#"rest_client_requests_total{code="200",host="in-process",method="GET"} 1"#));
/// # Ok(())
/// # }
/// ```
pub fn dressed(client: kube::Client, options: Options) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let bucket = options.rate.map(|(qps, burst)| Arc::new(Mutex::new(Bucket::new(qps, burst))));
    let agent = HeaderValue::from_str(&options.user_agent).ok();
    kube::Client::new(Coat { client, agent, bucket, options: Arc::new(options) }, namespace)
}

#[derive(Clone)]
struct Coat {
    client: kube::Client,
    agent: Option<HeaderValue>,
    bucket: Option<Arc<Mutex<Bucket>>>,
    options: Arc<Options>,
}

impl fmt::Debug for Coat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Coat").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for Coat {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Self { client, agent, bucket, options } = self.clone();
        Box::pin(async move {
            if let Some(agent) = agent {
                request.headers_mut().insert(USER_AGENT, agent);
            }
            let wait = bucket
                .map(|bucket| bucket.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now()));
            if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
                tokio::time::sleep(wait).await;
            }
            let method = request.method().clone();
            let answered = tokio::time::timeout(options.timeout, client.send(request)).await;
            let code = match &answered {
                Ok(Ok(response)) => response.status().as_str().to_owned(),
                Ok(Err(_)) | Err(_) => "<error>".to_owned(),
            };
            options.metrics.client_requests.inc(&[&code, &options.host, method.as_str()]);
            match answered {
                Ok(answer) => answer.map_err(BoxError::from),
                Err(_) => Err(TimedOut(options.timeout).into()),
            }
        })
    }
}
