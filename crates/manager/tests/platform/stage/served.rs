//! The embedded cluster behind a socket and in real time, so that a manager can be a process of its own.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kruise_apiserver::{ApiServer, webhook::https::Https};
use kruise_sim::Sim;
use kruise_testkit::Cluster;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};
use tower::ServiceExt as _;

/// What was asked over the socket: method and path.
pub(crate) type Requests = Arc<Mutex<Vec<(http::Method, String)>>>;

/// A cluster that listens, until it is dropped.
pub(crate) struct Served {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) requests: Requests,
    _sim: Sim,
    _folder: tempfile::TempDir,
    _listening: JoinSet<()>,
}

impl Served {
    pub(crate) async fn start() -> (Self, Cluster) {
        let (sim, cluster) = kruise_testkit::embedded::start(0).await;
        let server = sim.server().clone();
        server.set_webhook_caller(Arc::new(Https));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Requests::default();
        let noted = requests.clone();
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                connections.spawn(connection(server.clone(), noted.clone(), stream));
                while connections.try_join_next().is_some() {}
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let name = "embedded";
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        (Self { kubeconfig, requests, _sim: sim, _folder: folder, _listening: listening }, cluster)
    }
}

async fn connection(server: ApiServer, requests: Requests, stream: tokio::net::TcpStream) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let asked = (request.method().clone(), request.uri().path().to_owned());
        requests.lock().unwrap().push(asked);
        server.clone().oneshot(request)
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
