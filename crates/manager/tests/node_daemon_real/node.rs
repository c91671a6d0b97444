//! The real node of a cluster, and the daemon on it.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use k8s_openapi::api::core::v1::Node;
use kruise_testkit::{
    Outcome, Skip,
    cluster::REAL_NODES,
    wait::{Look, eventually},
};
use kube::{Api, ResourceExt as _, api::ListParams};

use crate::stage::{self, Stage, process::get};

/// Where the container runtime of the local cluster listens, unless `KRUISE_CRI_SOCKET` says otherwise.
const SOCKET: &str = "/run/kruise-rs/containerd.sock";

/// A daemon that runs, ended with this value. When a test fails, it says what it logged.
pub(crate) struct Daemon {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
    node: String,
    kubeconfig: PathBuf,
    flags: Vec<String>,
}

/// The name of the real node, if it is this machine.
pub(crate) async fn name(stage: &Stage) -> Result<String, Skip> {
    stage.cluster.require_nodes(REAL_NODES).await?;
    if !socket().exists() {
        let needs = format!("a container runtime at {} (KRUISE_CRI_SOCKET)", socket().display());
        return Err(Skip { needs, server: stage.cluster.version().to_owned() });
    }
    let nodes: Api<Node> = Api::all(stage.cluster.client());
    let selector = format!("{}={}", REAL_NODES.0, REAL_NODES.1);
    let found = nodes.list(&ListParams::default().labels(&selector)).await.unwrap();
    Ok(found.items.first().unwrap().name_any())
}

/// The daemon for a scenario that does not care which: the one that all share where there is one, else its own.
pub(crate) async fn served(stage: &Stage) -> Result<Option<Daemon>, Skip> {
    let node = name(stage).await?;
    match std::env::var("KRUISE_TEST_MANAGER").as_deref() {
        Ok("shared") => Ok(None),
        _ => Ok(Some(Daemon::start(&node, &stage.kubeconfig()).await)),
    }
}

impl Daemon {
    /// Starts the daemon of a node and waits until it is healthy.
    pub(crate) async fn start(node: &str, kubeconfig: &Path) -> Self {
        Self::start_with(node, kubeconfig, Vec::new()).await
    }

    /// The same with more flags.
    pub(crate) async fn start_with(node: &str, kubeconfig: &Path, flags: Vec<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = spawn(node, kubeconfig, port, folder.path(), &flags);
        let (node, kubeconfig) = (node.to_owned(), kubeconfig.to_owned());
        let daemon = Self { child, port, folder, node, kubeconfig, flags };
        daemon.until_healthy().await;
        daemon
    }

    /// Ends it as a node that fails would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and tells how it did.
    pub(crate) async fn asked_to_end(&mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let patience = Duration::from_secs(30);
        let ended = eventually("the daemon ends", patience, async || match self.child.try_wait().unwrap() {
            Some(status) => Look::Yes(status),
            None => Look::No("it runs".to_owned()),
        });
        ended.await.unwrap()
    }

    /// Starts it again.
    pub(crate) async fn come_back(&mut self) {
        self.child = spawn(&self.node, &self.kubeconfig, self.port, self.folder.path(), &self.flags);
        self.until_healthy().await;
    }

    async fn until_healthy(&self) {
        let healthy = eventually("the daemon is healthy", Duration::from_secs(60), async || {
            match get(self.port, "/healthz").await {
                Some((200, _)) => Look::Yes(()),
                Some((_, body)) => Look::No(format!("{body}\n{}", self.log())),
                None => Look::No(format!("nobody answers\n{}", self.log())),
            }
        });
        healthy.await.unwrap();
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the daemon said:\n{}", self.log());
        }
    }
}

fn socket() -> PathBuf {
    std::env::var_os("KRUISE_CRI_SOCKET").map_or_else(|| PathBuf::from(SOCKET), PathBuf::from)
}

fn spawn(node: &str, kubeconfig: &Path, port: u16, folder: &Path, flags: &[String]) -> Child {
    // Beside the manager: programs of other packages have no variable of their own.
    let program = Path::new(env!("CARGO_BIN_EXE_kruise-manager")).with_file_name("kruise-daemon");
    assert!(program.exists(), "run `cargo build --workspace --bin kruise-daemon` first");
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let (socket, mut command) = (socket(), Command::new(program));
    command
        .env("NODE_NAME", node)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--addr=127.0.0.1:{port}"))
        .arg("--enable-pprof=false")
        .arg(format!("--socket-folder={}", socket.parent().unwrap().display()))
        .arg(format!("--socket-file={}", socket.file_name().unwrap().display()))
        .arg("--v=4")
        .args(flags)
        .stdout(Stdio::null())
        .stderr(log);
    command.spawn().unwrap()
}

/// What the manager of these scenarios is started with: both are off by default.
const GATES: [&str; 1] = ["--feature-gates=ImagePullJobGate=true,SidecarTerminator=true"];

/// Plays a scenario beside others where all share a manager, else with a manager of its own.
pub(crate) fn beside(name: &str, scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    match std::env::var("KRUISE_TEST_MANAGER").as_deref() {
        Ok("shared") => stage::real(name, &[], scenario),
        Ok("own") => println!("left to the other round"),
        _ => stage::alone(name, &GATES, scenario),
    }
}

/// Plays a scenario that ends its daemon, or takes away what others need.
pub(crate) fn alone(name: &str, scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    stage::alone(name, &GATES, scenario);
}

/// Makes a test of a scenario that needs a real node.
macro_rules! on_a_node {
    ($name:ident) => {
        crate::node::on_a_node!($name, beside);
    };
    ($name:ident, $how:ident) => {
        mod $name {
            #[test]
            #[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
            fn real() {
                crate::node::$how(stringify!($name), super::$name);
            }
        }
    };
}
pub(crate) use on_a_node;
