//! The networks between managers and API servers: one that finds whoever answers, and one that can be cut.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use kube::config::Kubeconfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
};

/// What a Service is to pods: one port that leads to whoever answers. Clones are the same door.
#[derive(Clone)]
pub(crate) struct Door(Arc<Inner>);

struct Inner {
    port: u16,
    rooms: Arc<Mutex<Vec<u16>>>,
    _open: JoinSet<()>,
}

impl Door {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let rooms = Arc::new(Mutex::new(Vec::<u16>::new()));
        let known = rooms.clone();
        let mut open = JoinSet::new();
        open.spawn(async move {
            let mut visits = JoinSet::new();
            let mut nth = 0;
            while let Ok((visitor, _)) = listener.accept().await {
                // Each visit begins with another room, so that all of them are used.
                nth += 1;
                let mut rooms = known.lock().unwrap().clone();
                let first = nth % rooms.len().max(1);
                rooms.rotate_left(first);
                visits.spawn(lead(visitor, rooms));
                while visits.try_join_next().is_some() {}
            }
        });
        Self(Arc::new(Inner { port, rooms, _open: open }))
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port
    }

    pub(crate) fn lead_to(&self, room: u16) {
        self.0.rooms.lock().unwrap().push(room);
    }

    pub(crate) fn forget(&self, room: u16) {
        self.0.rooms.lock().unwrap().retain(|known| *known != room);
    }
}

/// Rooms whose owner is gone refuse at once, and the next one is tried.
async fn lead(mut visitor: TcpStream, rooms: Vec<u16>) {
    for port in rooms {
        if let Ok(mut room) = TcpStream::connect(("127.0.0.1", port)).await {
            let _ = tokio::io::copy_bidirectional(&mut visitor, &mut room).await;
            return;
        }
    }
}

/// A way to an API server that can be cut: nothing arrives any more, and nobody is told.
pub(crate) struct Line {
    pub(crate) kubeconfig: PathBuf,
    cut: watch::Sender<bool>,
    _folder: tempfile::TempDir,
    _open: JoinSet<()>,
}

impl Line {
    /// A line to the server of a kubeconfig.
    pub(crate) async fn lay(kubeconfig: &Path) -> Self {
        let mut config = Kubeconfig::read_from(kubeconfig).unwrap();
        let cluster = config.clusters[0].cluster.as_mut().unwrap();
        let server: http::Uri = cluster.server.as_ref().unwrap().parse().unwrap();
        let end = (server.host().unwrap().to_owned(), server.port_u16().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        cluster.server = Some(format!("{}://127.0.0.1:{port}", server.scheme_str().unwrap()));
        if end.0 != "127.0.0.1" {
            cluster.tls_server_name = Some(end.0.clone());
        }
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, serde_json::to_string(&config).unwrap()).unwrap();
        let (cut, is_cut) = watch::channel(false);
        let mut open = JoinSet::new();
        open.spawn(async move {
            let mut visits = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(&end).await else { continue };
                let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
                visits.spawn(pass(near_read, far_write, is_cut.clone()));
                visits.spawn(pass(far_read, near_write, is_cut.clone()));
            }
        });
        Self { kubeconfig, cut, _folder: folder, _open: open }
    }

    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.cut.send_replace(false);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut cut: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        // What is on its way arrives after the line is mended, as with packets that are sent again.
        if cut.wait_for(|cut| !cut).await.is_err() || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
