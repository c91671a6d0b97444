//! A server, a client, and webhooks that are closures.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kruise_apiserver::ApiServer;
use kruise_apiserver::admission::User;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) client: kube::Client,
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Reply {
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.code < 300, "{}: {}", self.code, self.body);
        self.body
    }

    /// Code and message of a refusal.
    #[track_caller]
    pub(crate) fn refused(&self) -> (u16, &str) {
        assert!(self.code >= 400, "{}: {}", self.code, self.body);
        (self.code, self.body["message"].as_str().unwrap_or_default())
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let server = ApiServer::builder().seed(7).build();
        let client = kube::Client::new(server.clone(), "default");
        Self { server, client }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, body).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.send("PATCH", path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &Value::Null).await
    }

    /// Watches until the watch ends. Returns what kinds of events came.
    pub(crate) async fn events(&self, path: &str) -> Vec<String> {
        let request = Request::get(path).body(kube::client::Body::empty()).unwrap();
        let body = self.client.send(request).await.unwrap().into_body();
        let bytes = body.collect().await.unwrap().to_bytes();
        serde_json::Deserializer::from_slice(&bytes)
            .into_iter::<Value>()
            .map(|event| event.unwrap()["type"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send_accepting(method, path, body, "application/json").await
    }

    pub(crate) async fn send_accepting(&self, method: &str, path: &str, body: &Value, accept: &str) -> Reply {
        let content_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", accept)
            .body(kube::client::Body::from(bytes))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Reply { code, warnings, body: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    /// A patch in somebody's name.
    pub(crate) async fn patch_as(&self, user: &User, path: &str, body: &Value) -> Reply {
        let mut request = Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        request.extensions_mut().insert(user.clone());
        let response = self.server.clone().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Reply { code, warnings: Vec::new(), body: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    /// Creates a definition with one or more versions.
    pub(crate) async fn define(&self, definition: &Value) -> Reply {
        self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await
    }

    /// Serves webhooks at the Service `hooks` of `default`. `answer` gets the path and the request of a review and
    /// returns the response without its uid.
    pub(crate) fn serve<F, A>(&self, answer: F)
    where
        F: Fn(String, Value) -> A + Clone + Send + 'static,
        A: Future<Output = Value> + Send,
    {
        self.serve_at("default", "hooks", answer);
    }

    pub(crate) fn serve_at<F, A>(&self, namespace: &str, name: &str, answer: F)
    where
        F: Fn(String, Value) -> A + Clone + Send + 'static,
        A: Future<Output = Value> + Send,
    {
        let service = tower::service_fn(move |request: Request<Full<Bytes>>| {
            let answer = answer.clone();
            async move {
                let path = request.uri().path().to_owned();
                let bytes = request.into_body().collect().await.unwrap().to_bytes();
                let mut review: Value = serde_json::from_slice(&bytes).unwrap();
                let asked = review["request"].take();
                let uid = asked["uid"].clone();
                let mut response = answer(path, asked).await;
                if response.get("uid").is_none() {
                    response["uid"] = uid;
                }
                let body = json!({
                    "kind": review["kind"], "apiVersion": review["apiVersion"], "response": response,
                });
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body.to_string()))))
            }
        });
        self.server.register_webhook_service(namespace, name, service);
    }
}

/// What was seen, in order.
#[derive(Clone, Default)]
pub(crate) struct Seen<T>(Arc<Mutex<Vec<T>>>);

impl<T> Seen<T> {
    pub(crate) fn add(&self, item: T) {
        self.0.lock().unwrap().push(item);
    }

    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A definition of `Widget` in `example.com`: one version with the given schema of `spec`, status and scale.
pub(crate) fn widgets(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wg"], "categories": ["all"]},
            "versions": [version("v1", true, spec)],
        },
    })
}

pub(crate) fn version(name: &str, storage: bool, spec: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [{"name": "Size", "type": "string", "jsonPath": ".spec.size"}],
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": spec,
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        }},
    })
}

pub(crate) fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// Where widgets live.
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
/// Where the definition of widgets lives.
pub(crate) const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";

/// The conditions as `type=status reason: message`.
pub(crate) fn conditions(object: &Value) -> Vec<String> {
    let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|c| {
            let text = |key: &str| c[key].as_str().unwrap_or_default().to_owned();
            format!("{}={} {}: {}", text("type"), text("status"), text("reason"), text("message"))
        })
        .collect()
}
