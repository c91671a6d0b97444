//! The manager as a process of its own, on free ports of this machine.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use kruise_testkit::wait::{Look, eventually};
use tokio::time::{Instant, sleep};

use super::network::Door;

/// How a manager is started.
#[derive(Clone, Default)]
pub(crate) struct Launch {
    flags: Vec<String>,
    variables: Vec<(&'static str, String)>,
    kubeconfig: Option<PathBuf>,
    door: Option<Door>,
}

/// A manager that runs, ended with this value. When a test fails, it says what it logged.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) health: u16,
    pub(crate) metrics: u16,
    pub(crate) webhooks: u16,
    pub(crate) folder: tempfile::TempDir,
    door: Option<Door>,
}

impl Launch {
    /// One that reaches the cluster of `KUBECONFIG`, or of another file.
    pub(crate) fn new(flags: &[String], kubeconfig: Option<&Path>) -> Self {
        let kubeconfig = kubeconfig.map(Path::to_owned);
        Self { flags: flags.to_vec(), kubeconfig, ..Self::default() }
    }

    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
        self
    }

    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Its webhooks are called through a door, as those of a pod through its Service.
    pub(crate) fn behind(mut self, door: &Door) -> Self {
        self.door = Some(door.clone());
        self
    }

    /// Another way to the API server.
    pub(crate) fn reaching(mut self, kubeconfig: &Path) -> Self {
        self.kubeconfig = Some(kubeconfig.to_owned());
        self
    }

    /// Starts one that is ready.
    pub(crate) async fn ready(&self) -> Process {
        let process = self.spawn();
        process.until_ready().await;
        process
    }

    pub(crate) fn spawn(&self) -> Process {
        let [health, metrics, webhooks] = [free_port(), free_port(), free_port()];
        let folder = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kruise-manager"));
        command
            .arg(format!("--health-probe-addr=127.0.0.1:{health}"))
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .arg(format!("--webhook-bind-address=127.0.0.1:{webhooks}"))
            .args(&self.flags)
            .env("WEBHOOK_HOST", "127.0.0.1")
            .env("WEBHOOK_PORT", self.door.as_ref().map_or(webhooks, Door::port).to_string())
            .env("WEBHOOK_CERT_WRITER", "secret")
            .env("WEBHOOK_CERT_DIR", folder.path().join("certificates"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::null())
            .stderr(log);
        if !self.flags.iter().any(|flag| flag.starts_with("--protection-log-path=")) {
            command.arg(format!("--protection-log-path={}", folder.path().join("protection").display()));
        }
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let child = command.spawn().unwrap();
        Process { child, health, metrics, webhooks, folder, door: self.door.clone() }
    }
}

impl Process {
    /// Waits until it is ready. From then on its door leads to it.
    pub(crate) async fn until_ready(&self) {
        let ready = eventually("the manager is ready", Duration::from_secs(60), async || {
            match get(self.health, "/readyz").await {
                Some((200, _)) => Look::Yes(()),
                Some((_, body)) => Look::No(body),
                None => Look::No("nobody answers".to_owned()),
            }
        });
        ready.await.unwrap();
        if let Some(door) = &self.door {
            door.lead_to(self.webhooks);
        }
    }

    /// Its door does not lead to it any more, as with a pod that is about to end.
    pub(crate) fn withdraw(&self) {
        if let Some(door) = &self.door {
            door.forget(self.webhooks);
        }
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Lines of the log of refused deletions.
    pub(crate) fn protection_log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("protection/protection.log")).unwrap_or_default()
    }

    pub(crate) async fn metrics(&self) -> String {
        get(self.metrics, "/metrics").await.map(|(_, text)| text).unwrap_or_default()
    }

    pub(crate) async fn leads(&self) -> bool {
        self.metrics().await.lines().any(|line| line == "kruise_manager_is_leader 1")
    }

    /// How long it took from a moment until this one leads.
    pub(crate) async fn until_leads(&self, since: Instant, patience: Duration) -> Duration {
        while !self.leads().await {
            assert!(since.elapsed() < patience, "nobody led for {patience:?}");
            sleep(Duration::from_millis(20)).await;
        }
        since.elapsed()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    pub(crate) async fn until_ended(&mut self, patience: Duration) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < patience, "it did not end within {patience:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// How many files and sockets it has open.
    pub(crate) fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- a manager said:\n{}", self.log());
        }
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A GET on loopback: code and body.
pub(crate) async fn get(port: u16, path: &str) -> Option<(u16, String)> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let code = answer.split_whitespace().nth(1)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((code, body.to_owned()))
}
