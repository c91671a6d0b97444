//! A runtime that only pretends, behind a real socket.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::{net::UnixListener, sync::Notify, task::JoinSet};
use tonic::Status;
use tonic_prost::ProstCodec;

use super::wire;

/// The state of a container that has ended.
const EXITED: i32 = 2;

/// What the runtime pretends, and what was asked of it.
pub(super) struct World {
    /// Its name.
    pub name: &'static str,
    /// The version of the API that it serves.
    pub api: &'static str,
    /// Its containers.
    pub(super) containers: Vec<wire::Container>,
    /// What it tells about a container when asked for details.
    pub info: String,
    /// When containers were started.
    pub started_at: i64,
    /// Its images.
    pub(super) images: Vec<wire::Image>,
    /// Pulls that were asked for.
    pub(super) pulls: Vec<wire::PullImageRequest>,
    /// Whether pulls never end.
    pub pulls_hang: bool,
    /// Pulls that are under way.
    pub pulling: usize,
    /// Containers that were ended, with the seconds they got.
    pub stops: Vec<(String, i64)>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            name: "containerd",
            api: "runtime.v1",
            containers: Vec::new(),
            info: String::new(),
            started_at: 0,
            images: Vec::new(),
            pulls: Vec::new(),
            pulls_hang: false,
            pulling: 0,
            stops: Vec::new(),
        }
    }
}

/// The runtime. Dropping it closes its socket and all connections.
pub(super) struct Fake {
    socket: PathBuf,
    world: Arc<Mutex<World>>,
    tasks: JoinSet<()>,
    changed: Arc<Notify>,
}

impl Fake {
    /// One that listens there.
    pub(super) fn start(socket: &Path, world: World) -> Self {
        let mut fake = Self {
            socket: socket.to_owned(),
            world: Arc::new(Mutex::new(world)),
            tasks: JoinSet::new(),
            changed: Arc::default(),
        };
        fake.listen();
        fake
    }

