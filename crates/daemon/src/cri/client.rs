//! CRI v1 over a unix socket.
//!
//! A connection that breaks is made anew at the next call. Calls that only read are tried a second time when the
//! connection turns out to be broken, so that a restart of the runtime goes by unnoticed; calls that change something are not.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::FutureExt as _;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use prost::Message;
use serde_json::Value;
use tokio::{net::UnixStream, time::timeout};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use super::{
    Answer, Auth, Container, Detail, Error, FileSystem, Image, Inspected, Kind, Output, Pull, Runtime, State,
    Version, keys, wire,
};

/// The largest message: lists of a big node are long.
const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;
/// How long a connection may take to open.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// How long an answer may take, unless the call itself says how long it lasts.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same for the size of the file system, which a runtime may have to count.
const FILE_SYSTEM_PATIENCE: Duration = Duration::from_secs(10);
/// What the end of a container or of a command may take longer than it should.
const SLACK: Duration = Duration::from_secs(5);
/// What we say that we speak, as the kubelet does.
const API_VERSION: &str = "0.1.0";

/// A runtime behind a socket.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    socket: PathBuf,
    name: String,
}

impl Client {
    /// Connects and asks whether everything that we need is there.
    pub async fn connect(socket: &Path) -> Result<Self, Error> {
        let path = socket.to_owned();
        let connector = tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        // The address is never looked at: the connector knows where to go.
        let endpoint = Endpoint::from_static("http://localhost").connect_timeout(CONNECT_PATIENCE);
        let connecting = endpoint.connect_with_connector(connector);
        let channel = match timeout(CONNECT_PATIENCE, connecting).await {
            Ok(connected) => connected.map_err(|error| unreachable(&error))?,
            Err(_) => return Err(Error::late(CONNECT_PATIENCE)),
        };
        let mut client = Self { channel, socket: socket.to_owned(), name: String::new() };
        client.image_file_systems().await.map_err(name_api)?;
        client.images().await.map_err(name_api)?;
        client.name = client.version().await.map_err(name_api)?.name;
        Ok(client)
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A call that may happen only once.
    async fn call<Q, A>(&self, path: &'static str, message: Q, patience: Option<Duration>) -> Result<A, Error>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = tonic::client::Grpc::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT);
        let mut request = Request::new(message);
        if let Some(patience) = patience {
            request.set_timeout(patience);
        }
        let calling = async {
            grpc.ready().await.map_err(|error| unreachable(&error))?;
            let codec: ProstCodec<Q, A> = ProstCodec::default();
            let answer = grpc.unary(request, PathAndQuery::from_static(path), codec).await?;
            Ok(answer.into_inner())
        };
        match patience {
            Some(patience) => timeout(patience, calling).await.unwrap_or_else(|_| Err(Error::late(patience))),
            None => calling.await,
        }
    }

    /// A call that changes nothing.
    async fn read<Q, A>(&self, path: &'static str, message: Q, patience: Duration) -> Result<A, Error>
    where
        Q: Message + Default + Clone + 'static,
        A: Message + Default + 'static,
    {
        match self.call(path, message.clone(), Some(patience)).await {
            Err(error) if error.kind == Kind::Unreachable => self.call(path, message, Some(patience)).await,
            answer => answer,
        }
    }
}

impl Runtime for Client {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> Answer<'_, Version> {
        async move {
            let request = wire::VersionRequest { version: API_VERSION.to_owned() };
            let wire::VersionResponse { runtime_name, runtime_version, runtime_api_version } =
                self.read("/runtime.v1.RuntimeService/Version", request, PATIENCE).await?;
            Ok(Version { name: runtime_name, version: runtime_version, api: runtime_api_version })
        }
        .boxed()
    }

    fn containers<'a>(&'a self, pod_uid: Option<&'a str>) -> Answer<'a, Vec<Container>> {
        async move {
            let filter = pod_uid.map(|uid| wire::ContainerFilter {
                label_selector: BTreeMap::from([(keys::POD_UID.to_owned(), uid.to_owned())]),
            });
            let request = wire::ListContainersRequest { filter };
            let answer: wire::ListContainersResponse =
                self.read("/runtime.v1.RuntimeService/ListContainers", request, PATIENCE).await?;
            Ok(answer.containers.into_iter().map(container).collect())
        }
        .boxed()
    }

    fn inspect<'a>(&'a self, id: &'a str, detail: Detail) -> Answer<'a, Option<Inspected>> {
        async move {
            let verbose = detail == Detail::Environment;
            let request = wire::ContainerStatusRequest { container_id: id.to_owned(), verbose };
            let answer: Result<wire::ContainerStatusResponse, Error> =
                self.read("/runtime.v1.RuntimeService/ContainerStatus", request, PATIENCE).await;
            let answer = match answer {
                Err(error) if error.kind == Kind::NotFound => return Ok(None),
                answer => answer?,
            };
            let Some(status) = answer.status else { return Ok(None) };
            Ok(Some(Inspected {
                state: state(status.state),
                started_at: (status.started_at > 0)
                    .then(|| Timestamp::from_nanosecond(status.started_at.into()).ok())
                    .flatten(),
                environment: answer.info.get("info").and_then(|info| environment(info)),
            }))
        }
        .boxed()
    }

    fn sandbox_addresses<'a>(&'a self, id: &'a str) -> Answer<'a, Vec<String>> {
        async move {
            let request = wire::PodSandboxStatusRequest { pod_sandbox_id: id.to_owned() };
            let answer: Result<wire::PodSandboxStatusResponse, Error> =
                self.read("/runtime.v1.RuntimeService/PodSandboxStatus", request, PATIENCE).await;
            let answer = match answer {
                Err(error) if error.kind == Kind::NotFound => return Ok(Vec::new()),
                answer => answer?,
            };
            let network = answer.status.and_then(|status| status.network).unwrap_or_default();
            let addresses =
                std::iter::once(network.ip).chain(network.additional_ips.into_iter().map(|one| one.ip));
            Ok(addresses.filter(|address| !address.is_empty()).collect())
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> Answer<'a, ()> {
        async move {
            let request = wire::StopContainerRequest { container_id: id.to_owned(), timeout: seconds(grace) };
            let _: wire::Empty =
                self.call("/runtime.v1.RuntimeService/StopContainer", request, Some(grace + SLACK)).await?;
            Ok(())
        }
        .boxed()
    }

    fn exec<'a>(
        &'a self,
        id: &'a str,
        command: &'a [String],
        timeout: Option<Duration>,
    ) -> Answer<'a, Output> {
        async move {
            let request = wire::ExecSyncRequest {
                container_id: id.to_owned(),
                cmd: command.to_vec(),
                timeout: timeout.map_or(0, seconds),
            };
            let patience = timeout.map(|timeout| timeout + SLACK);
            let wire::ExecSyncResponse { stdout, stderr, exit_code } =
                self.call("/runtime.v1.RuntimeService/ExecSync", request, patience).await?;
            Ok(Output { stdout, stderr, exit_code })
        }
        .boxed()
    }

