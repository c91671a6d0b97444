//! A cluster with a manager on it.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use kruise_api::{
    gates::{self, Gates},
    names,
};
use kruise_core::features::webhooks;
use kruise_manager::{
    manager::Manager,
    options::{Environment, Options},
    shared::{Settings, Shared},
};
use kruise_runtime::{
    clock::Clock,
    lease::Fence,
    metrics::Registry,
    random::Random,
    scope::{BoxError, Scope},
};
use kruise_sim::Sim;
use kruise_testkit::{
    Backend, Cluster, Outcome,
    wait::{Look, eventually},
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::{Value, json};

/// A cluster with a manager on it.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    manager: Option<Running>,
    flags: Vec<String>,
    sim: Option<Sim>,
}

/// A manager that runs.
pub(crate) enum Running {
    Inside { manager: Box<Manager>, _scope: Scope },
    Process(Process),
}

/// The manager as a process of its own, ended with this value.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) health: u16,
    pub(crate) metrics: u16,
    folder: tempfile::TempDir,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stage {
    /// Definitions, namespace and webhook configurations are installed; no manager runs yet.
    pub(crate) async fn install(cluster: Cluster, sim: Option<Sim>, flags: &[&str]) -> Self {
        cluster.install_crds().await;
        let stage =
            Self { cluster, manager: None, flags: flags.iter().map(|&flag| flag.into()).collect(), sim };
        let label = json!({"control-plane": "openkruise"});
        stage.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names::NAMESPACE, "labels": label}})).await;
        stage.put_webhooks().await;
        stage
    }

    /// The webhook configurations, as an installation brings them.
    pub(crate) async fn put_webhooks(&self) {
        for configuration in webhooks::configurations(&Gates::default(), &webhooks::Options::default()) {
            self.put(configuration).await;
        }
    }

    /// Takes them away: then nobody is refused because no manager is there.
    pub(crate) async fn remove_webhooks(&self) {
        for configuration in webhooks::configurations(&Gates::default(), &webhooks::Options::default()) {
            let name = configuration.pointer("/metadata/name").and_then(Value::as_str).unwrap().to_owned();
            let _ = self.api(&configuration).delete(&name, &DeleteParams::default()).await;
        }
    }

    /// The same with a manager that is ready.
    pub(crate) async fn start(cluster: Cluster, sim: Option<Sim>, flags: &[&str]) -> Self {
        let mut stage = Self::install(cluster, sim, flags).await;
        stage.start_manager().await;
        stage
    }

    pub(crate) async fn start_manager(&mut self) {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.manager = Some(match &self.sim {
            Some(sim) => inside(sim, &flags),
            None => Running::Process(process(&flags, None).await),
        });
    }

    /// Ends the manager as a node that fails would.
    pub(crate) fn kill_manager(&mut self) {
        if let Some(sim) = &self.sim {
            let gone = tower::service_fn(|_: http::Request<http_body_util::Full<bytes::Bytes>>| async {
                Err::<http::Response<http_body_util::Full<bytes::Bytes>>, _>("connection refused")
            });
            sim.server().register_webhook_service(names::NAMESPACE, names::WEBHOOK_SERVICE, gone);
        }
        self.manager = None;
    }

    /// What the next manager is started with.
    #[allow(dead_code, reason = "not all scenarios change flags")]
    pub(crate) fn set_flags(&mut self, flags: &[&str]) {
        self.flags = flags.iter().map(|&flag| flag.into()).collect();
    }

    /// The embedded cluster.
    #[allow(dead_code, reason = "not all scenarios ask for it")]
    pub(crate) fn sim(&self) -> &Sim {
        self.sim.as_ref().expect("only scenarios of the embedded cluster ask for it")
    }

    /// The manager, where it is a process.
    pub(crate) fn process(&self) -> &Process {
        match &self.manager {
            Some(Running::Process(process)) => process,
            _ => panic!("no manager runs as a process"),
        }
    }

    /// Everything that `/metrics` shows.
    pub(crate) async fn metrics(&self) -> String {
        match self.manager.as_ref().expect("a manager runs") {
            Running::Inside { manager, .. } => manager.shared().registry.text(),
            Running::Process(process) => {
                get(process.metrics, "/metrics").await.expect("metrics are served").1
            }
        }
    }

    /// Creates an object or makes an existing one equal to it.
    pub(crate) async fn put(&self, object: Value) {
        let api = self.api(&object);
        let mut object: DynamicObject = serde_json::from_value(object).unwrap();
        let name = object.metadata.name.clone().unwrap();
        match api.create(&PostParams::default(), &object).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => panic!("failed to create {name}: {error}"),
        }
        object.metadata.resource_version = api.get(&name).await.unwrap().metadata.resource_version;
        api.replace(&name, &PostParams::default(), &object).await.unwrap();
    }

    /// The API for objects like this one, in its version and namespace.
    pub(crate) fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
        match text("/metadata/namespace") {
            "" => Api::all_with(self.cluster.client(), &resource),
            namespace => Api::namespaced_with(self.cluster.client(), namespace, &resource),
        }
    }

    /// Creates an object; the answer or the words of the refusal.
    pub(crate) async fn create(&self, object: Value) -> Result<Value, String> {
        let typed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        match self.api(&object).create(&PostParams::default(), &typed).await {
            Ok(made) => Ok(serde_json::to_value(made).unwrap()),
            Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Changes an object by a merge patch, in the version that it is written in; the answer or the words of the refusal.
    #[allow(dead_code, reason = "not all scenarios change objects of any version")]
    pub(crate) async fn patch(&self, object: &Value, change: &Value) -> Result<Value, String> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let patch = kube::api::Patch::Merge(change);
        match self.api(object).patch(name, &kube::api::PatchParams::default(), &patch).await {
            Ok(made) => Ok(serde_json::to_value(made).unwrap()),
            Err(kube::Error::Api(status)) => Err(format!("{} {}", status.code, status.message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Leaves the cluster as it was: nobody must be refused because our manager is gone.
    async fn leave(mut self) {
        self.remove_webhooks().await;
        if self.cluster.backend() == Backend::Real {
            // Definitions without our address: the next test may have another.
            self.cluster.install_crds().await;
        }
        self.manager = None;
    }
}

/// A manager in this process, whose webhooks the embedded server calls directly.
fn inside(sim: &Sim, flags: &[&str]) -> Running {
    let options = Options::read(std::iter::once("kruise-manager").chain(flags.iter().copied())).unwrap();
    let environment = Environment::read(|_| None).unwrap();
    let (gates, _) = Gates::parse(&options.feature_gates(), &gates::Options::default()).unwrap();
    let clock = *sim.clock();
    let settings = Settings {
        options,
        environment,
        gates,
        clock: Clock::from_fn(move || clock.now()),
        random: Random::seeded(seed() + 1),
    };
    let shared = Shared::new(sim.faulty_client(), settings, "v1.33.0", Fence::default(), Registry::default());
    let manager = Manager::new(shared);
    sim.server().register_webhook_service(names::NAMESPACE, names::WEBHOOK_SERVICE, manager.webhooks());
    let mut scope = Scope::default();
    manager.start(&mut scope);
    let (leading, stop) = (manager.clone(), scope.stop());
    scope.spawn("leader", async move { leading.lead(&stop).await.map_err(BoxError::from) });
    Running::Inside { manager: Box::new(manager), _scope: scope }
}

/// A manager as users run it, on free ports of this machine.
pub(crate) async fn process(flags: &[&str], door: Option<&Door>) -> Process {
    let process = spawn(flags, door);
    let ready = eventually("the manager is ready", Duration::from_secs(60), async || {
        match get(process.health, "/readyz").await {
            Some((200, _)) => Look::Yes(()),
            Some((_, body)) => Look::No(body),
            None => Look::No("nobody answers".to_owned()),
        }
    });
    if let Err(message) = ready.await {
        let log = std::fs::read_to_string(process.folder.path().join("log")).unwrap_or_default();
        panic!("{message}\n{log}");
    }
    process
}

/// The same, not awaited. Several managers share a door, as replicas share a Service.
pub(crate) fn spawn(flags: &[&str], door: Option<&Door>) -> Process {
    let [health, metrics, webhooks] = [free_port(), free_port(), free_port()];
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_kruise-manager"))
        .arg(format!("--health-probe-addr=127.0.0.1:{health}"))
        .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
        .arg(format!("--protection-log-path={}", folder.path().join("protection").display()))
        .args(flags)
        .env("WEBHOOK_HOST", "127.0.0.1")
        .env("WEBHOOK_PORT", door.map_or(webhooks, |door| door.port).to_string())
        .arg(format!("--webhook-bind-address=127.0.0.1:{webhooks}"))
        .env("WEBHOOK_CERT_WRITER", "secret")
        .env("WEBHOOK_CERT_DIR", folder.path().join("certificates"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    if let Some(door) = door {
        door.rooms.lock().unwrap().push(webhooks);
    }
    Process { child, health, metrics, folder }
}

/// What a Service is to pods: one port that leads to whoever answers.
pub(crate) struct Door {
    port: u16,
    rooms: std::sync::Arc<std::sync::Mutex<Vec<u16>>>,
    _open: tokio::task::JoinSet<()>,
}

impl Door {
    pub(crate) async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let rooms = std::sync::Arc::new(std::sync::Mutex::new(Vec::<u16>::new()));
        let known = rooms.clone();
        let mut open = tokio::task::JoinSet::new();
        open.spawn(async move {
            let mut visits = tokio::task::JoinSet::new();
            while let Ok((mut visitor, _)) = listener.accept().await {
                let known = known.clone();
                visits.spawn(async move {
                    let rooms = known.lock().unwrap().clone();
                    for port in rooms {
                        if let Ok(mut room) = tokio::net::TcpStream::connect(("127.0.0.1", port)).await {
                            let _ = tokio::io::copy_bidirectional(&mut visitor, &mut room).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { port, rooms, _open: open }
    }
}

impl Process {
    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Lines of the log of refused deletions.
    pub(crate) fn protection_log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("protection/protection.log")).unwrap_or_default()
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

/// Which of all possible histories the embedded cluster has: that of `KRUISE_SEED`, or always the same.
fn seed() -> u64 {
    std::env::var("KRUISE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

/// Runs a scenario with a manager in this process, in virtual time.
pub(crate) fn embedded(flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (sim, cluster) = kruise_testkit::embedded::start(seed()).await;
        let mut stage = Stage::start(cluster, Some(sim), flags).await;
        scenario(&mut stage).await.unwrap();
    });
}

/// Runs a scenario with a manager as a process, on the cluster of `KUBECONFIG`.
pub(crate) fn real(name: &str, flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    match (std::env::var("KRUISE_TEST_MANAGER").as_deref(), crate::SHARES_A_MANAGER && flags.is_empty()) {
        (Ok("shared"), true) => return beside(name, scenario),
        (Ok("shared"), false) | (Ok("own"), true) => return println!("left to the other round"),
        _ => {}
    }
    alone(name, flags, scenario);
}

/// Runs a scenario beside others, on a cluster that has a manager already.
fn beside(name: &str, scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    kruise_testkit::scenario::on_real_cluster(name, async |cluster| {
        scenario(&mut Stage { cluster, manager: None, flags: Vec::new(), sim: None }).await
    });
}

/// The same for a scenario that ends its manager, or looks at it as a process.
pub(crate) fn alone(name: &str, flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    if std::env::var("KRUISE_TEST_MANAGER").as_deref() == Ok("shared") {
        return println!("left to the other round");
    }
    prepared(name, flags, async |stage: &mut Stage| {
        stage.start_manager().await;
        scenario(stage).await
    });
}

/// The same without a manager.
pub(crate) fn prepared(name: &str, flags: &[&str], scenario: impl AsyncFnOnce(&mut Stage) -> Outcome) {
    kruise_testkit::scenario::on_real_cluster(name, async |cluster| {
        let mut stage = Stage::install(cluster, None, flags).await;
        let outcome =
            futures::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(scenario(&mut stage))).await;
        if outcome.is_err()
            && let Some(Running::Process(process)) = &stage.manager
        {
            eprintln!("{}", process.log());
        }
        stage.leave().await;
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
}

/// Makes tests of a scenario of a cluster with a manager: one for each kind of cluster.
macro_rules! managed {
    ($name:ident, $flags:expr) => {
        crate::stage::managed!($name, $flags, real);
    };
    // `alone` for a scenario that ends its manager, or looks at it as a process.
    ($name:ident, $flags:expr, $how:ident) => {
        mod $name {
            #[test]
            fn embedded() {
                crate::stage::embedded(&$flags, super::$name);
            }

            #[test]
            #[ignore = "needs a real cluster; `cargo xtask test` brings one up"]
            fn real() {
                crate::stage::$how(stringify!($name), &$flags, super::$name);
            }
        }
    };
}
pub(crate) use managed;

/// The same for a scenario that only the embedded cluster can play: say in a comment why.
#[allow(unused_macros, reason = "not all scenarios have such")]
macro_rules! embedded_only {
    ($name:ident, $flags:expr) => {
        mod $name {
            #[test]
            fn embedded() {
                crate::stage::embedded(&$flags, super::$name);
            }
        }
    };
}
#[allow(unused_imports, reason = "not all scenarios have such")]
pub(crate) use embedded_only;
