//! A cluster as an installation leaves it, and replicas of the part of a manager that serves webhooks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use kruise_api::catalogue;
use kruise_apiserver::ApiServer;
use kruise_core::admission::Answer;
use kruise_manager::certificates::{Certificates, Error, Notes, Settings};
use kruise_runtime::clock::Clock;
use kruise_runtime::scope::Stop;
use kruise_webhook::certificates::registration::{Kind, Wanted};
use kruise_webhook::certificates::{Environment, Mode};
use kruise_webhook::listener::{self, Current};
use kruise_webhook::selfcheck::Check;
use kruise_webhook::service::Webhooks;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::network::Network;

pub(crate) const SECRET: &str = "/api/v1/namespaces/kruise-system/secrets/kruise-webhook-certs";

pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) network: Network,
    server: ApiServer,
}

/// A webhook for ConfigMaps: the kind that needs least around it.
fn webhook(name: &str, path: &str) -> Value {
    json!({
        "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        "clientConfig": { "service": { "namespace": "wrong", "name": "wrong", "path": path } },
        "namespaceSelector": { "matchExpressions": [
            { "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "kruise-system"] },
        ] },
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
        }],
    })
}

pub(crate) fn configuration(kind: Kind) -> Value {
    let webhooks = match kind {
        Kind::Mutating => vec![webhook("m.kb.io", "/mutate-configmap")],
        Kind::Validating => {
            vec![webhook("v.kb.io", "/validate-configmap"), webhook("closed.kb.io", "/validate-closed")]
        }
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind.kind(),
        "metadata": { "name": kind.name(), "annotations": { "template": "" } },
        "webhooks": webhooks,
    })
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let server = ApiServer::builder().build();
        let network = Network::default();
        server.set_webhook_caller(std::sync::Arc::new(network.clone()));
        let client = Client::new(server.clone(), "default");
        let cluster = Self { client, network, server };
        for namespace in ["kruise-system", "kube-system", "default"] {
            let object =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
            // Some are there from the start.
            let _ = cluster.send("POST", "/api/v1/namespaces", Some(object)).await;
        }
        for kind in Kind::ALL {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{}", kind.plural());
            cluster.send("POST", &path, Some(configuration(kind))).await.unwrap();
        }
        for crd in catalogue::CRDS {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            cluster.send("POST", path, Some(crd.object())).await.unwrap();
        }
        cluster
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, kube::Error> {
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request =
            http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        self.client.request(request.body(bytes).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        match self.send("GET", path, None).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.is_not_found() => None,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    pub(crate) async fn configuration(&self, kind: Kind) -> Value {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{}/{}", kind.plural(), kind.name());
        self.get(&path).await.unwrap()
    }

    pub(crate) async fn replace(&self, object: Value) {
        let kind = Kind::ALL.into_iter().find(|kind| object["kind"] == kind.kind()).unwrap();
        let path = format!("/apis/admissionregistration.k8s.io/v1/{}/{}", kind.plural(), kind.name());
        self.send("PUT", &path, Some(object)).await.unwrap();
    }

    pub(crate) async fn crd(&self, name: &str) -> Value {
        self.get(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")).await.unwrap()
    }

    /// A client that may not change the configuration of validating webhooks while this is set.
    pub(crate) fn without_permission(&self, refused: &Arc<AtomicBool>) -> Client {
        let (server, refused) = (self.server.clone(), refused.clone());
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (server, refused) = (server.clone(), refused.clone());
            async move {
                let is_change = request.method() == http::Method::PUT
                    && request.uri().path().contains("/validatingwebhookconfigurations/");
                if is_change && refused.load(Ordering::Relaxed) {
                    let status = json!({
                        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                        "message": "the manager cannot update this", "code": 403,
                    });
                    let body = Either::Left(Full::new(Bytes::from(status.to_string())));
                    return Ok(http::Response::builder().status(403).body(body).unwrap());
                }
                let answer = tower::ServiceExt::oneshot(server, request).await;
                answer.map(|answer| answer.map(Either::Right))
            }
        });
        Client::new(service, "default")
    }

    /// All bundles of our webhooks and CRDs.
    pub(crate) async fn bundles(&self) -> Vec<String> {
        let mut bundles = Vec::new();
        for kind in Kind::ALL {
            let object = self.configuration(kind).await;
            for webhook in object["webhooks"].as_array().unwrap() {
                bundles.push(webhook["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned());
            }
        }
        for crd in catalogue::CRDS {
            let object = self.crd(&crd.name()).await;
            if object["spec"]["conversion"]["strategy"] == "Webhook" {
                let client = &object["spec"]["conversion"]["webhook"]["clientConfig"];
                bundles.push(client["caBundle"].as_str().unwrap_or_default().to_owned());
            }
        }
        bundles
    }

    /// Makes an object that both webhooks see. The error is what a person reads.
    pub(crate) async fn create(&self, namespace: &str, name: &str) -> Result<(), String> {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        self.send("POST", &path, Some(object)).await.map(|_| ()).map_err(|error| error.to_string())
    }
}

fn paths(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|&path| path.to_owned()).collect()
}

pub(crate) fn settings(mode: Mode, folder: &TempDir) -> Settings {
    Settings {
        environment: Environment {
            namespace: "kruise-system".to_owned(),
            service: "kruise-webhook-service".to_owned(),
            host: None,
            port: 9876,
            renew_before: Duration::from_secs(180 * 24 * 60 * 60),
        },
        mode,
        secret: "kruise-webhook-certs".to_owned(),
        folder: folder.path().join("certs"),
        wanted: Wanted {
            open: paths(&["/mutate-configmap", "/validate-configmap"]),
            known: paths(&["/mutate-configmap", "/validate-configmap", "/validate-closed"]),
            ..Wanted::default()
        },
    }
}

/// A replica: a listener and, until it runs, its certificates.
pub(crate) struct Replica {
    pub(crate) port: u16,
    pub(crate) current: Current,
    pub(crate) check: Check,
    pub(crate) folder: TempDir,
    /// Whether it leads.
    pub(crate) leads: watch::Sender<bool>,
    pub(crate) notes: Notes,
    certificates: Option<Certificates>,
    stop: Stop,
    tasks: JoinSet<()>,
}

impl Replica {
    pub(crate) async fn new(cluster: &Cluster, mode: Mode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(mode, &folder);
        Self::with(cluster.client.clone(), settings, folder).await
    }

    /// One with another way to the cluster, or that wants other webhooks.
    pub(crate) async fn with(client: Client, settings: Settings, folder: TempDir) -> Self {
        let (current, check, stop) = (Current::default(), Check::default(), Stop::default());
        let (leads, notes) = (watch::Sender::new(true), Notes::default());
        let webhooks = Webhooks::builder()
            .admission("/mutate-configmap", |_| async { Answer::allowed() })
            .admission("/validate-configmap", |_| async { Answer::allowed() })
            .conversion(|object, wanted| {
                kruise_api::convert::convert(object, wanted).map_err(|error| error.to_string())
            })
            .build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        let (shown, stopped) = (current.clone(), stop.clone());
        tasks.spawn(async move {
            let limits = listener::Limits::default();
            listener::serve(listener, shown, None, webhooks, limits, async move { stopped.asked().await })
                .await
                .unwrap();
        });
        let certificates = Certificates::new(client, settings, Clock::wall(), current.clone(), check.clone())
            .with_notes(&notes)
            .led_by(leads.subscribe());
        Self { leads, notes, port, current, check, folder, certificates: Some(certificates), stop, tasks }
    }

    pub(crate) async fn initialize(&mut self, limit: Duration) -> Result<(), Error> {
        self.certificates.as_mut().unwrap().initialize(limit).await
    }

    /// Joins the Service and keeps its certificates from now on.
    pub(crate) fn run(&mut self, cluster: &Cluster) {
        let certificates = self.certificates.take().unwrap();
        self.tasks.spawn(certificates.run(self.stop.clone()));
        cluster.network.ports.lock().unwrap().push(self.port);
    }

    pub(crate) async fn end(mut self) {
        self.stop.ask();
        while self.tasks.join_next().await.is_some() {}
    }
}
