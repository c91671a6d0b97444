//! What the kubelet does: makes and removes a pod with one container.

use std::{collections::BTreeMap, path::Path};

use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use kruise_daemon::cri::keys;
use prost::Message;
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

/// A pod that runs.
pub(crate) struct Pod {
    uid: String,
    image: String,
    config: SandboxConfig,
    sandbox: String,
    /// The id of its newest container.
    pub(crate) container: String,
}

/// A way to make pods.
pub(crate) struct Pods(Channel);

#[derive(Clone, PartialEq, Message)]
struct SandboxConfig {
    #[prost(message, optional, tag = "1")]
    metadata: Option<SandboxMetadata>,
    #[prost(message, optional, tag = "8")]
    linux: Option<LinuxSandbox>,
}

#[derive(Clone, PartialEq, Message)]
struct SandboxMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    namespace: String,
}

#[derive(Clone, PartialEq, Message)]
struct LinuxSandbox {
    #[prost(message, optional, tag = "2")]
    security: Option<SandboxSecurity>,
}

#[derive(Clone, PartialEq, Message)]
struct SandboxSecurity {
    #[prost(message, optional, tag = "1")]
    namespaces: Option<Namespaces>,
}

#[derive(Clone, PartialEq, Message)]
struct Namespaces {
    /// 2 is that of the node.
    #[prost(int32, tag = "1")]
    network: i32,
}

#[derive(Clone, PartialEq, Message)]
struct RunSandbox {
    #[prost(message, optional, tag = "1")]
    config: Option<SandboxConfig>,
}

/// Messages with one text: ids.
#[derive(Clone, PartialEq, Message)]
struct Id {
    #[prost(string, tag = "1")]
    id: String,
}

#[derive(Clone, PartialEq, Message)]
struct CreateContainer {
    #[prost(string, tag = "1")]
    sandbox: String,
    #[prost(message, optional, tag = "2")]
    config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    sandbox_config: Option<SandboxConfig>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    image: Option<Id>,
    #[prost(string, repeated, tag = "3")]
    command: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    envs: Vec<Variable>,
    #[prost(btree_map = "string, string", tag = "9")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "10")]
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerMetadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "2")]
    attempt: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Variable {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

impl Pods {
    pub(crate) async fn connect(socket: &Path) -> Self {
        let path = socket.to_owned();
        let connector = tower::service_fn(move |_| {
            let path = path.clone();
            async move { tokio::net::UnixStream::connect(path).await.map(TokioIo::new) }
        });
        Self(Endpoint::from_static("http://localhost").connect_with_connector(connector).await.unwrap())
    }

    async fn call<Q, A>(&self, method: &'static str, message: Q) -> A
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = tonic::client::Grpc::new(self.0.clone());
        grpc.ready().await.unwrap();
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        let answer = grpc.unary(Request::new(message), PathAndQuery::from_static(method), codec).await;
        answer.unwrap_or_else(|status| panic!("{method}: {status}")).into_inner()
    }

    /// A pod with the container `app`, marked as the kubelet does it.
    pub(crate) async fn run(&self, uid: &str, image: &str) -> Pod {
        let text = |text: &str| text.to_owned();
        let metadata = SandboxMetadata { name: text(uid), uid: text(uid), namespace: text("default") };
        let security = SandboxSecurity { namespaces: Some(Namespaces { network: 2 }) };
        let config = SandboxConfig {
            metadata: Some(metadata),
            linux: Some(LinuxSandbox { security: Some(security) }),
        };
        let request = RunSandbox { config: Some(config.clone()) };
        let sandbox: Id = self.call("/runtime.v1.RuntimeService/RunPodSandbox", request).await;
        let mut pod =
            Pod { uid: text(uid), image: text(image), config, sandbox: sandbox.id, container: String::new() };
        self.start(&mut pod, 3).await;
        pod
    }

    /// Starts the container of a pod that was restarted this often.
    pub(crate) async fn start(&self, pod: &mut Pod, restarts: u32) {
        let text = |text: &str| text.to_owned();
        let pair = |key: &str, value: &str| (text(key), text(value));
        let container = ContainerConfig {
            metadata: Some(ContainerMetadata { name: text("app"), attempt: restarts }),
            image: Some(Id { id: pod.image.clone() }),
            command: vec![text("sleep"), text("1000")],
            envs: vec![Variable { key: text("COLOUR"), value: text("blue") }],
            labels: [pair(keys::POD_UID, &pod.uid), pair(keys::CONTAINER_NAME, "app")].into(),
            annotations: [pair(keys::HASH, "1234abcd"), pair(keys::RESTART_COUNT, &restarts.to_string())]
                .into(),
        };
        let request = CreateContainer {
            sandbox: pod.sandbox.clone(),
            config: Some(container),
            sandbox_config: Some(pod.config.clone()),
        };
        let made: Id = self.call("/runtime.v1.RuntimeService/CreateContainer", request).await;
        let _: Id = self.call("/runtime.v1.RuntimeService/StartContainer", made.clone()).await;
        pod.container = made.id;
    }

    pub(crate) async fn remove(&self, pod: &Pod) {
        let id = || Id { id: pod.sandbox.clone() };
        let _: Id = self.call("/runtime.v1.RuntimeService/StopPodSandbox", id()).await;
        let _: Id = self.call("/runtime.v1.RuntimeService/RemovePodSandbox", id()).await;
    }
}
