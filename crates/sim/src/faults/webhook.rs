//! Webhooks that are slow or do not answer at all.

use std::fmt::Display;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tower::{Service, ServiceExt as _};

use super::{Broken, Faults};

/// What happens to the calls of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// It answers after this long.
    Slow(Duration),
    /// Its port is closed.
    Refused,
    /// It takes the call and never answers.
    Silent,
}

impl Faults {
    /// To be called before each call of a webhook at `host`: waits, or fails, or never returns.
    pub async fn at_webhook(&self, host: &str) -> Result<(), Broken> {
        let fault = self.state().webhooks.get(host).copied();
        match fault {
            None => Ok(()),
            Some(Webhook::Slow(time)) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Some(Webhook::Refused) => Err(Broken::Refused),
            Some(Webhook::Silent) => std::future::pending().await,
        }
    }
}

/// A webhook of this process behind its faults: register it with the server instead of the webhook itself.
#[derive(Clone, Debug)]
pub struct Door<S> {
    faults: Faults,
    host: String,
    service: S,
}

impl Faults {
    /// Puts the faults of `host` in front of a webhook.
    pub fn around_webhook<S>(&self, host: &str, service: S) -> Door<S> {
        Door { faults: self.clone(), host: host.to_owned(), service }
    }
}

impl<S, R> Service<R> for Door<S>
where
    S: Service<R> + Clone + Send + 'static,
    S::Error: Display,
    S::Future: Send,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = String;
    type Future = BoxFuture<'static, Result<S::Response, String>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let Self { faults, host, service } = self.clone();
        Box::pin(async move {
            faults.at_webhook(&host).await.map_err(|broken| broken.to_string())?;
            service.oneshot(request).await.map_err(|error| error.to_string())
        })
    }
}