    fn listen(&mut self) {
        std::fs::create_dir_all(self.socket.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket).unwrap();
        let (world, changed) = (self.world.clone(), self.changed.clone());
        self.tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (world, changed) = (world.clone(), changed.clone());
                connections.spawn(async move {
                    let service = service_fn(move |request| answer(world.clone(), changed.clone(), request));
                    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
    }

    /// Ends all connections and listens again.
    pub(super) async fn restart(&mut self) {
        self.tasks.shutdown().await;
        self.listen();
    }

    /// What it pretends now.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    /// Waits until something holds.
    pub(super) async fn until(&self, holds: impl Fn(&World) -> bool) {
        loop {
            let mut told = std::pin::pin!(self.changed.notified());
            told.as_mut().enable();
            if holds(&self.world()) {
                return;
            }
            told.await;
        }
    }
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a pull for as long as somebody waits for it.
struct Pulling(Arc<Mutex<World>>, Arc<Notify>);

impl Drop for Pulling {
    fn drop(&mut self) {
        lock(&self.0).pulling -= 1;
        self.1.notify_waiters();
    }
}

async fn answer(
    world: Arc<Mutex<World>>,
    changed: Arc<Notify>,
    request: Request<Incoming>,
) -> Result<Response<tonic::body::Body>, Infallible> {
    let path = request.uri().path().to_owned();
    let api = lock(&world).api;
    let Some(method) = path.strip_prefix(&format!("/{api}.")) else {
        let service = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        return Ok(Status::unimplemented(format!("unknown service {service}")).into_http());
    };
    let shared = world;
    let world = || lock(&shared);
    let response = match method {
        "RuntimeService/Version" => {
            unary(request, |_: wire::VersionRequest| {
                Ok(wire::VersionResponse {
                    runtime_name: world().name.to_owned(),
                    runtime_version: "2.0".to_owned(),
                    runtime_api_version: "v1".to_owned(),
                })
            })
            .await
        }
        "RuntimeService/ListContainers" => {
            unary(request, |asked: wire::ListContainersRequest| {
                let wanted = asked.filter.unwrap_or_default().label_selector;
                let matches = |container: &&wire::Container| {
                    wanted.iter().all(|(key, value)| container.labels.get(key) == Some(value))
                };
                let containers = world().containers.iter().filter(matches).cloned().collect();
                Ok(wire::ListContainersResponse { containers })
            })
            .await
        }
        "RuntimeService/ContainerStatus" => {
            unary(request, |asked: wire::ContainerStatusRequest| {
                let world = world();
                let container = world.containers.iter().find(|container| container.id == asked.container_id);
                let Some(container) = container else {
                    return Err(Status::not_found(format!("no container {}", asked.container_id)));
                };
                let status = wire::ContainerStatus { state: container.state, started_at: world.started_at };
                let info = asked.verbose.then(|| ("info".to_owned(), world.info.clone()));
                Ok(wire::ContainerStatusResponse {
                    status: Some(status),
                    info: info.into_iter().collect::<BTreeMap<_, _>>(),
                })
            })
            .await
        }
        "RuntimeService/PodSandboxStatus" => {
            unary(request, |asked: wire::PodSandboxStatusRequest| {
                let network = match asked.pod_sandbox_id.as_str() {
                    "host" => wire::PodSandboxNetworkStatus::default(),
                    _ => wire::PodSandboxNetworkStatus {
                        ip: "10.0.0.7".to_owned(),
                        additional_ips: vec![wire::PodIp { ip: "fd00::7".to_owned() }],
                    },
                };
                let network = Some(network);
                Ok(wire::PodSandboxStatusResponse { status: Some(wire::PodSandboxStatus { network }) })
            })
            .await
        }
        "RuntimeService/StopContainer" => {
            unary(request, |asked: wire::StopContainerRequest| {
                if asked.container_id == "stubborn" {
                    return Err(Status::unknown("failed to kill container"));
                }
                let mut world = world();
                let ended = world.containers.iter_mut().filter(|one| one.id == asked.container_id);
                ended.for_each(|one| one.state = EXITED);
                world.stops.push((asked.container_id, asked.timeout));
                Ok(wire::Empty {})
            })
            .await
        }
        "RuntimeService/ExecSync" => {
            unary(request, |asked: wire::ExecSyncRequest| {
                let code = if asked.cmd.first().is_some_and(|word| word == "false") { 1 } else { 0 };
                Ok(wire::ExecSyncResponse {
                    stdout: asked.cmd.join(" ").into_bytes(),
                    stderr: format!("within {}", asked.timeout).into_bytes(),
                    exit_code: code,
                })
            })
            .await
        }
        "ImageService/ListImages" => {
            unary(request, |_: wire::Empty| Ok(wire::ListImagesResponse { images: world().images.clone() }))
                .await
        }
        "ImageService/ImageFsInfo" => {
            unary(request, |_: wire::Empty| {
                let mountpoint = "/var/lib/images".to_owned();
                let usage = wire::FilesystemUsage {
                    fs_id: Some(wire::FilesystemIdentifier { mountpoint }),
                    used_bytes: Some(wire::Number { value: 42 }),
                };
                Ok(wire::ImageFsInfoResponse { image_filesystems: vec![usage] })
            })
            .await
        }
        "ImageService/PullImage" => {
            world().pulling += 1;
            let _pulling = Pulling(shared.clone(), changed.clone());
            changed.notify_waiters();
            if world().pulls_hang {
                std::future::pending::<()>().await;
            }
            unary(request, |asked: wire::PullImageRequest| {
                let image = asked.image.clone().unwrap_or_default().image;
                world().pulls.push(asked);
                if image.contains("missing") {
                    return Err(Status::unknown(format!("failed to resolve {image}: not found")));
                }
                Ok(wire::PullImageResponse { image_ref: format!("sha256:{image}") })
            })
            .await
        }
        other => Status::unimplemented(format!("unknown method {other}")).into_http(),
    };
    Ok(response)
}

async fn unary<Q, A>(
    request: Request<Incoming>,
    answer: impl Fn(Q) -> Result<A, Status>,
) -> Response<tonic::body::Body>
where
    Q: Message + Default + Send + 'static,
    A: Message + Default + Send + 'static,
{
    let codec: ProstCodec<A, Q> = ProstCodec::default();
    let service = tower::service_fn(|request: tonic::Request<Q>| {
        let answer = answer(request.into_inner()).map(tonic::Response::new);
        async move { answer }
    });
    tonic::server::Grpc::new(codec).unary(service, request).await
}