    fn images(&self) -> Answer<'_, Vec<Image>> {
        async move {
            let answer: wire::ListImagesResponse =
                self.read("/runtime.v1.ImageService/ListImages", wire::Empty {}, PATIENCE).await?;
            let image = |image: wire::Image| {
                let wire::Image { id, repo_tags, repo_digests } = image;
                Image { id, tags: repo_tags, digests: repo_digests }
            };
            Ok(answer.images.into_iter().map(image).collect())
        }
        .boxed()
    }

    fn pull<'a>(&'a self, pull: &'a Pull) -> Answer<'a, String> {
        async move {
            let Pull { image, auth, labels, annotations } = pull.clone();
            let request = wire::PullImageRequest {
                image: Some(wire::ImageSpec { image }),
                auth: auth.map(|auth| {
                    let Auth { username, password, identity_token, registry_token } = auth;
                    wire::AuthConfig { username, password, identity_token, registry_token }
                }),
                sandbox_config: Some(wire::PodSandboxConfig { labels, annotations }),
            };
            let answer: wire::PullImageResponse =
                self.call("/runtime.v1.ImageService/PullImage", request, None).await?;
            Ok(answer.image_ref)
        }
        .boxed()
    }

    fn image_file_systems(&self) -> Answer<'_, Vec<FileSystem>> {
        async move {
            let answer: wire::ImageFsInfoResponse = self
                .read("/runtime.v1.ImageService/ImageFsInfo", wire::Empty {}, FILE_SYSTEM_PATIENCE)
                .await?;
            let usage = |usage: wire::FilesystemUsage| FileSystem {
                mountpoint: usage.fs_id.unwrap_or_default().mountpoint,
                used: usage.used_bytes.unwrap_or_default().value,
            };
            Ok(answer.image_filesystems.into_iter().map(usage).collect())
        }
        .boxed()
    }
}

/// A runtime that is too old does not know our version of the API: that is what people must hear.
fn name_api(error: Error) -> Error {
    if error.kind != Kind::Unsupported {
        return error;
    }
    Error::new(error.kind, format!("the runtime does not serve version runtime.v1 of CRI: {error}"))
}

fn unreachable(error: &tonic::transport::Error) -> Error {
    let causes = kruise_core::causes::told(error);
    Error::new(Kind::Unreachable, format!("rpc error: code = Unavailable desc = {causes}"))
}

fn container(container: wire::Container) -> Container {
    let wire::Container { id, pod_sandbox_id, state: number, created_at, labels, annotations } = container;
    Container { id, sandbox: pod_sandbox_id, state: state(number), created_at, labels, annotations }
}

fn state(number: i32) -> State {
    match number {
        0 => State::Created,
        1 => State::Running,
        2 => State::Exited,
        _ => State::Unknown,
    }
}

/// Whole seconds, rounded up: no one gets less time than asked for.
fn seconds(time: Duration) -> i64 {
    let whole = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    i64::try_from(whole).unwrap_or(i64::MAX)
}

/// The environment in what containerd and cri-o tell on request: the specification of the process, as JSON.
fn environment(info: &str) -> Option<BTreeMap<String, String>> {
    let info: Value = serde_json::from_str(info).ok()?;
    let list = info.pointer("/runtimeSpec/process/env")?.as_array()?;
    let pair = |entry: &Value| {
        let (name, value) = entry.as_str()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    Some(list.iter().filter_map(pair).collect())
}
