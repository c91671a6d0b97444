//! The way to a webhook: who answers for an address, and what goes wrong on the way, in the words of a Go client.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tower::{Service, ServiceExt as _};

use super::base64;
use crate::clock::Clock;
use crate::field::quote;
use crate::random::Random;
use crate::store::Store;

/// Where a webhook listens: a `clientConfig`, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The URL, without a query.
    pub url: String,
    /// Namespace and name of the Service, when one is named instead of a URL.
    pub service: Option<(String, String)>,
    /// The certificates to trust, as PEM; empty for those of the system.
    pub ca_bundle: Vec<u8>,
}

impl Address {
    /// Reads a `clientConfig`. `None` when it names neither a URL nor a Service.
    pub fn parse(config: &Value) -> Option<Self> {
        let bundle = config.get("caBundle").and_then(Value::as_str).unwrap_or_default();
        let ca_bundle = base64::decode(bundle).unwrap_or_default();
        if let Some(url) = config.get("url").and_then(Value::as_str) {
            return Some(Self { url: url.to_owned(), service: None, ca_bundle });
        }
        let service = config.get("service").filter(|service| !service.is_null())?;
        let text = |key: &str| service.get(key).and_then(Value::as_str).unwrap_or_default();
        let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
        let path = text("path").trim_start_matches('/');
        let (namespace, name) = (text("namespace").to_owned(), text("name").to_owned());
        let url = format!("https://{name}.{namespace}.svc:{port}/{path}");
        Some(Self { url, service: Some((namespace, name)), ca_bundle })
    }

    /// `host:port`, or `host` alone where the URL has no port.
    pub fn authority(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }
}

/// Something that carries a request to a webhook.
pub trait Caller: Send + Sync {
    /// Sends the request. The error is what a client would say after `Post "URL": `.
    fn call(
        &self,
        address: &Address,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, String>>;
}

/// A tower service in this process, as a [`Caller`].
pub(super) struct InProcess<S>(pub(super) Mutex<S>);

impl<S, B> Caller for InProcess<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Display,
    S::Future: Send,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Display,
{
    fn call(
        &self,
        _address: &Address,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, String>> {
        let service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            let response = service.oneshot(request).await.map_err(|error| error.to_string())?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| error.to_string())?;
            Ok(Response::from_parts(head, body.to_bytes()))
        })
    }
}

/// Finds who answers for an address and posts reviews there.
pub struct Dispatcher {
    endpoints: RwLock<BTreeMap<String, Arc<dyn Caller>>>,
    network: RwLock<Option<Arc<dyn Caller>>>,
    /// Not the server's generator: webhooks that come and go must not change the uids of objects.
    random: Mutex<Random>,
    clock: Clock,
    store: Arc<Store>,
}

impl Dispatcher {
    pub(crate) fn new(store: Arc<Store>, clock: Clock, seed: u64) -> Self {
        Self {
            endpoints: RwLock::default(),
            network: RwLock::default(),
            random: Mutex::new(Random::seeded(seed ^ 0x0077_6562_686f_6f6b)),
            clock,
            store,
        }
    }

    pub(super) fn register(&self, host: String, endpoint: Arc<dyn Caller>) {
        self.endpoints.write().unwrap_or_else(PoisonError::into_inner).insert(host, endpoint);
    }

    pub(super) fn unregister(&self, host: &str) {
        self.endpoints.write().unwrap_or_else(PoisonError::into_inner).remove(host);
    }

    pub(super) fn set_network(&self, network: Arc<dyn Caller>) {
        *self.network.write().unwrap_or_else(PoisonError::into_inner) = Some(network);
    }

    /// A uid for a review.
    pub(crate) fn uid(&self) -> String {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).uid()
    }

    fn find(&self, address: &Address) -> Result<Arc<dyn Caller>, String> {
        let endpoints = self.endpoints.read().unwrap_or_else(PoisonError::into_inner);
        let authority = address.authority();
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        if let Some(endpoint) = endpoints.get(authority).or_else(|| endpoints.get(host)) {
            return Ok(endpoint.clone());
        }
        drop(endpoints);
        if let Some(network) = &*self.network.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(network.clone());
        }
        Err(match &address.service {
            Some((namespace, name)) if self.store.get("/services", namespace, name).is_none() => {
                format!("service {} not found", quote(name))
            }
            Some((_, name)) => format!("no endpoints available for service {}", quote(name)),
            None => format!("dial tcp {authority}: connect: connection refused"),
        })
    }

    /// Posts a review and reads the answer.
    pub(crate) async fn post(
        &self,
        address: &Address,
        timeout: Duration,
        review: &Value,
    ) -> Result<Value, String> {
        let url = format!("{}?timeout={}s", address.url, timeout.as_secs());
        let failed = |why: &str| format!("Post {}: {why}", quote(&url));
        let request = Request::post(&url)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::ACCEPT, "application/json, */*")
            .body(Full::new(Bytes::from(review.to_string())))
            .map_err(|error| failed(&error.to_string()))?;
        let endpoint = self.find(address).map_err(|why| failed(&why))?;
        let call = endpoint.call(address, request);
        let response = tokio::time::timeout(self.clock.real(timeout), call)
            .await
            .map_err(|_| failed("context deadline exceeded"))?
            .map_err(|why| failed(&why))?;
        let code = response.status().as_u16();
        if !response.status().is_success() {
            return Err(refusal(code, response.body()));
        }
        serde_json::from_slice(response.body())
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
    }
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}

/// What a client says about an answer that is no success and no `Status`.
fn refusal(code: u16, body: &[u8]) -> String {
    if let Ok(status) = serde_json::from_slice::<Value>(body)
        && status.get("kind").and_then(Value::as_str) == Some("Status")
        && let Some(message) = status.get("message").and_then(Value::as_str)
    {
        return message.to_owned();
    }
    let text = String::from_utf8_lossy(body);
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => text.trim().to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the \
                request"
            .to_owned(),
        500.. => format!(
            "an error on the server ({}) has prevented the request from succeeding",
            quote(text.trim())
        ),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_config_becomes_an_address() {
        let service = json!({"service": {"namespace": "n", "name": "s", "path": "/a/b"}, "caBundle": "YQ=="});
        let address = Address::parse(&service).unwrap();
        assert_eq!(address.url, "https://s.n.svc:443/a/b");
        assert_eq!(address.authority(), "s.n.svc:443");
        assert_eq!(address.ca_bundle, b"a");
        let url = Address::parse(&json!({"url": "https://127.0.0.1:9443/x"})).unwrap();
        assert_eq!(url.authority(), "127.0.0.1:9443");
        assert_eq!(Address::parse(&json!({})), None);
    }

    #[test]
    fn refusals_read_as_a_go_client_writes_them() {
        assert_eq!(
            refusal(500, b"boom\n"),
            "an error on the server (\"boom\") has prevented the request from succeeding"
        );
        assert_eq!(refusal(404, b"404 page not found"), "the server could not find the requested resource");
        assert_eq!(refusal(409, br#"{"kind":"Status","message":"no"}"#), "no");
    }
}
